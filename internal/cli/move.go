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

Exit status: 0 requested, or succeeded, 2 bad input, 3 failed: docs/failed-migrations.md says what the
reasons mean, and what to do.`

func migrateCommand() *cobra.Command {
	var f sessionFlags
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
		return f.at(c, func(ctx context.Context, d *session) error {
			asked, err := d.Migrate(ctx, m)
			if err != nil || !wait {
				return d.saidMoves(ctx, []*store.Migration{asked}, err)
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
func (d *session) saidMoves(ctx context.Context, list []*store.Migration, err error) error {
	if err != nil {
		return err
	}
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	moves := []client.MoveReport{}
	for _, m := range list {
		moves = append(moves, c.ReportMove(m, d.Now()))
	}
	return d.print(moves, func(w io.Writer) error { return client.Moves(w, moves, d.Now()) })
}

func cancelCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "cancel VM|MIGRATION", Short: "Cancel migrations",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				asked, err := d.Cancel(ctx, args[0])
				return d.saidMoves(ctx, asked, err)
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

With --by the controller watches the deadline while the drain runs: it forecasts from what was measured when the host
is empty, at a median and with 95 %. When that is late it takes remedies, one at a time: those VMs leave first that take
longest by what agents have measured (godwit agent --measure-dirty-rate), where that is another order; then what you have
allowed: it raises limits up to --max-per-source and --max-per-cluster, lets migrations that begin from then on use
auto-converge, then post-copy. Each is in the audit log. When none is left it says that the deadline cannot be met, or may be missed, and what would
help: in the log, and with --wait.

With --wait the progress names VMs that do not run, and why: a VM migrates once it has started.

Exit status: 0 requested, or empty, 2 bad input, 3 some VMs remain.`

func drainCommand() *cobra.Command {
	var f sessionFlags
	c := drainVerb(&f)
	f.add(c)
	return c
}

// drainVerb is the command as a part of another one.
func drainVerb(f *sessionFlags) *cobra.Command {
	var wait bool
	var timeout time.Duration
	var terms evacuation.Terms
	var until string
	var by evacuation.Deadline
	c := &cobra.Command{Use: "drain HOST", Short: "Migrate all VMs away from a host",
		Long: drainHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if timeout < 0 || timeout > 0 && !wait {
				return errors.New("--timeout: write a positive time, and --wait")
			}
			var err error
			if by.By, err = drainUntil(until, time.Now()); err != nil {
				return err
			}
			if until == "" && by != (evacuation.Deadline{}) {
				return errors.New("--max-per-source, --max-per-cluster, --allow-auto-converge and --allow-post-copy need --by: " +
					"they are for a drain that is late")
			}
			return f.at(c, func(ctx context.Context, d *session) error {
				if until != "" { // before anything is changed
					if err := d.CheckDeadline(hostName(args[0]), by); err != nil {
						return err
					}
				}
				h, err := d.DrainOn(ctx, hostName(args[0]), terms)
				if err == nil && until != "" {
					h, err = d.DrainUntil(ctx, hostName(args[0]), by)
				}
				if err != nil || !wait {
					return d.saidHost(ctx, h, err)
				}
				return d.empty(ctx, h.Host.Name, timeout)
			})
		}}
	c.Flags().BoolVar(&wait, "wait", false, "print the progress until the host is empty")
	c.Flags().DurationVar(&timeout, "timeout", 0,
		"`TIME` that --wait waits at most; the drain goes on after it (default: no limit)")
	c.Flags().StringVar(&until, "by", "", "be empty at this `TIME`, as 06:00 or \"2026-12-06 06:00\": see above")
	c.Flags().IntVar(&by.PerSource, "max-per-source", 0, "a late drain may let this `NUMBER` of VMs leave the host at once")
	c.Flags().IntVar(&by.PerCluster, "max-per-cluster", 0, "`NUMBER` that may move at once in the cluster where a drain with --by is late")
	c.Flags().BoolVar(&by.AutoConverge, "allow-auto-converge", false, "a late drain may slow guests down")
	c.Flags().BoolVar(&by.PostCopy, "allow-post-copy", false, "a late drain may switch migrations to post-copy")
	c.Flags().TextVar(&terms.OnUnmovable, "unmovable", evacuation.ByStrategy,
		"`WHAT` happens to VMs that cannot be migrated:\nKeep, ShutDown or Restart")
	c.Flags().DurationVar(&terms.Grace, "grace", 0,
		graceUsage)
	return c
}

// drainUntil reads a time, or a time of the day, which is the next one; "" is none.
func drainUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse("15:04", text); err == nil {
		return next(now, t), nil
	}
	t, err := time.ParseInLocation(clockFormat, text, now.Location())
	if err != nil {
		return t, fmt.Errorf("--by %q is not a time, as 06:00 or \"2026-12-06 06:00\"", text)
	}
	return t, nil
}

// ErrNotDone: what the command waited for did not happen; the reasons have been printed.
var ErrNotDone = errors.New("not done: the reasons are above")
