package backend

import (
	"maps"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Room is what VMs may use together on a host, and what was promised of it.
type Room struct {
	Memory hypervisor.Bytes
	CPUs   int

	roomMu sync.Mutex
	taken  map[hypervisor.VMID]hypervisor.VM
}

// Reserve promises room to a VM, or answers NoRoom. Used is what takes room without a promise.
func (r *Room) Reserve(vm hypervisor.VM, used map[hypervisor.VMID]hypervisor.VM) error {
	r.roomMu.Lock()
	defer r.roomMu.Unlock()
	all := map[hypervisor.VMID]hypervisor.VM{}
	maps.Copy(all, used)
	maps.Copy(all, r.taken)
	memory, cpus := r.Memory, r.CPUs
	for id, other := range all {
		if id != vm.ID {
			memory -= other.Memory
			cpus -= other.CPUs
		}
	}
	switch {
	case vm.Memory > memory:
		need, has := hypervisor.Apart(vm.Memory, max(0, memory))
		return Errorf(hypervisor.NoRoom, "memory needs %s has %s", need, has)
	case vm.CPUs > cpus:
		return Errorf(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, max(0, cpus))
	}
	r.take(vm)
	return nil
}

// Keep reserves what a VM takes that is there, whatever room there is.
func (r *Room) Keep(vm hypervisor.VM) {
	r.roomMu.Lock()
	defer r.roomMu.Unlock()
	r.take(vm)
}

func (r *Room) take(vm hypervisor.VM) {
	if r.taken == nil {
		r.taken = map[hypervisor.VMID]hypervisor.VM{}
	}
	r.taken[vm.ID] = vm
}

// Unreserve takes back what was promised to a VM.
func (r *Room) Unreserve(vm hypervisor.VMID) {
	r.roomMu.Lock()
	defer r.roomMu.Unlock()
	delete(r.taken, vm)
}
