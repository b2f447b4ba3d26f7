package inventory

import (
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Host is a host of the fleet.
type Host struct {
	hypervisor.Host
	Labels placement.Labels
	Taints []placement.Taint
	// Closed hosts take no VMs: cordoned, or not ready.
	Closed bool
	Down   bool // not ready
}

// A VM is a virtual machine of the fleet.
type VM struct {
	hypervisor.VM
	Host       hypervisor.HostName // where it runs; "" when it does not
	Namespace  string
	Labels     placement.Labels
	Strategy   evacuation.Strategy
	Migratable bool
	// WhyNot says why the VM is not migratable, in the words of its source.
	WhyNot    string
	Marked    hypervisor.HostName // it was asked to leave this host
	Placement placement.Constraints
	Workload  fake.Workload
}
