package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestShorten: a VM that moves several times moves once, if that is possible.
func TestShorten(t *testing.T) {
	f := &Fleet{}
	for _, name := range []hypervisor.HostName{"n1", "n2", "n3"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 8, Load: &placement.Load{}})
	}
	f.VMs = []VM{{VM: placement.VM{ID: "a", Memory: 4}, Home: "n1"},
		{VM: placement.VM{ID: "b", Memory: 6}, Home: "n3"}}
	p := begin(Settled(f), nil)
	move := func(vm hypervisor.VMID, source, target hypervisor.HostName) Move {
		return Move{VM: vm, Source: source, Target: target}
	}
	tests := []struct {
		name        string
		moves, want []Move
	}{
		{"there and back", []Move{move("a", "n1", "n2"), move("a", "n2", "n1")},
			[]Move{}},
		{"only when the other has made room", []Move{move("a", "n1", "n2"),
			move("b", "n3", "n1"), move("a", "n2", "n3")},
			[]Move{move("a", "n1", "n2"), move("b", "n3", "n1"), move("a", "n2", "n3")}},
		{"at the later time", []Move{move("a", "n1", "n2"), move("a", "n2", "n1"),
			move("a", "n1", "n2"), move("b", "n3", "n1")},
			[]Move{move("a", "n1", "n2"), move("b", "n3", "n1")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, p.shorten(tt.moves)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
