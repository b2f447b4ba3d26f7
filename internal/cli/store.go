package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

func storeCommand() *cobra.Command {
	var f deskFlags
	c := &cobra.Command{Use: "store", Short: "Reconcile a store that was set back",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	c.AddCommand(reconcileCommand(&f))
	return c
}

const reconcileHelp = `Reconcile is for a store that was set back: restored from a backup or a
snapshot, or made anew. Agents and controllers recognise that. Nothing is started, stopped or removed
then, VMs run on, and every agent stores what its host has.

Without --write it shows what the hosts say, where that differs from the store, and which conflicts
only you can decide. With --write it writes the truth to the store, forward: then agents and
controllers go on. It refuses while a host has not told what it has, and while a conflict is not
decided.

A host that is off cannot tell. With --without HOST you give your word that it is off; what is
known of its VMs stays as it is. A VM that runs on such a host after all may run twice.

Where the store is believed but wrong, --doubt stops all agents and controllers, so that the hosts
tell what they have. Then ask again.

Exit status: 0 done, or nothing is to be done, 2 bad input or refused, 4 the store was set back.`

// reconcileFlags are those of the command.
type reconcileFlags struct {
	by      string
	write   bool
	doubt   bool
	without []string
	decide  []string
}

func reconcileCommand(f *deskFlags) *cobra.Command {
	var r reconcileFlags
	c := &cobra.Command{Use: "reconcile [--write --by NAME]",
		Short: "Find out where VMs are when the store was set back", Long: reconcileHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error { return d.reconcile(ctx, r) })
		}}
	flags := c.Flags()
	flags.StringVar(&r.by, "by", "", "`NAME` of who does it; default: the user")
	flags.BoolVar(&r.write, "write", false, "write the truth to the store")
	flags.BoolVar(&r.doubt, "doubt", false, "stop all agents and controllers until it is reconciled")
	flags.StringSliceVar(&r.without, "without", nil, "`HOST` that is off, by your word")
	flags.StringSliceVar(&r.decide, "decide", nil, "`VM=HOST` for a conflict; VM=none deletes its record")
	return c
}

// input reads what is known, with an operator's decisions.
func (r *reconcileFlags) input(ctx context.Context, store store.Store) (daemon.Input, error) {
	in, err := daemon.ReadReconcile(ctx, store)
	in.Decide = map[hypervisor.VMID]hypervisor.HostName{}
	for _, text := range r.decide {
		vm, host, found := strings.Cut(text, "=")
		if !found || vm == "" || host == "" {
			return in, fmt.Errorf("--decide: %q is no decision: write VM=HOST, or VM=none", text)
		}
		in.Decide[client.ID(vm)] = hostName(host)
	}
	for _, h := range r.without {
		in.Without = append(in.Without, hostName(h))
	}
	return in, err
}

func (d *desk) reconcile(ctx context.Context, r reconcileFlags) error {
	records, is := d.past.(store.Historian)
	if !is {
		return errors.New("this store does not know its past")
	}
	if r.by == "" {
		if u, err := user.Current(); err == nil {
			r.by = u.Username
		}
	}
	if r.by == "" {
		return errors.New("--by must be given: say who does it")
	}
	if r.doubt {
		return daemon.ReconcileDoubt(ctx, records, "operator "+r.by, "it is wrong", d.Now())
	}
	h, instance, err := records.History(ctx)
	if err != nil {
		return err
	}
	in, err := r.input(ctx, records)
	if err != nil {
		return err
	}
	plan := daemon.PlanReconcile(in)
	why := h.Judge(store.Mark{}, instance, 0)
	if why == nil && len(plan.Told) == 0 {
		fmt.Fprintln(d.err, "the store was not set back: there is nothing to reconcile")
		if r.write {
			return errors.New("nothing was written")
		}
		return nil
	}
	err = d.print(plan, func(w io.Writer) error { return accounts(w, in, plan, why) })
	switch {
	case err != nil:
		return err
	case r.write:
		return plan.Write(ctx, records, in, r.by, d.Now())
	}
	return ErrAlarm
}

// accounts prints what the hosts say, and what is to be written.
func accounts(out io.Writer, in daemon.Input, plan *daemon.Result, why *store.StoreError) error {
	if why != nil {
		fmt.Fprintf(out, "the store was set back: %s\n\n", client.Plain(why.Err.Error()))
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tTOLD\tVMS THERE")
	for _, h := range in.Hosts {
		if a := h.Account; a != nil {
			fmt.Fprintf(t, "%s\t%s\t%s\n", client.Plain(string(h.Host.Name)), a.At.Format("15:04:05"),
				client.Plain(there(a)))
		}
	}
	for _, h := range plan.Missing {
		fmt.Fprintf(t, "%s\tnot yet\tby the store: %s\n", client.Plain(string(h)),
			client.Plain(strings.Join(said(in, h), ", ")))
	}
	if len(plan.Verdicts) > 0 {
		fmt.Fprintln(t, "\nVM\tSTORE SAYS\tIS\tWHY")
	}
	for _, v := range plan.Verdicts {
		is, reason := string(v.Is), v.Why
		if v.Conflict != "" {
			is, reason = "CONFLICT", v.Conflict
		} else if v.Deleted {
			is = "deleted"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", client.Plain(string(v.VM)), client.Plain(string(v.Was)),
			client.Plain(is), client.Plain(reason))
	}
	for _, m := range plan.Obsolete {
		fmt.Fprintf(t, "\nmigration %s is of the past, and is removed", client.Plain(string(m.Spec.ID)))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// said lists the VMs that were on a host by what the store and the other hosts say: all that can be
// known here of one that has not told.
func said(in daemon.Input, host hypervisor.HostName) []string {
	var list []string
	add := func(vm hypervisor.VMID) {
		if !slices.Contains(list, string(vm)) {
			list = append(list, string(vm))
		}
	}
	for _, v := range in.VMs {
		if v.Host == host {
			add(v.VM.ID)
		}
	}
	for _, h := range in.Hosts {
		if h.Account == nil {
			continue
		}
		for _, has := range h.Account.VMs {
			if has.Left != nil && has.Left.To == host {
				add(has.VM)
			}
		}
	}
	slices.Sort(list)
	return list
}

// there lists the VMs that a host says that it has.
func there(a *store.Account) string {
	const most = 8
	var list []string
	for _, h := range a.VMs {
		if h.State != hypervisor.Absent {
			list = append(list, fmt.Sprintf("%s %s", h.VM, strings.ToLower(h.State.String())))
		}
	}
	if len(list) > most {
		list = append(list[:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, ", ")
}
