package agent

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// localVMs is the VMs that are at home on a host, as their records say. The zero value is empty
// and ready.
type localVMs struct {
	vms       map[hypervisor.VMID]localVM
	names     []hypervisor.VMID // of all, in order
	overhead  hypervisor.Bytes  // of all
	special   int               // so many have more of their host than memory and CPUs
	unsettled int               // so many are asked something else than to run
}

// A localVM is a VM that is at home. What is asked most often, of all at once, is kept here:
// their records need not be touched for that.
type localVM struct {
	record           *store.VM
	settled, special bool
}

// Get returns the record of a VM; nil is one that is not at home here.
func (h *localVMs) Get(vm hypervisor.VMID) *store.VM { return h.vms[vm].record }

// Settled returns the record of a VM, and whether nothing is asked of it but to run.
func (h *localVMs) Settled(vm hypervisor.VMID) (v *store.VM, is bool) {
	g := h.vms[vm]
	return g.record, g.settled
}

// Undisturbed reports whether the domains of the host, ordered by VM, are those of its VMs, all
// run, and nothing else is asked of any: then there is nothing to look at. That is so nearly
// always, and costs one comparison each.
func (h *localVMs) Undisturbed(domains []hypervisor.Domain) bool {
	if h.unsettled > 0 || len(domains) != len(h.names) {
		return false
	}
	for i := range domains {
		if domains[i].State != hypervisor.Running || domains[i].VM.ID != h.names[i] || domains[i].Moving != nil {
			return false
		}
	}
	return true
}

// Put enters a VM, or what is stored about it now.
func (h *localVMs) Put(v *store.VM) {
	if h.vms == nil {
		h.vms = map[hypervisor.VMID]localVM{}
	}
	if !h.forget(v.VM.ID) {
		i, _ := slices.BinarySearch(h.names, v.VM.ID)
		h.names = slices.Insert(h.names, i, v.VM.ID)
	}
	g := localVM{v, v.Settled(), v.Placement != nil || v.CPURequest > 0 || v.Place().Disk > 0}
	h.count(g, 1)
	h.vms[v.VM.ID] = g
}

// Drop forgets a VM, if it is known.
func (h *localVMs) Drop(vm hypervisor.VMID) {
	if !h.forget(vm) {
		return
	}
	if len(h.vms) == 1 {
		*h = localVMs{} // a map keeps its room, and this host may be empty for long
		return
	}
	i, _ := slices.BinarySearch(h.names, vm)
	h.names = slices.Delete(h.names, i, i+1)
	delete(h.vms, vm)
}

// forget takes what a VM has out of the sums, if it is known.
func (h *localVMs) forget(vm hypervisor.VMID) (known bool) {
	old, known := h.vms[vm]
	if known {
		h.count(old, -1)
	}
	return known
}

// count adds what a VM has to the sums so many times.
func (h *localVMs) count(g localVM, times int) {
	h.overhead += hypervisor.Bytes(times) * max(0, g.record.Overhead)
	if g.special {
		h.special += times
	}
	if !g.settled {
		h.unsettled += times
	}
}

// Clear forgets all.
func (h *localVMs) Clear() { *h = localVMs{} }

// Len returns how many there are.
func (h *localVMs) Len() int { return len(h.vms) }

// Sorted returns all, by name.
func (h *localVMs) Sorted() []*store.VM {
	all := make([]*store.VM, len(h.names))
	for i, name := range h.names {
		all[i] = h.vms[name].record
	}
	return all
}

// asWanted reports whether there is nothing to tell of a settled VM that runs: neither a size
// nor a trouble.
func asWanted(v *store.VM, d *hypervisor.Domain) bool {
	return v.Trouble == "" && !v.Resized() && v.Size != nil && v.Size.Is(d.VM)
}
