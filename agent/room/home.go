package room

import (
	"cmp"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// A Home is the VMs that are at home on a host, as their records say. The zero value is empty
// and ready.
type Home struct {
	vms      map[hypervisor.VMID]*record.VM
	overhead hypervisor.Bytes // of all
}

// Get returns the record of a VM; nil is one that is not at home here.
func (h *Home) Get(vm hypervisor.VMID) *record.VM { return h.vms[vm] }

// Put enters a VM, or what is stored about it now.
func (h *Home) Put(v *record.VM) {
	if h.vms == nil {
		h.vms = map[hypervisor.VMID]*record.VM{}
	}
	if old := h.vms[v.VM.ID]; old != nil {
		h.overhead -= max(0, old.Overhead)
	}
	h.overhead += max(0, v.Overhead)
	h.vms[v.VM.ID] = v
}

// Drop forgets a VM, if it is known.
func (h *Home) Drop(vm hypervisor.VMID) {
	if old := h.vms[vm]; old != nil {
		h.overhead -= max(0, old.Overhead)
		delete(h.vms, vm)
	}
}

// Clear forgets all.
func (h *Home) Clear() {
	clear(h.vms)
	h.overhead = 0
}

// Len returns how many there are.
func (h *Home) Len() int { return len(h.vms) }

// Sorted returns all, by name.
func (h *Home) Sorted() []*record.VM {
	return slices.SortedFunc(maps.Values(h.vms), func(a, b *record.VM) int {
		return cmp.Compare(a.VM.ID, b.VM.ID)
	})
}
