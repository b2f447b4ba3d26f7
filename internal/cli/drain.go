package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

// drainFlags are the flags of godwit plan drain.
type drainFlags struct {
	fleet      FleetFlags
	workloads  string // a CSV file; "" is none
	output     string // the file of the plan; "" is none
	json       bool
	samples    int
	seed       uint64
	by, at     string
	within     string
	confidence string
	vary       []string
	terms      evacuation.Terms
}

const plannerDrainHelp = `Plan how hosts are drained with as few moves as possible, without changing
anything. The fleet can have any format that godwit reads: its own YAML, a scenario (its events are
ignored), the output of kubectl, and the other formats of godwit help convert; or it is the URL of a
store, as bolt:PATH or tls://HOST:PORT, for the cluster as it is now; --config is then the file of its
controller, with its limits, policies, quotas and timeouts. Hosts may be written as ranges: "a[1-4]".

Plans obey all placement rules, in every order in which the moves of a wave can begin and end, and
an independent verifier checks them. For what is impossible the plan gives a proof that can be
checked: which VMs, which rule or resource, which hosts.

The duration comes from replaying the plan in the simulator, with the real controller: once
deterministically, and in --samples worlds that --vary describes:

  dirty=lognormal(0.5)        factor of each VM's dirty rate
  workingSet=uniform(0.5, 2)  factor of each VM's working set
  link=triangular(0.6, 1, 1)  factor of each host's link speed
  fault=10% within 1h crash-agent any-host for=1m
  none                        only the seed differs

Without --vary the worlds are those of the scenario, or else dirty=` + dirtyByDefault + `,
link=` + linkByDefault + ` and, for each host, fault=` + faultByDefault + ` HOST for=1m.

Below the table is where P10–P90 of a move come from: "capped kvm, from 20 measured migrations" is a
class of migrations, here those that a link or a cap governs on hosts with KVM, and how many of that class were
measured, which the ranges are made of. docs/prediction.md has all classes.

A VM that cannot be migrated, and whose eviction strategy does not protect it, may be shut down:
--unmovable=Restart starts it on another host, --unmovable=ShutDown leaves it off, and
--unmovable=Keep leaves it where it is. By default, as with KubeVirt, VMs with LiveMigrateIfPossible
are restarted and VMs with None are kept. The time for which they are off is in the column DOWNTIME.

VMs that must be on one host, as a group with the policy affinity, leave together or not at all.
A group with a domain, as a rack, does not move to another domain: its VMs go to hosts of the same
domain.

--within and --by (from --at, or from now) search for limits and an order with which the hosts are
empty in time with a probability of --confidence, the lowest limits first, or name the VM or the
link that prevents it. The order LongestFirst sorts by the time that each move takes alone: the
output then lists the migrations to request in that order.

-o writes the plan to a file, which godwit apply carries out, with the limits that its times hold for. VMs that are restarted or shut down are
not moved by it: godwit drain does that.

--json prints one object:

  fleet, hosts, seed, varied   the question, and what differs from world to world
  settings                     the present limits
  moves, leastMoves            how many there are, and one for each VM that may leave
  fewestMoves                  no plan has fewer
  waves                        moves that may run at once: vm, source, target, memoryBytes,
                               diskBytes (local), converges (alone), moves (in this plan),
                               beginsSeconds, seconds, downtimeMilliseconds (null where it
                               does not move), mode, note,
                               attempts (more than one are retries), drawn (its
                               distributions), predicted (class, measured, seconds and
                               downtimeMilliseconds with p10, p50 and p90, note),
                               remedies (of one that does not converge, the options that
                               let it, tried alone, the cheapest first, a restart last: option, seconds,
                               downtimeMilliseconds, brownoutSeconds, brownoutPercent, risk)
  restarted, shutDown          VMs that cannot be migrated and are shut down: those that are
                               started elsewhere, as a move of a wave with restart, and those
                               that stay off
  left, proofs                 VMs that stay, as few as possible, and why
  kept, cannotLeave, leftBehind  of these: VMs that no drain moves (by their eviction strategy,
                               or for a quota), that no plan can move, and that could leave if
                               others stayed
  spareHosts                   how many more hosts would let more VMs leave: hosts, like (a host),
                               left (VMs that stay even then); null where they would not
  fewestLeft, mustStay         no plan leaves fewer; how many have to stay at least
  emptySeconds                 when all others have left, deterministically; null is never
  emptyRangeSeconds            p10, p50, p90 of it, as far as the model may be off
  samples                      runs, empty, secondsToEmpty (p50, p95, p99, max; null is never)
  deadline                     withinSeconds, confidence, met, with, waves (of moves, in the
                               order in which they are requested), trials, obstacles; or null
  invariantViolations          always empty; report a bug otherwise

Exit status: 0 possible, 1 an invariant was violated in a simulated world, 2 bad input,
3 some VMs stay, or do not leave in time.`

// What differs from world to world by default.
const (
	dirtyByDefault = "lognormal(0.3)"
	linkByDefault  = "triangular(0.7, 1, 1)"
	faultByDefault = "10% within 30m crash-agent"
)

// Of godwit plan drain and of godwit plan maintenance.
const (
	unmovableUsage = "`WHAT` happens to VMs that cannot be migrated:\nKeep, ShutDown or Restart " +
		"(default: the scenario's)"
	graceUsage = "`TIME` to shut down for guests that --unmovable shuts down (default 1m)"
)

func plannerDrainCommand() *cobra.Command {
	var f drainFlags
	c := &cobra.Command{
		Use:   "drain FLEET HOST…",
		Short: "Plan how hosts are drained, and how long it takes",
		Long:  plannerDrainHelp,
		Args:  cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object instead of a page")
	flags.IntVar(&f.samples, "samples", samplesByDefault, "simulate the plan in this `NUMBER` of "+
		"worlds; by\ndefault fewer for a fleet with more than 20,000 VMs, at least 10")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of all random choices (default: the scenario's)")
	flags.StringVar(&f.within, "within", "", "be empty after this `TIME`: 2h")
	flags.StringVar(&f.by, "by", "", "be empty at this `TIME` of the day: 06:00")
	flags.StringVar(&f.at, "at", "", "begin at this `TIME` of the day (default: now)")
	flags.StringVar(&f.confidence, "confidence", "95%", "required `PROBABILITY`")
	flags.TextVar(&f.terms.OnUnmovable, "unmovable", evacuation.ByStrategy, unmovableUsage)
	flags.DurationVar(&f.terms.Grace, "grace", 0, graceUsage)
	addWorkloads(flags, &f.workloads)
	addPlanOutput(flags, &f.output)
	f.fleet.Add(c)
	flags.StringArrayVar(&f.vary, "vary", nil, "`DISTRIBUTION` of what differs between worlds: see above")
	return c
}

// run plans, plays and prints.
func (f *drainFlags) run(c *cobra.Command, args []string) error {
	goal, err := f.goal(time.Now())
	if err != nil {
		return err
	}
	if err := graceful(f.terms); err != nil {
		return err
	}
	if goal == nil && c.Flags().Changed("confidence") {
		return errors.New("--confidence needs --within or --by: without a deadline there is no probability to meet")
	}
	s, err := f.fleet.readWith(args[0], f.workloads, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := Check(f.output, s.Files...); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	hosts, err := hostsOf(s.Fleet, args[1:])
	if err != nil {
		return err
	}
	if c.Flags().Changed("seed") {
		s.Seed = f.seed
	}
	if !c.Flags().Changed("samples") {
		f.samples = worlds(len(s.Fleet.VMs))
	}
	if goal != nil {
		goal.Samples = f.samples
	}
	CollectLess()
	varied, err := f.differ(s, hosts)
	if err != nil {
		return err
	}
	d, err := whatif.Ask(c.Context(), s, whatif.Question{Hosts: hosts, Samples: f.samples,
		Goal: goal, Terms: f.terms})
	if err != nil {
		return err
	}
	err = printed(c.OutOrStdout(), f.json, drainAnswer{d, varied}, drainPage{d, varied}.print)
	if f.output != "" && len(d.Violations) == 0 {
		doc := drainDocument(d, time.Now())
		err = errors.Join(err, writePlan(c, f.output, doc, limitsOf(d.Settings), len(d.Left) > 0 && len(doc.Batches[0].Waves) == 0))
	}
	return errors.Join(err, verdict(d))
}

// drainDocument returns the plan as a file. Its order is that which meets the deadline, if there is one.
func drainDocument(d *whatif.Forecast, now time.Time) *plan.Document {
	doc := &plan.Document{Format: plan.DocumentFormat, Name: planName("drain", d.Hosts, now)}
	var waves []plan.Wave
	for _, wave := range d.Waves {
		var moves plan.Wave
		for i := range wave {
			moves = append(moves, wave[i].Move)
		}
		waves = append(waves, moves)
	}
	doc.Limits = limitsOf(d.Settings)
	if d.Deadline != nil && len(d.Deadline.Waves) > 0 {
		waves, doc.Limits = d.Deadline.Waves, limitsOf(d.Deadline.With.Settings)
	}
	but := leaveOut(doc, waves, slices.Concat(d.Restarted, d.ShutDown, d.Left), d.Together)
	doc.Batches = []plan.DocumentBatch{{Hosts: d.Hosts, Waves: plan.Documented(waves, but)}}
	return doc
}

// leaveOut notes in a file the VMs that its moves leave out, and returns them: some, and those of groups, if not each
// of these has a move. A group moves as one, or not at all.
func leaveOut(doc *plan.Document, waves []plan.Wave, some, groups []hypervisor.VMID) map[hypervisor.VMID]bool {
	moves := map[hypervisor.VMID]bool{}
	for _, m := range slices.Concat(waves...) {
		moves[m.VM] = true
	}
	if slices.ContainsFunc(groups, func(vm hypervisor.VMID) bool { return !moves[vm] }) {
		some = slices.Concat(some, groups)
	}
	but := map[hypervisor.VMID]bool{}
	for _, vm := range some {
		if !but[vm] {
			doc.NotMoved = append(doc.NotMoved, vm)
		}
		but[vm] = true
	}
	return but
}

// addPlanOutput adds the flag for the file of a plan.
func addPlanOutput(flags *pflag.FlagSet, file *string) {
	flags.StringVarP(file, "output", "o", "", "write the plan to this `FILE`, which godwit apply carries out")
}

// graceful returns what is wrong with the grace period.
func graceful(terms evacuation.Terms) error {
	if terms.Grace < 0 {
		return fmt.Errorf("--grace: needs more than 0, has %v", terms.Grace)
	}
	return nil
}

const (
	samplesByDefault = 100
	// mostVMs bounds the VMs of all worlds together by default, so that an answer takes less
	// than a minute.
	mostVMs = 2_000_000
)

// worlds returns in how many worlds a plan for a fleet is played by default.
func worlds(vms int) int {
	return max(samplesByDefault/10, min(samplesByDefault, mostVMs/max(1, vms)))
}

// drainAnswer is what --json prints.
type drainAnswer struct {
	*whatif.Forecast
	Varied []string `json:"varied"` // what differs from world to world
}

// verdict returns the error that the exit status follows from.
func verdict(f *whatif.Forecast) error {
	switch {
	case len(f.Violations) > 0:
		return ErrViolated
	case len(f.Left) > 0 && f.Deadline != nil && f.Deadline.With != nil:
		return butFor(f.Left)
	case len(f.Left) > 0, f.Deadline != nil && !f.Deadline.Met,
		f.Deadline == nil && f.EmptySeconds == nil: // or with the limits that were found
		return ErrPlanNotDone
	}
	return nil
}

// butFor is [ErrPlanNotDone] of a drain whose deadline is met by all VMs but these, which stay.
type butFor []hypervisor.VMID

func (b butFor) Error() string {
	return fmt.Sprintf("in time except for %s: the reasons are above", humanize.List(short(b)))
}

func (butFor) Is(target error) bool { return target == ErrPlanNotDone }
