package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/store"
)

// An eyed hypervisor answers what a Domain looks like in the eyes of a test, refuses with a
// conflict what the test does not want it to do, and keeps what it was asked.
type eyed struct {
	*machine
	eye     func(*hypervisor.Domain)      // nil: as it is
	refuses func(hypervisor.Command) bool // nil: nothing
	asked   []hypervisor.Command
}

// Domain implements [hypervisor.Hypervisor].
func (e *eyed) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := e.machine.Domain(ctx, id)
	if e.eye != nil {
		e.eye(&d)
	}
	return d, err
}

// Do implements [hypervisor.Hypervisor].
func (e *eyed) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	e.asked = append(e.asked, c)
	if e.refuses != nil && e.refuses(c) {
		return &hypervisor.Error{Op: "Do", VM: id, Kind: hypervisor.Conflict,
			Err: errors.New("the test does not want it")}
	}
	return e.machine.Do(ctx, id, c)
}

// eye puts an eyed hypervisor between a host and its agent.
func (s *harness) eye(n name) *eyed {
	e := &eyed{machine: s.Host(n)}
	s.agents[n] = agent.New(n, agent.Config{}, e, s.as(n, s.store), s)
	return e
}

// fetching is a harness on which the VM runs at n2 and fetches what it lacks from n1.
func fetching(t *testing.T) (s *harness, n2 *eyed) {
	t.Helper()
	s = newHarness(t, store.NewMemory())
	n2 = s.eye("n2")
	s.ok(s.Host("n1").SetWorkload(vm, fake.Workload{ColdRate: 2e9, Cold: 4 * gib}))
	s.sendingBy(func(m *store.Migration) { m.Options.AllowPostCopy = true })
	s.AdvanceTo(s.Now().Add(500 * ms))
	s.ok(s.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
	s.until("n2", hypervisor.Running)
	s.reconciles("n1", "n2")
	if m := s.move(); m.Target.Completed || m.Source.Mode != hypervisor.PostCopy {
		t.Fatalf("the source says %+v, the target %+v", m.Source, m.Target)
	}
	return s, n2
}

// The guest at the target of a post-copy whose connection broke goes on, by the word of
// hypervisor/qmp and hypervisor/libvirt: it is Running, and its job is Broken. What it lacks
// never comes, so it has not arrived. It has, without its memory, once it was killed.
func TestAVMThatCannotFetchItsMemoryAnyMoreHasNotArrived(t *testing.T) {
	s, n2 := fetching(t)
	s.ok(s.ResetLink("n1", "n2"))
	n2.eye = func(d *hypervisor.Domain) { d.State = hypervisor.Running }
	for range 3 {
		s.reconciles("n1", "n2")
		s.AdvanceTo(s.Now().Add(time.Second))
	}
	if m := s.move(); m.Target.Completed {
		t.Fatalf("the target says %+v; %q", m.Target, s.noted)
	}
	n2.eye = nil
	s.reconciles("n2")
	if m := s.move(); !m.Target.Completed || !m.Target.Lost {
		t.Errorf("killed, the target says %+v; %q", m.Target, s.noted)
	}
}

// The connection breaks between the two calls by which the target's agent finds out whether
// the VM has arrived: it runs at the first, and at the second its job is Broken.
func TestAPostCopyThatBreaksDuringALookHasNotArrived(t *testing.T) {
	s, n2 := fetching(t)
	n2.eye = func(*hypervisor.Domain) { s.ok(s.ResetLink("n1", "n2")) }
	s.reconciles("n2")
	n2.eye = nil
	if m := s.move(); m.Target.Completed {
		t.Fatalf("the target says %+v; %q", m.Target, s.noted)
	}
	s.reconciles("n2")
	if m := s.move(); !m.Target.Completed || !m.Target.Lost {
		t.Errorf("at the next look the target says %+v; %q", m.Target, s.noted)
	}
}

// A start that was given up takes effect when the VM has been said to have ended: it shall not
// run, and is stopped once more.
func TestAStartThatTakesEffectLateDoesNotUndoAStop(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.reconciles("n1")
	s.ok(s.KillDomain("n1", vm))
	s.ok(s.Inject(fake.Fault{Host: "n1", Op: "Start", How: fake.LateEffect,
		Delay: 5 * time.Second}))
	if err := s.act("n1"); err == nil {
		t.Fatal("the start was answered")
	}
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.reconciles("n1")
	if !s.vm().Ended {
		t.Fatalf("it is not said that it has ended: %+v", s.vm())
	}
	s.until("n1", hypervisor.Starting)
	s.pass(20 * time.Second)
	s.wantState("n1", hypervisor.Shutoff)
	if !s.vm().Ended {
		t.Errorf("it is not said that it has ended again: %+v", s.vm())
	}
}

// A libvirt that has lost its target may let the source run again by itself before the agent
// has said what shall become of it: it executes, and is Unresolved. Its memory is the only
// one and is kept, whatever the target says of its own copy.
func TestTheMemoryOfASourceThatGoesOnIsNotGivenUp(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	n1 := s.eye("n1")
	s.sending()
	s.until("n1", hypervisor.HandingOver)
	s.ok(s.ResetLink("n1", "n2"))
	n1.eye = func(d *hypervisor.Domain) {
		if d.Unresolved {
			d.State = hypervisor.Running
		}
	}
	s.reconciles("n1", "n2", "n1")
	if !s.move().Target.Discarded {
		t.Fatalf("the target says %+v; %q", s.move().Target, s.noted)
	}
	for _, c := range n1.asked {
		if _, gives := c.(hypervisor.Abandon); gives {
			t.Errorf("its memory is given up; %q", s.noted)
		}
	}
	s.wantState("n1", hypervisor.Running)
	if r := s.move().Source; !r.Failed || r.Unresolved {
		t.Errorf("the source says %+v; %q", r, s.noted)
	}
}
