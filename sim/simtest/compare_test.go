package simtest_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// oneByOne lets one VM leave a host at a time.
var oneByOne = simtest.Evacuation("one by one", policy{
	open: func(evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool { return false }})

// drains makes worlds in which a host is emptied, and which have room for all.
var drains = simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Drain())

// One at a time has the links to itself: guests write less meanwhile, and stand still for a
// shorter time; and it is found out.
func TestWhatIsBetterIsFound(t *testing.T) {
	testutil.Unraced(t)
	c := simtest.Compare(t, drains, simtest.As("one by one", oneByOne), simtest.As("godwit's"),
		simtest.Runs(80))
	if err := c.Better(simtest.DowntimeP50, simtest.Sent); err != nil {
		t.Error(err)
	}
	if err := c.NotWorse(simtest.DowntimeP50, simtest.Failures, simtest.Left); err != nil {
		t.Error(err)
	}
	back := simtest.Compare(t, drains, simtest.As("godwit's"), simtest.As("one by one", oneByOne),
		simtest.Runs(80))
	for i, v := range c.Results {
		b := back.Results[i]
		if b.Less != v.More || b.More != v.Less || b.Ours != v.Theirs ||
			(b.Outcome == simtest.Worse) != (v.Outcome == simtest.Better) {
			t.Errorf("%s: one way round %+v, the other %+v", v.Name, v, b)
		}
	}
	err := back.NotWorse(simtest.Sent, "beauty")
	if err == nil || !strings.Contains(err.Error(), `"beauty" is not measured`) ||
		!strings.Contains(err.Error(), simtest.Sent+": worse: ") {
		t.Errorf("what is worse passes: %v", err)
	}
}

// Both sides see the same worlds, faults and choices: who decides the same fares the same.
func TestTheSameIsNeverBetter(t *testing.T) {
	testutil.Unraced(t)
	c := simtest.Compare(t, simtest.Turmoil(), simtest.As("godwit's"), simtest.As("again"),
		simtest.Runs(20), simtest.Measure("hosts", simtest.Numbers, hosts))
	for _, v := range c.Results {
		if v.Less != 0 || v.More != 0 || v.Outcome != simtest.Same {
			t.Errorf("%s: %+v", &v, v)
		}
	}
	if v, known := c.Of("hosts"); !known || v.Ours < 2 {
		t.Errorf("the number of hosts was not measured: %+v", v)
	}
	if err := c.Better(simtest.TimeToEmpty); err == nil {
		t.Error("the same is better")
	}
}

func hosts(w *sim.World) float64 { return float64(len(w.Hosts())) }

// whims is a preference for hosts that has no reason: any two are as good as each other.
func whims(salt int) simtest.Option {
	return simtest.Weigher(placement.Weigher{Name: "whims", Multiplier: 100,
		Of: func(vm *placement.VM, h *placement.Host, _ placement.Options) float64 {
			sum := fnv.New32a()
			fmt.Fprint(sum, salt, vm.ID, h.Name)
			return float64(sum.Sum32()) / math.MaxUint32
		}})
}

// Sides that differ, but of which none is better, are told apart in at most one comparison of
// 20: of these 8, in at most one.
func TestWhatIsNotBetterIsRarelyCalledSo(t *testing.T) {
	testutil.Unraced(t)
	large := simtest.Of(simtest.Roomy(simtest.Size{MinHosts: 5, MaxHosts: 6, MinVMs: 10, MaxVMs: 16}),
		simtest.Converging(), simtest.Drain())
	wrong, differ := 0, 0
	for salt := range 8 {
		c := simtest.Compare(t, large, simtest.As("a", whims(2*salt)),
			simtest.As("b", whims(2*salt+1)), simtest.Runs(15), simtest.Seed(uint64(salt)))
		decided := func(v simtest.ComparisonResult) bool {
			return v.Outcome == simtest.Better || v.Outcome == simtest.Worse
		}
		if slices.ContainsFunc(c.Results, decided) {
			wrong++
		}
		if slices.ContainsFunc(c.Results, func(v simtest.ComparisonResult) bool { return v.Less > 2 }) {
			differ++
		}
	}
	if wrong > 1 || differ < 6 {
		t.Errorf("%d of 8 comparisons find a difference; in %d the sides differ at all", wrong,
			differ)
	}
}

// A decision that is none ends the comparison: numbers would mean nothing.
func TestASideThatGoesWrongIsNamed(t *testing.T) {
	r := &recorder{name: "TestMine"}
	broken := simtest.Evacuation("mine", policy{
		compare: func(a, b evacuation.EvacuatingVM) int { panic("no idea") }})
	c := simtest.Compare(r, drains, simtest.As("godwit's"), simtest.As("hasty", broken))
	text := strings.Join(r.said, "\n")
	if !strings.Contains(text, "hasty: mine.Compare panics, at") ||
		!strings.Contains(text, "no idea") || !strings.Contains(text, "hosts:\n") {
		t.Errorf("it is not named:\n%s", text)
	}
	if c.NotWorse(simtest.Left) == nil {
		t.Error("what was not measured passes")
	}
}

// What cannot be measured in a world says nothing about it.
func TestWorldsThatTellNothingDoNotCount(t *testing.T) {
	still := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging())
	c := simtest.Compare(t, still, simtest.As("a"), simtest.As("b"), simtest.Runs(8))
	for _, name := range []string{simtest.TimeToEmpty, simtest.DowntimeMax} {
		if v, _ := c.Of(name); v.Worlds != 0 || v.Outcome != simtest.CannotSay {
			t.Errorf("nothing moved: %s", &v)
		}
	}
	full := simtest.Of(simtest.Cramped(simtest.Small), simtest.Converging(), simtest.Drain())
	c = simtest.Compare(t, full, simtest.As("a"), simtest.As("b"), simtest.Runs(8))
	if v, _ := c.Of(simtest.TimeToEmpty); !math.IsInf(v.Ours, 1) || v.Worlds != 8 {
		t.Errorf("a host that cannot be emptied: %+v", v)
	}
}
