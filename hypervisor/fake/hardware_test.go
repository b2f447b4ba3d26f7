package fake_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// hardwareMachine has two disks.
func hardwareMachine() hypervisor.VM {
	return hypervisor.VM{ID: "a", Memory: 4, CPUs: 2, Hardware: &hypervisor.Hardware{
		Machine: "q35",
		Disks:   []hypervisor.Disk{{Name: "root", Size: 4}, {Name: "data-1", Size: 2}}}}
}

func TestWhatIsAnotherSize(t *testing.T) {
	tests := []struct {
		name   string
		change func(*hypervisor.VM)
		want   bool
	}{
		{"the same size is one", func(*hypervisor.VM) {}, true},
		{"more memory and fewer CPUs are", func(v *hypervisor.VM) {
			v.Memory, v.CPUs = 8, 1
		}, true},
		{"a larger disk is", func(v *hypervisor.VM) { v.Hardware.Disks[1].Size = 3 }, true},
		{"a smaller disk is not", func(v *hypervisor.VM) { v.Hardware.Disks[0].Size = 3 }, false},
		{"another disk is not", func(v *hypervisor.VM) { v.Hardware.Disks[1].Name = "x" }, false},
		{"a disk less is not", func(v *hypervisor.VM) {
			v.Hardware.Disks = v.Hardware.Disks[:1]
		}, false},
		{"another machine is not", func(v *hypervisor.VM) { v.Hardware.Machine = "pc" }, false},
		{"no hardware is not", func(v *hypervisor.VM) { v.Hardware = nil }, false},
		{"another name is not", func(v *hypervisor.VM) { v.ID = "b" }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, wanted := hardwareMachine(), hardwareMachine()
			test.change(&wanted)
			kept := wanted
			if got := fake.Resizes(old, wanted); got != test.want {
				t.Errorf("got %v", got)
			}
			if !old.Equal(hardwareMachine()) || !wanted.Equal(kept) {
				t.Error("the comparison has changed a VM")
			}
		})
	}
}

func TestPlainVMsResize(t *testing.T) {
	old := hypervisor.VM{ID: "a", Memory: 4}
	if !fake.Resizes(old, hypervisor.VM{ID: "a", Memory: 8}) {
		t.Error("a VM without hardware has no other size")
	}
}

func TestWhatCanBeMeant(t *testing.T) {
	tests := []struct {
		name   string
		change func(*hypervisor.VM)
		want   bool
	}{
		{"a VM with two disks can", func(*hypervisor.VM) {}, true},
		{"one without a name cannot", func(v *hypervisor.VM) { v.ID = "" }, false},
		{"one without memory cannot", func(v *hypervisor.VM) { v.Memory = 0 }, false},
		{"one with fewer than no CPUs cannot", func(v *hypervisor.VM) { v.CPUs = -1 }, false},
		{"two disks of one name cannot", func(v *hypervisor.VM) {
			v.Hardware.Disks[1].Name = "root"
		}, false},
		{"a disk without a name cannot", func(v *hypervisor.VM) {
			v.Hardware.Disks[0].Name = ""
		}, false},
		{"a disk with a strange name cannot", func(v *hypervisor.VM) {
			v.Hardware.Disks[0].Name = "a,b"
		}, false},
		{"a disk in a strange format cannot", func(v *hypervisor.VM) {
			v.Hardware.Disks[0].Format = "vdi"
		}, false},
		{"a disk of less than nothing cannot", func(v *hypervisor.VM) {
			v.Hardware.Disks[0].Size = -1
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vm := hardwareMachine()
			test.change(&vm)
			if got := fake.Possible(vm); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOptionsNameWhatTheyNeed(t *testing.T) {
	all := hypervisor.TransferOptions{AutoConverge: true, PostCopy: true, Channels: 2,
		Compression: true, XBZRLE: true, HoldSwitchOver: true}
	want := hypervisor.CanAutoConverge | hypervisor.CanPostCopy | hypervisor.CanUseChannels |
		hypervisor.CanCompress | hypervisor.CanXBZRLE | hypervisor.CanHoldSwitchOver
	if got := fake.NeededBy(all); got != want {
		t.Errorf("all options need %v", got.Names())
	}
	if got := fake.NeededBy(hypervisor.TransferOptions{Channels: 1}); got != 0 {
		t.Errorf("one channel needs %v", got.Names())
	}
	if !fake.Sensible(all) || fake.Sensible(hypervisor.TransferOptions{Method: "lzma"}) {
		t.Error("zlib and zstd are the methods")
	}
}
