package placement

// idle says, by name, when a condition refuses no host at all: each repeats the
// part of its condition that does not look at the host. Who is not listed is
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
	"cpu-model": func(vm *VM, _ options) bool {
		return vm.Constraints.Platform.CPUModel == ""
	},
	"cpu-features": func(vm *VM, _ options) bool {
		return len(vm.Constraints.Platform.CPUFeatures) == 0
	},
	"cpu-older": func(vm *VM, o options) bool {
		return cpuOf(o.From()) == nil || vm.Constraints.Platform.CPUModel != "" || !o.live()
	},
	"cpu-vendor": func(vm *VM, o options) bool {
		return !o.live() || vendorOf(o.From()) == ""
	},
	"cpu-exact": func(vm *VM, o options) bool {
		return !vm.Constraints.Platform.CPUExact || !o.live() || cpuOf(o.From()) == nil
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

// ofFacts names the conditions that look at nothing of a host but its facts.
var ofFacts = []string{"disabled", "maintenance", "disk-exists", "units", "local-disks", "zone",
	"arch", "machine", "cpu-model", "cpu-features", "cpu-vendor", "cpu-older", "cpu-exact", "hypervisor",
	"hypervisor-version", "networks", "live-devices", "aggregates", "tenants"}
