package desk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/daemon/operate"
	"github.com/godwit-vm/godwit/daemon/report"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/record"
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
		hostLabelCommand(&f),
		hostVerb(&f, "undrain", "Take a drain back", (*operate.Desk).Undrain),
		hostVerb(&f, "close", "Keep new VMs from a host", (*operate.Desk).Close),
		hostVerb(&f, "open", "Let VMs onto a host again", (*operate.Desk).Open),
		hostVerb(&f, "alive", "Take back the word that a host is off", (*operate.Desk).Alive))
	return c
}

// hostVerb is a command that changes one host.
func hostVerb(f *deskFlags, verb, short string,
	do func(*operate.Desk, context.Context, hostName) (*record.Host, error)) *cobra.Command {
	return &cobra.Command{Use: verb + " HOST", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				h, err := do(&d.Desk, ctx, hostName(args[0]))
				return d.saidHost(ctx, h, err)
			})
		}}
}

// saidHost prints a host that was changed.
func (d *desk) saidHost(ctx context.Context, h *record.Host, err error) error {
	if err != nil {
		return err
	}
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	now := report.OfHost(c, h, d.Draining(h), d.Now())
	return d.print(now, func(w io.Writer) error {
		return report.Hosts(w, []report.Host{now}, d.Now())
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
				s := report.Make(c, d.Draining, d.Now())
				return d.print(s.Hosts, func(w io.Writer) error {
					return report.Hosts(w, s.Hosts, s.At)
				})
			})
		}}
}

func hostShowCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "show HOST", Short: "Print all that is stored about a host, as JSON",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				return d.show(ctx, record.Key{Kind: record.HostKind, Name: args[0]})
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

// confirmed asks whether a host is really off.
func (d *desk) confirmed(host, word string) bool {
	fmt.Fprintf(d.err, "%s says that %s is off and stays off. If it is not, its VMs will run "+
		"twice.\nType the name of the host to go on: ", word, host)
	answer, _ := bufio.NewReader(d.in).ReadString('\n') // no answer is no
	return strings.TrimSpace(answer) == host
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
