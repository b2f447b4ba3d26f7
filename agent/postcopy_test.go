package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
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

// A breaking is a hypervisor whose post-copy breaks, and goes on when that is asked and the target can
// be reached.
type breaking struct {
	*machine
	able        hypervisor.Abilities
	broken      *bool // on both sides
	unreachable error
	slow        bool // it takes a while until it goes on
	asked       []hypervisor.Address
}

// Host implements hypervisor.Hypervisor.
func (h *breaking) Host(ctx context.Context) (hypervisor.Host, error) {
	host, err := h.machine.Host(ctx)
	host.Abilities = h.able
	return host, err
}

// Progress implements hypervisor.Hypervisor.
func (h *breaking) Progress(ctx context.Context, id hypervisor.JobID) (hypervisor.Progress, error) {
	p, err := h.machine.Progress(ctx, id)
	if *h.broken {
		p.Status, p.Mode, p.Error = hypervisor.JobBroken, hypervisor.PostCopy, "the connection was closed"
	}
	return p, err
}

// Adjust implements hypervisor.Hypervisor.
func (h *breaking) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	r, is := a.(hypervisor.Recover)
	if !is {
		return h.machine.Adjust(ctx, id, a)
	}
	h.asked = append(h.asked, r.Address)
	if h.unreachable == nil && !h.slow {
		*h.broken = false
	}
	return h.unreachable
}

// broken is a harness whose post-copy from n1 has broken while the VM runs at n2.
func broken(t *testing.T, able, target hypervisor.Abilities) (*harness, *breaking) {
	t.Helper()
	s, _ := fetching(t)
	s.put(&store.Host{Host: hypervisor.Host{Name: "n2", Abilities: target}})
	is := true
	h := &breaking{machine: s.Host("n1"), able: able, broken: &is}
	for n, hv := range map[name]*breaking{"n1": h, "n2": {machine: s.Host("n2"), broken: &is}} {
		s.agents[n] = agent.New(n, agent.Config{}, hv, s.as(n, s.store), s)
	}
	return s, h
}

// A post-copy that broke goes on as soon as the target can be reached, and the VM arrives.
func TestABrokenPostCopyIsRecovered(t *testing.T) {
	s, h := broken(t, hypervisor.CanRecover, hypervisor.CanRecover)
	h.unreachable = &hypervisor.Error{Op: "Recover", Kind: hypervisor.Transient, Err: errors.New("no route to n2")}
	for range 600 { // a minute
		_ = s.act("n1")
		s.reconciles("n2")
		s.AdvanceTo(s.Now().Add(100 * time.Millisecond))
	}
	if m := s.move(); !m.Source.Unresolved || m.Source.Failed || m.Target.Completed {
		t.Errorf("while n2 cannot be reached: %+v, %+v", m.Source, m.Target)
	}
	if n := len(h.asked); n < 4 || n > 10 { // after 1, 3, 7, 15, 31 s
		t.Errorf("it was asked for %d times in a minute", n)
	}
	h.unreachable = nil
	for range 300 {
		_ = s.act("n1")
		if !*h.broken {
			break
		}
		s.AdvanceTo(s.Now().Add(100 * time.Millisecond))
	}
	if want := s.move().Target.Address; *h.broken || want == "" || slices.ContainsFunc(h.asked,
		func(a hypervisor.Address) bool { return a != want }) {
		t.Fatalf("asked at %q, want %q; still broken: %v", h.asked, want, *h.broken)
	}
	s.pass(2 * time.Second)
	m := s.move()
	if m.Source.Unresolved || m.Source.Error != "" || !m.Source.HandedOver || !m.Target.Completed || m.Target.Lost {
		t.Errorf("in the end: %+v, %+v; %q", m.Source, m.Target, s.noted)
	}
	s.wantState("n2", hypervisor.Running)
}

// A hypervisor answers at once that it recovers a post-copy, and has not yet: nothing is said to go on before it does.
func TestAPostCopyDoesNotGoOnWhileItIsBeingRecovered(t *testing.T) {
	s, h := broken(t, hypervisor.CanRecover, hypervisor.CanRecover)
	h.slow = true
	goesOn := func() bool {
		return slices.ContainsFunc(s.noted, func(n string) bool { return strings.Contains(n, "and goes on") })
	}
	for range 600 { // a minute
		s.reconciles("n1", "n2")
		s.AdvanceTo(s.Now().Add(100 * time.Millisecond))
	}
	if m := s.move(); !m.Source.Unresolved || goesOn() || len(h.asked) < 4 || len(h.asked) > 10 {
		t.Errorf("while it is being recovered, which was asked for %d times: %+v; %q", len(h.asked), m.Source, s.noted)
	}
	*h.broken = false
	s.pass(2 * time.Second)
	if m := s.move(); m.Source.Unresolved || !goesOn() {
		t.Errorf("when it goes on: %+v; %q", m.Source, s.noted)
	}
}

// A post-copy is left as it is by a host that cannot recover it, by one that is being cut off, and when its
// target is dead.
func TestWhatIsNotRecovered(t *testing.T) {
	both := [2]hypervisor.Abilities{hypervisor.CanRecover, hypervisor.CanRecover}
	for _, r := range []struct {
		name string
		able [2]hypervisor.Abilities // of the source, and of the target
		how  func(*harness)
		asks bool
	}{
		{"it can", both, func(*harness) {}, true},
		{"it cannot", [2]hypervisor.Abilities{hypervisor.CanPostCopy, hypervisor.CanRecover}, func(*harness) {}, false},
		{"its target cannot", [2]hypervisor.Abilities{hypervisor.CanRecover, hypervisor.CanPostCopy}, func(*harness) {},
			false},
		{"it is being fenced", both, func(s *harness) {
			s.put(&store.Host{Host: hypervisor.Host{Name: "n1"}, Fencing: &store.Fencing{}})
		}, false},
		{"its target is dead", both, func(s *harness) {
			s.change(func(m *store.Migration) {
				m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, VM: vm, Host: "n2"}}
			})
		}, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			s, h := broken(t, r.able[0], r.able[1])
			r.how(s)
			_ = s.act("n1")
			if asks := len(h.asked) > 0; asks != r.asks {
				t.Errorf("it asks: %v; %+v", asks, s.move().Source)
			}
		})
	}
}
