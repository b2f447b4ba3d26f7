package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Abilities is what the model can do besides plain pre-copy. A host that is added with CanEncrypt has
// that, too: it takes no time in the model.
const Abilities = hypervisor.CanAutoConverge | hypervisor.CanPostCopy | hypervisor.CanUseChannels |
	hypervisor.CanCompress | hypervisor.CanXBZRLE | hypervisor.CanMeasureDirtyRate |
	hypervisor.CanResize | hypervisor.CanAttachDisk | hypervisor.CanTakeBack |
	hypervisor.CanLoseChannels | hypervisor.CanResizeLive | hypervisor.CanMoveDisk

// neededFor returns the ability that a command needs.
func neededFor(c hypervisor.Command) hypervisor.Abilities {
	switch c.(type) {
	case hypervisor.Resize:
		return hypervisor.CanResize
	case hypervisor.Snapshot, hypervisor.DeleteSnapshot, hypervisor.RevertSnapshot:
		return hypervisor.CanSnapshot
	case hypervisor.AttachDisk, hypervisor.DetachDisk:
		return hypervisor.CanAttachDisk
	case hypervisor.MoveDisk, hypervisor.SwitchDisk, hypervisor.EndDiskMove:
		return hypervisor.CanMoveDisk
	case hypervisor.MeasureDirtyRate:
		return hypervisor.CanMeasureDirtyRate
	}
	return 0
}

// neededBy returns the abilities that the options of a transfer need.
func neededBy(o hypervisor.TransferOptions) hypervisor.Abilities {
	var all hypervisor.Abilities
	for _, option := range [...]struct {
		set   bool
		needs hypervisor.Abilities
	}{
		{o.AutoConverge, hypervisor.CanAutoConverge},
		{o.PostCopy, hypervisor.CanPostCopy},
		{o.Channels > 1, hypervisor.CanUseChannels},
		{o.Compression, hypervisor.CanCompress},
		{o.XBZRLE, hypervisor.CanXBZRLE},
		{o.HoldSwitchOver, hypervisor.CanHoldSwitchOver},
		{o.Encryption == hypervisor.EncryptRequired, hypervisor.CanEncrypt},
	} {
		if option.set {
			all |= option.needs
		}
	}
	return all
}

// sensible reports whether the options of a transfer can be meant.
func sensible(o hypervisor.TransferOptions) bool {
	return o.Bandwidth >= 0 && o.Downtime >= 0 && o.Channels >= 0 &&
		slices.Contains([]string{"", "zlib", "zstd"}, o.Method)
}

// admit refuses what is not a VM, and what does not fit into what a host has left.
func admit(vm hypervisor.VM, memory hypervisor.Bytes, cpus int) error {
	refuse := func(kind hypervisor.Kind, format string, args ...any) error {
		return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case !possible(vm):
		return refuse(hypervisor.Invalid, "VM %q with %v, %d CPUs and disks %+v", vm.ID,
			vm.Memory, vm.CPUs, vm.Disks())
	case vm.Memory > memory:
		need, has := hypervisor.Apart(vm.Memory, memory)
		return refuse(hypervisor.NoRoom, "memory needs %s has %s", need, has)
	case vm.CPUs > cpus:
		return refuse(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, cpus)
	}
	return nil
}

// possible reports whether a VM can be meant.
func possible(vm hypervisor.VM) bool {
	return vm.ID != "" && vm.Memory > 0 && vm.CPUs >= 0 && possibleRoom(vm) && PossibleDisks(vm.Disks())
}

// possibleRoom reports whether the room to grow of a VM can be meant.
func possibleRoom(vm hypervisor.VM) bool {
	h := vm.Hardware
	return h == nil || h.MaxMemory >= 0 && h.MaxCPUs >= 0 && vm.BootMemory() > 0 &&
		!slices.ContainsFunc(h.DIMMs, func(size hypervisor.Bytes) bool { return size <= 0 })
}

// PossibleDisks reports whether disks can be meant together.
func PossibleDisks(disks []hypervisor.Disk) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	for i, d := range disks {
		same := func(o hypervisor.Disk) bool { return o.Name == d.Name }
		if d.Name == "" || strings.Trim(d.Name, letters) != "" || d.Size < 0 ||
			!slices.Contains([]string{"", "raw", "qcow2"}, d.Format) ||
			slices.ContainsFunc(disks[:i], same) {
			return false
		}
	}
	return true
}

// resizes reports whether wanted is old with other sizes, and no smaller disk.
func resizes(old, wanted hypervisor.VM) bool {
	before, disks := old.Disks(), slices.Clone(wanted.Disks())
	if len(before) != len(disks) {
		return false
	}
	for i := range disks {
		if disks[i].Size < before[i].Size {
			return false
		}
		disks[i].Size = before[i].Size
	}
	wanted.Memory, wanted.CPUs = old.Memory, old.CPUs
	wanted, old = wanted.WithDisks(disks), old.WithDisks(before)
	was, is := old.Hardware, wanted.Hardware // both are copies
	is.MaxMemory, is.MaxCPUs, is.DIMMs = was.MaxMemory, was.MaxCPUs, was.DIMMs
	return wanted.Equal(old)
}

// diskIndex returns where the disk of a name is; -1 is nowhere.
func diskIndex(disks []hypervisor.Disk, name string) int {
	return slices.IndexFunc(disks, func(d hypervisor.Disk) bool { return d.Name == name })
}

// plug returns vm with one more disk; false when it has another one of that name.
func plug(vm hypervisor.VM, disk hypervisor.Disk) (hypervisor.VM, bool) {
	disks := vm.Disks()
	if i := diskIndex(disks, disk.Name); i >= 0 {
		return vm, disks[i] == disk
	}
	return vm.WithDisks(append(slices.Clone(disks), disk)), true
}

// unplug returns vm without the disk of a name.
func unplug(vm hypervisor.VM, name string) hypervisor.VM {
	disks := vm.Disks()
	if i := diskIndex(disks, name); i >= 0 {
		return vm.WithDisks(slices.Delete(slices.Clone(disks), i, i+1))
	}
	return vm
}
