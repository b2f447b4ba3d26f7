package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A harness with a controller, and the records of its two hosts.
type led struct {
	*harness
	boss *controller.Controller
}

func newLed(t *testing.T) *led {
	s := newHarness(t, store.NewMemory())
	for _, n := range []name{"n1", "n2"} {
		s.put(&store.Host{Host: hypervisor.Host{Name: n, Memory: 64 * gib, CPUs: 64}})
	}
	s.put(&store.Migration{Spec: migration.Spec{ID: job, VM: vm, Created: epoch}})
	return &led{s, controller.New(controller.Config{}, s.store, s)}
}

// rounds lets the controller and the agents of some hosts look, again and again.
func (l *led) rounds(times int, each time.Duration, hosts ...name) {
	l.t.Helper()
	for range times {
		_, err := l.boss.Reconcile(ctx, l.Now())
		l.ok(err)
		for _, n := range hosts {
			_ = l.act(n) // some of it is refused
		}
		l.AdvanceTo(l.Now().Add(each))
		l.once()
	}
}

// started brings the migration to where its source sends.
func (l *led) started() {
	l.t.Helper()
	for !l.move().Source.Started {
		l.rounds(1, 100*ms, "n1", "n2")
	}
}

// is wants the migration to be in a phase.
func (l *led) is(want migration.Phase) {
	l.t.Helper()
	if m := l.move(); m.State.Phase != want {
		l.t.Fatalf("the migration is %v, want %v; %q", m.State.Phase, want, l.noted)
	}
}

// word says of n1 that it is dead, or takes that back.
func (l *led) word(dead bool) {
	l.host(func(h *store.Host) {
		h.Fenced, h.NotReady, h.Fencing, h.ConfirmedDownBy = dead, dead, nil, ""
		if dead {
			h.Fencing, h.ConfirmedDownBy = &store.Fencing{Boot: "b", By: "operator alice"}, "alice"
		}
	})
}

// A source that was taken for dead while its VM stood, and was not, gives the VM's memory up
// when it is back: its migration has failed meanwhile, and the VM starts anew.
func TestASourceThatWasTakenForDeadDoesNotStandForEver(t *testing.T) {
	l := newLed(t)
	l.started()
	l.until("n1", hypervisor.HandingOver)
	l.ok(l.ResetLink("n1", "n2"))
	l.word(true)
	l.rounds(300, 100*ms, "n2")
	l.is(migration.Failed)
	l.word(false)
	l.rounds(60, time.Second, "n1", "n2")
	l.wantState("n1", hypervisor.Running)
	if m := l.move(); !m.Source.Failed {
		t.Errorf("the source has not said how it ended: %+v", m.Source)
	}
}

// A doubtful hypervisor does not know whether a VM that rests runs elsewhere, as one does that
// lost its power while it sent, and starts it only when it has been told.
type doubtful struct {
	*machine
	doubts bool
}

// Domain implements hypervisor.Hypervisor.
func (h *doubtful) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := h.machine.Domain(ctx, id)
	if h.doubts {
		d.Unresolved, d.Job = true, job
	}
	return d, err
}

// Do implements hypervisor.Hypervisor.
func (h *doubtful) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	switch c.(type) {
	case hypervisor.Abandon:
		h.doubts = false
		return nil
	case hypervisor.Start:
		if h.doubts {
			return &hypervisor.Error{Op: "Do", VM: id, Kind: hypervisor.Conflict,
				Err: errors.New("it may run elsewhere")}
		}
	}
	return h.machine.Do(ctx, id, c)
}

// A source that lost its power while it sent, and comes back after its migration has failed,
// does not know whether its VM runs at the target: it is told, and starts it.
func TestASourceThatWasFencedStartsItsVMAnew(t *testing.T) {
	l := newLed(t)
	h := &doubtful{machine: l.Host("n1")}
	l.started()
	l.ok(l.CrashHost("n1"))
	l.rounds(50, 100*ms, "n2")
	l.host(func(h *store.Host) {
		h.Fenced, h.NotReady, h.Fencing = true, true, &store.Fencing{Boot: "b", By: "ipmi"}
	})
	l.rounds(300, 100*ms, "n2")
	l.is(migration.Failed)
	l.ok(l.RestartHost("n1"))
	l.host(func(h *store.Host) { h.Fenced, h.NotReady, h.Fencing = false, false, nil })
	h.doubts = true
	l.agents["n1"] = agent.New("n1", agent.Config{}, h, l.store, l)
	l.rounds(300, time.Second, "n1", "n2")
	l.wantState("n1", hypervisor.Running)
}

// A migration that waits because its VM's host is cut off goes on when it no longer is.
func TestAMigrationGoesOnWhenItsHostIsBack(t *testing.T) {
	l := newLed(t)
	l.word(true)
	l.rounds(20, time.Second, "n1", "n2")
	l.word(false)
	l.rounds(120, time.Second, "n1", "n2")
	l.is(migration.Succeeded)
}

// An operator's word that a host is dead is heard after a fencing of it that failed.
func TestAWordAfterAFencingThatFailedIsHeard(t *testing.T) {
	l := newLed(t)
	l.started()
	l.until("n1", hypervisor.HandingOver)
	l.ok(l.ResetLink("n1", "n2"))
	l.rounds(20, 100*ms, "n1")
	second := func(how func(*store.Host)) {
		r, err := l.store.Get(ctx, store.Key{Kind: store.HostKind, Name: "n2"})
		l.ok(err)
		h := *r.(*store.Host)
		how(&h)
		l.put(&h)
	}
	second(func(h *store.Host) {
		h.Fenced, h.NotReady = true, true
		h.Fencing = &store.Fencing{Boot: "b", By: "ipmi", Error: "it lives"}
	})
	l.rounds(600, 100*ms, "n1")
	l.ok(l.CrashHost("n2"))
	second(func(h *store.Host) {
		h.ConfirmedDownBy, h.Fencing = "alice", &store.Fencing{Boot: "b", By: "operator alice"}
	})
	l.rounds(120, time.Second, "n1")
	if s := l.state("n1"); s == hypervisor.HandingOver {
		t.Errorf("the VM still stands: %v, %v", l.move().State.Phase, l.move().Evidence)
	}
}

// A halting hypervisor fails once after it has released a source, as one does whose disks are
// not removed yet.
type halting struct {
	*machine
	releases int
}

// Do implements hypervisor.Hypervisor.
func (h *halting) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	err := h.machine.Do(ctx, id, c)
	if _, is := c.(hypervisor.Release); is && err == nil {
		if h.releases++; h.releases == 1 {
			return &hypervisor.Error{Op: "Do", VM: id, Kind: hypervisor.Transient,
				Err: errors.New("remove its disks: no answer")}
		}
	}
	return err
}

// A release that failed half way is asked for again, though the VM is not to be seen any more.
func TestAReleaseThatFailedIsRepeated(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	h := &halting{machine: s.Host("n1")}
	s.agents["n1"] = agent.New("n1", agent.Config{}, h, s.as("n1", s.store), s)
	s.sending()
	s.until("n2", hypervisor.Running)
	s.AdvanceTo(s.Now().Add(time.Second))
	s.reconciles("n1", "n2")
	s.phase(migration.Succeeded)
	for range 5 {
		s.AdvanceTo(s.Now().Add(time.Second))
		_ = s.act("n1")
	}
	if h.releases != 2 || !s.move().Source.Released {
		t.Errorf("it was asked to release %d times: %+v", h.releases, s.move().Source)
	}
}
