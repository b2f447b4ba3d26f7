package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// TestWavesPassTheVerifier: moves that are possible one after another become waves, in
// their order, that are possible however their moves overlap.
func TestWavesPassTheVerifier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := plan.Cramped(t)
		var moves []plan.Move
		s := plan.Begin(f)
		for range rapid.IntRange(0, 12).Draw(t, "tries") {
			vm := rapid.IntRange(0, len(f.VMs)-1).Draw(t, "VM")
			host := rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "host")
			if q := s.Ask(vm); f.VMs[vm].Pinned == "" && q.Fits(host) {
				moves = append(moves, s.Name(vm, host))
				s.Move(vm, host)
			}
		}
		waves, ok := plan.Waves(plan.Begin(f), moves)
		if !ok {
			t.Fatalf("%v are possible, but not in waves", moves)
		}
		if diff := cmp.Diff(moves, []plan.Move(slices.Concat(waves...))); diff != "" {
			t.Errorf("the order changed (-want +got):\n%s", diff)
		}
		if err := whatif.CheckMoves(f, waves); err != nil {
			t.Error(err)
		}
		for i := 1; i < len(waves); i++ { // every border is needed
			joined := slices.Concat(waves[i-1], waves[i][:1])
			all := slices.Concat(waves[:i-1], []plan.Wave{joined})
			if whatif.CheckMoves(f, all) == nil {
				t.Errorf("%v could be one wave", joined)
			}
		}
	})
}

// small is a fleet of three hosts with 8 bytes each, and VMs with 4.
func small(vms ...plan.VM) *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters(), VMs: vms}
	for _, name := range []hypervisor.HostName{"a", "b", "c"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 8, Load: &placement.Load{}})
	}
	return plan.Settled(f)
}

func vm(id hypervisor.VMID, home hypervisor.HostName, c placement.Constraints) plan.VM {
	return plan.VM{VM: placement.VM{ID: id, Memory: 4, Constraints: c}, Home: home}
}

func TestWaves(t *testing.T) {
	free := placement.Constraints{}
	x := plan.Move{VM: "x", Source: "a", Target: "c"}
	y := plan.Move{VM: "y", Source: "b", Target: "c"}
	pinned := vm("x", "a", free)
	pinned.Pinned = "a GPU"
	tests := []struct {
		name  string
		fleet *plan.Fleet
		moves []plan.Move
		waves int // 0 is that it is not possible
	}{
		{"nothing is no wave", small(), nil, 0},
		{"two that fit together move together",
			small(vm("x", "a", free), vm("y", "b", free)), []plan.Move{x, y}, 1},
		{"one waits until another has made room",
			small(vm("x", "a", free), vm("y", "b", free), vm("z", "c", free)),
			[]plan.Move{{VM: "z", Source: "c", Target: "b"}, x, y}, 2},
		{"a VM that moves twice is in two waves", small(vm("x", "a", free)),
			[]plan.Move{x, {VM: "x", Source: "c", Target: "b"}}, 2},
		{"one that wants company moves when the other has come",
			small(vm("x", "a", free), vm("y", "b", placement.Constraints{
				With: []hypervisor.VMID{"x"}})), []plan.Move{x, y}, 2},
		{"one that avoids a VM does not pass it on the way",
			small(vm("x", "a", free), vm("y", "c", placement.Constraints{
				Without: []hypervisor.VMID{"x"}})),
			[]plan.Move{x, {VM: "y", Source: "c", Target: "b"}}, 1},
		{"members of a group that stays together move one by one",
			small(vm("x", "a", placement.Constraints{Groups: together}),
				vm("y", "b", free), vm("z", "c", placement.Constraints{Groups: together})),
			[]plan.Move{x, {VM: "z", Source: "c", Target: "a"}}, 0},
		{"what a host refuses is not possible",
			small(vm("x", "a", placement.Constraints{Selector: placement.Labels{"k": "v"}})),
			[]plan.Move{x}, 0},
		{"a VM does not move from where it is not", small(vm("x", "b", free)), []plan.Move{x}, 0},
		{"what is pinned does not move", small(pinned), []plan.Move{x}, 0},
		{"a VM that is not there does not move", small(), []plan.Move{x}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			waves, ok := plan.Waves(plan.Begin(tt.fleet), tt.moves)
			if len(waves) != tt.waves || ok != (tt.waves > 0 || len(tt.moves) == 0) {
				t.Errorf("%v, %v", waves, ok)
			}
		})
	}
}

var together = []placement.GroupRule{{Group: "g", Policy: placement.Affinity}}
