package informed

import (
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation/adaptive"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/inventory"
)

// AdaptFleet is [Adapt] for a fleet that was read. Limits that written does not set are
// lifted from the fleet's configuration. Without written they hold: what was imported from
// elsewhere does not tell a default from a wish.
func AdaptFleet(c *controller.Config, f *inventory.Fleet, written *inventory.ConfigSpec) {
	if written != nil {
		l := adaptive.Limits(written.ParallelMigrationsPerCluster,
			written.ParallelOutboundMigrationsPerNode, written.ParallelInboundMigrationsPerNode)
		f.Config.ParallelMigrationsPerCluster = l.PerCluster
		f.Config.ParallelOutboundMigrationsPerNode = l.PerSource
		f.Config.ParallelInboundMigrationsPerNode = l.PerTarget
	}
	loads := make(map[hypervisor.VMID]fake.Workload, len(f.VMs))
	for i := range f.VMs {
		loads[f.VMs[i].ID] = f.VMs[i].Workload
	}
	hosts := make([]hypervisor.Host, len(f.Hosts))
	for i := range f.Hosts {
		hosts[i] = f.Hosts[i].Host
	}
	c.Cluster = &f.Config
	Adapt(c, hosts, loads)
}
