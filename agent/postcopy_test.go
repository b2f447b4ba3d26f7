package agent_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// The memory that a post-copy lacked is released when its target was lost, and not before: its
// host keeps it until it is told that it will not be fetched.
func TestWhatALostTargetLackedIsReleased(t *testing.T) {
	for _, lost := range []bool{true, false} {
		s := newHarness(t, store.NewMemory())
		n1, abandoned := s.eye("n1"), false
		n1.refuses = func(c hypervisor.Command) bool {
			if a, is := c.(hypervisor.Abandon); is {
				abandoned = a.Dead.Proof == hypervisor.ProcessReaped && a.Dead.Host == "n2"
			}
			_, releases := c.(hypervisor.Release)
			return releases && !abandoned
		}
		s.sending()
		s.until("n1", hypervisor.HandedOver)
		s.change(func(m *store.Migration) { m.Target.Completed, m.Target.Lost = true, lost })
		s.phase(migration.Succeeded)
		err := s.act("n1")
		r := s.move().Source
		if r.Released != lost || abandoned != lost || (err == nil) != lost {
			t.Errorf("lost %t: the source says %+v, abandoned %t; %v", lost, r, abandoned, err)
		}
	}
}

// A post-copy whose target ended before it ran leaves the VM standing at its source, as QEMU
// knows no way back. Its memory is of no use any more: it is given up, and the VM starts anew
// there. A pre-copy that is refused is only asked again.
func TestASourceThatHasNoWayBackFromPostCopyStartsAnew(t *testing.T) {
	for _, r := range []struct {
		mode  hypervisor.Mode
		state hypervisor.DomainState
	}{{hypervisor.PostCopy, hypervisor.Crashed}, {hypervisor.PreCopy, hypervisor.HandingOver}} {
		t.Run(r.mode.String(), func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.eye("n1").refuses = func(c hypervisor.Command) bool {
				_, back := c.(hypervisor.Resume)
				return back
			}
			s.sending()
			s.until("n1", hypervisor.HandingOver)
			s.ok(s.ResetLink("n1", "n2"))
			s.reconciles("n1", "n2")
			s.change(func(m *store.Migration) { m.Source.Mode = r.mode })
			if m := s.move(); !m.Source.Unresolved || !m.Target.Discarded {
				t.Fatalf("the migration is %+v", m)
			}
			err := s.act("n1")
			s.wantState("n1", r.state)
			m := s.move().Source
			if given := r.state == hypervisor.Crashed; m.Failed != given || (err == nil) != given ||
				m.Ceded || m.HandedOver {
				t.Errorf("the source says %+v; %v; %q", m, err, s.noted)
			}
		})
	}
}
