package simtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// A decision that blocks is reported, and what was blocked ends once it may.
func TestADecisionThatDoesNotReturnIsReported(t *testing.T) {
	release := make(chan bool)
	defer close(release)
	r, dir := &recorder{name: "TestMine"}, t.TempDir()
	simtest.Check(r, decided, simtest.Transcript(dir), simtest.DecisionTimeout(time.Second),
		simtest.Evacuation("mine", policy{
			open: func(_ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
				<-release
				return true
			}}))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "mine.Admit does not return, at") ||
		!strings.Contains(r.said[0], "asked: mine.Admit(") {
		t.Fatalf("%q", r.said)
	}
	t.Log(r.said[0])
	small(t, dir)
}

// A decision that calls a test's FailNow ends the goroutine that asked it.
func TestADecisionThatEndsItsGoroutineIsReported(t *testing.T) {
	inner, r, dir := &testing.T{}, &recorder{name: "TestMine"}, t.TempDir()
	simtest.Check(r, decided, simtest.Transcript(dir), simtest.Evacuation("mine", policy{
		compare: func(a, b evacuation.EvacuatingVM) int { inner.FailNow(); return 0 }}))
	if len(r.said) != 1 || !strings.Contains(r.said[0],
		"mine.Compare ends the goroutine that asked it, at") {
		t.Fatalf("%q", r.said)
	}
	small(t, dir)
}

// An invariant, or anything else that was plugged in, may panic, too.
func TestAPanicOutsideOfADecisionIsReported(t *testing.T) {
	for name, option := range map[string]simtest.Option{
		"an invariant": simtest.Always("mine", func(w *sim.World) error {
			return []error{nil}[len(w.Hosts())]
		}),
		"a decision that is not guarded": simtest.Configure(func(c *sim.Config) {
			c.Agent.Converge = func(convergence.Config, convergence.State, hypervisor.Progress,
				time.Time) (convergence.State, convergence.Decision) {
				panic("no idea")
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := &recorder{name: "TestMine"}, t.TempDir()
			simtest.Check(r, decided, simtest.Transcript(dir), option)
			if len(r.said) != 1 || !strings.Contains(r.said[0], "panic, at") ||
				!strings.Contains(r.said[0], "attend_test.go") {
				t.Fatalf("%q", r.said)
			}
			small(t, dir)
		})
	}
}

// A configuration that no world can be built with is no world that fails.
func TestAWorldThatCannotBeBuiltIsReported(t *testing.T) {
	r, dir := &recorder{name: "TestMine"}, t.TempDir()
	simtest.Check(r, simtest.Of(simtest.Part{Name: "nowhere", Add: func(m *simtest.Builder) {
		m.World.Mode = "Nonsense"
	}}), simtest.Transcript(dir))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "no world, at") ||
		!strings.Contains(r.said[0], `unknown mode "Nonsense"`) {
		t.Fatalf("%q", r.said)
	}
}
