package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

const fresh = hypervisor.VMID("b")

// toRename asks for the VM, which is stopped, to be called b.
func toRename(s *harness) {
	s.t.Helper()
	off(s)
	s.pass(10 * time.Second)
	s.changeVM(func(v *store.VM) { v.Rename = &store.Rename{To: fresh, ID: "L", By: "ann"} })
}

// named returns the record of a VM.
func (s *harness) named(id hypervisor.VMID) *store.VM {
	s.t.Helper()
	v, err := store.VMNamed(ctx, s.store, id)
	s.ok(err)
	return v
}

func TestAVMThatIsStoppedHasANewName(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	toRename(s)
	s.pass(time.Second)
	v := s.named(fresh)
	if s.vm() != nil || v == nil || !v.Stopped || !v.Ended || v.Host != "n1" || v.Life.ID != "L" || v.Rename != nil {
		t.Fatalf("old %+v, new %+v; %q", s.vm(), v, s.noted)
	}
	if s.state("n1") != hypervisor.Absent {
		t.Errorf("the host knows the old name: %v", s.Copies(vm))
	}
	if !slices.Contains(s.noted, "renamed to b, asked for by ann") {
		t.Errorf("noted %q", s.noted)
	}
	started := *v
	started.Stopped = false
	s.put(&started)
	s.agents["n1"].Hint(fresh)
	s.pass(30 * time.Second)
	if d, err := s.Host("n1").Domain(ctx, fresh); err != nil || d.State != hypervisor.Running {
		t.Errorf("it does not start: %+v, %v", d, err)
	}
}

func TestANameThatCannotBeGiven(t *testing.T) {
	for _, c := range []struct {
		why string
		how func(*harness)
	}{
		{"there is another VM of this name", func(s *harness) {
			s.put(&store.VM{VM: hypervisor.VM{ID: fresh, Memory: gib, CPUs: 1}, Host: "n2", Stopped: true, Ended: true})
		}},
		{"it is not stopped: godwit vm stop it first, and wait until it has stopped", func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Stopped = false })
		}},
		{"its local disk root is kept under the name of the VM on n1", func(s *harness) {
			s.changeVM(func(v *store.VM) { v.VM = v.VM.WithDisks([]hypervisor.Disk{{Name: "root", Size: gib}}) })
		}},
	} {
		s := newHarness(t, store.NewMemory())
		toRename(s)
		c.how(s)
		s.pass(time.Second)
		v := s.vm()
		if want := "not renamed to b: " + c.why; v == nil || v.Rename != nil || !slices.Contains(s.noted, want) {
			t.Errorf("%s: %+v; %q", c.why, v, s.noted)
		}
		if s.Copies(fresh) != nil {
			t.Errorf("%s: the host knows the new name", c.why)
		}
	}
}

// TestARenameSurvivesItsAgent: the agent dies with each of its writes, right after it, or does not hear
// the answer. Another one ends what it began; at each moment at most one of the two records could be
// started.
func TestARenameSurvivesItsAgent(t *testing.T) {
	for last := 1; last <= 8; last++ {
		for _, m := range []mortal{{last: last}, {last: last, late: true}, {last: last, mute: true}} {
			t.Run(fmt.Sprintf("%d late=%v mute=%v", last, m.late, m.mute), func(t *testing.T) {
				memory := store.NewMemory()
				s := newHarness(t, memory)
				toRename(s)
				m.Memory = memory
				s.agents["n1"] = agent.New("n1", agent.Config{}, cut{s.Host("n1"), &m}, s.as("n1", &m), s)
				for range 20 {
					s.pass(100 * ms)
					old, as := s.vm(), s.named(fresh)
					if old == nil && as == nil {
						t.Fatal("it has no record")
					}
					if old != nil && as != nil && old.Rename == nil {
						t.Fatalf("both can be started: %+v, %+v", old, as)
					}
				}
				s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.as("n1", memory), s)
				s.pass(5 * time.Second)
				if as := s.named(fresh); s.vm() != nil || as == nil || as.Life.ID != "L" {
					t.Errorf("old %+v, new %+v; %q", s.vm(), as, s.noted)
				}
			})
		}
	}
}
