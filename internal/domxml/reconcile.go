package domxml

import (
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Reconcile returns the VM that a domain is: as it was asked for, wherever the XML
// still agrees with that, and as the XML says where it was changed. A
// machine type agrees with the newest of its kind that libvirt made of it, a default
// with what it stands for. Disks agree by name and cards by address; they come in
// the order in which they were asked for, then those that are only in the XML. Room to grow that was
// not asked for is left out, and so are memory modules then: they are a part of the memory.
//
// The XML of a running domain has the features that QEMU gave its CPU, and spells
// the model "host-model" out; such features count as those that were asked for, and
// any such model as the host's.
func Reconcile(asked hypervisor.VM, f Facts) hypervisor.VM {
	vm := f.VM
	want, found := Hardware(asked.Hardware), Hardware(vm.Hardware)
	h := &found
	if family(want.Machine) == h.Machine ||
		alias(want.Machine) && family(want.Machine) == family(h.Machine) {
		h.Machine = want.Machine
	}
	if agreesCPU(want.CPUModel, f) {
		h.CPUModel = want.CPUModel
	}
	if slices.EqualFunc(want.Pins, h.Pins, sameSet) {
		h.Pins = want.Pins
	}
	h.Disks = reconcileDisks(want.Disks, h.Disks)
	h.NICs = reconcileNICs(want.NICs, h.NICs)
	*h = reconcileRoom(*h, want, vm.Memory, vm.CPUs, f.Room)
	vm.Hardware = h
	if plain := (hypervisor.VM{ID: vm.ID, Memory: vm.Memory, CPUs: vm.CPUs,
		Hardware: asked.Hardware}); plain.Equal(vm) {
		return plain // nothing that was not asked for, not even an empty list
	}
	return vm
}

// alias reports whether a machine type stands for the newest of its kind.
func alias(machine string) bool {
	return machine == "" || machine == family(machine)
}

// agreesCPU reports whether the CPU found is what asked means in that domain.
func agreesCPU(asked string, f Facts) bool {
	want, err := parseCPU(asked)
	if err != nil {
		return false
	}
	found, err := parseCPU(Hardware(f.VM.Hardware).CPUModel)
	if err != nil {
		return false
	}
	if want.Mode == "" && found.agrees(want.or(f.Type, ArchCapabilities)) {
		return true // it was made where that is unfit
	}
	want, found = want.or(f.Type, ""), found.or(f.Type, "")
	if f.Resolved && found.Mode == custom {
		return want.Mode == hostModel || want.Mode == custom && want.Model == found.Model
	}
	return want.agrees(found)
}

func sameSet(a, b []int) bool { return formatSet(a) == formatSet(b) }

func reconcileDisks(asked, found []hypervisor.Disk) []hypervisor.Disk {
	return inOrder(asked, found, func(d hypervisor.Disk) string { return d.Name },
		func(want, have hypervisor.Disk) hypervisor.Disk {
			have.Size = want.Size
			if have.Format == formatOf(want) {
				have.Format = want.Format
			}
			return have
		})
}

func reconcileNICs(asked, found []hypervisor.NIC) []hypervisor.NIC {
	return inOrder(asked, found, func(n hypervisor.NIC) string { return strings.ToLower(n.MAC) },
		func(want, have hypervisor.NIC) hypervisor.NIC {
			have.MAC = want.MAC
			return have
		})
}

// inOrder returns what was found, what was asked for first and in that order, each
// of those as merge says.
func inOrder[T any](asked, found []T, key func(T) string, merge func(want, have T) T) []T {
	rest := slices.Clone(found)
	var all []T
	for _, want := range asked {
		i := slices.IndexFunc(rest, func(have T) bool { return key(have) == key(want) })
		if i >= 0 {
			all = append(all, merge(want, rest[i]))
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return append(all, rest...)
}
