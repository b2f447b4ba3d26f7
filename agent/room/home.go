package room

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// A Home is the VMs that are at home on a host, as their records say. The zero value is empty
// and ready.
type Home struct {
	vms      map[hypervisor.VMID]guest
	overhead hypervisor.Bytes // of all
	special  int              // so many have more of their host than memory and CPUs
}

// A guest is a VM that is at home. What is asked most often, of all at once, is kept here:
// their records need not be touched for that.
type guest struct {
	record           *record.VM
	settled, special bool
}

// Get returns the record of a VM; nil is one that is not at home here.
func (h *Home) Get(vm hypervisor.VMID) *record.VM { return h.vms[vm].record }

// Settled returns the record of a VM, and whether nothing is asked of it but to run.
func (h *Home) Settled(vm hypervisor.VMID) (v *record.VM, is bool) {
	g := h.vms[vm]
	return g.record, g.settled
}

// Put enters a VM, or what is stored about it now.
func (h *Home) Put(v *record.VM) {
	if h.vms == nil {
		h.vms = map[hypervisor.VMID]guest{}
	}
	h.forget(v.VM.ID)
	g := guest{v, v.Settled(), v.Placement != nil || v.Place().Disk > 0}
	h.overhead += max(0, v.Overhead)
	if g.special {
		h.special++
	}
	h.vms[v.VM.ID] = g
}

// Drop forgets a VM, if it is known.
func (h *Home) Drop(vm hypervisor.VMID) {
	h.forget(vm)
	delete(h.vms, vm)
}

// forget takes what a VM has out of the sums, if it is known.
func (h *Home) forget(vm hypervisor.VMID) {
	old, is := h.vms[vm]
	if !is {
		return
	}
	h.overhead -= max(0, old.record.Overhead)
	if old.special {
		h.special--
	}
}

// Clear forgets all.
func (h *Home) Clear() {
	clear(h.vms)
	h.overhead, h.special = 0, 0
}

// Len returns how many there are.
func (h *Home) Len() int { return len(h.vms) }

// Sorted returns all, by name.
func (h *Home) Sorted() []*record.VM {
	all := make([]*record.VM, 0, len(h.vms))
	for _, g := range h.vms {
		all = append(all, g.record)
	}
	slices.SortFunc(all, func(a, b *record.VM) int { return cmp.Compare(a.VM.ID, b.VM.ID) })
	return all
}

// AsWanted reports whether there is nothing to tell of a settled VM that runs: neither a size
// nor a trouble.
func AsWanted(v *record.VM, d *hypervisor.Domain) bool {
	return v.Trouble == "" && !v.Resized() && v.Size != nil && v.Size.Is(d.VM)
}
