package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// admitted is a harness on which the agent of n1 has begun, and waits to be admitted.
func admitted(t *testing.T) (*harness, *eyewitness) {
	s, e := witnessed(t)
	s.agents["n1"] = agent.New("n1", agent.Config{Session: "one", Admission: true}, e, s.as("n1", s.store), s)
	s.host(func(h *store.Host) { h.Session = "one" })
	return s, e
}

// An agent that no leader has admitted starts, stops and removes nothing, and what runs runs on; it
// says why it waits, and goes on at once.
func TestAnAgentThatIsNotAdmittedActsOnNothing(t *testing.T) {
	for name, order := range map[string]func(*harness){
		"start": func(s *harness) { s.ok(s.KillDomain("n1", vm)) },
		"stop":  func(s *harness) { s.changeVM(func(v *store.VM) { v.Stopped = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			s, e := admitted(t)
			s.host(func(h *store.Host) { h.Admitted, h.Waits = "before", "n2 is not heard" })
			order(s)
			s.pass(10 * time.Second)
			e.wants()
			if s.vm().Boots != 0 || s.vm().Operation != store.Nothing {
				t.Errorf("%+v is announced", s.vm())
			}
			if said := strings.Join(s.noted, "\n"); strings.Count(said, "n2 is not heard") != 1 {
				t.Errorf("it said %q", said)
			}
			s.host(func(h *store.Host) { h.Admitted, h.Waits = "one", "" })
			s.reconciles("n1")
			e.wants(name)
		})
	}
}

// What executes on a host is told once its agent acts, and again on request: that there
// is no second copy is known only then.
func TestWhatExecutesIsToldAgainOnRequest(t *testing.T) {
	s, _ := admitted(t)
	own := func() *store.Host {
		h, err := store.HostNamed(ctx, s.store, "n1")
		s.ok(err)
		return h
	}
	s.reconciles("n1")
	if own().Single() {
		t.Errorf("it is not admitted, and tells: %+v", own())
	}
	s.host(func(h *store.Host) { h.Admitted = "one" })
	s.reconciles("n1")
	if !own().Single() {
		t.Errorf("one copy runs: %+v", own())
	}
	other := hypervisor.VM{ID: "others", Memory: gib, CPUs: 1}
	s.ok(s.boot(other))
	s.put(&store.VM{VM: other, Host: "n2"})
	s.host(func(h *store.Host) { h.Told = "" })
	s.reconciles("n1")
	if h := own(); h.Single() || h.Told != "one" || len(h.Strays) != 1 {
		t.Errorf("a second copy runs: %+v", h)
	}
	s.ok(s.KillDomain("n1", "others"))
	s.agents["n1"].Hint("others")
	s.reconciles("n1")
	if !own().Single() {
		t.Errorf("the second copy has ended: %+v", own())
	}
}
