package drain

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/plan/plantest"
)

// TestShorten: a VM that moves several times moves once, if that is possible.
func TestShorten(t *testing.T) {
	f := &plan.Fleet{}
	for _, name := range []hypervisor.HostName{"n1", "n2", "n3"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 8, Load: &placement.Load{}})
	}
	f.VMs = []plan.VM{{VM: placement.VM{ID: "a", Memory: 4}, Home: "n1"},
		{VM: placement.VM{ID: "b", Memory: 6}, Home: "n3"}}
	p := begin(plantest.Settled(f), nil)
	move := func(vm hypervisor.VMID, source, target hypervisor.HostName) plan.Move {
		return plan.Move{VM: vm, Source: source, Target: target}
	}
	tests := []struct {
		name        string
		moves, want []plan.Move
	}{
		{"there and back", []plan.Move{move("a", "n1", "n2"), move("a", "n2", "n1")},
			[]plan.Move{}},
		{"only when the other has made room", []plan.Move{move("a", "n1", "n2"),
			move("b", "n3", "n1"), move("a", "n2", "n3")},
			[]plan.Move{move("a", "n1", "n2"), move("b", "n3", "n1"), move("a", "n2", "n3")}},
		{"at the later time", []plan.Move{move("a", "n1", "n2"), move("a", "n2", "n1"),
			move("a", "n1", "n2"), move("b", "n3", "n1")},
			[]plan.Move{move("a", "n1", "n2"), move("b", "n3", "n1")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, p.shorten(tt.moves)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
