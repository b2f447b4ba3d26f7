package simtest_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// Whatever godwit itself decides passes its guards, in any world, and a world with guards
// comes to the same as one without.
func TestGodwitsOwnDecisionsAreDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := guardRestless.Make(simtest.Drawn(t))
		s, err := w.Scenario("world")
		if err != nil {
			t.Fatal(err)
		}
		method := convergence.Method(rapid.IntRange(0, 2).Draw(t, "method"))
		plain := s.Config(w.Seed)
		plain.Controller.Evacuation.Policy = evacuation.AdaptivePolicy{}
		plain.Controller.Sharer = evacuation.AdaptivePolicy{} // as that policy shares links
		plain.Controller.Placement.Filters = placement.AllFilters()
		plain.Controller.Placement.Weighers = placement.Spread()
		plain.Agent.Converge = convergence.By(method)
		core := plain.Controller.Migration.Complete()
		plain.Controller.Migration.Retry = core.Backoff

		policyCheck, guarded := &simtest.PolicyCheck{}, plain
		c := &guarded.Controller
		c.Evacuation.Policy = simtest.CheckEvacuation(policyCheck, "adaptive", evacuation.AdaptivePolicy{})
		c.Migration.Retry = simtest.CheckRetry(policyCheck, "backoff", core.Backoff)
		c.Placement.Filters, c.Placement.Weighers = placement.AllFilters(), placement.Spread()
		for i, f := range c.Placement.Filters {
			c.Placement.Filters[i] = simtest.CheckFilter(policyCheck, f)
		}
		for i, of := range c.Placement.Weighers {
			c.Placement.Weighers[i] = simtest.CheckWeigher(policyCheck, of)
		}
		guarded.Agent.Converge = simtest.CheckConvergence(policyCheck, "converge", plain.Agent.Converge)
		guarded.Chooser, plain.Chooser = sim.Seeded(w.Seed), sim.Seeded(w.Seed)

		want, got := trace(t, s.Build, plain), trace(t, s.Build, guarded)
		if f := policyCheck.Finding(); f != nil {
			t.Fatalf("%v\n%s", f, w)
		}
		if want != got {
			t.Fatalf("with guards something else happens\n%s", w)
		}
	})
}

// guardRestless is small worlds in which every policy is asked.
var guardRestless = simtest.Of(simtest.Roomy(simtest.Size{MinHosts: 2, MaxHosts: 3, MinVMs: 2, MaxVMs: 4}),
	simtest.AnyLoad(), simtest.Limits(), simtest.Means(), simtest.Drain(),
	simtest.Swarm(simtest.Faults(), 0, 3))

// trace runs a world and returns what happened.
func trace(t *rapid.T, build func(sim.Config) (*sim.World, error), c sim.Config) string {
	var b strings.Builder
	c.Trace = func(e sim.Entry) { b.WriteString(e.String() + "\n") }
	w, err := build(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(20 * time.Minute)
	return b.String()
}

// What is an order, however odd, is none to complain about: any ranking of any three.
func TestEveryOrderPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policyCheck := &simtest.PolicyCheck{}
		rank := rapid.SliceOfN(rapid.IntRange(0, 3), 4, 4).Draw(t, "ranks")
		p := simtest.CheckEvacuation(policyCheck, "ranked", ranked(rank))
		vms := []evacuation.EvacuatingVM{{VM: "0"}, {VM: "1"}, {VM: "2"}, {VM: "3"}}
		for range 20 {
			a := vms[rapid.IntRange(0, 3).Draw(t, "a")]
			b := vms[rapid.IntRange(0, 3).Draw(t, "b")]
			if got, want := p.Compare(0, a, b), ranked(rank).Compare(0, a, b); got != sign(want) {
				t.Fatalf("%s and %s: %d, not %d", a.VM, b.VM, got, want)
			}
		}
		if f := policyCheck.Finding(); f != nil {
			t.Fatal(f)
		}
	})
}

// ranked orders VMs by their rank, with answers larger than one.
type ranked []int

func (r ranked) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	return 7 * (r[a.VM[0]-'0'] - r[b.VM[0]-'0'])
}

func (ranked) Admit(hypervisor.Bandwidth, evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool {
	return true
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestAWaitThatHasPassedBeforeItBeganIsNonsense(t *testing.T) {
	failed := sim.Epoch.Add(time.Hour)
	attempts := []migration.Attempt{{ID: "a", Phase: migration.Failed, FailedAt: failed}, {ID: "b"}}
	for _, row := range []struct {
		name  string
		retry migration.Retry
		kind  simtest.Kind
	}{
		{"at once", func(migration.ID, []migration.Attempt) time.Time { return time.Time{} }, ""},
		{"a minute later", func(_ migration.ID, a []migration.Attempt) time.Time {
			return a[0].FailedAt.Add(time.Minute)
		}, ""},
		{"a minute before", func(_ migration.ID, a []migration.Attempt) time.Time {
			return a[0].FailedAt.Add(-time.Minute)
		}, simtest.Nonsense},
		{"at any time", func(migration.ID, []migration.Attempt) time.Time {
			failed = failed.Add(time.Second)
			return failed.Add(time.Hour)
		}, simtest.Fickle},
		{"after a look at the first", func(_ migration.ID, a []migration.Attempt) time.Time {
			a[0].Because = "seen"
			return time.Time{}
		}, simtest.Meddles},
		{"never", func(migration.ID, []migration.Attempt) time.Time { panic("never") },
			simtest.Panics},
	} {
		policyCheck := &simtest.PolicyCheck{}
		simtest.CheckRetry(policyCheck, "mine", row.retry)("b", attempts)
		kind := simtest.Kind("")
		if f := policyCheck.Finding(); f != nil {
			kind = f.Kind
		}
		if kind != row.kind {
			t.Errorf("%s: want %q, got %v", row.name, row.kind, policyCheck.Finding())
		}
		attempts[0].Because = ""
	}
}

// After a finding no policy is asked any more, and a policyCheck that is reset finds the same again.
// A controller whose clock was set back notes that the younger attempt failed before the older.
func TestAWaitAfterAClockWasSetBackMakesSense(t *testing.T) {
	attempts := []migration.Attempt{
		{ID: "a", Phase: migration.Failed, FailedAt: sim.Epoch.Add(time.Hour)},
		{ID: "b", Phase: migration.Failed, FailedAt: sim.Epoch}, {ID: "c"}}
	policyCheck := &simtest.PolicyCheck{}
	simtest.CheckRetry(policyCheck, "mine", func(_ migration.ID, a []migration.Attempt) time.Time {
		return a[1].FailedAt.Add(time.Minute)
	})("c", attempts)
	if f := policyCheck.Finding(); f != nil {
		t.Errorf("got %v", f)
	}
}

func TestAfterAFindingTheGuardAnswers(t *testing.T) {
	policyCheck, asked := &simtest.PolicyCheck{}, 0
	r := simtest.CheckRetry(policyCheck, "mine", func(migration.ID, []migration.Attempt) time.Time {
		asked++
		panic("no idea")
	})
	for range 5 {
		r("a", nil)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	first := policyCheck.Finding().String()
	policyCheck.Reset()
	if policyCheck.Finding() != nil {
		t.Error("it is still found")
	}
	if r("a", nil); policyCheck.Finding() == nil || policyCheck.Finding().String() != first {
		t.Errorf("first %s, then %v", first, policyCheck.Finding())
	}
	if !strings.Contains(first, "mine panics: no idea") || !strings.Contains(first, "mine(a, [])") {
		t.Error(first)
	}
}

// A call that has returned cannot be abandoned; one that has not ends its goroutine when it
// returns after all.
func TestACallThatIsAbandonedEndsItsGoroutine(t *testing.T) {
	policyCheck, began, release := &simtest.PolicyCheck{}, make(chan bool), make(chan bool)
	ended, after := make(chan bool), false
	go func() {
		defer close(ended)
		simtest.CheckRetry(policyCheck, "mine", func(migration.ID, []migration.Attempt) time.Time {
			close(began)
			<-release
			return time.Time{}
		})("a", nil)
		after = true
	}()
	if policyCheck.Abandon(0) != nil {
		t.Error("no policy was asked")
	}
	<-began
	count, asking := policyCheck.Pulse()
	f := policyCheck.Abandon(count)
	if !asking || f == nil || f.Kind != simtest.Hangs || f.Policy != "mine" {
		t.Fatalf("%v %v", asking, f)
	}
	close(release)
	if <-ended; after {
		t.Error("it went on")
	}
	if policyCheck.Interrupted() != nil {
		t.Error("a call that was abandoned is said to have quit")
	}
}
