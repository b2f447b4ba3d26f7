package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/store"
)

const applyHelp = `Carry out a plan of godwit plan drain -o FILE. The hosts that it empties are cordoned, and
stay so until godwit host uncordon. The controller then requests the moves in their order: the next wave
begins when all moves of the one before are settled. The limits of the controller hold;
a warning says where the times of the plan hold with others than --config, or else the defaults, have.

At its moment every move is checked again, with all conditions that the controller has for a target:

  - a VM that does not exist, was stopped, or has moved elsewhere, is skipped;
  - a target that refuses the VM, or fails to take it three times, is given up: a VM that must leave its
    host goes to any host that takes it, after all waves; others are skipped. A strict plan, which keeps
    room for failures, moves no VM elsewhere;
  - another migration of a VM is waited for, up to ten minutes.

The plan is in the store, so a controller that is killed goes on where it was, and no VM is migrated
twice. One plan is carried out at a time. With --wait the command prints progress until the plan has
ended; if it is interrupted, the plan goes on.

pause requests no more migrations, and takes back those that have not begun; resume goes on; abort ends the
plan. Migrations that have begun finish. Without NAME they are about the plan that is carried out.

--json prints one object: name, state (running, paused, aborted, also when it has ended, ended), hosts, wave, waves, done,
elsewhere, skipped, applied, ended, and moves: vm, source, target, wave, state (waits, asked, withdrawn,
done, skipped), host (where the VM has gone), why.

Exit status: 0 applied, or every move done, 2 bad input or refused, 3 some moves were skipped.`

func applyCommand() *cobra.Command {
	var f sessionFlags
	var name string
	var wait bool
	c := &cobra.Command{Use: "apply PLAN", Short: "Carry out a plan of godwit plan drain",
		Long: applyHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := readDocument(args[0])
			if err != nil {
				return err
			}
			p, err := drainOf(doc, name)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return f.at(c, func(ctx context.Context, d *session) error {
				d.warnLimits(doc)
				for _, vm := range doc.NotMoved {
					fmt.Fprintf(d.err, "%s is not moved by the plan\n", vm)
				}
				stored, err := d.Apply(ctx, p)
				if err != nil || !wait {
					return d.saidPlan(stored, err)
				}
				return d.planned(ctx, stored.Name)
			})
		}}
	f.add(c)
	c.Flags().StringVar(&name, "name", "", "`NAME` of the plan; default: the file's")
	c.Flags().BoolVar(&wait, "wait", false, "print the progress until the plan has ended")
	c.AddCommand(planStatusCommand(&f), planWish(&f, "pause", "Request no more migrations", store.PausePlan),
		planWish(&f, "resume", "Go on with a plan that was paused", store.RunPlan),
		planWish(&f, "abort", "End a plan; migrations that have begun finish", store.AbortPlan))
	return c
}

// readDocument reads a plan from a file.
func readDocument(path string) (*plan.Document, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := yamldoc.ReadAll(path, file, yamldoc.MaxSize)
	if err != nil {
		return nil, err
	}
	doc, err := yamldoc.Parse(path, 1, data)
	if err != nil {
		return nil, err
	}
	var d plan.Document
	if err := doc.Decode(&d); err != nil {
		return nil, err
	}
	report := yamldoc.Report{File: path}
	d.Validate(func(field, format string, args ...any) {
		report.Errorf(doc.Line(field), field, format, args...)
	})
	return &d, report.Err()
}

// writeDocument writes a plan to a file.
func writeDocument(path string, d *plan.Document) error {
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// writePlan writes a plan to a file, unless there is nothing in it, and says which limits it takes that are not
// those of today.
func writePlan(c *cobra.Command, path string, d *plan.Document, present *plan.DocumentLimits, nothing bool) error {
	if nothing {
		fmt.Fprintf(Plain(c.ErrOrStderr()), "%s is not written: nothing of the plan can be carried out\n", path)
		return nil
	}
	assumes(Plain(c.ErrOrStderr()), path, d, present)
	return writeDocument(path, d)
}

// drainOf returns a document as it is stored.
func drainOf(d *plan.Document, name string) (*store.Plan, error) {
	if len(d.Batches) != 1 || len(d.Home) > 0 {
		return nil, errors.New("it is a plan for maintenance: godwit maintenance run carries it out")
	}
	if name == "" {
		name = d.Name
	}
	p := client.RecordOf(name, d.Batches[0].Hosts, d.Batches[0].Waves, d.Strict)
	if u, err := user.Current(); err == nil {
		p.By = u.Username
	}
	return p, nil
}

// planName names a plan after its hosts and when it was made.
func planName(what string, hosts []hypervisor.HostName, now time.Time) string {
	name := what
	for i, h := range hosts {
		if i == 2 {
			name += fmt.Sprintf("-and-%d-more", len(hosts)-i)
			break
		}
		name += "-" + strings.ReplaceAll(string(h), "/", "-")
	}
	return name + "-" + now.UTC().Format("20060102T150405")
}

// saidPlan prints a plan that was changed.
func (d *session) saidPlan(p *store.Plan, err error) error {
	if err != nil {
		return err
	}
	r := client.OfPlan(p)
	return d.print(r, r.Table)
}

// planned prints the progress of a plan until it has ended.
func (d *session) planned(ctx context.Context, name string) error {
	last := ""
	return d.each(ctx, func(c *client.Cluster) (bool, error) {
		p := c.Plan(name)
		if p == nil {
			return true, fmt.Errorf("plan %s is gone", name)
		}
		r := client.OfPlan(p)
		if line := r.Line(); line != last {
			fmt.Fprintln(d.err, line)
			last = line
		}
		if p.Ended.IsZero() {
			return false, nil
		}
		err := d.print(r, r.Table)
		if err == nil && r.Skipped > 0 {
			err = ErrNotDone
		}
		return true, err
	})
}

func planStatusCommand(f *sessionFlags) *cobra.Command {
	return progressCommand(f, "List the plans, or print how far one is", store.PlanKind,
		func(d *session, c *client.Cluster, name string) (bool, error) {
			p := c.Plan(name)
			if p == nil {
				return false, nil
			}
			return true, d.saidPlan(p, nil)
		}, func(d *session, c *client.Cluster) error {
			plans := []client.PlanReport{}
			for _, p := range c.Plans() {
				plans = append(plans, client.OfPlan(p))
			}
			return d.print(plans, func(w io.Writer) error { return client.PlanList(w, plans) })
		})
}

// progressCommand lists what the controller carries out of a kind, or prints how far the one of a name is, if there
// is one.
func progressCommand(f *sessionFlags, short string, kind store.Kind, one func(d *session, c *client.Cluster, name string) (bool, error),
	all func(*session, *client.Cluster) error) *cobra.Command {
	return &cobra.Command{Use: "status [NAME]", Short: short, Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				c, err := d.look(ctx)
				if err != nil {
					return err
				}
				if len(args) == 0 {
					return all(d, c)
				}
				is, err := one(d, c, args[0])
				if err == nil && !is {
					err = d.Missing(ctx, store.Key{Kind: kind, Name: args[0]})
				}
				return err
			})
		}}
}

// planWish is a command that says what becomes of a plan.
func planWish(f *sessionFlags, verb, short string, wish store.PlanWish) *cobra.Command {
	return wishCommand(f, verb, short, func(ctx context.Context, d *session, name string) error {
		p, err := d.WishPlan(ctx, name, wish)
		return d.saidPlan(p, err)
	})
}

// wishCommand is a command about what the controller carries out; without a name, about what has not ended.
func wishCommand(f *sessionFlags, verb, short string, wish func(context.Context, *session, string) error) *cobra.Command {
	return &cobra.Command{Use: verb + " [NAME]", Short: short, Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error { return wish(ctx, d, strings.Join(args, "")) })
		}}
}
