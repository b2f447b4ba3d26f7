package simtest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// forever is longer than any world has anything to do.
const forever = 30 * 24 * time.Hour

// A failure is what went wrong in a world, and when.
type failure struct {
	Name   string // of the invariant, or of the decision and its fault
	At     time.Duration
	Detail string
	hangs  bool // a decision has not returned
}

// Failures that are of no invariant's: a world does not come to an end, cannot be built, or is
// another one when it is played again.
const (
	ending  = "all-end"
	unbuilt = "no world"
	another = "the same world is another one when it is played again"
)

// A stage is where worlds are played, one after the other.
type stage struct {
	*settings
	policyCheck *PolicyCheck
	now         time.Duration // where it was last
	until       time.Duration // how long to play each world; 0 is to its end
	trace       func(sim.Entry)
	watch       func(at time.Duration, before, after *store.Migration)
	world       *sim.World // the one that was played last
}

// play plays a world, and returns the first thing that goes wrong; nil is nothing. An error
// means that the world cannot be built.
func (s *stage) play(w *World) (*failure, error) {
	parsed, err := w.Scenario("world")
	if err != nil {
		return nil, err
	}
	return s.scene(parsed)
}

// scene plays a scenario with its own seed.
func (s *stage) scene(parsed *config.Scenario) (*failure, error) {
	s.policyCheck.Reset()
	s.now = 0
	r := &run{stage: s, held: make([]time.Duration, len(s.promises))}
	c := parsed.Config(parsed.Seed)
	c.Trace, c.Watch = s.trace, s.watch
	s.configure(&c, s.policyCheck)
	c.Watch, c.Tick = r.watched(c.Watch), r.ticks(c.Tick)
	r.size = len(parsed.Fleet.Hosts) + len(parsed.Fleet.VMs)
	theirs := c.After
	c.After = func(w *sim.World) bool { return r.look(w) && (theirs == nil || theirs(w)) }
	w, err := parsed.Build(c)
	if err != nil {
		return nil, err
	}
	s.world = w
	end := w.Run(cmp.Or(s.until, forever))
	if r.failed == nil {
		r.finish(w, end)
		if end == sim.AtRest || end == sim.Futile {
			r.drained(w, parsed)
		}
	}
	return r.failed, nil
}

// again plays a world twice and compares what happens: whatever is plugged in must not
// remember anything from one world to the next, nor look at a clock.
func (s *stage) again(w *World) *failure {
	var traces [2][]sim.Entry
	outer := s.trace
	defer func() { s.trace = outer }()
	for i := range traces {
		s.trace = func(e sim.Entry) { traces[i] = append(traces[i], e) }
		if f := s.once(w); f != nil {
			return f // what goes wrong counts, whenever it does
		}
	}
	at := 0
	for at < min(len(traces[0]), len(traces[1])) && traces[0][at] == traces[1][at] {
		at++
	}
	if at == len(traces[0]) && at == len(traces[1]) {
		return nil
	}
	return &failure{Name: another, At: s.now, Detail: fmt.Sprintf(
		"first: %s\nthen:  %s\none of these keeps something to itself: %s",
		entry(traces[0], at), entry(traces[1], at), strings.Join(s.names, ", "))}
}

// entry writes an entry of a trace, if it is that long.
func entry(trace []sim.Entry, at int) string {
	if at >= len(trace) {
		return "nothing more"
	}
	return trace[at].String()
}

// A run is one world that is played.
type run struct {
	*stage
	held   []time.Duration // when each promise was kept last
	work   work
	size   int // hosts and VMs of the world
	failed *failure
}

// look judges a world after an event, and reports whether it is to go on.
func (r *run) look(w *sim.World) bool {
	r.now = w.Now()
	r.judged(w)
	r.laws(w)
	for i := range r.always {
		r.check(w, &r.always[i])
	}
	for i := range r.promises {
		p := &r.promises[i]
		if err := p.f(w); err == nil {
			r.held[i] = w.Now()
		} else if w.Now()-r.held[i] > p.within {
			r.fail(p.name, w.Now(), fmt.Sprintf("not within %v: %v", p.within, err))
		}
	}
	return r.failed == nil
}

// judged takes over what the guards and godwit's own invariants have found.
func (r *run) judged(w *sim.World) {
	if f := r.policyCheck.Finding(); f != nil {
		r.fail(f.Name(), w.Now(), f.Why())
	}
	if all := w.Violations(); len(all) > 0 {
		r.fail(all[0].Invariant, all[0].At, all[0].Detail)
	}
}

func (r *run) check(w *sim.World, i *invariant) {
	if err := i.f(w); err != nil {
		r.fail(i.name, w.Now(), err.Error())
	}
}

// fail keeps the first failure.
func (r *run) fail(name string, at time.Duration, detail string) {
	if r.failed == nil {
		r.failed = &failure{Name: name, At: at, Detail: detail}
	}
}

// finish judges a world that has come to its end.
func (r *run) finish(w *sim.World, end sim.Ending) {
	switch end {
	case sim.AtRest:
		w.CheckAtRest()
		r.judged(w)
		for i := range r.atRest {
			r.check(w, &r.atRest[i])
		}
	case sim.Futile:
		r.hanging(w)
	case sim.TimeIsUp:
		if r.until > 0 {
			return
		}
		r.fail(ending, w.Now(), "it did not come to an end")
	case sim.Stopped:
		return
	}
	for _, p := range r.promises {
		if err := p.f(w); err != nil {
			r.fail(p.name, w.Now(), fmt.Sprintf("and never will: %v", err))
		}
	}
}

// tooLong is longer than any migration may be under way.
const tooLong = 5 * time.Hour

// hanging looks for migrations that are under way for longer than any may, although others
// go on: where all rest, godwit's own invariants find them.
func (r *run) hanging(w *sim.World) {
	for _, vm := range w.VMs() {
		for _, m := range w.Migrations(vm) {
			s, v := &m.State, w.VM(vm)
			held := v != nil && (v.Blockers.CPUChange || v.Blockers.MemoryChange) // until it is changed
			if !held && s.Phase > migration.Pending && !s.Phase.Final() &&
				!s.Conditions.Has(migration.OutcomeUnknown) &&
				w.Now()-s.Entered.Sub(sim.Epoch) > tooLong {
				r.fail(ending, w.Now(), fmt.Sprintf("%s hangs in %s", m.Spec.ID, s.Phase))
			}
		}
	}
}
