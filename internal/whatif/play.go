package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// attempts is how often the operator asks for a move of the plan.
const attempts = 3

// A Play is a plan and the world that it is played in.
type Play struct {
	// Scenario is the fleet, its limits and what differs from world to world. Its
	// events are not played, and its unfinished migrations are taken as not begun. A
	// plan is not to end with it: see [Endless].
	Scenario *config.Scenario
	Hosts    []hypervisor.HostName // to be emptied
	Waves    []plan.Wave
	Stops    *Stops // nil: every VM of the plan is migrated
	// InTurn says that the moves of a host go before those of a later one, as far as limits and waves let them.
	InTurn bool
	once   bool // nothing is tried again, and what is left is not drained
}

// longest is how long a plan is played at most, as a scenario is that does not say it.
const longest = 240 * time.Hour

// Endless returns a scenario that does not end before a plan does: until says how long its own
// events are played.
func Endless(s *config.Scenario) *config.Scenario {
	endless := *s
	endless.Until = max(longest, s.Until)
	return &endless
}

// A Run is how it went in one world.
type Run struct {
	// Empty is when the last VM had left the hosts that leaves them by the plan;
	// negative is never.
	Empty time.Duration
	// Emptied is the same of each of the hosts; without an entry it is never.
	Emptied map[hypervisor.HostName]time.Duration
	Results map[hypervisor.VMID]MoveResult // of every VM that was asked to move
	// Violations are invariants that did not hold.
	Violations []sim.Violation
}

// A MoveResult is how the move of one VM went.
type MoveResult struct {
	Done     bool // it has moved
	Attempts int
	// Began is when its memory began to move, at its last attempt; Took how long it
	// was until it had moved, Downtime how long its guest stood at most in one attempt,
	// also in one that failed.
	Began, Took, Downtime time.Duration
	Busy                  time.Duration // how long its memory moved, over all attempts
	// Speed is how fast its last attempt that ended was sent; 0 is not known.
	Speed hypervisor.Bandwidth
	// Brownout is how its guest was slowed down at its last attempt.
	Brownout store.Brownout
	Mode     hypervisor.Mode
	// Options are what its last attempt was asked for, as its hypervisor takes them.
	Options hypervisor.TransferOptions
	Why     string // the rule that ended its last attempt that failed, unless Done
}

// Nominal plays the plan in the world as the scenario says it is.
func (p *Play) Nominal(ctx context.Context) (*Run, error) {
	return p.play(ctx, p.staged(), p.Scenario.Seed)
}

// staged returns the scenario as it is played: at rest, and without events.
func (p *Play) staged() *config.Scenario {
	s, fleet := *p.Scenario, *p.Scenario.Fleet
	fleet.Migrations = nil
	s.Fleet, s.Events = &fleet, nil
	return &s
}

// play plays the plan in the world of a seed.
func (p *Play) play(ctx context.Context, s *config.Scenario, seed uint64) (*Run, error) {
	o := &operator{play: p, ctx: ctx, until: s.Until, emptied: p.emptied(), able: abilities(s.Fleet.Hosts),
		last: map[hypervisor.VMID]*store.Migration{}, run: &Run{Empty: -1,
			Emptied: map[hypervisor.HostName]time.Duration{},
			Results: map[hypervisor.VMID]MoveResult{}}}
	config := s.Config(seed)
	config.Watch, config.WatchVM = o.watch, o.watchVM
	config.Tick = func(*sim.World) bool { return ctx.Err() == nil }
	var err error
	if o.world, err = s.Build(config); err != nil {
		return nil, err
	}
	o.from = p.leaving(o.emptied)
	for host := range o.emptied {
		if o.left += o.from[host]; o.from[host] == 0 {
			o.run.Emptied[host] = 0
		}
	}
	if o.left == 0 {
		o.run.Empty = 0
	}
	o.follow()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	for vm, p := range o.run.Results {
		last := o.last[vm]
		if last == nil { // it is restarted
			p.Downtime = o.world.Stood(vm)
			o.run.Results[vm] = p
			continue
		}
		if last.State.Phase == migration.Running {
			p.Busy += o.world.Now() - p.Began
		}
		if stood, known := o.world.Downtime(vm, last.Spec.ID); known {
			p.Downtime = max(p.Downtime, stood)
		}
		o.run.Results[vm] = p
	}
	o.run.Violations = o.world.Result().Violations
	return o.run, nil
}

// emptied returns the hosts that are to be empty.
func (p *Play) emptied() map[hypervisor.HostName]bool {
	all := make(map[hypervisor.HostName]bool, len(p.Hosts))
	for _, host := range p.Hosts {
		all[host] = true
	}
	return all
}

// leaving counts the VMs that the plan takes off each of some hosts.
func (p *Play) leaving(hosts map[hypervisor.HostName]bool) map[hypervisor.HostName]int {
	from := map[hypervisor.HostName]int{}
	for _, wave := range p.Waves {
		for i := range wave {
			if hosts[wave[i].Source] {
				from[wave[i].Source]++
			}
		}
	}
	for _, host := range p.Stops.off() {
		if hosts[host] {
			from[host]++
		}
	}
	return from
}

// An operator follows a plan in one world.
type operator struct {
	play  *Play
	ctx   context.Context
	world *sim.World
	until time.Duration
	left  int                         // VMs on the hosts
	from  map[hypervisor.HostName]int // by the host
	open  int                         // moves of the wave that have not ended, but for those of groups
	// applied is the plan that moves the groups of the wave, of so many; "" is none.
	applied string
	plans   int
	last    map[hypervisor.VMID]*store.Migration
	run     *Run

	emptied map[hypervisor.HostName]bool // the hosts that are to be empty
	able    map[hypervisor.HostName]hypervisor.Abilities
}

// abilities returns what hosts can do. One of which nothing is said can do all that the model can.
func abilities(hosts []inventory.Host) map[hypervisor.HostName]hypervisor.Abilities {
	all := make(map[hypervisor.HostName]hypervisor.Abilities, len(hosts))
	for i := range hosts {
		all[hosts[i].Name] = cmp.Or(hosts[i].Abilities, fake.Abilities)
	}
	return all
}

// follow carries out the plan, and has drained what it leaves.
func (o *operator) follow() {
	for _, host := range o.play.Hosts {
		o.world.At(0, sim.Close{Host: host})
	}
	o.shutDown()
	for _, wave := range o.play.Waves {
		if !o.carryOut(wave) {
			break
		}
	}
	if o.play.once {
		return
	}
	if o.left > 0 {
		o.drain()
	}
	if o.world.Run(o.until) == sim.AtRest {
		o.world.CheckAtRest()
	}
}

// carryOut asks for the moves of a wave, and again for those that fail. It reports
// whether all of them have come about.
func (o *operator) carryOut(wave plan.Wave) bool {
	for range attempts {
		o.ask(wave)
		for o.open > 0 || o.applies() {
			rests := o.world.Run(workqueue.Later(o.world.Now(), time.Second)) != sim.TimeIsUp
			if rests || o.world.Now() >= o.until {
				return false
			}
		}
		wave = slices.DeleteFunc(slices.Clone(wave), func(m plan.Move) bool {
			return o.run.Results[m.VM].Done
		})
		if len(wave) == 0 || o.play.once {
			break
		}
	}
	return len(wave) == 0
}

// ask asks for the moves of a wave, one after another: the first shall be the oldest. VMs that leave with
// others are moved by a plan, as the controller carries it out: all of them have room before the first leaves.
func (o *operator) ask(wave plan.Wave) {
	o.open, o.applied = 0, ""
	var groups []store.PlannedMove
	for i, m := range wave {
		if o.grouped(m.VM) {
			groups = append(groups, store.PlannedMove{VM: m.VM, Source: m.Source, Target: m.Target})
			continue
		}
		o.open++
		o.world.At(workqueue.Later(o.world.Now(), time.Duration(i)*time.Millisecond), o.request(m))
	}
	if len(groups) > 0 {
		o.plans++
		o.applied = strconv.Itoa(o.plans)
		o.world.At(o.world.Now(), sim.Apply{Plan: store.Plan{Name: o.applied, Strict: true, Moves: groups}})
	}
}

// grouped reports whether a VM is moved with others, by a plan. The play of a single move is not carried out:
// it shows how long the move takes.
func (o *operator) grouped(vm hypervisor.VMID) bool {
	return !o.play.once && !o.play.Stops.restarts(vm) && o.play.Stops.together(vm)
}

// applies reports whether the plan of the wave's groups has not ended.
func (o *operator) applies() bool {
	if o.applied == "" {
		return false
	}
	p := o.world.Plan(o.applied)
	return p == nil || p.Ended.IsZero()
}

// drain takes back what the plan has asked for and leaves the rest to the controller.
func (o *operator) drain() {
	for _, wave := range o.play.Waves {
		for _, m := range wave {
			if last := o.last[m.VM]; last != nil && !last.State.Phase.Final() {
				o.world.At(o.world.Now(), sim.Cancel{VM: m.VM})
			}
		}
	}
	for _, host := range o.play.Hosts {
		o.world.At(workqueue.Later(o.world.Now(), time.Second), sim.Drain{Host: host,
			Terms: o.play.Stops.terms()})
	}
}

// watch is [sim.Config]'s Watch.
func (o *operator) watch(at time.Duration, before, after *store.Migration) {
	vm, phase := after.Spec.VM, after.State.Phase
	o.last[vm] = after
	p := o.run.Results[vm]
	if before.Version == 0 {
		p = MoveResult{Attempts: p.Attempts + 1, Busy: p.Busy, Downtime: p.Downtime, Why: p.Why}
	}
	p.Mode, p.Brownout = after.Source.Mode, after.Source.Brownout
	if phase != before.State.Phase && after.Options != nil {
		p.Options = o.play.Scenario.Agent.TransferOptions(after.Options, o.able[after.State.Source])
	}
	if phase != before.State.Phase {
		switch {
		case phase == migration.Running:
			p.Began = at
		case phase == migration.Succeeded:
			p.Done, p.Took, p.Why = true, at-p.Began, ""
			o.gone(at, after.State.Source)
		case phase.Final():
			p.Why = after.State.Because
		}
		if phase.Final() {
			if stood, known := o.world.Downtime(vm, after.Spec.ID); known {
				p.Downtime = max(p.Downtime, stood)
			}
			if !o.grouped(vm) {
				o.open--
			}
			took := at - cmp.Or(p.Began, at)
			p.Busy += took
			if sent := after.Source.Sent; after.Source.Measured && took > 0 {
				p.Speed = hypervisor.Bandwidth(float64(sent) / took.Seconds())
			}
		}
	}
	o.run.Results[vm] = p
}

// gone counts a VM that has left a host.
func (o *operator) gone(at time.Duration, from hypervisor.HostName) {
	if !o.emptied[from] {
		return
	}
	if o.from[from]--; o.from[from] == 0 {
		o.run.Emptied[from] = at
	}
	if o.left--; o.left == 0 {
		o.run.Empty = at
	}
}

// Solo plays the move of one VM as if nothing else moved or were there: whether it
// converges with all of the links for itself. A limit of 0 says nothing about that, and
// lets the one move begin.
func (p *Play) Solo(ctx context.Context, m plan.Move) (MoveResult, error) {
	s, fleet := *p.Scenario, *p.Scenario.Fleet
	fleet.Hosts = slices.DeleteFunc(slices.Clone(fleet.Hosts), func(h inventory.Host) bool {
		return h.Name != m.Source && h.Name != m.Target
	})
	fleet.VMs = slices.DeleteFunc(slices.Clone(fleet.VMs), func(v inventory.VM) bool {
		return v.ID != m.VM
	})
	fleet.Migrations = nil
	if len(fleet.Hosts) != 2 || len(fleet.VMs) != 1 {
		return MoveResult{}, fmt.Errorf("%+v is no move in %s", m, s.Name)
	}
	fleet.VMs[0].Placement.With, fleet.VMs[0].Placement.Groups = nil, nil
	s.Fleet, s.Events = &fleet, nil
	cluster := *s.Controller.Cluster
	cluster.ParallelMigrationsPerCluster = max(1, cluster.ParallelMigrationsPerCluster)
	cluster.ParallelOutboundMigrationsPerNode = max(1, cluster.ParallelOutboundMigrationsPerNode)
	s.Controller.Cluster = &cluster
	alone := &Play{Scenario: &s, Hosts: []hypervisor.HostName{m.Source},
		Waves: []plan.Wave{{m}}, Stops: p.Stops.alone(), once: true}
	run, err := alone.play(ctx, &s, s.Seed)
	if err != nil {
		return MoveResult{}, err
	}
	return run.Results[m.VM], nil
}
