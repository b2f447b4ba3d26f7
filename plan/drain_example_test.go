package plan_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// The large VM fits nowhere until a small one has made room for it.
func ExamplePlan() {
	f := fleetOf(map[hypervisor.HostName][]hypervisor.Bytes{
		"n1": {4}, "n2": {2, 4}, "n3": {5},
	})
	a := plan.Drain(f, []hypervisor.HostName{"n1"})
	for i, wave := range a.Waves {
		for _, m := range wave {
			fmt.Printf("wave %d: %s from %s to %s\n", i+1, m.VM, m.Source, m.Target)
		}
	}
	fmt.Println("no plan has fewer moves:", a.Fewest)
	// Output:
	// wave 1: n2-0 from n2 to n3
	// wave 2: n1-0 from n1 to n2
	// no plan has fewer moves: true
}

// Together the VMs need more than is left, wherever each is moved.
func ExamplePlan_proof() {
	f := fleetOf(map[hypervisor.HostName][]hypervisor.Bytes{
		"n1": {4, 4}, "n2": {6}, "n3": {7},
	})
	a := plan.Drain(f, []hypervisor.HostName{"n1"})
	fmt.Println("left:", a.Left)
	fmt.Println(a.Proof)
	// Output:
	// left: [n1-0 n1-1]
	// 4 VMs need 21B of memory together; the hosts that they could be on have 16B of memory: n2, n3
}

// fleetOf returns hosts with room for 8 bytes and VMs of the given sizes on them.
func fleetOf(vms map[hypervisor.HostName][]hypervisor.Bytes) *plan.Fleet {
	f := &plan.Fleet{}
	for _, name := range []hypervisor.HostName{"n1", "n2", "n3"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 8, Load: &placement.Load{}})
		for i, size := range vms[name] {
			f.VMs = append(f.VMs, plan.VM{Home: name, VM: placement.VM{Memory: size,
				ID: hypervisor.VMID(fmt.Sprintf("%s-%d", name, i))}})
		}
	}
	return plan.Settled(f)
}
