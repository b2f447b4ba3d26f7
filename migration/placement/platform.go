package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// cpuOf returns what is known about a processor; nil when nothing is.
func cpuOf(f *Facts) *CPU {
	if f == nil {
		return nil
	}
	return f.CPU
}

func archOf(f *Facts) string {
	if cpu := cpuOf(f); cpu != nil {
		return cpu.Arch
	}
	return ""
}

// archDiffers: the host has another architecture than the VM asks for, or than
// the source of a live move.
// Source: Nova scheduler/filters/image_props_filter.py (_instance_supported: arch).
func archDiffers(vm *VM, h *Host, o options) bool {
	want, have := wantedArch(vm, o), archOf(h.Facts)
	if vm.Constraints.Platform.Arch != "" {
		return want != have
	}
	return want != "" && have != "" && want != have
}

func wantedArch(vm *VM, o options) string {
	if want := vm.Constraints.Platform.Arch; want != "" || !o.live() {
		return want
	}
	return archOf(o.sourceFacts())
}

func explainArch(vm *VM, h *Host, o options) (need, have string) {
	return wantedArch(vm, o), cmp.Or(archOf(h.Facts), "unknown")
}

// machineUnknown: the host does not know the VM's machine type.
// Source: oVirt engine policyunits/EmulatedMachineFilterPolicyUnit.java (filter).
func machineUnknown(vm *VM, h *Host, _ options) bool {
	want := vm.Constraints.Platform.Machine
	return want != "" && (h.Facts == nil || !slices.Contains(h.Facts.Machines, want))
}

func explainMachine(vm *VM, h *Host, _ options) (need, have string) {
	if h.Facts != nil {
		have = strings.Join(h.Facts.Machines, ", ")
	}
	return vm.Constraints.Platform.Machine, cmp.Or(have, "unknown")
}

// wantedModel returns the model that a host must be able to show. That of the host on which the
// guest was started is asked for by live moves only.
// Source: KubeVirt v1.8.0 watch/migration/migration.go (prepareNodeSelectorForHostCpuModel, of the
// target's pod only).
func wantedModel(vm *VM, o options) string {
	p := &vm.Constraints.Platform
	if p.CPUModel != "" || !o.live() {
		return p.CPUModel
	}
	return p.HostModel
}

// modelUnknown: the host cannot show the guest the processor that it knows.
// Source: Nova virt/libvirt/driver.py (_compare_cpu, in
// check_can_live_migrate_destination).
func modelUnknown(vm *VM, h *Host, o options) bool {
	want := wantedModel(vm, o)
	if want == "" {
		return false
	}
	cpu := cpuOf(h.Facts)
	return cpu == nil || !slices.Contains(cpu.Models, want)
}

func explainModel(vm *VM, h *Host, o options) (need, have string) {
	if cpu := cpuOf(h.Facts); cpu != nil {
		have = strings.Join(cpu.Models, ", ")
	}
	return wantedModel(vm, o), cmp.Or(have, "unknown")
}

// featuresLack: the host's processor lacks a feature that the VM asks for, or that a live move
// keeps.
// Source: Nova scheduler/filters/compute_capabilities_filter.py
// (_satisfies_extra_specs: capabilities:cpu_info:features).
func featuresLack(vm *VM, h *Host, o options) bool {
	p := &vm.Constraints.Platform
	return lacks(h, p.CPUFeatures) || o.live() && lacks(h, p.HostFeatures)
}

// lacks reports whether the host's processor lacks one of some features.
func lacks(h *Host, want []string) bool {
	if len(want) == 0 {
		return false
	}
	cpu := cpuOf(h.Facts)
	if cpu == nil {
		return true
	}
	for _, feature := range want {
		if _, ok := slices.BinarySearch(cpu.Features, feature); !ok {
			return true
		}
	}
	return false
}

func explainFeatures(vm *VM, h *Host, o options) (string, string) {
	want := vm.Constraints.Platform.CPUFeatures
	if o.live() {
		want = slices.Concat(want, vm.Constraints.Platform.HostFeatures)
	}
	cpu := cpuOf(h.Facts)
	if cpu == nil {
		return strings.Join(want, ", "), "unknown"
	}
	var missing []string
	for _, feature := range want {
		if !slices.Contains(cpu.Features, feature) {
			missing = append(missing, feature)
		}
	}
	return strings.Join(missing, ", "), "a processor without"
}

// cpuOlder: the guest sees its host's own processor, moves live, and the target
// lacks a feature of the source. The way from older to newer is open, the way
// back is not.
// Source: Nova virt/libvirt/driver.py (_compare_cpu: a guest without a model of
// its own is compared by its host's).
func cpuOlder(vm *VM, h *Host, o options) bool {
	from, to := cpuOf(o.sourceFacts()), cpuOf(h.Facts)
	if from == to || from == nil || to == nil || wantedModel(vm, o) != "" || !o.live() ||
		len(from.Features) == 0 || len(to.Features) == 0 {
		return false
	}
	return missingFeature(from.Features, to.Features) >= 0
}

// missingFeature returns the position of the first of the sorted wants that the
// sorted haves lack, or -1.
func missingFeature(wants, haves []string) int {
	j := 0
	for i, want := range wants {
		for j < len(haves) && haves[j] < want {
			j++
		}
		if j == len(haves) || haves[j] != want {
			return i
		}
	}
	return -1
}

func explainOlderCPU(_ *VM, h *Host, o options) (need, have string) {
	var missing []string
	for _, feature := range cpuOf(o.sourceFacts()).Features {
		if !slices.Contains(cpuOf(h.Facts).Features, feature) {
			missing = append(missing, feature)
		}
	}
	return "the source's " + strings.Join(missing, ", "), "an older processor"
}

// vendorOf returns the vendor of a host's processors; "" when that is not known.
func vendorOf(f *Facts) string {
	if cpu := cpuOf(f); cpu != nil {
		return cpu.Vendor
	}
	return ""
}

// vendorDiffers: the VM moves live, and the target's processor is of another vendor.
// Source: KubeVirt v1.8.0 watch/migration/migration.go (createTargetPod: the node's label
// cpu-vendor.node.kubevirt.io is added to the target's selector).
func vendorDiffers(_ *VM, h *Host, o options) bool {
	from, to := vendorOf(o.sourceFacts()), vendorOf(h.Facts)
	return o.live() && from != "" && to != "" && from != to
}

func explainVendor(_ *VM, h *Host, o options) (need, have string) {
	return vendorOf(o.sourceFacts()), vendorOf(h.Facts)
}

// cpuDiffers: the guest sees the processor itself, moves live, and the target's has other
// features: a guest may use more than it was started with after its next boot, and QEMU
// promises nothing between processors that differ.
// Source: libvirt docs/formatdomain (host-passthrough: source and target must be identical in
// hardware, microcode and software).
func cpuDiffers(vm *VM, h *Host, o options) bool {
	from, to := cpuOf(o.sourceFacts()), cpuOf(h.Facts)
	if !vm.Constraints.Platform.CPUExact || from == to || from == nil || to == nil || !o.live() ||
		len(from.Features) == 0 || len(to.Features) == 0 {
		return false
	}
	return !slices.Equal(from.Features, to.Features)
}

func explainExactCPU(_ *VM, h *Host, o options) (need, have string) {
	from, to := cpuOf(o.sourceFacts()).Features, cpuOf(h.Facts).Features
	without := func(all, some []string) (rest []string) {
		for _, feature := range all {
			if _, found := slices.BinarySearch(some, feature); !found {
				rest = append(rest, feature)
			}
		}
		return rest
	}
	if lacks := without(from, to); len(lacks) > 0 {
		have = "no " + strings.Join(lacks, ", ")
	}
	if more := without(to, from); len(more) > 0 {
		if have != "" {
			have += "; "
		}
		have += strings.Join(more, ", ") + " besides"
	}
	return "the source's very processor", have
}

func softwareOf(f *Facts) Hypervisor {
	if f == nil {
		return Hypervisor{}
	}
	return f.Hypervisor
}

// hypervisorDiffers: the host runs another kind of hypervisor than the VM asks
// for, or than the source of a live move.
// Source: Nova conductor/tasks/live_migrate.py
// (_check_compatible_with_source_hypervisor: hypervisor_type).
func hypervisorDiffers(vm *VM, h *Host, o options) bool {
	have := softwareOf(h.Facts).Kind
	if want := vm.Constraints.Platform.Hypervisor; want != "" {
		return have != want
	}
	from := softwareOf(o.sourceFacts()).Kind
	return o.live() && from != "" && have != "" && from != have
}

func explainHypervisor(vm *VM, h *Host, o options) (string, string) {
	need := cmp.Or(vm.Constraints.Platform.Hypervisor, softwareOf(o.sourceFacts()).Kind)
	return need, cmp.Or(softwareOf(h.Facts).Kind, "unknown")
}

// hypervisorOlder: the host's hypervisor is older than the VM asks for, or than
// the source's of a live move.
// Source: Nova conductor/tasks/live_migrate.py
// (_check_compatible_with_source_hypervisor: source version <= target's).
func hypervisorOlder(vm *VM, h *Host, o options) bool {
	have := softwareOf(h.Facts)
	if vm.Constraints.Platform.MinVersion > have.Version {
		return true
	}
	from := softwareOf(o.sourceFacts())
	return o.live() && from.Kind == have.Kind && have.Version != 0 && from.Version > have.Version
}

func explainVersion(vm *VM, h *Host, o options) (need, have string) {
	want := vm.Constraints.Platform.MinVersion
	if o.live() {
		want = max(want, softwareOf(o.sourceFacts()).Version)
	}
	have = "unknown"
	if v := softwareOf(h.Facts).Version; v != 0 {
		have = dotted(v)
	}
	return "version " + dotted(want) + " or newer", have
}

// dotted writes a version as its software does: 7002000 is "7.2.0".
func dotted(version int) string {
	return fmt.Sprintf("%d.%d.%d", version/1_000_000, version/1000%1000, version%1000)
}

// networksLack: a card of the VM could not be plugged in.
// Source: oVirt engine policyunits/NetworkPolicyUnit.java (filter).
func networksLack(vm *VM, h *Host, _ options) bool {
	for _, network := range vm.Constraints.Networks {
		if h.Facts == nil || !slices.Contains(h.Facts.Networks, network) {
			return true
		}
	}
	return false
}

func explainNetworks(vm *VM, h *Host, _ options) (string, string) {
	var missing, have []string
	if h.Facts != nil {
		have = h.Facts.Networks
	}
	for _, network := range vm.Constraints.Networks {
		if !slices.Contains(have, network) {
			missing = append(missing, network)
		}
	}
	return strings.Join(missing, ", "), cmp.Or(strings.Join(have, ", "), "none")
}

// devicesLack: fewer devices of a class are left than the VM asks for.
// Source: Nova scheduler/filters/pci_passthrough_filter.py (host_passes:
// pci_stats.support_requests).
func devicesLack(vm *VM, h *Host, _ options) bool {
	asks := vm.Constraints.Devices
	for i := range asks {
		if n := asked(asks, asks[i].Class); n > 0 && n > h.FreeDevices(asks[i].Class) {
			return true
		}
	}
	return false
}

// asked returns how many devices of a class are asked for in all.
func asked(asks []DeviceAsk, class string) int {
	n := 0
	for i := range asks {
		if asks[i].Class == class {
			n += asks[i].Count
		}
	}
	return n
}

func explainDevices(vm *VM, h *Host, _ options) (string, string) {
	var needs, haves, seen []string
	for _, d := range vm.Constraints.Devices {
		n, free := asked(vm.Constraints.Devices, d.Class), h.FreeDevices(d.Class)
		if n > free && !slices.Contains(seen, d.Class) {
			seen = append(seen, d.Class)
			needs = append(needs, fmt.Sprintf("%d %s", n, d.Class))
			haves = append(haves, fmt.Sprintf("%d %s", free, d.Class))
		}
	}
	return strings.Join(needs, ", "), strings.Join(haves, ", ")
}

// devicesStay: the VM holds a device that does not move while the VM runs.
// Source: Nova virt/libvirt/driver.py (check_can_live_migrate_source: mdevs and vTPM);
// KubeVirt v1.9.0 virt-handler/vm.go (isMigratable: host devices).
func devicesStay(vm *VM, _ *Host, o options) bool {
	for i := range vm.Constraints.Devices {
		if d := &vm.Constraints.Devices[i]; d.Stays && d.Count > 0 && o.live() {
			return true
		}
	}
	return false
}

func explainLiveDevices(vm *VM, _ *Host, _ options) (string, string) {
	var stay []string
	for _, d := range vm.Constraints.Devices {
		if d.Stays && d.Count > 0 {
			stay = append(stay, d.Class)
		}
	}
	return "devices that move while the VM runs", strings.Join(stay, ", ")
}
