package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
)

type maintenanceFlags struct {
	fleet     FleetFlags
	workloads string // a CSV file; "" is none
	protection
	keep, fill, together int
	reboot, minimize     string
	home, json           bool
	output               string // a file for the plan; "" is none
	calendar             calendarFlags
	terms                evacuation.Terms
}

// What a plan may minimize.
const (
	minimizeTime    = "time"
	minimizeMoves   = "moves"
	minimizeBatches = "batches"
)

const maintenanceHelp = `Plan a rolling reboot: which hosts are drained and rebooted together, where
their VMs go meanwhile, and how the VMs return.

While a batch is drained and rebooted, all placement rules hold, and --keep further host failures
are survived: see godwit help plan failover. VMs go to hosts that were serviced already or need no
service, so that most VMs move once; hosts are filled to at most --fill percent, where possible.

The plan minimizes what --minimize says: with time it weighs the time of a batch, which is
--reboot, against the time of the migrations; with batches or moves it uses as few as possible.
Times come from the simulator, with the real controller and the limits of the scenario.

The plan includes what the controller's drains do: VMs that must be on one host, as a group with the
policy affinity, leave together, and a VM that cannot be migrated may be restarted on another host or
shut down, as its eviction strategy and --unmovable say: see godwit help plan drain. A VM that is
shut down keeps its reservation; it does not restart by itself, and is not protected.

With --home the VMs return to their first hosts, in an order that is possible; where VMs wait for
each other, some go to another host in between.

For a host that cannot be serviced the plan gives the reason: the VMs that cannot leave it, with a
proof that can be checked, or the failures that would not be survived without it.

With --window the batches are put into nights: each into the first in which it ends with a probability of
--confidence, after those before it. A batch that is too long for every night is made smaller. Windows are
written as 22:00-02:00 Sat,Sun, and may be several; their times are of --zone. A time that the clock shows
twice is the first of the two, and one that it skips is when it does so. --nights is how many nights there
are, from --from on, and --by when all has to be finished: then the lowest limits are looked for with which it
is. The probability takes all batches to be off by as much as the model may be.

--json prints one object:

  batches          hosts, waves of moves (vm, source, target), proof (how it was shown that the
                   failures are survived), fullest (percent, of a host that took VMs)
  obstacles        host, left (VMs), proof, failures, moves, text
  vms, moves       VMs that have to move, and all moves of the batches
  restarted        VMs that cannot be migrated: each of their moves is a restart
  shutDown         VMs that cannot be migrated, are shut down and stay off
  mostTogether, leastBatches   bounds on what any plan can do
  down             protected VMs on hosts that are down already: keep does not look at them
  keep, home       waves, moves, parked, left, proven; null without --home
  times            shifts (one a batch) and back (the return): beginsSeconds, movedSeconds,
                   backSeconds, rangeSeconds (p10, p50, p90 of its moves), boundSeconds, stay (VMs that do not move), obstacles (vm, text);
                   endsSeconds, rangeSeconds (of all of it, as far as the model may be off),
                   boundSeconds, invariantViolations; null is never
  calendar         nights (begin, end, batches: batch, begins, ends, probability), left (batch, text,
                   tooLong), probability; null without --window
  settings         the limits that the times hold for

Exit status: 0 all hosts can be serviced, 1 an invariant was violated in the simulated world,
2 bad input, 3 some hosts cannot be serviced or are never empty, some VMs do not return, or some batches
are in no night.`

func maintenanceCommand() *cobra.Command {
	var f maintenanceFlags
	c := &cobra.Command{
		Use:   "maintenance FLEET HOST…",
		Short: "Plan a rolling reboot that keeps room for failures",
		Long:  maintenanceHelp,
		Args:  cobra.MinimumNArgs(2),
	}
	c.RunE = func(_ *cobra.Command, args []string) error { return f.run(c, args[0], args[1:]) }
	flags := c.Flags()
	flags.IntVar(&f.keep, "keep", 1, "survive this `NUMBER` of further host failures at any time")
	flags.IntVar(&f.fill, "fill", plan.DefaultFill,
		"fill hosts to at most this `PERCENT`, where possible")
	flags.IntVar(&f.together, "together", 0, "service at most this `NUMBER` of hosts at once; 0: no limit")
	flags.StringVar(&f.reboot, "reboot", "10m", "`TIME` that a host is down once it is empty")
	flags.StringVar(&f.minimize, "minimize", minimizeTime, "`WHAT` to minimize: time, moves or batches")
	FormerFlag(flags, "prefer", "minimize")
	flags.BoolVar(&f.home, "home", false, "plan the return of the VMs, too")
	flags.BoolVar(&f.json, "json", false, "print one JSON object instead of a page")
	flags.TextVar(&f.terms.OnUnmovable, "unmovable", evacuation.ByStrategy, unmovableUsage)
	flags.DurationVar(&f.terms.Grace, "grace", 0, graceUsage)
	f.calendar.add(flags)
	flags.StringVarP(&f.output, "output", "o", "", "write the plan to this `FILE`, which godwit maintenance run carries out")
	addWorkloads(flags, &f.workloads)
	f.protection.add(c)
	f.fleet.Add(c)
	return c
}

// maintenanceAnswer is what --json prints.
type maintenanceAnswer struct {
	plan.MaintenancePlan
	Keep  int              `json:"keep"`
	Down  int              `json:"down"` // protected VMs on hosts that are down, which Keep does not look at
	Home  *plan.ReturnPlan `json:"home"` // null when it was not asked for
	Times *whatif.Schedule `json:"times"`
	// Restarted and ShutDown are the VMs that cannot be migrated and leave all the same.
	Calendar  *whatif.Calendar  `json:"calendar"` // null when no windows were given
	Settings  whatif.Settings   `json:"settings"`
	Restarted []hypervisor.VMID `json:"restarted"`
	ShutDown  []hypervisor.VMID `json:"shutDown"`
	together  []hypervisor.VMID // those that leave with others, as a group does
}

func (f *maintenanceFlags) run(c *cobra.Command, path string, hosts []string) error {
	reboot, err := inventory.ParseDuration(f.reboot)
	if err != nil {
		return fmt.Errorf("--reboot: %w", err)
	}
	if f.fill < 1 || f.fill > 100 { // 0 is the default of package maintenance
		return fmt.Errorf("--fill %d: hosts cannot be %[1]d %% full: use 1 to 100", f.fill)
	}
	if f.keep < 0 {
		return fmt.Errorf("--keep %d: give a number of failures, 0 or more", f.keep)
	}
	if err := graceful(f.terms); err != nil {
		return err
	}
	if err := f.calendar.useless(c.Flags()); err != nil {
		return err
	}
	s, err := f.fleet.readWith(path, f.workloads, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := Check(f.output, s.Files...); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	params := s.Controller.Evacuation
	params.Terms = f.terms.Or(params.Terms)
	return f.answer(c, s, hosts, params, reboot)
}

// answer plans, plays and prints.
func (f *maintenanceFlags) answer(c *cobra.Command, s *config.Scenario, names []string,
	params evacuation.Params, reboot time.Duration) error {
	hosts, err := hostsOf(s.Fleet, names)
	if err != nil {
		return err
	}
	d := plan.Maintain(s.Fleet, hosts, params)
	r, err := f.request(c, s, &d, hosts, reboot)
	if err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	a, err := f.calendar.search(c.Context(), s, r.Together, func(s *config.Scenario, together int) (*maintenanceAnswer, error) {
		r.Together = together
		return f.play(c.Context(), s, r, &d, params, reboot)
	}, reboot)
	if err != nil {
		return stopped(c.Context(), err)
	}
	err = printed(c.OutOrStdout(), f.json, a, a.print)
	if f.output != "" && len(a.Times.Violations) == 0 {
		err = errors.Join(err, writePlan(c, f.output, a.document(f.keep > 0, reboot, time.Now()),
			limitsIn(s.Controller.Cluster), len(a.Batches) == 0))
	}
	return errors.Join(err, a.verdict())
}

// planned is the probability with which a batch takes no longer than its plan says that it needs.
const planned = 0.95

// document returns the plan as a file.
func (a *maintenanceAnswer) document(strict bool, reboot time.Duration, now time.Time) *plan.Document {
	doc := &plan.Document{Format: plan.DocumentFormat, Keep: a.Keep, Strict: strict, Limits: limitsOf(a.Settings)}
	var waves []plan.Wave
	for i := range a.Batches {
		waves = append(waves, a.Batches[i].Waves...)
	}
	but := leaveOut(doc, waves, slices.Concat(a.Restarted, a.ShutDown), a.together)
	var hosts []hypervisor.HostName
	for i := range a.Batches {
		b := plan.DocumentBatch{Hosts: a.Batches[i].Hosts, Waves: plan.Documented(a.Batches[i].Waves, but)}
		if r := a.Times.Batches[i].Range; r != nil {
			b.NeedsSeconds = math.Ceil(r.Quantile(planned) + reboot.Seconds())
		}
		hosts = append(hosts, b.Hosts...)
		doc.Batches = append(doc.Batches, b)
	}
	if a.Home != nil {
		doc.Home = plan.Documented(a.Home.Waves, but)
	}
	doc.Name = planName("maintenance", hosts, now)
	return doc
}

// play plans and plays the plan with the limits of a scenario.
func (f *maintenanceFlags) play(ctx context.Context, s *config.Scenario, r *plan.Request, d *plan.DrainedFleet,
	params evacuation.Params, reboot time.Duration) (*maintenanceAnswer, error) {
	a := &maintenanceAnswer{MaintenancePlan: plan.Maintenance(r), Keep: f.keep, Down: plan.OnDownHosts(r.Fleet, r.Protected),
		ShutDown: append([]hypervisor.VMID{}, d.ShutDown...), Settings: whatif.SettingsOf(s.Controller.Cluster)}
	if f.home {
		home := plan.PlanReturn(a.After, r.Fleet)
		home.Unfold(d.Groups)
		a.Home = &home
	}
	a.Unfold(d.Groups)
	stops := whatif.StopsOf(d, s, a.waves(), params.Terms)
	a.Restarted, a.together = stops.Restarted(), slices.Sorted(maps.Keys(stops.Together))
	var err error
	a.Times, err = whatif.PlaySchedule(ctx, s, &a.MaintenancePlan, a.Home, reboot, stops)
	return a, err
}

// waves returns all waves of the plan.
func (a *maintenanceAnswer) waves() (all []plan.Wave) {
	for i := range a.Batches {
		all = append(all, a.Batches[i].Waves...)
	}
	return all
}

// stopped returns why something has ended early.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (f *maintenanceFlags) request(c *cobra.Command, s *config.Scenario, d *plan.DrainedFleet,
	hosts []hypervisor.HostName, reboot time.Duration) (*plan.Request, error) {
	q, err := f.question(c, s.Fleet, d.Fleet, f.keep)
	if err != nil {
		return nil, err
	}
	r := &plan.Request{Fleet: q.Fleet, Hosts: hosts, Keep: f.keep, Domain: q.Domain,
		Protected: plan.Guarded(q.Protected, d.Groups), Fill: f.fill, Together: f.together, Effort: q.Effort}
	switch f.minimize {
	case minimizeTime:
		r.Service, r.Each = reboot, whatif.Each(s)
	case minimizeMoves:
		r.Each = time.Second
	case minimizeBatches:
		r.Service = time.Second
	default:
		return nil, fmt.Errorf("--minimize: unknown value %q: write time, moves or batches", f.minimize)
	}
	return r, nil
}

// verdict is the error that the exit status follows from.
func (a maintenanceAnswer) verdict() error {
	switch {
	case len(a.Times.Violations) > 0:
		return ErrViolated
	case len(a.Obstacles) > 0 || a.Home != nil && len(a.Home.Left) > 0,
		a.Times.EndsSeconds == nil, a.Calendar != nil && len(a.Calendar.Left) > 0:
		return ErrPlanNotDone
	}
	return nil
}

// certificate says why VMs cannot leave a host.
func certificate(out io.Writer, o *plan.Obstacle, keep int) {
	fmt.Fprintf(out, "\n%s is not serviced: %s\n", o.Host, o.Text)
	if len(o.Cannot) > 0 {
		fmt.Fprintf(out, "cannot leave: %s\n", humanize.List(short(o.Cannot)))
	}
	behind := slices.DeleteFunc(slices.Clone(o.Left),
		func(vm hypervisor.VMID) bool { return slices.Contains(o.Cannot, vm) })
	if len(behind) > 0 {
		fmt.Fprintf(out, "left behind: %s\n", humanize.List(short(behind)))
	}
	counterexample(out, o.Failures)
	switch {
	case len(o.Left) > 0 || keep == 0:
	case keep == 1:
		fmt.Fprintln(out, "to accept that: --keep 0")
	default:
		fmt.Fprintf(out, "to accept that: a --keep below %d\n", keep)
	}
}
