package hypervisor_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// machine returns a VM whose fields all are set, each time with memory of its own.
func machine() hypervisor.VM {
	return hypervisor.VM{ID: "a", Memory: hypervisor.GiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{Machine: "q35", CPUModel: "host", Hugepages: 2048,
			Pins: [][]int{{0, 1}}, Firmware: "f", DebugPort: 1,
			Disks: []hypervisor.Disk{{Name: "root", Path: "/p", Format: "raw", Size: 1}},
			NICs:  []hypervisor.NIC{{MAC: "m", Tap: "t"}}}}
}

func TestEqualVMsAreTheSameMachine(t *testing.T) {
	if !machine().Equal(machine()) {
		t.Error("two descriptions of the same VM differ")
	}
	plain, empty := machine(), machine()
	plain.Hardware, empty.Hardware = nil, &hypervisor.Hardware{}
	if !plain.Equal(empty) || !empty.Equal(plain) {
		t.Error("no hardware differs from default hardware")
	}
	changes := map[string]func(*hypervisor.VM){
		"another name":       func(v *hypervisor.VM) { v.ID = "b" },
		"more memory":        func(v *hypervisor.VM) { v.Memory++ },
		"more CPUs":          func(v *hypervisor.VM) { v.CPUs++ },
		"no hardware":        func(v *hypervisor.VM) { v.Hardware = nil },
		"another machine":    func(v *hypervisor.VM) { v.Hardware.Machine = "pc" },
		"another CPU":        func(v *hypervisor.VM) { v.Hardware.CPUModel = "max" },
		"other pages":        func(v *hypervisor.VM) { v.Hardware.Hugepages = 0 },
		"another pin":        func(v *hypervisor.VM) { v.Hardware.Pins[0][1] = 2 },
		"another firmware":   func(v *hypervisor.VM) { v.Hardware.Firmware = "" },
		"another debug port": func(v *hypervisor.VM) { v.Hardware.DebugPort = 2 },
		"another disk":       func(v *hypervisor.VM) { v.Hardware.Disks[0].Size = 2 },
		"another card":       func(v *hypervisor.VM) { v.Hardware.NICs[0].Tap = "" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			other := machine()
			change(&other)
			if machine().Equal(other) || other.Equal(machine()) {
				t.Error("a VM with", name, "counts as the same")
			}
		})
	}
}

func TestAbilitiesAreASet(t *testing.T) {
	some := hypervisor.CanPostCopy | hypervisor.CanAttachDisk
	if !some.Has(hypervisor.CanPostCopy) || some.Has(hypervisor.CanPostCopy|hypervisor.CanResize) {
		t.Error("a set has what it has, and not what it lacks a part of")
	}
	if diff := cmp.Diff([]string{"post-copy", "attach-disk"}, some.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	all := hypervisor.CanTakeBack<<1 - 1
	if names := all.Names(); len(names) != 15 || slices.Contains(names, "") {
		t.Errorf("names of all: %q", names)
	}
}

func TestLocalDisksAreThoseWithoutAPath(t *testing.T) {
	vm := machine()
	if (hypervisor.VM{}).LocalDisks() != nil || vm.LocalDisks() != nil {
		t.Error("a VM without local disks has some")
	}
	want := hypervisor.Disk{Name: "scratch", Format: "raw", Size: 2}
	grown := vm.WithDisks(append(slices.Clone(vm.Hardware.Disks), want))
	if diff := cmp.Diff([]hypervisor.Disk{want}, grown.LocalDisks()); diff != "" {
		t.Errorf("local disks (-want +got)\n%s", diff)
	}
	if !vm.Equal(machine()) {
		t.Error("the VM that got other disks has changed itself")
	}
	grown.Hardware.Disks = vm.Hardware.Disks
	if !grown.Equal(vm) {
		t.Error("more than the disks has changed")
	}
	bare := hypervisor.VM{ID: "a"}.WithDisks([]hypervisor.Disk{want}).Hardware
	if diff := cmp.Diff(&hypervisor.Hardware{Disks: []hypervisor.Disk{want}}, bare); diff != "" {
		t.Errorf("hardware of a VM that had none (-want +got)\n%s", diff)
	}
}
