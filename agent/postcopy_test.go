package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
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
