package placement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// isDisabled: an operator took the host out of service.
// Source: Nova scheduler/filters/compute_filter.py (host_passes: service disabled).
func isDisabled(_ *VM, h *Host, _ options) bool {
	return h.Facts != nil && h.Facts.Disabled
}

func explainDisabled(*VM, *Host, options) (need, have string) {
	return "a host in service", "disabled"
}

// inMaintenance: the host is being worked on.
// Source: oVirt engine policyunits (a host in PreparingForMaintenance or
// Maintenance is no candidate).
func inMaintenance(_ *VM, h *Host, _ options) bool {
	return h.Facts != nil && h.Facts.Maintenance
}

func explainMaintenance(*VM, *Host, options) (need, have string) {
	return "a host that is in service", "in maintenance"
}

// gross returns the memory that VMs could share if none were reserved.
func gross(h *Host) hypervisor.Bytes {
	if h.Facts != nil && h.Facts.Memory.Total > 0 {
		return hypervisor.Bytes(h.Facts.Memory.Gross())
	}
	return h.Memory
}

// memoryMissing: the VM would not even fit into the empty host.
// Source: Nova conductor/tasks/live_migrate.py (_check_destination_has_enough_memory),
// which also a forced move must pass.
func memoryMissing(vm *VM, h *Host, _ options) bool {
	need := vm.Demand()
	return need > 0 && need > gross(h)
}

func explainMemoryExists(vm *VM, h *Host, _ options) (string, string) {
	need, have := hypervisor.Apart(vm.Demand(), gross(h))
	return need, have + " in all"
}

// memoryExhausted: after a forced move no memory would be left.
// Source: Nova conductor/tasks/live_migrate.py (_check_destination_has_enough_memory:
// avail = total * ratio - (total - free), refused if avail <= mem).
func memoryExhausted(vm *VM, h *Host, _ options) bool {
	need := vm.Demand()
	return need > 0 && gross(h)-h.UsedMemory <= need
}

func explainExhausted(vm *VM, h *Host, _ options) (string, string) {
	need, have := hypervisor.Apart(vm.Demand(), gross(h)-h.UsedMemory)
	return "more than " + need, have
}

// freeDisk returns what is left for local disks; false when that is not known.
func freeDisk(h *Host) (hypervisor.Bytes, bool) {
	if h.Facts == nil || h.Facts.Disk.Total <= 0 {
		return 0, false
	}
	free := hypervisor.Bytes(h.Facts.Disk.Capacity())
	if h.Load != nil {
		free -= h.Load.Disk
	}
	return free, true
}

// diskLacks: the VM's local disks need more room than is left.
// Source: Nova Placement (DISK_GB: used + ask <= (total - reserved) * ratio).
func diskLacks(vm *VM, h *Host, _ options) bool {
	if vm.Disk <= 0 {
		return false
	}
	free, known := freeDisk(h)
	return known && vm.Disk > free
}

func explainDisk(vm *VM, h *Host, _ options) (need, have string) {
	free, _ := freeDisk(h)
	return hypervisor.Apart(vm.Disk, free)
}

// diskMissing: the VM's local disks are larger than the host's.
// Source: Nova virt/libvirt/driver.py (_assert_dest_node_has_enough_disk).
func diskMissing(vm *VM, h *Host, _ options) bool {
	return h.Facts != nil && h.Facts.Disk.Total > 0 &&
		vm.Disk > hypervisor.Bytes(h.Facts.Disk.Gross())
}

func explainDiskExists(vm *VM, h *Host, _ options) (string, string) {
	need, have := hypervisor.Apart(vm.Disk, hypervisor.Bytes(h.Facts.Disk.Gross()))
	return need, have + " in all"
}

// unitsDiffer: one VM may not ask this host for so much, so little or such a
// fraction.
// Source: Nova Placement (min_unit <= ask <= max_unit, ask % step_size == 0).
func unitsDiffer(vm *VM, h *Host, _ options) bool {
	f := h.Facts
	return f != nil && !(f.Memory.Allows(int64(vm.Memory)) && f.CPUs.Allows(int64(vm.CPUs)) &&
		f.Disk.Allows(int64(vm.Disk)))
}

func explainUnits(vm *VM, h *Host, _ options) (need, have string) {
	var asks, bounds []string
	say := func(what string, i DeviceInventory, ask int64, text func(int64) string) {
		if !i.Allows(ask) {
			most := "any"
			if i.Max > 0 {
				most = text(i.Max)
			}
			asks = append(asks, what+" "+text(ask))
			bounds = append(bounds, fmt.Sprintf("%s from %s to %s in steps of %s", what,
				text(i.Min), most, text(max(1, i.Step))))
		}
	}
	size := func(n int64) string { return hypervisor.Bytes(n).String() }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	say("memory", h.Facts.Memory, int64(vm.Memory), size)
	say("cpus", h.Facts.CPUs, int64(vm.CPUs), number)
	say("disk", h.Facts.Disk, int64(vm.Disk), size)
	return strings.Join(asks, ", "), strings.Join(bounds, ", ")
}

// tooManyVMs: as many VMs as are allowed are on the host, or on their way.
// Source: Nova scheduler/filters/num_instances_filter.py (host_passes: num_instances <
// max_instances_per_host, 50 there; no limit here unless the host names one).
func tooManyVMs(_ *VM, h *Host, _ options) bool {
	return h.Facts != nil && h.Facts.MaxVMs > 0 && h.Load != nil && h.Load.VMs >= h.Facts.MaxVMs
}

func explainMaxVMs(_ *VM, h *Host, _ options) (need, have string) {
	return fmt.Sprintf("fewer than %d VMs", h.Facts.MaxVMs), strconv.Itoa(h.Load.VMs)
}

// isBusy: as much moves, builds and copies as is allowed.
// Source: Nova scheduler/filters/io_ops_filter.py (host_passes: num_io_ops <
// max_io_ops_per_host, 8 there; no limit here unless the host names one).
func isBusy(_ *VM, h *Host, _ options) bool {
	return h.Facts != nil && h.Facts.MaxBusy > 0 && business(h) >= h.Facts.MaxBusy
}

func business(h *Host) int {
	if h.Load == nil {
		return h.Incoming
	}
	return h.Incoming + h.Load.Busy
}

func explainBusy(_ *VM, h *Host, _ options) (need, have string) {
	return fmt.Sprintf("fewer than %d moves, builds and copies", h.Facts.MaxBusy),
		strconv.Itoa(business(h))
}

// localDisksStay: the VM has local disks, and the host cannot receive them with
// a live move. A host whose abilities are not known is not refused.
// Source: Nova virt/libvirt/driver.py (check_can_live_migrate_source: InvalidLocalStorage,
// InvalidSharedStorage).
func localDisksStay(vm *VM, h *Host, o options) bool {
	return vm.Disk > 0 && o.live() && h.Facts != nil && h.Facts.Abilities != 0 &&
		!h.Facts.Abilities.Has(hypervisor.CanCopyStorage)
}

func explainLocalDisks(*VM, *Host, options) (need, have string) {
	return "copy-storage", "shared disks only"
}
