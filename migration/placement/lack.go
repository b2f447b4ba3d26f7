package placement

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// A shortage is what a host has too little of for a VM.
type shortage struct {
	Memory, Disk hypervisor.Bytes
	CPUs         int
}

// lack returns what host has too little of for vm, as far as all asks for it.
func lack(
	all []Filter, vm *VM, host *Host, o options,
) shortage {
	var s shortage
	for i := range all {
		if !all[i].Refuses(vm, host, o) {
			continue
		}
		switch all[i].Name {
		case "memory":
			s.Memory = max(s.Memory, vm.Demand()-host.FreeMemory())
		case "memory-exists":
			s.Memory = max(s.Memory, vm.Demand()-gross(host))
		case "cpus":
			s.CPUs = vm.DemandCPUs() - host.FreeCPUs()
		case "disk":
			free, _ := freeDisk(host)
			s.Disk = max(s.Disk, vm.Disk-free)
		case "disk-exists":
			s.Disk = max(s.Disk, vm.Disk-hypervisor.Bytes(host.Facts.Disk.Gross()))
		}
	}
	return s
}

// added returns host with so much more of everything, nothing of it reserved and
// nothing given away twice.
func (s shortage) added(host *Host) Host {
	h := *host
	h.Memory += s.Memory
	h.CPUs += s.CPUs
	if host.Facts != nil && s != (shortage{}) {
		f := *host.Facts
		if f.Memory.Total > 0 {
			f.Memory.Total = f.Memory.Gross() + int64(s.Memory)
			f.Memory.Ratio = 1
		}
		if f.Disk.Total > 0 {
			f.Disk.Total = f.Disk.Capacity() + int64(s.Disk)
			f.Disk.Reserved, f.Disk.Ratio = 0, 1
		}
		h.Facts = &f
	}
	return h
}
