package sim

import (
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/inventory"
)

// AdaptFleet is [AdaptConfig] for a fleet that was read.
func AdaptFleet(c *controller.Config, f *inventory.Fleet) {
	loads := make(map[hypervisor.VMID]fake.Workload, len(f.VMs))
	for i := range f.VMs {
		loads[f.VMs[i].ID] = f.VMs[i].Workload
	}
	hosts := make([]hypervisor.Host, len(f.Hosts))
	for i := range f.Hosts {
		hosts[i] = f.Hosts[i].Host
	}
	c.Network = f.Network
	AdaptConfig(c, hosts, loads)
}

// Share lets no more migrations share a link than converge there, by what guests dirty.
func Share(c *controller.Config, f *inventory.Fleet) {
	one := *c
	AdaptFleet(&one, f)
	if s, shares := one.Evacuation.Policy.(evacuation.Sharer); shares {
		c.Sharer, c.Network = s, f.Network
	}
}
