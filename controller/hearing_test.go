package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/store"
)

func TestForHowLongALeaderListens(t *testing.T) {
	const grace = 30 * time.Second
	silent := []hostName{"n2", "n3"}
	for _, row := range []struct {
		name     string
		unmarked bool
		heard    controller.HeartbeatObservation
		want     string // in the reason; "" is that agents are admitted
	}{
		{"all are heard", false, controller.HeartbeatObservation{}, ""},
		{"some are not", false, controller.HeartbeatObservation{Lasted: grace - 1, Unheard: silent}, "not heard: n2, n3"},
		{"some never are", false, controller.HeartbeatObservation{Lasted: grace, Unheard: silent}, ""},
		{"nothing is remembered, and all are heard at once", true, controller.HeartbeatObservation{}, "remembers nothing"},
		{"nothing is remembered, and all are heard", true, controller.HeartbeatObservation{Lasted: grace}, ""},
		{"nothing is remembered, and some never are heard", true,
			controller.HeartbeatObservation{Lasted: time.Hour, Unheard: silent}, "godwit host confirm-down n2"},
		{"nothing is remembered, and many are not heard", true, controller.HeartbeatObservation{Lasted: time.Hour,
			Unheard: []hostName{"a", "b", "c", "d", "e", "f", "g"}}, "a, b, c, d, e, and 2 more"},
	} {
		c := controller.FailoverConfig{Grace: grace, Unmarked: row.unmarked}.Complete()
		got := c.Doubts(&row.heard)
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// begins lets the agent of a host begin anew.
func (s *harness) begins(host hostName, session string) {
	s.changeHost(host, func(h *store.Host) { h.Session = session })
}

// admits reports whether the agent of a host may act.
func (s *harness) admits(host hostName) bool { return !s.host(host).Unadmitted() }

// A leader that has listened for long admits an agent as soon as it begins.
func TestAnAgentIsAdmittedAtOnceWhenALeaderHasListened(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.run(20 * time.Second)
	s.begins("n1", "one")
	s.look()
	if !s.admits("n1") || len(s.notes) > 0 {
		t.Errorf("%+v, %q", s.host("n1"), s.notes)
	}
}

// A leader that begins admits no agent before all hosts were heard, or for long nothing of some.
func TestALeaderThatBeginsListensBeforeItAdmits(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.run(time.Minute)
	s.silence("n2")
	s.restart()
	s.begins("n1", "one")
	s.run(20 * time.Second)
	if h := s.host("n1"); s.admits("n1") || !strings.HasSuffix(h.Waits, "not heard: n2") {
		t.Errorf("n2 was not heard, and n1 is %+v", h)
	}
	s.beats["n2"] = "boot1"
	s.run(10 * time.Second)
	if h := s.host("n1"); !s.admits("n1") || h.Waits != "" {
		t.Errorf("n2 is heard, and n1 is %+v", h)
	}

	s.silence("n2")
	s.restart()
	s.begins("n1", "two")
	s.run(40 * time.Second)
	if !s.admits("n1") {
		t.Errorf("n2 is silent for long, and n1 is %+v", s.host("n1"))
	}
}

// A leader that was away does not know who else has led meanwhile, and in which store.
func TestALeaderThatWasAwayListensAnew(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.run(time.Minute)
	s.silence("n2")
	s.now = s.now.Add(20 * time.Second)
	s.begins("n1", "one")
	s.look()
	if s.admits("n1") {
		t.Errorf("n1 is admitted by one that has heard no host: %+v", s.host("n1"))
	}
}

// Where nothing is remembered of a store a host that is not heard holds up all that begin, until an
// operator says that it is off.
func TestWithoutAMemoryAllHostsAreHeard(t *testing.T) {
	vouched := 0
	s := newHarness(t, controller.FailoverConfig{Unmarked: true, Vouched: func() { vouched++ }}, "n1", "n2", "n3")
	s.run(10 * time.Second)
	s.begins("n1", "one")
	s.begins("n2", "one")
	s.run(15 * time.Second)
	if s.admits("n1") {
		t.Errorf("n1 is admitted at once: %+v", s.host("n1"))
	}
	s.silence("n2")
	s.restart()
	s.run(10 * time.Minute)
	if s.admits("n1") || vouched > 0 {
		t.Errorf("n2 is not heard, and n1 is %+v", s.host("n1"))
	}
	s.changeHost("n2", func(h *store.Host) { h.ConfirmedDownBy = "alice" })
	s.run(10 * time.Second)
	if !s.admits("n1") || vouched != 1 {
		t.Errorf("n2 is off, and n1 is %+v; vouched %d times", s.host("n1"), vouched)
	}
}
