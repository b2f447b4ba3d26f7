// Package verify checks plans and certificates without trusting who made them.
//
// It shares with planners the conditions of package placement and the types of package
// plan, and nothing else, and is short enough to be read: moves, and each kind of proof,
// are checked in at most a hundred lines.
package verify

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// books are who is where, and what is taken.
type books struct {
	rules []placement.Filter
	hosts []placement.Host
	at    map[hypervisor.HostName]int
	vms   map[hypervisor.VMID]plan.VM // Home is where it is now
}

func open(f *plan.Fleet) *books {
	b := &books{rules: f.Rules(), hosts: slices.Clone(f.Hosts),
		at: map[hypervisor.HostName]int{}, vms: map[hypervisor.VMID]plan.VM{}}
	for i, h := range f.Hosts {
		b.at[h.Name] = i
	}
	for _, v := range f.VMs {
		b.vms[v.ID] = v
	}
	return b
}

// set returns what is in a list.
func set[T comparable](list []T) map[T]bool {
	in := make(map[T]bool, len(list))
	for _, x := range list {
		in[x] = true
	}
	return in
}
