package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

type (
	hostName = hypervisor.HostName
	vmid     = hypervisor.VMID
)

const hostHelp = `List hosts and change their state. A host is added when its agent starts for the
first time.`

func hostCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "host", Short: "List, drain, cordon and confirm hosts down",
		Long: hostHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	cordon := func() *cobra.Command {
		return hostVerb(&f, "cordon", "Place no new VMs on a host", (*client.Client).Cordon)
	}
	uncordon := func() *cobra.Command {
		return hostVerb(&f, "uncordon", "Place VMs on a host again", (*client.Client).Uncordon)
	}
	clearDown := func() *cobra.Command {
		return hostVerb(&f, "clear-down", "Withdraw the confirmation that a host is off",
			(*client.Client).ClearDown)
	}
	c.AddCommand(hostListCommand(&f), hostShowCommand(&f), drainVerb(&f), confirmDownCommand(&f),
		hostAdoptCommand(&f), hostLabelCommand(&f), cordon(), uncordon(), clearDown(),
		hostVerb(&f, "undrain", "Cancel a drain", (*client.Client).Undrain),
		formerly("close", cordon(), "host cordon"), formerly("open", uncordon(), "host uncordon"),
		formerly("dead", confirmDownCommand(&f), "host confirm-down"),
		formerly("alive", clearDown(), "host clear-down"))
	return c
}

// hostVerb is a command that changes one host.
func hostVerb(f *sessionFlags, verb, short string,
	do func(*client.Client, context.Context, hostName) (*store.Host, error)) *cobra.Command {
	return &cobra.Command{Use: verb + " HOST", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				h, err := do(&d.Client, ctx, hostName(args[0]))
				return d.saidHost(ctx, h, err)
			})
		}}
}

// saidHost prints a host that was changed.
func (d *session) saidHost(ctx context.Context, h *store.Host, err error) error {
	if err != nil {
		return err
	}
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	now := client.OfHost(c, h, d.settings.Controller.Evacuation, d.Now())
	return d.print(now, func(w io.Writer) error {
		return client.Hosts(w, []client.Host{now}, d.Now())
	})
}

func hostListCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the hosts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				c, err := d.look(ctx)
				if err != nil {
					return err
				}
				s := client.MakeStatus(c, d.settings.Controller.Evacuation, d.Now())
				return d.alarmed(s, d.print(s.Hosts, func(w io.Writer) error {
					return client.Hosts(w, s.Hosts, s.At)
				}))
			})
		}}
}

func hostShowCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "show HOST", Short: "Print all that is stored about a host, as JSON",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				return d.show(ctx, store.Key{Kind: store.HostKind, Name: args[0]})
			})
		}}
}

const confirmDownHelp = `Confirm that a host is powered off and stays off, where no fencing device can
do that. Its VMs are then started on other hosts. If the host runs after all, its VMs run twice and
their disks are corrupted: look at the machine first.`

func confirmDownCommand(f *sessionFlags) *cobra.Command {
	var by string
	var yes bool
	c := &cobra.Command{Use: "confirm-down HOST --by NAME", Short: "Confirm that a host is powered off",
		Long: confirmDownHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" {
				if u, err := user.Current(); err == nil {
					by = u.Username
				}
			}
			return f.at(c, func(ctx context.Context, d *session) error {
				if err := d.lastHeard(ctx, hostName(args[0])); err != nil {
					return err
				}
				if !yes && !d.confirmed(args[0], by) {
					return errors.New("nothing was done: not confirmed")
				}
				h, err := d.ConfirmDown(ctx, hostName(args[0]), by)
				return d.saidHost(ctx, h, err)
			})
		}}
	c.Flags().StringVar(&by, "by", "", "`NAME` of the operator; default: the current user")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	FormerFlag(c.Flags(), "word", "by")
	return c
}

const adoptHelp = `Assign a host's name to another agent: because the directory of the host's agent was
lost or restored from a backup, or because the machine was replaced. Until then an agent with
another identity than the host's is refused the name, and starts nothing.

The adopted agent restarts the host's VMs that it does not know. On the same machine it does not
restart a VM whose process runs. On another machine only you can check whether VMs still run on the
old one: if they do, they run twice. Look at the old machine first.

With the identity that the host already has, the command clears the alarm about a second agent.`

func hostAdoptCommand(f *sessionFlags) *cobra.Command {
	var by, id string
	var yes bool
	c := &cobra.Command{Use: "adopt HOST [--id ID]", Short: "Assign a host's name to another agent",
		Long: adoptHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" {
				if u, err := user.Current(); err == nil {
					by = u.Username
				}
			}
			return f.at(c, func(ctx context.Context, d *session) error {
				if err := d.lastHeard(ctx, hostName(args[0])); err != nil {
					return err
				}
				if !yes && !d.typed(args[0], "If VMs of the old agent still run on another machine, "+
					"they will run twice.") {
					return errors.New("nothing was done: not confirmed")
				}
				h, err := d.Adopt(ctx, hostName(args[0]), id, by)
				return d.saidHost(ctx, h, err)
			})
		}}
	c.Flags().StringVar(&id, "id", "", "`ID` of the agent; default: the one that was refused last")
	c.Flags().StringVar(&by, "by", "", "`NAME` of the operator; default: the current user")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	FormerFlag(c.Flags(), "word", "by")
	return c
}

// lastHeard prints the last report of the host's agent, which is all that is known here.
func (d *session) lastHeard(ctx context.Context, name hostName) error {
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	h := c.Host(name)
	if h == nil {
		return d.Missing(ctx, store.Key{Kind: store.HostKind, Name: string(name)})
	}
	if h.Identity != nil {
		fmt.Fprintf(d.err, "%s belongs to identity %v\n", name, *h.Identity)
	}
	if r := h.Refused; r != nil {
		fmt.Fprintf(d.err, "refused at %s: identity %v: %s\n", r.At.Format(time.RFC3339), r.Identity,
			client.Plain(r.Why))
	}
	if n := len(h.Strays); n > 0 {
		fmt.Fprintf(d.err, "last report of its agent: %d VMs run there that should not\n", n)
	}
	for _, v := range c.On(name) {
		if !v.Off() || !v.Ended {
			fmt.Fprintf(d.err, "last report of its agent: %s runs there\n", client.Plain(string(v.VM.ID)))
		}
	}
	return nil
}

// typed asks for a confirmation: the operator types the name of the host.
func (d *session) typed(host, warning string) bool {
	fmt.Fprintf(d.err, "%s\nType the name of the host to continue: ", warning)
	answer, _ := bufio.NewReader(d.in).ReadString('\n') // no answer is no
	return strings.TrimSpace(answer) == host
}

// confirmed asks whether a host is really off.
func (d *session) confirmed(host, by string) bool {
	return d.typed(host, fmt.Sprintf("%s confirms that %s is off and stays off. If it is not, its VMs "+
		"will run twice.", by, host))
}

func hostLabelCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "label HOST KEY=VALUE…", Short: "Set labels; KEY= removes one",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			labels, err := parseLabels(args[1:])
			if err != nil {
				return err
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				h, err := d.LabelHost(ctx, hostName(args[0]), labels)
				return d.saidHost(ctx, h, err)
			})
		}}
}

// parseLabels reads labels: "zone=a", and "zone=" for one that is to be removed.
func parseLabels(words []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("%q is not a label: write zone=a, or zone= to delete the label", word)
		}
		labels[key] = value
	}
	return labels, nil
}
