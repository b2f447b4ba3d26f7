package placement

import "github.com/godwit-vm/godwit/hypervisor"

// FreeMemory returns the memory that nobody uses or has reserved. It is
// negative on a host that is over-committed.
func (h *Host) FreeMemory() hypervisor.Bytes { return h.Memory - h.UsedMemory }

// FreeCPUs returns the CPUs that nobody uses or has reserved, as FreeMemory.
func (h *Host) FreeCPUs() int { return h.CPUs - h.UsedCPUs }

// Reserve books vm as on its way to host: its memory, its CPUs, its groups and
// one incoming migration. It does not ask whether the VM fits, so that what a
// store remembers can be booked again; [Index.Best] and [Index.Check] answer
// that.
//
// Like every entry in the books it reports whether it was made. It is refused,
// and changes nothing, when the index does not know the host, when the VM's
// size is negative, or when a number would turn negative or overflow.
func (x *Index) Reserve(vm *VM, host hypervisor.HostName) bool {
	return x.book(host, entry{vm, +1, +1})
}

// Arrive books that a VM on its way to host has come: one incoming migration
// less. Its memory, CPUs and groups stay used.
func (x *Index) Arrive(host hypervisor.HostName) bool {
	return x.book(host, entry{&VM{}, 0, -1})
}

// Cancel books that vm will not come to host: it undoes Reserve.
func (x *Index) Cancel(vm *VM, host hypervisor.HostName) bool {
	return x.book(host, entry{vm, -1, -1})
}

// Leave books that vm is gone from host: its memory, CPUs and groups are free.
func (x *Index) Leave(vm *VM, host hypervisor.HostName) bool {
	return x.book(host, entry{vm, -1, 0})
}

// An entry changes the books of one host.
type entry struct {
	vm       *VM
	here     int // +1 vm is counted, -1 it is no longer
	incoming int // +1 a migration is on its way, -1 it is no longer
}

func (x *Index) book(name hypervisor.HostName, e entry) bool {
	i, ok := x.at[name]
	if !ok || !x.tree.hosts[i].may(e) {
		return false
	}
	x.tree.hosts[i].apply(e)
	x.settle(i)
	return true
}

// may reports whether e leaves every number of h where it makes sense.
func (h *Host) may(e entry) bool {
	if e.vm.Memory < 0 || e.vm.CPUs < 0 || h.Incoming+e.incoming < 0 {
		return false
	}
	if e.here > 0 {
		return h.UsedMemory+e.vm.Memory >= h.UsedMemory && h.UsedCPUs+e.vm.CPUs >= h.UsedCPUs
	}
	if e.here == 0 {
		return true
	}
	for _, group := range e.vm.Constraints.Apart {
		if h.Groups[group] == 0 {
			return false
		}
	}
	return h.UsedMemory >= e.vm.Memory && h.UsedCPUs >= e.vm.CPUs
}

func (h *Host) apply(e entry) {
	h.UsedMemory += hypervisor.Bytes(e.here) * e.vm.Memory
	h.UsedCPUs += e.here * e.vm.CPUs
	h.Incoming += e.incoming
	if h.Groups == nil && len(e.vm.Constraints.Apart) > 0 {
		h.Groups = map[string]int{}
	}
	for _, group := range distinct(e.vm.Constraints.Apart) {
		if h.Groups[group] += e.here; h.Groups[group] == 0 {
			delete(h.Groups, group)
		}
	}
	if len(h.Groups) == 0 {
		h.Groups = nil
	}
}
