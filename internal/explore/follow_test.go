package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// A follower checks that the number of a state says all that what follows depends on. It meets
// the states of a scene depth first, as an exploration does, and compares what each step leads to from
// the same state whenever it is met on another way: were two states merged that go on in different
// ways, an exploration would leave out what follows from the second.
type follower struct {
	*testing.T
	w        *worker
	most     int // states
	known    map[uint64]meeting
	compared int
	deeper   int
}

// A meeting is the first with a state: the way there, and what follows.
type meeting struct {
	way   []step
	after []successor
}

// A successor is what a step leads to.
type successor struct {
	step
	number  uint64 // of the state, unless something is violated
	taken   bool
	effects int
	broken  string
}

// resting is the step that leads a world to rest.
const resting = Ops

// successors takes every step from the present state, the last on the stack, and goes back to it.
func successors(w *worker, rests bool) (all []successor) {
	here, n := w.keep(), len(w.stack)-1
	try := func(s step) int {
		w.keeper.restore(here)
		after := successor{step: s, taken: w.world.apply(s), effects: w.world.Look.Effects}
		w.world.spend(s)
		all = append(all, after.ended(w))
		return after.effects
	}
	list, _ := w.steps(nil)
	for _, s := range list {
		effects := try(s)
		if s.Op != Look || w.stack[n].snapshot.Faults == 0 {
			continue
		}
		for _, fated := range s.Fated(effects, w.search.config.Faults) {
			try(fated)
		}
	}
	for _, back := range [...]bool{false, true} {
		if rests {
			w.keeper.restore(here)
			w.world.Rest(back)
			all = append(all, successor{step: step{Op: resting, Odd: back}}.ended(w))
		}
	}
	w.keeper.restore(here)
	slices.SortFunc(all, func(a, b successor) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B),
			cmp.Compare(a.C, b.C))
	})
	return all
}

// ended takes in what has become of the world. The number of a world at rest is that of no state.
func (s successor) ended(w *worker) successor {
	switch {
	case w.world.Broken != nil:
		s.broken = w.world.Broken.Invariant
	case s.taken:
		s.number = w.keeper.print()
	}
	return s
}

// goesOn reports whether a step leads to a state.
func (s successor) goesOn() bool { return s.taken && s.broken == "" }

// meet follows all that can happen from the present state, whose number is n.
func (f *follower) meet(n uint64) {
	old, again := f.known[n]
	if !again && len(f.known) >= f.most || f.Failed() {
		return
	}
	after := successors(f.w, n%64 == 0)
	if again {
		f.compared++
		f.compare(old, meeting{f.way(), after})
		return
	}
	f.known[n] = meeting{f.way(), after}
	for _, s := range after {
		if !s.goesOn() {
			continue
		}
		f.w.keeper.restore(f.w.stack[len(f.w.stack)-1].snapshot)
		f.w.world.apply(s.step)
		f.w.world.spend(s.step)
		if is := f.w.keeper.print(); is != s.number {
			f.Fatalf("after%s\nthe same step leads to two states: %s", f.text(f.way()), s.Write(f.w.world.Scene))
		}
		f.w.push(-1, s.step)
		f.meet(s.number)
		f.w.pop()
	}
}

// way is how the present state was reached.
func (f *follower) way() (way []step) {
	for _, p := range f.w.stack[1:] {
		way = append(way, p.step)
	}
	return way
}

// compare compares what follows from two ways to a state. Where only the numbers of what follows
// differ, as they do when a number tells apart what goes on alike, that must go on alike, too.
func (f *follower) compare(a, b meeting) {
	if !slices.Equal(a.after, b.after) {
		f.deeper++
		f.same(a.way, b.way, 8)
	}
}

// same fails unless two ways lead to states that go on alike.
func (f *follower) same(a, b []step, depth int) {
	x, y := f.from(a), f.from(b)
	alike := func(a, b successor) bool { a.number, b.number = 0, 0; return a == b }
	if depth == 0 || !slices.EqualFunc(x, y, alike) {
		f.Fatalf("two ways lead to the same number, and go on in different ways.\nafter%s\n%v\n\nafter%s\n%v",
			f.text(a), x, f.text(b), y)
	}
	for i := range x {
		if x[i].number != y[i].number {
			f.same(append(slices.Clip(a), x[i].step), append(slices.Clip(b), x[i].step), depth-1)
		}
	}
}

// from returns what follows at the end of a way, in a world of its own.
func (f *follower) from(way []step) []successor {
	w := newWorker(f.w.search)
	for _, s := range way {
		w.world.apply(s)
		w.world.spend(s)
		w.keeper.print()
		w.push(-1, s)
	}
	return successors(w, false)
}

func (f *follower) text(way []step) string {
	var lines []string
	for _, s := range stretches(f.w.world.Scene, way) {
		lines = append(lines, s.write(f.w.world.Scene))
	}
	return fmt.Sprintf(" %s:", strings.Join(lines, "; "))
}

// Every two ways to what counts as the same state lead on in the same way. Four things were found
// so: a fault of just now counted as one of long ago, and what an agent's claim had changed was told
// to others after the first step alone that was taken from there.
func TestTheSameStateGoesOnInTheSameWay(t *testing.T) {
	testutil.Unraced(t)
	for _, s := range []struct {
		name, text string
		faults     Fault
		most       int
	}{
		{"no host is lost", "hosts n1 n2\nvms web@n1\nscript migrate web\n", AllFaults, 20_000},
		{"a host is said to be off", "hosts n1 n2\nvms web@n1\nscript migrate web\nscript dead n1\n",
			AllFaults, 20_000},
		{"an agent claims the name of another", "hosts n1 n2\nvms web@n1\nsecond n1 copied\nscript migrate web\n",
			AllFaults | Mistakes, 8_000},
		{"the store is set back", "hosts n1 n2\nvms web@n1\nforgotten\nscript migrate web\n",
			AllFaults | Mistakes, 8_000},
		{"a VM gets another life", "hosts n1 n2\nvms web@n1\nbackup\nscript stop web\nscript renew web\n",
			AllFaults | Backups, 8_000},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			set, err := ParseScene(s.text)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Config{Scene: set, Faults: s.faults, Budget: 1, Odd: 2, Workers: 1}.complete()
			if err != nil {
				t.Fatal(err)
			}
			w := newWorker(&search{config: c, ctx: t.Context()})
			f := &follower{T: t, w: w, most: testutil.Rounds(t, 400, s.most), known: map[uint64]meeting{}}
			f.meet(w.keeper.print())
			t.Logf("%d states, %d met again, %d compared further", len(f.known), f.compared, f.deeper)
			if f.compared < len(f.known)/20 {
				t.Errorf("of %d states only %d were met again", len(f.known), f.compared)
			}
		})
	}
}

// An exploration that ends early meets the same states however busy the machine is.
func TestALimitedExplorationIsAlwaysTheSame(t *testing.T) {
	set, err := ParseScene("hosts n1 n2\nvms web@n1\nscript migrate web\nscript dead n1\n")
	if err != nil {
		t.Fatal(err)
	}
	var first *search
	for range 3 {
		s, err := run(t.Context(), Config{Scene: set, Faults: AllFaults, Budget: 1, Odd: 2, States: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
			continue
		}
		if s.result != first.result {
			t.Errorf("%v, and before %v", &s.result, &first.result)
		}
		for i := range s.seen.shards {
			if !slices.Equal(s.seen.shards[i].table, first.seen.shards[i].table) {
				t.Fatal("other states were met")
			}
		}
	}
}
