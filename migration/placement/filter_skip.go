package placement

import (
	"cmp"
	"slices"
)

// idle says, by name, when a condition refuses no host at all: each repeats the
// part of its condition that does not look at the host. A filter that is not listed is
// always asked.
var idle = map[string]func(*VM, options) bool{
	"memory-exists": func(vm *VM, _ options) bool { return vm.Demand() <= 0 },
	"disk":          noDisk,
	"disk-exists":   noDisk,
	"local-disks":   noDisk,
	"zone": func(vm *VM, _ options) bool {
		return len(vm.Constraints.Zones) == 0
	},
	"arch": func(vm *VM, o options) bool { return wantedArch(vm, o) == "" },
	"machine": func(vm *VM, _ options) bool {
		return vm.Constraints.Platform.Machine == ""
	},
	"cpu-model": func(vm *VM, o options) bool { return wantedModel(vm, o) == "" },
	"cpu-features": func(vm *VM, o options) bool {
		p := &vm.Constraints.Platform
		return len(p.CPUFeatures) == 0 && (len(p.HostFeatures) == 0 || !o.live())
	},
	"cpu-older": func(vm *VM, o options) bool {
		return cpuOf(o.sourceFacts()) == nil || wantedModel(vm, o) != "" || !o.live()
	},
	"cpu-vendor": func(vm *VM, o options) bool {
		return !o.live() || vendorOf(o.sourceFacts()) == ""
	},
	"cpu-exact": func(vm *VM, o options) bool {
		return !vm.Constraints.Platform.CPUExact || !o.live() || cpuOf(o.sourceFacts()) == nil
	},
	"networks": func(vm *VM, _ options) bool {
		return len(vm.Constraints.Networks) == 0
	},
	"devices":      noDevices,
	"live-devices": noDevices,
	"aggregates": func(vm *VM, _ options) bool {
		return len(vm.Constraints.Specs) == 0
	},
	"same-host": func(vm *VM, _ options) bool { return len(vm.Constraints.With) == 0 },
	"different-host": func(vm *VM, _ options) bool {
		return len(vm.Constraints.Without) == 0
	},
	"group-affinity":      noGroups,
	"group-anti-affinity": noGroups,
	"failure-domain":      noGroups,
	"hugepages":           noTopology,
	"numa":                noTopology,
}

func noDisk(vm *VM, _ options) bool { return vm.Disk <= 0 }

func noDevices(vm *VM, _ options) bool { return len(vm.Constraints.Devices) == 0 }

func noGroups(vm *VM, _ options) bool { return len(vm.Constraints.Groups) == 0 }

func noTopology(vm *VM, _ options) bool { return vm.Constraints.Topology == nil }

// dormant names the conditions beyond the basic ones that refuse nothing as long as no VM [AsksMore] and no
// host [SaysMore].
var dormant = []string{"disabled", "maintenance", "memory-exists", "disk", "disk-exists", "units", "max-vms", "busy",
	"local-disks", "zone", "arch", "machine", "cpu-model", "cpu-features", "cpu-vendor", "cpu-older",
	"cpu-exact", "hypervisor", "hypervisor-version", "networks", "devices", "live-devices", "aggregates", "tenants",
	"same-host", "different-host", "group-affinity", "group-anti-affinity", "failure-domain", "hugepages", "numa"}

// BasicSuffices reports whether the [Basic] conditions are enough as long as no VM [AsksMore] and no host
// [SaysMore]: every other condition refuses nothing then.
func BasicSuffices() bool {
	return !slices.ContainsFunc(conditions, func(r row) bool { return !slices.Contains(dormant, r.name) })
}

// SaysMore reports whether a host says more than how large it is, and how it is connected, which
// refuses no VM.
func SaysMore(h *Host) bool {
	f := h.Facts
	if f == nil {
		return false
	}
	plain := func(i DeviceInventory, size int64) bool {
		i.Ratio = cmp.Or(i.Ratio, 1)
		return (i.Total == 0 || i.Total == size) && i == DeviceInventory{Total: i.Total, Ratio: 1}
	}
	return !plain(f.Memory, int64(h.Memory)) || !plain(f.CPUs, int64(h.CPUs)) ||
		!plain(f.Disk, 0) || f.MaxVMs+f.MaxBusy > 0 || f.Disabled || f.Maintenance ||
		f.Zone != "" || f.CPU != nil || f.Hypervisor != Hypervisor{} ||
		f.Abilities != 0 || len(f.Aggregates)+len(f.Machines)+len(f.Cells)+len(f.Devices)+
		len(f.Networks) > 0
}

// ofFacts names the conditions that look at nothing of a host but its facts.
var ofFacts = []string{"disabled", "maintenance", "disk-exists", "units", "local-disks", "zone",
	"arch", "machine", "cpu-model", "cpu-features", "cpu-vendor", "cpu-older", "cpu-exact", "hypervisor",
	"hypervisor-version", "networks", "live-devices", "aggregates", "tenants"}
