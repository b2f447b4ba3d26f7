package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// A oneWay host knows no way back once a post-copy has begun, as QEMU: not even when its
// target never ran.
type oneWay struct{ hypervisor.Hypervisor }

// Do implements [hypervisor.Hypervisor].
func (h oneWay) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	if _, back := c.(hypervisor.Resume); back {
		return &hypervisor.Error{Op: "Do", VM: id, Kind: hypervisor.Conflict,
			Err: errors.New("no way back")}
	}
	return h.Hypervisor.Do(ctx, id, c)
}

// A needed host keeps the memory that a broken post-copy lacks until it is told that nobody
// will fetch it.
type needed struct {
	hypervisor.Hypervisor
	abandoned bool
}

// Do implements [hypervisor.Hypervisor].
func (h *needed) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	switch c := c.(type) {
	case hypervisor.Abandon:
		h.abandoned = c.Dead.Proof == hypervisor.ProcessReaped && c.Dead.Host == "n2"
		if h.abandoned {
			return nil
		}
	case hypervisor.Release:
		if !h.abandoned {
			return &hypervisor.Error{Op: "Do", VM: id, Kind: hypervisor.Conflict,
				Err: errors.New("its target lacks memory")}
		}
	}
	return h.Hypervisor.Do(ctx, id, c)
}

// The memory that a post-copy lacked is released when its target was lost, and not before.
func TestWhatALostTargetLackedIsReleased(t *testing.T) {
	for _, lost := range []bool{true, false} {
		s := newStage(t, record.NewMemory())
		n1 := &needed{Hypervisor: s.Host("n1")}
		s.cast["n1"] = agent.New("n1", agent.Config{}, n1, s.store, s)
		s.sending()
		s.until("n1", hypervisor.HandedOver)
		s.change(func(m *record.Migration) { m.Target.Completed, m.Target.Lost = true, lost })
		s.phase(migration.Succeeded)
		err := s.act("n1")
		r := s.move().Source
		if r.Released != lost || n1.abandoned != lost || (err == nil) != lost {
			t.Errorf("lost %t: the source says %+v, abandoned %t; %v", lost, r, n1.abandoned, err)
		}
	}
}

// A post-copy whose target ended before it ran leaves the VM standing at its source, whose
// memory nobody can use any more: it is given up, and the VM starts anew there. A pre-copy that
// is refused is only asked again: there is a way back.
func TestASourceThatHasNoWayBackFromPostCopyStartsAnew(t *testing.T) {
	for _, r := range []struct {
		mode  hypervisor.Mode
		state hypervisor.DomainState
	}{{hypervisor.PostCopy, hypervisor.Crashed}, {hypervisor.PreCopy, hypervisor.HandingOver}} {
		t.Run(r.mode.String(), func(t *testing.T) {
			s := newStage(t, record.NewMemory())
			s.cast["n1"] = agent.New("n1", agent.Config{}, oneWay{s.Host("n1")}, s.store, s)
			s.sending()
			s.until("n1", hypervisor.HandingOver)
			s.ok(s.ResetLink("n1", "n2"))
			s.acts("n1", "n2")
			s.change(func(m *record.Migration) { m.Source.Mode = r.mode })
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
