package placement

import (
	"cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// weighFreeMemory prefers hosts with much free memory.
// Source: Nova scheduler/weights/ram.py (_weigh_object, minval 0).
func weighFreeMemory(_ *VM, h *Host, _ Options) float64 {
	return float64(h.FreeMemory())
}

// weighFreeCPUs prefers hosts with many free CPUs.
// Source: Nova scheduler/weights/cpu.py (_weigh_object, minval 0).
func weighFreeCPUs(_ *VM, h *Host, _ Options) float64 {
	return float64(h.FreeCPUs())
}

// weighFreeDisk prefers hosts with much free disk; those whose free disk is not known count
// as full.
// Source: Nova scheduler/weights/disk.py (_weigh_object, minval 0).
func weighFreeDisk(_ *VM, h *Host, _ Options) float64 {
	if h.Facts == nil {
		return 0
	}
	free := hypervisor.Bytes(h.Facts.Disk.Capacity())
	if h.Load != nil {
		free -= h.Load.Disk
	}
	return float64(free)
}

// version prefers hosts with a newer hypervisor, from which more ways lead back.
// Source: Nova scheduler/weights/hypervisor_version.py (_weigh_object).
func version(_ *VM, h *Host, _ Options) float64 {
	if h.Facts == nil {
		return 0
	}
	return float64(h.Facts.Hypervisor.Version)
}

// busy counts moves in, builds and copies; its multiplier is negative.
// Source: Nova scheduler/weights/io_ops.py (_weigh_object).
func busy(_ *VM, h *Host, _ Options) float64 {
	n := h.Incoming
	if h.Load != nil {
		n += h.Load.Busy
	}
	return float64(n)
}

// vms counts the VMs on the host.
// Source: Nova scheduler/weights/num_instances.py (_weigh_object, multiplier 0).
func vms(_ *VM, h *Host, _ Options) float64 {
	if h.Load == nil {
		return 0
	}
	return float64(h.Load.VMs)
}

// plain keeps hosts with special devices free for those who ask for one: the
// fewer are left the better. A VM that asks for them prefers hosts with many left.
// Source: Nova scheduler/weights/pci.py (_weigh_object: 100 - min(free, 99), for
// instances that ask for none; minval 0).
func plain(vm *VM, h *Host, _ Options) float64 {
	if h.Facts == nil {
		return maxSpecial + 1
	}
	free := 0
	for i := range h.Facts.Devices {
		free += max(0, h.FreeDevices(h.Facts.Devices[i].Class))
	}
	if len(vm.Constraints.Devices) > 0 {
		return float64(min(free, maxSpecial))
	}
	return float64(maxSpecial + 1 - min(free, maxSpecial))
}

// maxSpecial is the number of devices beyond which more make no difference.
const maxSpecial = 99

// friends counts the members on the host of groups that prefer to be together.
// Source: Nova scheduler/weights/affinity.py (ServerGroupSoftAffinityWeigher).
func friends(vm *VM, h *Host, o Options) float64 {
	return members(vm, h, o, SoftAffinity)
}

// rivals counts, negatively, those of groups that prefer to be apart.
// Source: Nova scheduler/weights/affinity.py (ServerGroupSoftAntiAffinityWeigher).
func rivals(vm *VM, h *Host, o Options) float64 {
	return -members(vm, h, o, SoftAntiAffinity)
}

func members(
	vm *VM, h *Host, o Options, policy GroupPolicy,
) float64 {
	n := 0
	for i := range vm.Constraints.Groups {
		r := &vm.Constraints.Groups[i]
		if r.Policy != policy {
			continue
		}
		if value, ok := h.Labels[r.Domain]; r.Domain != "" && ok && o.Move != nil {
			n += o.Move.Domains[Domain{Group: r.Group, Label: r.Domain, Value: value}]
		} else if r.Domain == "" {
			n += h.others(r.Group, o.Source)
		}
	}
	return float64(n)
}

// cost is, negatively, how long the VM's memory and local disks take over the
// path from the source: its link, the target's, and between racks both up-links.
// A path whose speed is not known counts as one of 1 Gbit/s.
// Source: godwit. oVirt takes the slower link of both hosts for the bandwidth of
// a migration; Nova and Kubernetes do not look at the way.
func cost(vm *VM, h *Host, o Options) float64 {
	speed := cmp.Or(pathSpeed(o.sourceFacts(), h.Facts), hypervisor.Gbit)
	return -(float64(vm.Memory-vm.Balloon) + float64(vm.Disk)) / float64(speed)
}

// pathSpeed returns the speed of the slowest known part of a path; 0 when none
// is known.
func pathSpeed(from, to *Facts) hypervisor.Bandwidth {
	if from == nil || to == nil {
		return 0
	}
	speed := slower(from.Link, to.Link)
	if from.Rack != to.Rack {
		speed = slower(slower(speed, from.Uplink), to.Uplink)
	}
	return speed
}

// slower returns the smaller of two speeds; 0 is unknown.
func slower(a, b hypervisor.Bandwidth) hypervisor.Bandwidth {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
