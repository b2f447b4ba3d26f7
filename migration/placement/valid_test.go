package placement_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func TestContradictions(t *testing.T) {
	type c = placement.Constraints
	rules := func(r ...placement.GroupRule) c { return c{Groups: r} }
	together := placement.GroupRule{Group: "g", Policy: placement.Affinity}
	inRack := placement.GroupRule{Group: "g", Policy: placement.Affinity, Domain: "rack"}
	apart := placement.GroupRule{Group: "g", Policy: placement.AntiAffinity}
	racks := placement.GroupRule{Group: "g", Policy: placement.AntiAffinity, Domain: "rack"}
	two := placement.GroupRule{Group: "g", Policy: placement.AntiAffinity, Max: 2}
	other := placement.GroupRule{Group: "h", Policy: placement.AntiAffinity}
	for _, row := range []struct {
		name string
		c    placement.Constraints
		want string // the check of the only reason; "" is none
	}{
		{"no constraints", c{}, ""},
		{"with and without one VM", c{With: []hypervisor.VMID{"a"},
			Without: []hypervisor.VMID{"b", "a"}}, "same-host"},
		{"without itself", c{Without: []hypervisor.VMID{"vm"}}, "same-host"},
		{"together and apart", rules(together, apart), "groups"},
		{"together on a host, apart by rack", rules(together, racks), "groups"},
		{"together in a rack, apart by host", rules(inRack, apart), ""},
		{"together, at most two", rules(together, two), ""},
		{"together with one group, apart from another", rules(together, other), ""},
		{"together, and apart as today's rules say", c{Apart: []string{"g"},
			Groups: []placement.GroupRule{together}}, "groups"},
		{"an unknown policy", rules(placement.GroupRule{Group: "g", Policy: "near"}), "groups"},
		{"a layout that is not the VM's", c{Topology: &placement.TopologyRequest{
			Parts: []placement.Part{{CPUs: 1, Memory: 1}}}}, "numa"},
		{"less than no device", c{Devices: []placement.DeviceAsk{{Class: "gpu", Count: -1}}},
			"devices"},
	} {
		t.Run(row.name, func(t *testing.T) {
			vm := &placement.VM{ID: "vm", Memory: gib, CPUs: 2, Constraints: row.c}
			why := placement.Contradictions(vm)
			if got := len(why); got > 1 || (got == 1) != (row.want != "") {
				t.Fatalf("contradictions: %v, want %q", why, row.want)
			}
			if row.want != "" && why[0].Check != row.want {
				t.Errorf("contradictions: %v, want %q", why, row.want)
			}
		})
	}
}
