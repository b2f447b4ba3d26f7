package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

const migrateHelp = `Migrate asks for a VM to be moved to another host. Without --to the
controller chooses it. A host that is asked for and refuses is waited for; with --force=false it
is a conflict at once, and with --force policy and capacity are overruled, physics is not.

With --wait it tells how far it is until it has ended.

Exit status: 0 asked for, or succeeded, 2 bad input, 3 it failed.`

func migrateCommand() *cobra.Command {
	var f deskFlags
	var m client.Move
	var to, priority string
	var force, wait bool
	c := &cobra.Command{Use: "migrate VM [--to HOST]", Short: "Move a VM to another host",
		Long: migrateHelp, Args: cobra.ExactArgs(1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		m.VM, m.Target = client.ID(args[0]), hostName(to)
		if c.Flags().Changed("force") {
			m.Force = placement.ForceOf(&force)
		}
		m.Priority = migration.ParsePriority(priority)
		if priority != "" && m.Priority == migration.Lowest {
			return fmt.Errorf("--priority: %q is none: use system-critical, user-triggered or "+
				"system-maintenance", priority)
		}
		return f.at(c, func(ctx context.Context, d *desk) error {
			asked, err := d.Migrate(ctx, m)
			if err != nil || !wait {
				return d.saidMoves([]*store.Migration{asked}, err)
			}
			return d.follow(ctx, asked.Spec.ID)
		})
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&to, "to", "", "the `HOST` to move it to")
	flags.BoolVar(&force, "force", false, "overrule policy and capacity")
	flags.StringVar(&priority, "priority", "", "its `PRIORITY`: system-critical, user-triggered, "+
		"system-maintenance")
	flags.BoolVar(&wait, "wait", false, "tell how far it is until it has ended")
	return c
}

// saidMoves prints migrations that were changed.
func (d *desk) saidMoves(list []*store.Migration, err error) error {
	if err != nil {
		return err
	}
	moves := []client.MoveReport{}
	for _, m := range list {
		moves = append(moves, client.OfMove(m, d.Now()))
	}
	return d.print(moves, func(w io.Writer) error { return client.Moves(w, moves, d.Now()) })
}

func cancelCommand() *cobra.Command {
	var f deskFlags
	c := &cobra.Command{Use: "cancel VM|MIGRATION", Short: "Ask for migrations to end",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				asked, err := d.Cancel(ctx, args[0])
				return d.saidMoves(asked, err)
			})
		}}
	f.add(c)
	return c
}

const drainHelp = `Drain asks for every VM to leave a host, and keeps others from it, until
godwit host undrain. With --wait it tells how far that is, and ends when nothing runs there any
more, or when nobody who is left will leave.

What cannot be migrated may be shut down. --unmovable says what becomes of such VMs: Keep leaves
them on the host, ShutDown shuts them down until the drain is withdrawn or an operator starts them,
and Restart starts them on another host, as soon as one takes them. By default that is so, as with
KubeVirt, for VMs with the eviction strategy LiveMigrateIfPossible; with Keep for none, and with the
others for those with None, too. VMs with LiveMigrate or External are never shut down.

VMs of a group with the policy affinity, and VMs that ask to be with each other, leave together: for a
host that takes all of them, or not at all. When the drain is withdrawn half way, those of a group of
which a part has left follow it to its new host; where that does not take them, they stay and say why.
A group with a domain, as "together in one rack", does not move to another domain: its VMs leave one by
one, for hosts of the domain that they are in.

Exit status: 0 asked for, or empty, 2 bad input, 3 somebody stays.`

func drainCommand() *cobra.Command {
	var f deskFlags
	c := drainVerb(&f)
	f.add(c)
	return c
}

// drainVerb is the command as a part of another one.
func drainVerb(f *deskFlags) *cobra.Command {
	var wait bool
	var terms evacuation.Terms
	c := &cobra.Command{Use: "drain HOST", Short: "Ask for every VM to leave a host",
		Long: drainHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.at(c, func(ctx context.Context, d *desk) error {
				h, err := d.DrainOn(ctx, hostName(args[0]), terms)
				if err != nil || !wait {
					return d.saidHost(ctx, h, err)
				}
				return d.empty(ctx, h.Host.Name)
			})
		}}
	c.Flags().BoolVar(&wait, "wait", false, "tell how far it is until the host is empty")
	c.Flags().TextVar(&terms.OnUnmovable, "unmovable", evacuation.ByStrategy,
		"`WHAT` becomes of VMs that cannot be migrated:\nKeep, ShutDown or Restart")
	c.Flags().DurationVar(&terms.Grace, "grace", 0,
		"`TIME` that their guests have to shut down (default 1m)")
	return c
}

// ErrNotDone says that what was waited for has not come about; why has been reported.
var ErrNotDone = errors.New("not done: the reasons are above")
