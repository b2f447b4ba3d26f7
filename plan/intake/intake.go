// Package intake makes the fleet of a plan out of one that was read from a file.
package intake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/inventory/books"
	"github.com/godwit-vm/godwit/migration/placement/filter"
	"github.com/godwit-vm/godwit/migration/placement/quota"
	"github.com/godwit-vm/godwit/plan"
)

// Fleet returns the fleet to plan for: every host and VM of f, under every condition
// that the controller applies. Migrations that had not ended are taken as not begun.
// What is on a host that is down cannot move; what the controller's drains leave where it is, by
// its eviction strategy or its quotas, is kept. It shares what f says of hosts and VMs.
func Fleet(f *inventory.Fleet) *plan.Fleet {
	rest := *f
	rest.Migrations = nil
	p := &plan.Fleet{Hosts: books.Open(&rest), Filters: filter.All(),
		VMs: make([]plan.VM, len(f.VMs))}
	used := books.Charged(&rest)
	for i := range f.VMs {
		v := &f.VMs[i]
		to := &p.VMs[i]
		*to = plan.VM{VM: books.VM(v), Home: v.Host}
		switch at, runs := p.HostAt(v.Host); {
		case v.Host == "":
		case runs && p.Hosts[at].Down:
			to.Pinned = "its host is down: it is started anew elsewhere, not moved"
		default:
			keep(to, f, v, used)
		}
	}
	slices.SortFunc(p.VMs, func(a, b plan.VM) int { return cmp.Compare(a.ID, b.ID) })
	return p
}

// keep pins a VM that no drain moves.
func keep(to *plan.VM, f *inventory.Fleet, v *inventory.VM, used *quota.Usage) {
	to.Kept = evacuation.Keeps(evacuation.Params{Strategy: f.EvictionStrategy}, evacuation.Guest{
		ID: v.ID, Strategy: v.Strategy, Migratable: v.Migratable, WhyNot: v.WhyNot, Instances: 1})
	willing := v.Strategy.Or(f.EvictionStrategy) == evacuation.LiveMigrate
	switch {
	case !v.Migratable && willing: // it blocks the drain
		to.Kept, to.Pinned = nil, cmp.Or(v.WhyNot, "it is marked as not migratable")
		return
	case len(to.Kept) == 0 && v.Migratable:
		to.Kept = used.Lacks(v.Placement.Charges)
	}
	texts := make([]string, len(to.Kept))
	for i := range to.Kept {
		r := &to.Kept[i]
		texts[i] = fmt.Sprintf("%s: needs %s, has %s", r.Check, r.Need, r.Have)
	}
	to.Pinned = strings.Join(texts, "; ")
}
