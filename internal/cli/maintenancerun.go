package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/store"
)

const maintenanceRunHelp = `Carry out maintenance, batch after batch: a plan of godwit plan maintenance -o FILE, or one
that names only hosts. The controller takes each host of a batch through these phases:

  draining   it is cordoned, the moves of the plan are carried out, and what they leave is drained
  hook       it is empty: it may be rebooted and patched now
  check      its agent has started anew and is well, its software is as --software says, and --check passes
  done       it takes VMs again

The next batch begins when all hosts are through. With --return the VMs of a batch go back first; the
moves home of a plan come after all batches.

The hook is the command of --hook, which runs on this machine, once for each host, and only after that was
stored. Without it the run waits for godwit maintenance continue HOST. A COMMAND is words between blanks,
or a JSON list of words; no shell reads it. {host} stands for the host, which is appended where that
is missing. GODWIT_HOST and GODWIT_MAINTENANCE are in its environment.

The run is in the store: controllers and this command may be killed. The command is repeated to run
hooks again; a hook that had begun is then not run a second time: the run stops, and you say
godwit maintenance continue HOST, or with --again that it is to run once more.

With --window hosts are emptied and hooks begin within windows only, and a batch of a plan begins where its
window is as long as the batch needs; checks go on outside.

A run stops when a host does not become empty, a hook fails or takes too long, a check does not pass in
time, or an operator uncordons a host. Nothing more is drained then, and the command of --on-failure
runs, with GODWIT_REASON in its environment. Hosts whose hook has ended are still checked. resume goes on; every time limit begins anew. abort uncordons the
hosts that the run has cordoned; those whose hook has begun stay cordoned, unless they pass the check.

--json of status prints one object: name, state (running, outside its windows, paused, stopped, aborted, also when it has
ended, ended), why, batch, batches, done, hosts (host, batch, phase, why), started, ended, begins (the next window).

Exit status: 0 started, or every host done, 2 bad input or refused, 3 it has stopped, or was aborted.`

// maintenanceGroup is the command above those that carry maintenance out.
func maintenanceGroup() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "maintenance", Short: "Carry out a rolling reboot, batch after batch"}
	f.add(c)
	c.AddCommand(maintenanceRunCommand(&f), runStatusCommand(&f), continueCommand(&f),
		runWish(&f, "pause", "Empty no more hosts, and begin no more hooks", store.PausePlan),
		runWish(&f, "resume", "Go on with a run that was paused, or has stopped", store.RunPlan),
		runWish(&f, "abort", "End a run, and uncordon what it has cordoned", store.AbortPlan))
	return c
}

// runFlags are the flags of maintenance run.
type runFlags struct {
	run                    store.Maintenance
	hook, check, onFailure string
	wait                   bool
	calendar               calendarFlags
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.run.Name, "name", "", "`NAME` of the run; default: the file's")
	flags.StringVar(&f.hook, "hook", "", "`COMMAND` that services a host that is empty")
	flags.StringVar(&f.check, "check", "", "`COMMAND` that must pass before a host takes VMs; it is repeated until then")
	flags.StringVar(&f.onFailure, "on-failure", "", "`COMMAND` to run when the run stops")
	flags.BoolVar(&f.run.Return, "return", false, "take the VMs of each batch back afterwards")
	flags.BoolVar(&f.run.SameStart, "no-restart", false, "the hook does not start the agent anew")
	flags.StringVar(&f.run.Software, "software", "", "`TEXT` that the software of a host must begin with afterwards: \"QEMU 9\"")
	flags.DurationVar(&f.run.DrainWithin, "drain-timeout", 6*time.Hour, "stop when a host is not empty after this `TIME`")
	flags.DurationVar(&f.run.HookWithin, "hook-timeout", time.Hour, "stop when a hook takes longer than this `TIME`")
	flags.DurationVar(&f.run.BackWithin, "back-timeout", 30*time.Minute, "stop when a host has not passed its check after this `TIME`")
	flags.TextVar(&f.run.Terms.OnUnmovable, "unmovable", evacuation.ByStrategy, unmovableUsage)
	flags.DurationVar(&f.run.Terms.Grace, "grace", 0, graceUsage)
	flags.BoolVar(&f.wait, "wait", false, "print the progress until the run has ended; with --hook or --check it always does")
	flags.StringArrayVar(&f.calendar.windows, "window", nil, "empty and service hosts within this `WINDOW` only, as\n"+
		"\"22:00-02:00 Sat,Sun\"; repeat it for more")
	flags.IntVar(&f.calendar.nights, "nights", 30, "the windows occur this `NUMBER` of times")
	flags.StringVar(&f.calendar.zone, "zone", "Local", "the `ZONE` of windows, as Europe/Berlin")
	f.calendar.confidence = "95%"
}

func maintenanceRunCommand(f *sessionFlags) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "run PLAN", Short: "Drain, service and check hosts, batch after batch",
		Long: maintenanceRunHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := readDocument(args[0])
			if err != nil {
				return err
			}
			h, err := r.hooks()
			if err != nil {
				return err
			}
			if err := r.calendar.useless(c.Flags()); err != nil {
				return err
			}
			m, err := r.of(doc, time.Now())
			if err != nil {
				return err
			}
			return f.at(c, func(ctx context.Context, d *session) error {
				m.By = d.By
				d.warnLimits(doc)
				stored, err := d.Maintain(ctx, m)
				if err != nil || !r.wait && h.hook == nil && h.check == nil {
					return d.saidRun(stored, err)
				}
				h.session, h.name = d, stored.Name
				return h.follow(ctx)
			})
		}}
	r.add(c.Flags())
	return c
}

// of returns a plan as a run.
func (f *runFlags) of(doc *plan.Document, now time.Time) (*store.Maintenance, error) {
	m := f.run
	if err := graceful(m.Terms); err != nil {
		return nil, err
	}
	for flag, limit := range map[string]time.Duration{"drain-timeout": m.DrainWithin, "hook-timeout": m.HookWithin,
		"back-timeout": m.BackWithin} {
		if limit <= 0 {
			return nil, fmt.Errorf("--%s: needs more than 0, has %v", flag, limit)
		}
	}
	if m.Name == "" {
		m.Name = doc.Name
	}
	m.Strict, m.Others, m.Checked = doc.Strict, doc.NotMoved, f.check != ""
	for i := range doc.Batches {
		b := &doc.Batches[i]
		m.Batches = append(m.Batches, store.MaintenanceBatch{Hosts: b.Hosts,
			Needs: time.Duration(b.NeedsSeconds * float64(time.Second)),
			Moves: client.RecordOf("", nil, b.Waves, false).Moves})
	}
	m.Home = client.RecordOf("", nil, doc.Home, false).Moves
	if m.Return && (len(m.Home) > 0 || slices.ContainsFunc(m.Batches, func(b store.MaintenanceBatch) bool { return len(b.Moves) > 0 })) {
		return nil, errors.New("--return is for plans that name hosts only: this one says where its VMs go, so use plan maintenance --home")
	}
	goal, err := f.calendar.goal(now)
	if err != nil || goal == nil {
		return &m, err
	}
	for _, n := range goal.nights {
		m.Windows = append(m.Windows, store.Window{Begin: n.Begin.UTC(), End: n.End.UTC()})
	}
	return &m, nil
}

// hooks reads the commands.
func (f *runFlags) hooks() (*hookRunner, error) {
	h := &hookRunner{}
	for _, c := range []struct {
		flag, text string
		argv       *[]string
	}{{"hook", f.hook, &h.hook}, {"check", f.check, &h.check}, {"on-failure", f.onFailure, &h.onFailure}} {
		argv, err := argvOf(c.text)
		if err != nil {
			return nil, fmt.Errorf("--%s %w", c.flag, err)
		}
		*c.argv = argv
	}
	if f.onFailure != "" && f.hook == "" && f.check == "" && !f.wait {
		return nil, errors.New("--on-failure needs --hook, --check or --wait: without them the command ends at once")
	}
	return h, nil
}

// argvOf reads a command: words between blanks, or a JSON list of words.
func argvOf(text string) (argv []string, err error) {
	if text == "" {
		return nil, nil
	}
	if argv = strings.Fields(text); len(argv) == 0 {
		return nil, fmt.Errorf("%q has no words: write \"ssh {host} reboot\"", text)
	}
	if !strings.HasPrefix(argv[0], "[") {
		return argv, nil
	}
	if err := json.Unmarshal([]byte(text), &argv); err != nil || len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("%q is no list of words: write [\"ssh\", \"{host}\", \"reboot\"]", text)
	}
	return argv, nil
}

// saidRun prints a run that was changed.
func (d *session) saidRun(m *store.Maintenance, err error) error {
	if err != nil {
		return err
	}
	r := client.OfRun(m, d.Now())
	return d.print(r, r.Table)
}

func runStatusCommand(f *sessionFlags) *cobra.Command {
	return progressCommand(f, "List the runs, or print how far one is", store.MaintenanceKind,
		func(d *session, c *client.Cluster, name string) (bool, error) {
			m := c.Run(name)
			if m == nil {
				return false, nil
			}
			return true, d.saidRun(m, nil)
		}, func(d *session, c *client.Cluster) error {
			runs := []client.RunReport{}
			for _, m := range c.Runs() {
				runs = append(runs, client.OfRun(m, d.Now()))
			}
			return d.print(runs, func(w io.Writer) error { return client.RunList(w, runs) })
		})
}

// runWish is a command that says what becomes of a run.
func runWish(f *sessionFlags, verb, short string, wish store.PlanWish) *cobra.Command {
	return wishCommand(f, verb, short, func(ctx context.Context, d *session, name string) error {
		m, err := d.WishRun(ctx, name, wish)
		return d.saidRun(m, err)
	})
}

func continueCommand(f *sessionFlags) *cobra.Command {
	var name string
	var again bool
	c := &cobra.Command{Use: "continue HOST", Short: "Say that the hook of a host has ended", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				m, err := d.ContinueRun(ctx, name, hostName(args[0]), again, "operator "+d.By)
				return d.saidRun(m, err)
			})
		}}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the run; default: the one that is carried out")
	c.Flags().BoolVar(&again, "again", false, "call for the hook once more instead: it has begun, or failed")
	return c
}
