package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

// A Forecast is a plan for emptying hosts, how long it takes, and what becomes of each
// VM. It is what godwit plan drain --json prints.
type Forecast struct {
	Fleet string                `json:"fleet"`
	Hosts []hypervisor.HostName `json:"hosts"`
	Seed  uint64                `json:"seed"`

	Settings    Settings          `json:"settings"` // the present ones
	Moves       int               `json:"moves"`
	LeastMoves  int               `json:"leastMoves"`  // one for each VM that may leave
	FewestMoves bool              `json:"fewestMoves"` // no plan has fewer
	Waves       [][]Step          `json:"waves"`
	Left        []hypervisor.VMID `json:"left"` // VMs that stay
	// Proofs are why not all can leave; none with VMs left is that it is not known.
	Proofs []plan.Certificate `json:"proofs"`

	// EmptySeconds is when all have left that can, with nothing drawn; null is never.
	EmptySeconds *float64 `json:"emptySeconds"`
	// EmptyRange is the distribution of it, as far as the model may be off; null is never.
	EmptyRange *predict.Range `json:"emptyRangeSeconds"`
	Samples    *Summary       `json:"samples"`
	// Kept are those of Left that no drain moves, although they could: by their eviction
	// strategies, or because a quota admits no second copy. CannotLeave are those that no plan
	// takes off, LeftBehind the others: which of the VMs are left behind is a choice.
	Kept        []hypervisor.VMID `json:"kept"`
	CannotLeave []hypervisor.VMID `json:"cannotLeave"`
	LeftBehind  []hypervisor.VMID `json:"leftBehind"`
	// FewestLeft says that no plan leaves fewer; without it MustStay have to stay at least.
	FewestLeft bool `json:"fewestLeft"`
	MustStay   int  `json:"mustStay"`
	// Restarted are the VMs that leave by a restart, since they cannot be migrated; ShutDown those that
	// are shut down and stay off.
	Restarted []hypervisor.VMID `json:"restarted"`
	ShutDown  []hypervisor.VMID `json:"shutDown"`
	// Together are the VMs that leave with others, as a group does.
	Together []hypervisor.VMID `json:"-"`
	// Spare says how many VMs stay if there were one host more, or a few; null where that does not help.
	Spare      *Spare    `json:"spareHosts"`
	Deadline   *Deadline `json:"deadline"`
	Violations []string  `json:"invariantViolations"`
}

// A Step is one move and what is predicted of it.
type Step struct {
	plan.Move
	MemoryBytes hypervisor.Bytes `json:"memoryBytes"`
	DiskBytes   hypervisor.Bytes `json:"diskBytes"` // of its local disks, which move with it
	// Converges is whether it ends with the links for itself.
	Converges bool `json:"converges"`
	// Restart is whether it is shut down and started on the target: its downtime is its downtime.
	Restart bool `json:"restart,omitempty"`
	// Moves is whether it ends in this plan, with nothing drawn.
	Moves bool `json:"moves"`
	// When it begins, how long it takes, and for how long its guest stands; null where it does not move.
	BeginsSeconds        *float64 `json:"beginsSeconds"`
	Seconds              *float64 `json:"seconds"`
	DowntimeMilliseconds *float64 `json:"downtimeMilliseconds"`
	// BrownoutSeconds is for how long auto-converge slows its guest down, BrownoutPercent by
	// how much of its CPU time at most.
	BrownoutSeconds float64 `json:"brownoutSeconds,omitempty"`
	BrownoutPercent int     `json:"brownoutPercent,omitempty"`
	Mode            string  `json:"mode"`
	// Attempts is how many it takes, with nothing drawn: more than one are retries.
	Attempts int          `json:"attempts,omitempty"`
	Note     string       `json:"note,omitempty"`
	Drawn    *MoveSummary `json:"drawn,omitempty"` // in the worlds that were drawn
	// Predicted are the distributions of Seconds and DowntimeMilliseconds, from what was measured;
	// null where it does not move.
	Predicted *predict.Prediction `json:"predicted"`
	// DirtyRate is how fast its guest is taken to write, and DirtyFrom where that is known from; "" is the file.
	DirtyRate hypervisor.Bandwidth `json:"dirtyBytesPerSecond"`
	DirtyFrom string               `json:"dirtyFrom,omitempty"`
	// Remedies are options with which it converges, the cheapest first; only where it does not.
	Remedies []Remedy `json:"remedies,omitempty"`
}

// A Deadline is what came of a goal.
type Deadline struct {
	WithinSeconds float64 `json:"withinSeconds"`
	Confidence    float64 `json:"confidence"`
	// Met is whether the hosts are empty in time. It is false when VMs cannot leave, even
	// if there are settings with which all others have left in time.
	Met  bool   `json:"met"`
	With *Trial `json:"with"` // the settings that make it
	// Waves are the moves in the order in which they are asked for with these settings.
	Waves     []plan.Wave `json:"waves"`
	Trials    []Trial     `json:"trials"`
	Obstacles []Obstacle  `json:"obstacles"`
	// Remedies are what would make it where no settings do, the cheapest first.
	Remedies []DeadlineRemedy `json:"remedies,omitempty"`
}

// A Question is what a forecast is to say.
type Question struct {
	Hosts   []hypervisor.HostName // to be emptied
	Samples int                   // in how many worlds the plan is played
	Goal    *Goal                 // nil is none; its seed is the scenario's
	// Terms are what becomes of VMs that cannot be migrated. Default: the scenario's.
	Terms evacuation.Terms
	// Order says which moves of a wave begin first. Default: LargestFirst.
	Order Order
	// InTurn says that the moves of a host go before those of a later one, as far as limits and waves let them.
	InTurn bool
}

// Ask plans how hosts are emptied, and finds out how long it takes.
func Ask(ctx context.Context, s *config.Scenario, q Question) (*Forecast, error) {
	terms := q.Terms.Or(s.Controller.Evacuation.Terms)
	params := s.Controller.Evacuation
	params.Terms = terms
	all := plan.DrainFleet(s.Fleet, q.Hosts, params)
	fleet := all.Fleet
	a := plan.Drain(fleet, q.Hosts)
	if err := verified(fleet, q.Hosts, &a); err != nil {
		return nil, fmt.Errorf("the plan does not pass its verifier, so it is not shown; this "+
			"is a mistake in godwit: %w", err)
	}
	stops := StopsOf(&all, s, a.Waves, terms)
	unfold(&a, all.Groups)
	p := (&Play{Scenario: Endless(s), Hosts: q.Hosts, Waves: a.Waves, Stops: stops, InTurn: q.InTurn}).narrow()
	present := p.Present()
	present.Order = cmp.Or(q.Order, present.Order)
	d := &Forecast{Fleet: s.Name, Hosts: q.Hosts, Seed: s.Seed, Settings: present,
		Moves: plan.Count(a.Waves), LeastMoves: a.Least, FewestMoves: a.Fewest,
		Left: append([]hypervisor.VMID{}, a.Left...), Kept: kept(&a),
		CannotLeave: without(a.Cannot, kept(&a)), LeftBehind: without(a.Left, a.Cannot), FewestLeft: a.FewestLeft,
		MustStay: a.MustStay, Proofs: proofs(&a), Violations: []string{},
		Restarted: p.Stops.Restarted(), ShutDown: append([]hypervisor.VMID{}, all.ShutDown...),
		Together: slices.Sorted(maps.Keys(stops.Together)), Spare: spare(s, q.Hosts, params, len(a.Left))}
	return d, d.play(ctx, p, &q)
}

// unfold names every VM of the groups for which one stood. The planner has counted each of them.
func unfold(a *plan.DrainPlan, groups plan.Groups) {
	if len(groups) == 0 {
		return
	}
	a.Waves = groups.Waves(a.Waves)
	a.Left, a.Cannot = groups.Each(a.Left), groups.Each(a.Cannot)
}

// kept returns the VMs that could move and that no drain moves.
func kept(a *plan.DrainPlan) []hypervisor.VMID {
	all := []hypervisor.VMID{}
	for _, c := range proofs(a) {
		if len(c.Kept) > 0 {
			all = append(all, c.VMs...)
		}
	}
	slices.Sort(all)
	return all
}

// without returns those of all that are not among some.
func without(all, some []hypervisor.VMID) []hypervisor.VMID {
	return append([]hypervisor.VMID{}, slices.DeleteFunc(slices.Clone(all),
		func(vm hypervisor.VMID) bool { return slices.Contains(some, vm) })...)
}

// proofs returns all proofs of an answer.
func proofs(a *plan.DrainPlan) []plan.Certificate {
	if a.Proof == nil {
		return []plan.Certificate{}
	}
	return append([]plan.Certificate{*a.Proof}, a.Further...)
}

// verified returns what is wrong with an answer.
func verified(f *plan.Fleet, hosts []hypervisor.HostName, a *plan.DrainPlan) error {
	for _, c := range proofs(a) {
		if err := CheckCertificate(f, hosts, &c); err != nil {
			return err
		}
	}
	if len(a.Left) > 0 {
		return CheckMoves(f, a.Waves)
	}
	return CheckEmpties(f, a.Waves, hosts)
}

// play finds out how long the plan takes.
func (d *Forecast) play(ctx context.Context, p *Play, q *Question) error {
	solos, err := p.Solos(ctx)
	if err != nil {
		return err
	}
	p = p.With(d.Settings, solos)
	run, err := p.Nominal(ctx)
	if err != nil {
		return err
	}
	d.violated(run)
	d.EmptySeconds = seconds(run.Empty)
	d.moves(p, run, solos)
	if err := d.predict(p, run); err != nil {
		return err
	}
	if err := d.remedies(ctx, p); err != nil {
		return err
	}
	if q.Samples > 0 && d.Moves+len(d.ShutDown) > 0 {
		if err := d.sample(ctx, p, q.Samples); err != nil {
			return err
		}
	}
	if q.Goal != nil {
		goal := *q.Goal
		goal.Seed = d.Seed
		return d.search(ctx, p, goal, solos)
	}
	return nil
}

// moves says what is predicted of every move.
func (d *Forecast) moves(
	p *Play, run *Run, solos map[hypervisor.VMID]MoveResult,
) {
	vms := map[hypervisor.VMID]*inventory.VM{}
	for i := range p.Scenario.Fleet.VMs {
		vms[p.Scenario.Fleet.VMs[i].ID] = &p.Scenario.Fleet.VMs[i]
	}
	waits := p.waits(run, solos)
	d.Waves = [][]Step{}
	for _, wave := range p.Waves {
		var moves []Step
		for _, m := range wave {
			result, solo := run.Results[m.VM], solos[m.VM]
			move := Step{Move: m, MemoryBytes: vms[m.VM].Memory,
				DiskBytes: vms[m.VM].LocalSize(), Converges: solo.Done,
				DirtyRate: vms[m.VM].Workload.Rate, DirtyFrom: vms[m.VM].WorkloadFrom,
				Moves:           result.Done,
				BrownoutSeconds: result.Brownout.Lasted.Seconds(),
				Attempts:        result.Attempts,
				BrownoutPercent: result.Brownout.Percent,
				Mode:            result.Mode.String(), Restart: p.Stops.restarts(m.VM)}
			if result.Done {
				move.BeginsSeconds, move.Seconds = new(result.Began.Seconds()), new(result.Took.Seconds())
				move.DowntimeMilliseconds = new(result.Downtime.Seconds() * 1000)
			}
			if !result.Done || !solo.Done {
				move.Note = p.note(solo, vms[m.VM], m)
			} else if x := waits.behind(m); x != "" {
				move.Note = fmt.Sprintf("waits behind %s, which does not converge", sim.Short(x))
			}
			moves = append(moves, move)
		}
		d.Waves = append(d.Waves, moves)
	}
}

// mostRemedied is for how many moves remedies are tried.
const mostRemedied = 20

// remedies tries what would help the moves that do not converge.
func (d *Forecast) remedies(ctx context.Context, p *Play) (err error) {
	tried := 0
	for _, wave := range d.Waves {
		for i := range wave {
			m := &wave[i]
			if m.Converges || m.Restart || p.shut() != "" || tried == mostRemedied {
				continue
			}
			tried++
			if m.Remedies, err = p.remedies(ctx, m.Move); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample plays the plan in worlds that are drawn.
func (d *Forecast) sample(ctx context.Context, p *Play, n int) error {
	runs, err := p.Samples(ctx, d.Seed, n)
	if err != nil {
		return err
	}
	d.violated(runs...)
	s := Summarize(runs)
	d.Samples = &s
	for _, wave := range d.Waves {
		for i := range wave {
			fate := s.VMs[wave[i].VM]
			wave[i].Drawn = &fate
		}
	}
	return nil
}

// search looks for settings that meet the deadline.
func (d *Forecast) search(
	ctx context.Context, p *Play, goal Goal,
	solos map[hypervisor.VMID]MoveResult,
) error {
	found, err := &Search{}, error(nil)
	if d.Moves > 0 || len(d.Left) == 0 { // where no VM can leave, there is nothing to look for
		found, err = p.Search(ctx, goal, solos)
	}
	if err != nil {
		return err
	}
	d.Deadline = &Deadline{WithinSeconds: goal.Within.Seconds(), Confidence: goal.Confidence,
		Met: found.Found != nil && len(d.Left) == 0, With: found.Found,
		Trials: append([]Trial{}, found.Trials...), Waves: []plan.Wave{}, Obstacles: d.leftovers(),
		Remedies: found.Remedies}
	d.Deadline.Obstacles = append(d.Deadline.Obstacles, found.Obstacles...)
	if found.Found != nil {
		d.Deadline.Waves = append(d.Deadline.Waves, p.With(found.Found.Settings, solos).Waves...)
	}
	return nil
}

// leftovers are the VMs that stay: whatever the limits, they stand in the way.
func (d *Forecast) leftovers() []Obstacle {
	all := []Obstacle{}
	for i := range d.Proofs {
		if c := &d.Proofs[i]; len(c.Kept) > 0 {
			all = append(all, Obstacle{VM: c.VMs[0], Text: c.String()})
		}
	}
	for _, vm := range d.CannotLeave {
		all = append(all, Obstacle{VM: vm, Text: string(vm) + " cannot leave"})
	}
	for _, vm := range d.LeftBehind {
		all = append(all, Obstacle{VM: vm,
			Text: string(vm) + " is left behind: not all VMs find room elsewhere"})
	}
	return all
}

// mostViolations is how many are told.
const mostViolations = 20

func (d *Forecast) violated(runs ...*Run) {
	for _, r := range runs {
		for _, v := range r.Violations {
			if len(d.Violations) < mostViolations {
				d.Violations = append(d.Violations, v.Invariant+": "+v.Detail)
			}
		}
	}
}

// seconds returns a time; nil is never.
func seconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}
