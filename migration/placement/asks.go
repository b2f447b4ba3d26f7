package placement

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// A Size is all that hosts look at of a VM that asks for nothing but room.
type Size struct {
	Memory, Overhead, Balloon, Disk hypervisor.Bytes
	CPUs, CPURequest                int
}

// SizeOf returns a VM's.
func SizeOf(vm *VM) Size {
	return Size{vm.Memory, vm.Overhead, vm.Balloon, vm.Disk, vm.CPUs, vm.CPURequest}
}

// Asks reports whether a VM asks for more than room. Those that do not, and are of one size, go
// wherever the others go.
func Asks(c *Constraints) bool {
	return len(c.Selector)+len(c.Affinity)+len(c.Tolerations)+len(c.Apart)+
		len(c.Charges) > 0 ||
		c.Tenant != "" || AsksMore(c)
}

// AsksMore reports whether a VM asks for more than [Basic] looks at.
func AsksMore(c *Constraints) bool {
	p := &c.Platform
	return len(c.Zones)+len(c.Specs)+len(c.Groups)+len(c.With)+len(c.Without)+len(c.Devices)+
		len(c.Networks)+len(p.CPUFeatures)+len(p.HostFeatures)+p.MinVersion > 0 || c.Topology != nil ||
		p.Arch != "" || p.Machine != "" || p.CPUModel != "" || p.HostModel != "" || p.CPUExact || p.Hypervisor != ""
}
