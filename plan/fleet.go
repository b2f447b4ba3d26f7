package plan

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Fleet is what is planned for. It is not changed: states share it.
type Fleet struct {
	// Hosts are ordered by name, with what the VMs on them take.
	Hosts []placement.Host
	VMs   []VM // ordered by ID
	// Filters are the conditions on a target. Of a VM that has no [placement.Constraints] they
	// may look at what it takes, and of a host at how much is taken, but not at by which VMs.
	// Default: [placement.AllFilters].
	Filters []placement.Filter
}

// A VM is a VM of a fleet.
type VM struct {
	placement.VM
	Home hypervisor.HostName // where it runs; "" is nowhere
	// Pinned says why it cannot move while it runs; "" is that it can.
	Pinned string
	// Kept are the reasons, where it could move and yet no drain moves it: by its eviction
	// strategy, or because a quota admits no second copy. It is Pinned, too.
	Kept []placement.Reason
	// Members is how many VMs it stands for, which leave their host together; 0 is itself only.
	Members int
	// Restarts says that it cannot move while it runs: to leave its host it is shut down, and started
	// on the other one.
	Restarts bool
}

// compare returns what the filters of its move ask of hosts, of which one is its source; none is where source is "". It
// is a rebuild where the VM is nowhere or leaves by a restart: what only a live move needs is not asked then.
func (v *VM) compare(source hypervisor.HostName, hosts []placement.Host) *placement.Move {
	m := placement.CompareHosts(&v.VM, source, hosts)
	m.Rebuild = source == "" || v.Restarts
	return m
}

// weight returns how many VMs are on a host with it: one, or the members of the group that it stands for.
func (v *VM) weight() int { return max(1, v.Members) }

// weigh returns how many VMs some are, with all members of groups.
func (f *Fleet) weigh(ids []hypervisor.VMID) (n int) {
	for _, vm := range f.byID(ids) {
		n += f.VMs[vm].weight()
	}
	return n
}

// A Move takes one VM from one host to another.
type Move struct {
	VM     hypervisor.VMID     `json:"vm"`
	Source hypervisor.HostName `json:"source"`
	Target hypervisor.HostName `json:"target"`
}

// A Wave is moves that may run at the same time, begin and end in any order. They
// are listed as they had best begin. The next wave begins when all have ended.
type Wave []Move

// Count returns how many moves there are.
func Count(waves []Wave) int {
	n := 0
	for _, w := range waves {
		n += len(w)
	}
	return n
}

// HostAt returns the position of a host, and whether there is such a host.
func (f *Fleet) HostAt(name hypervisor.HostName) (int, bool) {
	return slices.BinarySearchFunc(f.Hosts, name,
		func(h placement.Host, n hypervisor.HostName) int { return cmp.Compare(h.Name, n) })
}

// VMAt returns the position of a VM, and whether there is such a VM.
func (f *Fleet) VMAt(id hypervisor.VMID) (int, bool) {
	return slices.BinarySearchFunc(f.VMs, id,
		func(v VM, id hypervisor.VMID) int { return cmp.Compare(v.ID, id) })
}

// Rules returns the conditions on a target: Filters, or else all.
func (f *Fleet) Rules() []placement.Filter {
	if f.Filters == nil {
		return placement.AllFilters()
	}
	return f.Filters
}
