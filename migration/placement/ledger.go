package placement

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// FreeMemory returns the memory that is neither used nor reserved. It is
// negative on a host that is over-committed.
func (h *Host) FreeMemory() hypervisor.Bytes { return h.Memory - h.UsedMemory }

// FreeCPUs returns the CPUs that are neither used nor reserved, as FreeMemory.
func (h *Host) FreeCPUs() int { return h.CPUs - h.UsedCPUs }

// Reserve reserves room for vm, which is on its way to host: its memory, its CPUs, its groups and
// one incoming migration. It does not ask whether the VM fits, so that what a
// store remembers can be reserved again; [Index.Best] and [Index.Check] answer
// that. Where the host has a [Load] it also reserves disk, devices and cells.
//
// Like every change of the index it reports whether it was made. It is refused,
// and changes nothing, when the index does not know the host, when the VM's
// size is negative, or when a number would turn negative or overflow.
func (x *Index) Reserve(vm *VM, host hypervisor.HostName) bool {
	return x.change(host, entry{vm, +1, +1})
}

// Arrive ends the move of a VM to host, which has come: one incoming migration
// less. Its memory, CPUs and groups stay used.
func (x *Index) Arrive(host hypervisor.HostName) bool {
	return x.change(host, entry{&VM{}, 0, -1})
}

// Hold reserves room for vm at home on host: Reserve and Arrive at once.
func (x *Index) Hold(vm *VM, host hypervisor.HostName) bool {
	return x.change(host, entry{vm, +1, 0})
}

// Cancel drops the reservation of a vm that will not come to host: it undoes Reserve.
func (x *Index) Cancel(vm *VM, host hypervisor.HostName) bool {
	return x.change(host, entry{vm, -1, -1})
}

// Leave drops the reservation of a vm that is gone from host: its memory, CPUs and groups are free.
func (x *Index) Leave(vm *VM, host hypervisor.HostName) bool {
	return x.change(host, entry{vm, -1, 0})
}

// An entry changes the reservations of one host.
type entry struct {
	vm       *VM
	here     int // +1 vm is counted, -1 it is no longer
	incoming int // +1 a migration is on its way, -1 it is no longer
}

func (x *Index) change(name hypervisor.HostName, e entry) bool {
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
	vm, need := e.vm, e.vm.Demand()
	if !vm.sane() || h.Incoming+e.incoming < 0 {
		return false
	}
	if e.here > 0 {
		return h.UsedMemory+need >= h.UsedMemory && h.UsedCPUs+vm.DemandCPUs() >= h.UsedCPUs &&
			(h.Load == nil || h.Load.Disk+vm.Disk >= h.Load.Disk)
	}
	if e.here == 0 {
		return true
	}
	for _, group := range vm.groups() {
		if h.Groups[group] == 0 {
			return false
		}
	}
	return h.UsedMemory >= need && h.UsedCPUs >= vm.DemandCPUs() && (h.Load == nil || h.Load.may(vm))
}

func (h *Host) apply(e entry) {
	h.UsedMemory += hypervisor.Bytes(e.here) * e.vm.Demand()
	h.UsedCPUs += e.here * e.vm.DemandCPUs()
	h.Incoming += e.incoming
	if e.here == 0 {
		return
	}
	for _, group := range e.vm.groups() {
		h.Groups = bump(h.Groups, group, e.here)
	}
	if h.Load != nil {
		h.Load.apply(e.vm, h.Facts, e.here)
	}
}

// groups returns the groups that vm is counted in, each once.
func (vm *VM) groups() []string {
	c := &vm.Constraints
	if len(c.Apart)+len(c.Groups) == 0 {
		return nil
	}
	all := slices.Clone(c.Apart)
	for i := range c.Groups {
		all = append(all, c.Groups[i].Group)
	}
	return distinct(all)
}

// sane reports whether vm has a size: nothing is negative, the balloon is no
// larger than the guest, and the sum is a number.
func (vm *VM) sane() bool {
	return vm.Memory >= 0 && vm.CPUs >= 0 && vm.CPURequest >= 0 && vm.Disk >= 0 && vm.Overhead >= 0 &&
		vm.Balloon >= 0 && vm.Balloon <= vm.Memory && vm.Demand() >= 0 &&
		!slices.ContainsFunc(vm.Constraints.Devices, func(d DeviceAsk) bool { return d.Count < 0 })
}
