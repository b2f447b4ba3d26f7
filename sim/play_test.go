package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// forever is longer than any world has anything to do.
const forever = 30 * 24 * time.Hour

// fataler is a test, or a drawn one.
type fataler interface{ Fatalf(string, ...any) }

// A played is a world of package simtest that has been built, and run.
type played struct {
	*sim.World
	scenario *config.Scenario
	trace    strings.Builder
	end      sim.Ending
}

// stage builds a world. A recorder is told every entry.
func stage(t fataler, s *simtest.World, chance sim.Chooser, told ...func(*played, sim.Entry),
) *played {
	return stageOver(t, s, chance, nil, told...)
}

// stageOver is stage with something between each process and the records; nil is nothing.
func stageOver(t fataler, s *simtest.World, chance sim.Chooser,
	between func(hypervisor.HostName, store.Store) store.Store, told ...func(*played, sim.Entry)) *played {
	parsed, err := s.Scenario("world")
	if err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	p := &played{scenario: parsed}
	c := parsed.Config(1)
	c.Chooser, c.Store = chance, between
	c.Quiet = 70 * time.Minute // longer than any agent is patient, and than most timeouts
	for _, v := range parsed.Fleet.VMs {
		if disks := v.LocalSize(); disks > 0 { // it is given more time
			budget := 2 * convergence.Budget(v.Memory, disks,
				parsed.Controller.Cluster.CompletionTimeoutPerGiB)
			c.Quiet = max(c.Quiet, budget+10*time.Minute)
		}
	}
	if len(told) > 0 {
		c.Trace = func(e sim.Entry) {
			for _, tell := range told {
				tell(p, e)
			}
		}
	}
	if p.World, err = parsed.Build(c); err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	return p
}

// play builds a world and runs it to its end.
func play(t fataler, s *simtest.World, chance sim.Chooser, told ...func(*played, sim.Entry),
) *played {
	p := stage(t, s, chance, told...)
	p.finish()
	return p
}

// playText plays the world that a scenario describes. What none may do fails the test.
func playText(t *testing.T, seed uint64, scenario string) *played {
	t.Helper()
	s, err := simtest.Parse("world", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	p := play(t, s, sim.Seeded(seed), keepTrace)
	if wrong := p.wrong(); wrong != "" {
		t.Fatalf("seed %d: %s\n%s\n%s", seed, wrong, scenario, p.trace.String())
	}
	return p
}

func (p *played) finish() {
	if p.end = p.Run(forever); p.end == sim.AtRest {
		p.CheckAtRest()
	}
}

// keepTrace writes the trace down.
func keepTrace(p *played, e sim.Entry) { p.trace.WriteString(e.String() + "\n") }

// wrong returns what a world did that none may do; "" is nothing.
func (p *played) wrong() string {
	var b strings.Builder
	for _, v := range p.Violations() {
		b.WriteString(sim.Clock(v.At) + " " + v.Invariant + ": " + v.Detail + "\n")
	}
	if p.end == sim.TimeIsUp {
		b.WriteString("it did not come to an end\n")
	}
	for _, v := range p.scenario.Fleet.VMs {
		for _, m := range p.Migrations(v.ID) {
			if p.end == sim.Futile && p.hangs(m) {
				fmt.Fprintf(&b, "%s hangs in %s\n", m.Spec.ID, m.State.Phase)
			}
		}
	}
	return b.String()
}

// hangs reports whether a migration has been under way for longer than any may,
// although others go on: where all rest, the invariants find it.
func (p *played) hangs(m *store.Migration) bool {
	s := &m.State
	if v := p.VM(m.Spec.VM); v != nil && (v.Blockers.CPUChange || v.Blockers.MemoryChange) {
		return false // it ends when its operator has changed the VM
	}
	return s.Phase > migration.Pending && !s.Phase.Final() &&
		!s.Conditions.Has(migration.OutcomeUnknown) &&
		p.Now()-s.Entered.Sub(sim.Epoch) > 5*time.Hour
}
