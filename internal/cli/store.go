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
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/recovery"
	"github.com/godwit-vm/godwit/store"
)

func storeCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "store", Short: "Back up, check, restore and reconcile the store",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	c.AddCommand(backupCommand(&f), checkCommand(&f), restoreCommand(&f), rebuildCommand(&f),
		reconcileCommand(&f))
	return c
}

const reconcileHelp = `Reconcile a store that is older than it was: restored from a backup or a snapshot,
or created anew. Agents and controllers detect that. Then they start, stop and remove nothing, VMs
keep running, and every agent stores a report of the VMs on its host.

Without --write the command prints the hosts' reports, where they differ from the store, and the
conflicts that only you can decide. With --write it writes the reported state to the store; then
agents and controllers continue. It refuses while a report is missing, and while a conflict is not
decided.

A host that is off cannot report. --without HOST confirms that it is off; the records of its VMs
stay as they are. If such a host runs after all, its VMs may run twice.

If the store is accepted but wrong, --doubt stops all agents and controllers, so that the hosts
report. Then run the command again.

Exit status: 0 done, or nothing to do, 2 bad input or refused, 4 the store was set back.`

// reconcileFlags are those of the command.
type reconcileFlags struct {
	by      string
	write   bool
	doubt   bool
	without []string
	decide  []string
}

func reconcileCommand(f *sessionFlags) *cobra.Command {
	var r reconcileFlags
	c := &cobra.Command{Use: "reconcile [--write --by NAME]",
		Short: "Compare the hosts' VMs with a store that was set back", Long: reconcileHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *session) error { return d.reconcile(ctx, r) })
		}}
	flags := c.Flags()
	flags.StringVar(&r.by, "by", "", "`NAME` of the operator; default: the current user")
	flags.BoolVar(&r.write, "write", false, "write the hosts' state to the store")
	flags.BoolVar(&r.doubt, "doubt", false, "stop all agents and controllers until the store is reconciled")
	flags.StringSliceVar(&r.without, "without", nil, "`HOST` that you confirm to be off")
	flags.StringSliceVar(&r.decide, "decide", nil, "`VM=HOST` for a conflict; VM=none deletes its record")
	return c
}

// input reads what is known, with an operator's decisions.
func (r *reconcileFlags) input(ctx context.Context, store store.Store, now time.Time) (recovery.Input, error) {
	in, err := recovery.Read(ctx, store, now)
	in.Decide = map[hypervisor.VMID]hypervisor.HostName{}
	for _, text := range r.decide {
		vm, host, found := strings.Cut(text, "=")
		if !found || vm == "" || host == "" {
			return in, fmt.Errorf("--decide: %q is not a decision: write VM=HOST, or VM=none", text)
		}
		in.Decide[client.ID(vm)] = hostName(host)
	}
	for _, h := range r.without {
		in.Without = append(in.Without, hostName(h))
	}
	return in, err
}

func (d *session) reconcile(ctx context.Context, r reconcileFlags) error {
	records, is := d.past.(store.Historian)
	if !is {
		return errors.New("this store keeps no history")
	}
	if r.by == "" {
		if u, err := user.Current(); err == nil {
			r.by = u.Username
		}
	}
	if r.by == "" {
		return errors.New("--by is missing: name the operator")
	}
	if r.doubt {
		return recovery.Doubt(ctx, records, "operator "+r.by, "it is wrong", d.Now())
	}
	h, instance, err := records.History(ctx)
	if err != nil {
		return err
	}
	in, err := r.input(ctx, records, d.Now())
	if err != nil {
		return err
	}
	plan := recovery.Plan(in)
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

// accounts prints the reports of the hosts, and what is to be written.
func accounts(out io.Writer, in recovery.Input, plan *recovery.Result, why *store.StoreError) error {
	if why != nil {
		fmt.Fprintf(out, "the store was set back: %s\n\n", client.Plain(why.Err.Error()))
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tREPORTED\tVMS THERE")
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
	for _, h := range plan.Unknown {
		fmt.Fprintf(t, "%s\toff, by --without\tneither the store nor a host knows it: check the name\n", client.Plain(string(h)))
	}
	if len(plan.Findings) > 0 {
		fmt.Fprintln(t, "\nVM\tSTORE SAYS\tIS\tWHY")
	}
	for _, v := range plan.Findings {
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
		fmt.Fprintf(t, "\nmigration %s is obsolete, and is removed", client.Plain(string(m.Spec.ID)))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// said lists the VMs of a host that has not reported, according to the store and the other hosts.
func said(in recovery.Input, host hypervisor.HostName) []string {
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

// there lists the VMs that a host reports.
func there(a *store.HostInventory) string {
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
