package explore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

const drain = "hosts n1 n2 n3\nvms web@n1 db@n1,busy\npost-copy\nscript drain n1\n"

// mistaken is a world in which people err.
const mistaken = "hosts n1 n2 n3\nvms web@n1 db@n1,busy\npost-copy\nsecond n1 copied\nforgotten\n" +
	"script drain n1\n"

func played(t *testing.T, faults int) *World { return playedIn(t, drain, faults) }

// either is one of two worlds, by a number.
func either(t *testing.T, n uint64, faults int) *World {
	return playedIn(t, [...]string{drain, mistaken}[n%2], faults)
}

func playedIn(t *testing.T, text string, faults int) *World {
	t.Helper()
	s, err := ParseScene(text)
	if err != nil {
		t.Fatal(err)
	}
	return newModel(s, faults)
}

// walk takes random steps, and calls each after every one.
func walk(w *World, seed uint64, length int, each func(step)) {
	chance := rand.New(rand.NewPCG(seed, 1))
	for range length {
		s, ok := w.Usual()
		list := w.possible(nil, AllFaults|Mistakes)
		if len(list) > 0 && (!ok || chance.IntN(3) == 0) {
			s = list[chance.IntN(len(list))]
			if s.Op == Look && w.Faults > 0 && chance.IntN(3) == 0 {
				s.B, s.C = uint8(1+chance.IntN(3)), uint8(chance.IntN(2))
			}
		}
		w.apply(s)
		each(s)
	}
}

// forget makes a keeper look at everything again.
func (k *keeper) forget() { k.sums, k.fresh = [Parts]sum{}, ^uint(0) }

// What a step did not touch has not changed: the number of a state, put together from
// what is known of its parts, is the one that it has when everything is looked at.
func TestWhatIsNotTouchedHasNotChanged(t *testing.T) {
	testutil.Unraced(t)
	for seed := range uint64(16) {
		w := either(t, seed, 5)
		k, fresh := newKeeper(w), newKeeper(w)
		walk(w, seed, 120, func(s step) {
			n := k.print()
			if fresh.forget(); fresh.print() != n {
				t.Fatalf("after %s something has changed that was not touched", s.Write(w.Scene))
			}
		})
	}
}

// Whatever happened, a state that is brought back is what it was: it has its number, and
// every step from it leads where it led before.
func TestStatesAreBroughtBack(t *testing.T) {
	testutil.Unraced(t)
	for seed := range uint64(testutil.Rounds(t, 1, 6)) {
		w := either(t, seed, 4)
		k := newKeeper(w)
		k.print()
		walk(w, seed, 40, func(step) {
			n := k.print()
			here := k.keep()
			var first []uint64
			for round := range 2 {
				for i, s := range w.possible(nil, AllFaults|Mistakes) {
					w.apply(s)
					after := k.print()
					if round == 0 {
						first = append(first, after)
					} else if first[i] != after {
						t.Fatalf("%s leads elsewhere the second time", s.Write(w.Scene))
					}
					if i%5 == 0 {
						w.Rest(true)
					}
					k.restore(here)
				}
				if k.forget(); k.print() != n {
					t.Fatal("what was brought back is another state")
				}
			}
			k.drop(here)
		})
	}
}

// Whether a participant has a record as it is stored, or one that says the same, makes two
// states: what it writes is refused or not.
func TestARecordThatIsNotStoredCounts(t *testing.T) {
	w := played(t, 0)
	for p := range w.Len() {
		w.apply(step{Op: Look, A: uint8(p)})
	}
	k := newKeeper(w)
	before := k.print()
	again := *w.VM("web")
	stored, err := w.Store.Put(t.Context(), &again)
	if err != nil {
		t.Fatal(err)
	}
	w.Touched |= 1 << theStore
	for p := range w.Len() { // they have read that it changed, and not what
		w.Procs[p].Seen = store.Revision(stored.RecordVersion())
	}
	if k.print() == before {
		t.Error("a record that is no longer stored counts as one that is")
	}
}

// A state is the same on every way to it: two participants that only take in news may do
// so in either order; and it is the same in two worlds.
func TestTheOrderOfIndependentStepsDoesNotMatter(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
		var numbers []uint64
		for _, order := range [][]int{{0, 1, 2, 3}, order} {
			w := played(t, 0)
			k := newKeeper(w)
			for _, p := range order {
				w.apply(step{Op: Look, A: uint8(p)})
			}
			w.apply(step{Op: Script})
			w.apply(step{Op: Look})
			numbers = append(numbers, k.print())
		}
		if numbers[0] != numbers[1] {
			t.Errorf("in the order %v it is another state", order)
		}
	}
}

// When there may be no more faults, nor steps out of order, the steps that are taken are
// those that are left of all that are possible.
func TestOnlyTheUsualIsLeft(t *testing.T) {
	waited := false
	for seed := range uint64(12) {
		w := &worker{world: either(t, seed, 4),
			search: &search{config: Config{Faults: AllFaults | Mistakes}}}
		walk(w.world, seed, 150, func(step) {
			faults := w.world.Faults
			w.world.Faults, w.world.Odd = 0, 0
			few, ends := w.steps(nil)
			usual, some := w.world.Usual()
			var want []step
			for _, s := range w.world.possible(nil, AllFaults|Mistakes) {
				if some && s == usual || w.world.anyTime(s) {
					want = append(want, s)
				}
			}
			if !slices.Equal(few, want) || ends == some {
				t.Fatalf("the steps are %v, want %v; it ends: %t", few, want, ends)
			}
			waited = waited || len(few) > 1
			w.world.Faults, w.world.Odd = faults, -1
		})
	}
	if !waited {
		t.Error("no operator waited")
	}
}

// All that a rule is about exists, so that none is forgotten when a field gets another
// name; and some states differ in every part.
func TestRulesAreMet(t *testing.T) {
	met := map[string]bool{}
	for seed := range uint64(6) {
		w := either(t, seed, 6)
		k := newKeeper(w)
		walk(w, seed, 150, func(step) { k.print() })
		unused := k.maker.Unused()
		for _, name := range slices.Concat(rules.Skip, rules.Times, rules.Own, rules.Held) {
			met[name] = met[name] || !slices.Contains(unused, name)
		}
	}
	for name, ok := range met {
		if !ok && !inNamed(name) {
			t.Errorf("there is no %s", name)
		}
	}
}

// inNamed reports whether a field is in a type of which, so far, only the name counts.
func inNamed(field string) bool {
	for name := range rules.Named {
		if strings.HasPrefix(field, name+".") {
			return true
		}
	}
	return false
}

// What makes no sense is refused with the line.
func TestBadTranscripts(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"hosts n1\nvms", "empty line"},
		{"host n1\n\nlook n1", `line "host n1": unknown word`},
		{"hosts n1=x\n\n", "n1=x"},
		{"hosts n1\nvms web\n\n", "web@n1"},
		{"hosts n1\nvms web@n2\n\n", `no host "n2"`},
		{"hosts n1\nscript fly n1\n\n", `script "fly n1"`},
		{"hosts n1\nper-source x\n\n", "per-source x"},
		{"hosts n1\nsecond n2 new\n\n", `second n2: there is no host "n2"`},
		{"hosts n1\nsecond n1\n\n", "copied or new"},
		{"hosts n1\nsecond n1 new\nsecond n1 new\n\n", "two machines n1'"},
		{"hosts n1\n\nsing", `"sing" is no step`},
		{"hosts n1\n\nusual", `"usual": write usual and how many steps`},
		{"hosts n1\n\nusual 0", `"usual 0": write usual and how many steps`},
		{"hosts n1\n\nusual 1 2", `"usual 1 2": write usual and how many steps`},
		{"hosts n1\n\nusual 99999999999999999999", "1 to 10000"},
		{"\n\n", "0 hosts"},
		{"hosts 1 2 3 4 5 6\n\n", "6 hosts"},
	} {
		_, err := Replay(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want something about %q", test.text, err, test.want)
		}
	}
	if _, err := (Config{}).complete(); err == nil {
		t.Error("no scene is no error")
	}
}

// The set of numbers is a set.
func TestNumbers(t *testing.T) {
	var set seen
	chance, model := rand.New(rand.NewPCG(1, 2)), map[uint64]bool{}
	for range 100_000 {
		n := chance.Uint64N(60_000)
		if n == 0 {
			n = 1 // stands for zero, too
		}
		if set.add(n) == model[n] {
			t.Fatalf("%d is new: %t", n, model[n])
		}
		model[n] = true
	}
}
