package whatif

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// occupancy is which VM is on which host, and what the VMs take of the hosts.
type occupancy struct {
	rules []placement.Filter
	hosts []placement.Host
	at    map[hypervisor.HostName]int
	vms   map[hypervisor.VMID]plan.VM // Home is where it is now
}

func occupancyOf(f *plan.Fleet) *occupancy {
	b := &occupancy{rules: f.Rules(), hosts: slices.Clone(f.Hosts),
		at: map[hypervisor.HostName]int{}, vms: map[hypervisor.VMID]plan.VM{}}
	for i, h := range f.Hosts {
		b.at[h.Name] = i
	}
	for _, v := range f.VMs {
		b.vms[v.ID] = v
	}
	return b
}

// asks returns what a VM asks of the host that it goes to from another: one that leaves by a restart asks for nothing that
// only a live move needs. It is written apart from the planner's.
func (b *occupancy) asks(v *plan.VM, source hypervisor.HostName) placement.Options {
	o := placement.Options{Source: source, Move: placement.CompareHosts(&v.VM, source, b.hosts)}
	o.Move.Rebuild = v.Restarts
	return o
}

// set returns what is in a list.
func set[T comparable](list []T) map[T]bool {
	in := make(map[T]bool, len(list))
	for _, x := range list {
		in[x] = true
	}
	return in
}
