package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

const migrateHelp = `Migrate a VM to another host. Without --to the controller chooses the host. If the
requested host refuses, the migration waits. --force=false fails at once; --force overrides policy
and capacity checks (soft constraints), but not hard constraints: what the host cannot do, as with an
incompatible CPU.

With --wait the command prints the progress until the migration has ended.

Exit status: 0 requested, or succeeded, 2 bad input, 3 failed.`

func migrateCommand() *cobra.Command {
	var f deskFlags
	var m client.Move
	var to, priority string
	var force, wait bool
	c := &cobra.Command{Use: "migrate VM [--to HOST]", Short: "Migrate a VM to another host",
		Long: migrateHelp, Args: cobra.ExactArgs(1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		m.VM, m.Target = client.ID(args[0]), hostName(to)
		if c.Flags().Changed("force") {
			m.Force = placement.ForceOf(&force)
		}
		m.Priority = migration.ParsePriority(priority)
		if priority != "" && m.Priority == migration.Lowest {
			return fmt.Errorf("--priority: unknown value %q: use system-critical, user-triggered or "+
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
	flags.StringVar(&to, "to", "", "the target `HOST`")
	flags.BoolVar(&force, "force", false, "override soft constraints: policy and capacity")
	flags.StringVar(&priority, "priority", "", "its `PRIORITY`: system-critical, user-triggered, "+
		"system-maintenance")
	flags.BoolVar(&wait, "wait", false, "print the progress until it has ended")
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
	c := &cobra.Command{Use: "cancel VM|MIGRATION", Short: "Cancel migrations",
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

const drainHelp = `Drain a host: migrate all its VMs to other hosts and place no new ones there, until
godwit host undrain. With --wait the command prints progress and exits when the host is empty or the
remaining VMs cannot be moved.

VMs that cannot be migrated may be shut down. --unmovable says what happens to them: Keep leaves them
on the host, ShutDown shuts them down until the drain is cancelled or an operator starts them, and
Restart starts them on another host, as soon as one takes them. By default, as with KubeVirt, VMs with
the eviction strategy LiveMigrateIfPossible are restarted; with Keep none is, and with the other two
values it applies to VMs with None, too. VMs with LiveMigrate or External are never shut down.

VMs of a group with the policy affinity, and VMs that require each other, leave together: for a host
that takes all of them, or not at all. If the drain is cancelled half way, the rest of a group follows
the VMs that have left to their new host; if that does not take them, they stay and report the reason.
A group with a domain, as "together in one rack", does not move to another domain: its VMs leave one by
one, for hosts in the same domain.

With --wait the progress names VMs that do not run, and why: a VM migrates once it has started.

Exit status: 0 requested, or empty, 2 bad input, 3 some VMs remain.`

func drainCommand() *cobra.Command {
	var f deskFlags
	c := drainVerb(&f)
	f.add(c)
	return c
}

// drainVerb is the command as a part of another one.
func drainVerb(f *deskFlags) *cobra.Command {
	var wait bool
	var timeout time.Duration
	var terms evacuation.Terms
	c := &cobra.Command{Use: "drain HOST", Short: "Migrate all VMs away from a host",
		Long: drainHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if timeout < 0 || timeout > 0 && !wait {
				return errors.New("--timeout: write a positive time, and --wait")
			}
			return f.at(c, func(ctx context.Context, d *desk) error {
				h, err := d.DrainOn(ctx, hostName(args[0]), terms)
				if err != nil || !wait {
					return d.saidHost(ctx, h, err)
				}
				return d.empty(ctx, h.Host.Name, timeout)
			})
		}}
	c.Flags().BoolVar(&wait, "wait", false, "print the progress until the host is empty")
	c.Flags().DurationVar(&timeout, "timeout", 0,
		"`TIME` that --wait waits at most; the drain goes on after it (default: no limit)")
	c.Flags().TextVar(&terms.OnUnmovable, "unmovable", evacuation.ByStrategy,
		"`WHAT` happens to VMs that cannot be migrated:\nKeep, ShutDown or Restart")
	c.Flags().DurationVar(&terms.Grace, "grace", 0,
		"`TIME` for their guests to shut down (default 1m)")
	return c
}

// ErrNotDone: what the command waited for did not happen; the reasons have been printed.
var ErrNotDone = errors.New("not done: the reasons are above")
