package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A forgetful host lacks CanTakeBack: what it has handed over it no longer has, and a
// target that receives is not discarded before it misses its source. The model below
// could do more, and is not asked to.
type forgetful struct {
	hypervisor.Hypervisor
	other   *forgetful
	asked   int // how often it was asked for what it cannot do
	refused int // Discards
}

// Host implements [hypervisor.Hypervisor].
func (h *forgetful) Host(ctx context.Context) (hypervisor.Host, error) {
	host, err := h.Hypervisor.Host(ctx)
	host.Abilities &^= hypervisor.CanTakeBack
	return host, err
}

// Do implements [hypervisor.Hypervisor].
func (h *forgetful) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	d, err := h.Domain(ctx, id)
	if err != nil {
		return err
	}
	refuse := func(k hypervisor.Kind) error {
		return &hypervisor.Error{Op: "Do", VM: id, Kind: k, Err: errors.New("it was handed over")}
	}
	handed := d.State == hypervisor.HandedOver
	switch c := c.(type) {
	case hypervisor.Resume:
		if handed {
			h.asked++
			return refuse(hypervisor.Unsupported)
		}
	case hypervisor.Abandon:
		if handed && c.Dead.Proof == hypervisor.TargetDiscarded {
			h.asked++
			return refuse(hypervisor.Conflict)
		}
	case hypervisor.Discard:
		p, err := h.other.Progress(ctx, c.Job)
		sends := err == nil && (p.Status == hypervisor.JobActive || p.Status == hypervisor.JobSetup)
		if d.State == hypervisor.Received || d.State == hypervisor.Receiving && sends {
			h.refused++
			return refuse(hypervisor.Conflict)
		}
	}
	return h.Hypervisor.Do(ctx, id, c)
}

// newForgetful is a harness whose hosts keep nothing that they have handed over.
func newForgetful(t *testing.T) (s *harness, n1, n2 *forgetful) {
	s = newHarness(t, store.NewMemory())
	n1, n2 = &forgetful{Hypervisor: s.Host("n1")}, &forgetful{Hypervisor: s.Host("n2")}
	n1.other, n2.other = n2, n1
	s.agents["n1"] = agent.New("n1", agent.Config{}, n1, s.as("n1", s.store), s)
	s.agents["n2"] = agent.New("n2", agent.Config{}, n2, s.as("n2", s.store), s)
	return s, n1, n2
}

// ceded brings a migration to where the source was handed over, and the target, which
// had died before its agent looked, says that it holds nothing.
func ceded(t *testing.T) (s *harness, n1 *forgetful) {
	s, n1, _ = newForgetful(t)
	s.sending()
	s.until("n1", hypervisor.HandedOver)
	s.ok(s.CrashHost("n2"))
	s.ok(s.RestartHost("n2"))
	s.ok(s.Host("n2").Do(ctx, vm, hypervisor.Release{Job: job, Moved: hypervisor.Evidence{
		Proof: hypervisor.RunsAtTarget, VM: vm, Host: "n1"}}))
	s.change(func(m *store.Migration) { m.Target.Down, m.Target.Discarded = true, true })
	s.reconciles("n1", "n1")
	return s, n1
}

// The source can neither resume nor give up what it no longer has. It says so once, and
// leaves the VM to the target, which starts it anew.
func TestASourceThatKeepsNothingLeavesTheVMToItsTarget(t *testing.T) {
	s, n1 := ceded(t)
	if m := s.move().Source; !m.Ceded || !m.HandedOver || m.Failed {
		t.Fatalf("the source says %+v; %q", m, s.noted)
	}
	asked := n1.asked
	for range 10 {
		s.AdvanceTo(s.Now().Add(time.Second))
		s.reconciles("n1")
	}
	if n1.asked != asked {
		t.Errorf("the source asked %d times more for what its host cannot do", n1.asked-asked)
	}
	s.wantState("n1", hypervisor.HandedOver)
	s.reconciles("n2")
	if r := s.move().Target; !r.Completed || !r.Lost {
		t.Fatalf("the target says %+v; %q", r, s.noted)
	}
	s.phase(migration.Succeeded)
	s.changeVM(func(v *store.VM) { v.Host, v.ActiveMigration = "n2", "" })
	s.pass(20 * time.Second)
	s.wantState("n1", hypervisor.Absent)
	s.wantState("n2", hypervisor.Running)
}

// The target's host is dead for certain before its agent has said anything more: that
// is enough to give the memory up, also here.
func TestALeftVMComesBackWhenTheTargetIsFenced(t *testing.T) {
	s, _ := ceded(t)
	s.ok(s.CrashHost("n2"))
	s.change(func(m *store.Migration) {
		m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, Host: "n2"}}
	})
	s.reconciles("n1", "n1")
	s.wantState("n1", hypervisor.Crashed)
	if r := s.move().Source; !r.Failed {
		t.Errorf("the source says %+v; %q", r, s.noted)
	}
}

// A target whose source still sends is not discarded at once. It is asked again, without
// an error, until its hypervisor misses the source.
func TestATargetIsDiscardedWhenItsSourceHasEnded(t *testing.T) {
	for _, r := range []struct {
		name string
		end  func(*harness) // what asks for the Discard
	}{
		{"the migration failed", func(s *harness) { s.phase(migration.Failed) }},
		{"the source is said to be dead", func(s *harness) {
			s.change(func(m *store.Migration) {
				m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, Host: "n1"}}
			})
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s, _, n2 := newForgetful(t)
			s.ok(s.Host("n1").SetWorkload(vm, fake.Workload{Rate: 1 << 30, Hot: gib}))
			s.sending()
			s.AdvanceTo(s.Now().Add(time.Second))
			r.end(s)
			for range 3 {
				s.reconciles("n2") // a refusal is no error
				s.AdvanceTo(s.Now().Add(time.Second))
			}
			if s.move().Target.Discarded || n2.refused < 3 {
				t.Fatalf("it was asked %d times and says %+v", n2.refused, s.move().Target)
			}
			s.wantState("n1", hypervisor.Running)
			s.ok(s.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
			s.AdvanceTo(s.Now().Add(time.Second))
			s.reconciles("n2")
			if !s.move().Target.Discarded {
				t.Errorf("the target says %+v; %q", s.move().Target, s.noted)
			}
			s.wantState("n1", hypervisor.Running)
			s.wantState("n2", hypervisor.Absent)
		})
	}
}
