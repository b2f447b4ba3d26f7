// Package intake makes the fleet of a plan out of one that was read from a file.
package intake

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/inventory/books"
	"github.com/godwit-vm/godwit/migration/placement/filter"
	"github.com/godwit-vm/godwit/plan"
)

// Fleet returns the fleet to plan for: every host and VM of f, under every condition
// that the controller applies. Migrations that had not ended are taken as not begun.
// What is on a host that is down cannot move. It shares what f says of hosts and VMs.
func Fleet(f *inventory.Fleet) *plan.Fleet {
	rest := *f
	rest.Migrations = nil
	p := &plan.Fleet{Hosts: books.Open(&rest), Filters: filter.All(),
		VMs: make([]plan.VM, len(f.VMs))}
	for i := range f.VMs {
		v := &f.VMs[i]
		p.VMs[i] = plan.VM{VM: books.VM(v), Home: v.Host}
		switch at, runs := p.HostAt(v.Host); {
		case !v.Migratable:
			p.VMs[i].Pinned = cmp.Or(v.WhyNot, "it is marked as not migratable")
		case runs && p.Hosts[at].Down:
			p.VMs[i].Pinned = "its host is down: it is started anew elsewhere, not moved"
		}
	}
	slices.SortFunc(p.VMs, func(a, b plan.VM) int { return cmp.Compare(a.ID, b.ID) })
	return p
}
