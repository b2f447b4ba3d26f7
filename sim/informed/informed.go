// Package informed plugs the adaptive evacuation policy into the controller of a simulated
// world, with what would be measured there: how fast links are, what guests dirty, and what
// a move costs besides the wire. It decides nothing.
package informed

import (
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation/adaptive"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

const (
	// observed is how long a guest is looked at to measure what it dirties.
	observed = 10 * time.Second
	// rest is what a move costs in the simulator besides the wire.
	rest = 250 * time.Millisecond
)

// Adapt lets package adaptive decide how a controller empties hosts: in which order, how
// many at once, and where to. It changes no limit.
func Adapt(
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
	p := adaptive.Policy{Rest: rest,
		DirtyRate: func(vm hypervisor.VMID) hypervisor.Bandwidth { return dirty[vm] },
		Peak:      func(vm hypervisor.VMID) hypervisor.Bandwidth { return peak[vm] }}
	if c.Cluster != nil {
		p.Cap, p.PerGiB = c.Cluster.BandwidthPerMigration, c.Cluster.CompletionTimeoutPerGiB
	}
	c.Evacuation.Policy = p
	c.Placement.Weighers = adaptive.Weighers(
		func(h hypervisor.HostName) hypervisor.Bandwidth { return link[h] })
}
