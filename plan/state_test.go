package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// look returns all that a state says.
func look(s *plan.State) (hosts []placement.Host, homes []int) {
	for i := range s.Fleet().Hosts {
		hosts = append(hosts, s.Host(i).Clone())
	}
	for i := range s.Fleet().VMs {
		homes = append(homes, s.Home(i))
	}
	return hosts, homes
}

// TestUndoIsExact: whatever was done since a mark, Undo brings back the state, a clone
// goes its own way, and the fleet stays as it was.
func TestUndoIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := plan.Cramped(t)
		s, untouched := plan.Begin(f), plan.Begin(f)
		act := func() {
			vm := rapid.IntRange(0, len(f.VMs)-1).Draw(t, "VM")
			host := rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "host")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.Start(vm, host)
			case 1:
				s.Finish(vm)
			case 2:
				s.Move(vm, host)
			case 3:
				s.Cordon(host, true)
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			act()
		}
		hosts, homes := look(s)
		mark, clone := s.Mark(), s.Clone()
		for range rapid.IntRange(1, 8).Draw(t, "after") {
			act()
		}
		cloned, at := look(clone)
		if diff := cmp.Diff(hosts, cloned) + cmp.Diff(homes, at); diff != "" {
			t.Fatalf("the clone changed (-want +got):\n%s", diff)
		}
		s.Undo(mark)
		undone, at := look(s)
		if diff := cmp.Diff(hosts, undone) + cmp.Diff(homes, at); diff != "" {
			t.Fatalf("not undone (-want +got):\n%s", diff)
		}
		first, _ := look(untouched)
		if diff := cmp.Diff(f.Hosts, first); diff != "" {
			t.Fatalf("the fleet changed (-want +got):\n%s", diff)
		}
	})
}

// TestRoomIsTakenOnBothHosts: a VM on its way is counted where it is and where it goes
// to, and afterwards only there.
func TestRoomIsTakenOnBothHosts(t *testing.T) {
	f := plan.Settled(&plan.Fleet{
		Hosts: []placement.Host{{Name: "a", Memory: 8, Load: &placement.Load{}},
			{Name: "b", Memory: 8, Load: &placement.Load{}}},
		VMs: []plan.VM{{VM: placement.VM{ID: "v", Memory: 5}, Home: "a"}},
	})
	s := plan.Begin(f)
	used := func(a, b hypervisor.Bytes, incoming int) {
		t.Helper()
		x, y := s.Host(0), s.Host(1)
		if x.UsedMemory != a || y.UsedMemory != b || y.Incoming != incoming {
			t.Errorf("a has %v, b %v and %d incoming", x.UsedMemory, y.UsedMemory, y.Incoming)
		}
	}
	used(5, 0, 0)
	if s.Start(0, 0) || !s.Start(0, 1) || s.Start(0, 1) {
		t.Error("a move starts when it cannot, or does not when it can")
	}
	used(5, 5, 1)
	if !s.Finish(0) || s.Finish(0) {
		t.Error("a move ends twice, or not at all")
	}
	used(0, 5, 0)
	if got := s.Name(0, 0); got != (plan.Move{VM: "v", Source: "b", Target: "a"}) {
		t.Errorf("its next move is %+v", got)
	}
}
