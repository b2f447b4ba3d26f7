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
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

type (
	hostName = hypervisor.HostName
	vmid     = hypervisor.VMID
)

const hostHelp = `Host lists hosts and says what they are for. Hosts add themselves when their
agents start.`

func hostCommand() *cobra.Command {
	var f deskFlags
	c := &cobra.Command{Use: "host", Short: "List, drain, close and give up hosts",
		Long: hostHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	c.AddCommand(hostListCommand(&f), hostShowCommand(&f), drainVerb(&f), hostDeadCommand(&f),
		hostAdoptCommand(&f), hostLabelCommand(&f),
		hostVerb(&f, "undrain", "Take a drain back", (*client.Client).Undrain),
		hostVerb(&f, "close", "Keep new VMs from a host", (*client.Client).Close),
		hostVerb(&f, "open", "Let VMs onto a host again", (*client.Client).Open),
		hostVerb(&f, "alive", "Take back the word that a host is off", (*client.Client).Alive))
	return c
}

// hostVerb is a command that changes one host.
func hostVerb(f *deskFlags, verb, short string,
	do func(*client.Client, context.Context, hostName) (*store.Host, error)) *cobra.Command {
	return &cobra.Command{Use: verb + " HOST", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				h, err := do(&d.Client, ctx, hostName(args[0]))
				return d.saidHost(ctx, h, err)
			})
		}}
}

// saidHost prints a host that was changed.
func (d *desk) saidHost(ctx context.Context, h *store.Host, err error) error {
	if err != nil {
		return err
	}
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	now := client.OfHost(c, h, d.Draining(h), d.Now())
	return d.print(now, func(w io.Writer) error {
		return client.Hosts(w, []client.Host{now}, d.Now())
	})
}

func hostListCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the hosts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				c, err := d.look(ctx)
				if err != nil {
					return err
				}
				s := client.MakeStatus(c, d.Draining, d.Now())
				return d.alarmed(s, d.print(s.Hosts, func(w io.Writer) error {
					return client.Hosts(w, s.Hosts, s.At)
				}))
			})
		}}
}

func hostShowCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "show HOST", Short: "Print all that is stored about a host, as JSON",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				return d.show(ctx, store.Key{Kind: store.HostKind, Name: args[0]})
			})
		}}
}

const deadHelp = `Dead gives an operator's word that a host is off and stays off, where no
device can cut it off. Its VMs are then started on other hosts. If the host runs after all, they
run twice, and what their disks hold is lost: look at the machine first.`

func hostDeadCommand(f *deskFlags) *cobra.Command {
	var word string
	var yes bool
	c := &cobra.Command{Use: "dead HOST --word NAME", Short: "Give your word that a host is off",
		Long: deadHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if word == "" {
				if u, err := user.Current(); err == nil {
					word = u.Username
				}
			}
			return f.at(c, func(ctx context.Context, d *desk) error {
				if err := d.lastHeard(ctx, hostName(args[0])); err != nil {
					return err
				}
				if !yes && !d.confirmed(args[0], word) {
					return errors.New("nothing was done: it was not confirmed")
				}
				h, err := d.Dead(ctx, hostName(args[0]), word)
				return d.saidHost(ctx, h, err)
			})
		}}
	c.Flags().StringVar(&word, "word", "", "`NAME` of who gives it; default: the user")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask whether it is meant")
	return c
}

const adoptHelp = `Adopt gives an operator's word that a host's name belongs to another agent from now
on: because the directory of its agent was lost, or restored from a backup, or because the machine
was replaced. Until then an agent with another identity than the host's is refused its name, and
starts nothing.

What the agent that is adopted does not know of it will start anew. On the same machine a VM whose
process runs is not started again. On another machine nobody but you can see whether VMs still
run on the old one: if they do, they run twice. Look at the old machine first.

With the identity that the host has already, the alarm about a second agent is taken back.`

func hostAdoptCommand(f *deskFlags) *cobra.Command {
	var word, id string
	var yes bool
	c := &cobra.Command{Use: "adopt HOST [--id ID]", Short: "Give a host's name to another agent",
		Long: adoptHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if word == "" {
				if u, err := user.Current(); err == nil {
					word = u.Username
				}
			}
			return f.at(c, func(ctx context.Context, d *desk) error {
				if err := d.lastHeard(ctx, hostName(args[0])); err != nil {
					return err
				}
				if !yes && !d.typed(args[0], "If VMs of the old agent still run on another machine, "+
					"they will run twice.") {
					return errors.New("nothing was done: it was not confirmed")
				}
				h, err := d.Adopt(ctx, hostName(args[0]), id, word)
				return d.saidHost(ctx, h, err)
			})
		}}
	c.Flags().StringVar(&id, "id", "", "`ID` of the agent; default: the one that was refused last")
	c.Flags().StringVar(&word, "word", "", "`NAME` of who gives it; default: the user")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask whether it is meant")
	return c
}

// lastHeard tells what the agents of a host have said last, which is all that can be known here.
func (d *desk) lastHeard(ctx context.Context, name hostName) error {
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
		fmt.Fprintf(d.err, "its agent said last: %d VMs that should not be there run there\n", n)
	}
	for _, v := range c.On(name) {
		if !v.Off() || !v.Ended {
			fmt.Fprintf(d.err, "its agent said last: %s runs there\n", client.Plain(string(v.VM.ID)))
		}
	}
	return nil
}

// typed asks whether something is meant that only a person can know.
func (d *desk) typed(host, warning string) bool {
	fmt.Fprintf(d.err, "%s\nType the name of the host to go on: ", warning)
	answer, _ := bufio.NewReader(d.in).ReadString('\n') // no answer is no
	return strings.TrimSpace(answer) == host
}

// confirmed asks whether a host is really off.
func (d *desk) confirmed(host, word string) bool {
	return d.typed(host, fmt.Sprintf("%s says that %s is off and stays off. If it is not, its VMs "+
		"will run twice.", word, host))
}

func hostLabelCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "label HOST KEY=VALUE…", Short: "Set labels; KEY= takes one off",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			labels := placement.Labels{}
			for _, text := range args[1:] {
				key, value, found := strings.Cut(text, "=")
				if !found || key == "" {
					return fmt.Errorf("%q is no label: write zone=a, or zone= to take it off", text)
				}
				labels[key] = value
			}
			return f.once(c, func(ctx context.Context, d *desk) error {
				h, err := d.Label(ctx, hostName(args[0]), labels)
				return d.saidHost(ctx, h, err)
			})
		}}
}
