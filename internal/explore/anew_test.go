package explore

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// anew explores a scene without anything that makes that fast: every way is played from
// the beginning, in a world of its own, in which everything is looked at for each number.
type anew struct {
	config Config
	maker  *Hasher
	seen   map[uint64]bool
	ways   [][]step // to states that nothing was tried in yet
}

// meet plays a way, and notes the state at its end if it is new.
func (a *anew) meet(way []step) (effects int) {
	w := a.play(way)
	if w == nil {
		return 0
	}
	k := keeper{w: w, maker: a.maker, fresh: ^uint(0)}
	if n := k.print(); !a.seen[n] {
		a.seen[n] = true
		a.ways = append(a.ways, way)
	}
	return w.Look.Effects
}

// play returns the world at the end of a way, nil when its last step cannot be taken.
func (a *anew) play(way []step) *World {
	w := newModel(a.config.Scene, a.config.Budget)
	w.Odd = a.config.Odd - 1
	for _, s := range way {
		if !w.apply(s) || w.Broken != nil {
			return nil
		}
		w.spend(s)
	}
	return w
}

// follow takes every step from the end of a way.
func (a *anew) follow(way []step) {
	w := a.play(way)
	usual, some := w.Usual()
	for _, s := range w.possible(nil, a.config.Faults) {
		s.Odd = w.cost(s) == 0 && (!some || s != usual) && !w.anyTime(s)
		if s.Odd && w.Odd == 0 {
			continue
		}
		effects := a.meet(append(way[:len(way):len(way)], s))
		if s.Op == Look && w.Faults > 0 {
			for _, fated := range s.Fated(effects, a.config.Faults) {
				a.meet(append(way[:len(way):len(way)], fated))
			}
		}
	}
}

// What is brought back, known from before, or left out because nothing else is possible
// makes no difference: an exploration that plays every way anew finds the same states.
func TestWaysThatArePlayedAnewLeadToTheSameStates(t *testing.T) {
	testutil.Unraced(t)
	set, err := ParseScene("hosts n1 n2\nvms web@n1\nscript migrate web\nscript cancel web\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"any order, no fault":    {Depth: 5},
		"any order, one fault":   {Faults: AllFaults, Budget: 1, Depth: 3},
		"the usual order":        {Faults: Kills | Resets, Budget: 1, Odd: 1},
		"one step out of order":  {Odd: 2},
		"only what is answered":  {Faults: LostAnswers | Refusals, Budget: 1, Odd: 1},
		"two faults of one kind": {Faults: Cuts, Budget: 2, Odd: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.Scene, c.Workers, c.Rest = set, 1, -1
			s, err := run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			a := &anew{s.config, NewHasher(rules), map[uint64]bool{}, nil}
			a.meet(nil)
			for level := 0; len(a.ways) > 0 && level < s.config.Depth; level++ {
				ways := a.ways
				a.ways = nil
				for _, way := range ways {
					a.follow(way)
				}
			}
			for n := range a.seen {
				if s.seen.add(n) {
					t.Fatal("a state was not met")
				}
			}
			if s.result.States != len(a.seen) || len(a.seen) < 50 {
				t.Errorf("%d states are met, there are %d", s.result.States, len(a.seen))
			}
			t.Log(&s.result)
		})
	}
}
