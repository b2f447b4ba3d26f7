package store_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// machine is a VM with two disks, the second without a size.
func machine(memory hypervisor.Bytes, cpus int, root hypervisor.Bytes) hypervisor.VM {
	return hypervisor.VM{ID: "v", Memory: memory, CPUs: cpus, Hardware: &hypervisor.Hardware{
		Machine: "q35", Disks: []hypervisor.Disk{{Name: "root", Size: root}, {Name: "data"}}}}
}

// A size is memory, CPUs and the sizes of disks; of a VM with a size everything else stays.
func TestSizes(t *testing.T) {
	plain := hypervisor.VM{ID: "v", Memory: 4, CPUs: 2}
	for _, r := range []struct {
		name string
		size *store.Size
		vm   hypervisor.VM
		is   bool
		want hypervisor.VM
	}{
		{"nil is every size", nil, machine(4, 2, 8), true, machine(4, 2, 8)},
		{"its own", store.SizeOf(machine(4, 2, 8)), machine(4, 2, 8), true, machine(4, 2, 8)},
		{"other memory", &store.Size{Memory: 5, CPUs: 2}, plain, false,
			hypervisor.VM{ID: "v", Memory: 5, CPUs: 2}},
		{"other CPUs", &store.Size{Memory: 4, CPUs: 3}, plain, false,
			hypervisor.VM{ID: "v", Memory: 4, CPUs: 3}},
		{"a larger disk", store.SizeOf(machine(4, 2, 9)), machine(4, 2, 8), false,
			machine(4, 2, 9)},
		{"a disk that only one has", store.SizeOf(plain), machine(4, 2, 8), true,
			machine(4, 2, 8)},
		{"a disk of no size", &store.Size{Memory: 4, CPUs: 2,
			Disks: map[string]hypervisor.Bytes{"data": 7}}, machine(4, 2, 8), true,
			machine(4, 2, 8)},
		{"memory that was plugged in", &store.Size{Memory: 4, CPUs: 2, MaxMemory: 8, DIMMs: []hypervisor.Bytes{1}},
			plain, false, hypervisor.VM{ID: "v", Memory: 4, CPUs: 2,
				Hardware: &hypervisor.Hardware{MaxMemory: 8, DIMMs: []hypervisor.Bytes{1}}}},
		{"no room to grow", store.SizeOf(plain), hypervisor.VM{ID: "v", Memory: 4, CPUs: 2,
			Hardware: &hypervisor.Hardware{MaxCPUs: 8}}, false, hypervisor.VM{ID: "v", Memory: 4, CPUs: 2,
			Hardware: &hypervisor.Hardware{}}},
	} {
		before := r.vm
		if r.vm.Hardware != nil {
			copied := *r.vm.Hardware
			copied.Disks = append([]hypervisor.Disk(nil), copied.Disks...)
			before.Hardware = &copied
		}
		if got := r.size.Is(r.vm); got != r.is {
			t.Errorf("%s: is the size: %v", r.name, got)
		}
		if got := r.size.Of(r.vm); !got.Equal(r.want) {
			t.Errorf("%s: %+v, want %+v", r.name, got, r.want)
		}
		if !r.vm.Equal(before) {
			t.Errorf("%s: the VM was changed: %+v", r.name, r.vm)
		}
	}
}

// What a VM takes is what it has, until it has been resized.
func TestAVMTakesTheRoomThatItHas(t *testing.T) {
	v := store.VM{VM: machine(8, 4, 16)}
	if p := v.Place(); p.Memory != 8 || p.CPUs != 4 || v.Resized() {
		t.Errorf("without a size it takes %+v", p)
	}
	v.Size = store.SizeOf(machine(4, 2, 8))
	if p := v.Place(); p.Memory != 4 || p.CPUs != 2 || !v.Resized() {
		t.Errorf("it takes %+v", p)
	}
	if v.VM.Memory != 8 || v.VM.Hardware.Disks[0].Size != 16 {
		t.Errorf("what is wanted was changed: %+v", v.VM)
	}
}
