package sim

import (
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

const (
	// observed is how long a guest is looked at to measure what it dirties.
	observed = 10 * time.Second
	// rest is what a move costs in the simulator besides the wire.
	rest = 250 * time.Millisecond
)

// AdaptConfig lets package evacuation decide how a controller empties hosts: in which order, how
// many at once, and where to. It changes no limit.
func AdaptConfig(
	c *controller.Config, hosts []hypervisor.Host, loads map[hypervisor.VMID]fake.Workload,
) {
	dirty := make(map[hypervisor.VMID]hypervisor.Bandwidth, len(loads))
	peak := make(map[hypervisor.VMID]hypervisor.Bandwidth, len(loads))
	for vm, load := range loads {
		peak[vm] = hypervisor.Bandwidth(load.Dirtied(time.Second))
		dirty[vm] = hypervisor.Bandwidth(load.Dirtied(observed)) /
			hypervisor.Bandwidth(observed/time.Second)
	}
	link := make(map[hypervisor.HostName]hypervisor.Bandwidth, len(hosts))
	for _, h := range hosts {
		link[h.Name] = h.Link
	}
	p := evacuation.AdaptivePolicy{Rest: rest,
		DirtyRate: func(vm hypervisor.VMID) hypervisor.Bandwidth { return dirty[vm] },
		Peak:      func(vm hypervisor.VMID) hypervisor.Bandwidth { return peak[vm] }}
	if c.Cluster != nil {
		p.Cap, p.PerGiB = c.Cluster.BandwidthPerMigration, c.Cluster.CompletionTimeoutPerGiB
	}
	c.Evacuation.Policy = p
	c.Placement.Weighers = evacuation.AdaptiveWeighers(
		func(h hypervisor.HostName) hypervisor.Bandwidth { return link[h] })
}
