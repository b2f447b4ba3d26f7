package placement_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func ExampleDecide() {
	hosts := []placement.Host{
		{Name: "n1", Memory: 64 * hypervisor.GiB, CPUs: 16, Facts: &placement.Facts{Zone: "a"}},
		{Name: "n2", Memory: 64 * hypervisor.GiB, CPUs: 16, Facts: &placement.Facts{Zone: "b"}},
	}
	vm := &placement.VM{ID: "shop/web", Memory: 24 * hypervisor.GiB, CPUs: 4}
	vm.Constraints.Zones = []string{"a"}
	r := &placement.Request{VM: vm, Source: "n1", Host: "n2", Force: placement.No}

	d := placement.Decide(&placement.Config{}, r, hosts)
	fmt.Println(d.Outcome, d.Code, d.Why)

	r.Force = placement.Yes
	d = placement.Decide(&placement.Config{}, r, hosts)
	fmt.Println(d.Outcome, d.Host, d.Action, d.Debts)
	// Output:
	// conflict policy [zone needs a has b]
	// accepted n2 ForcedMigrate [zone needs a has b]
}
