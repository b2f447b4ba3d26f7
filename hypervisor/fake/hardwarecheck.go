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
	hypervisor.CanLoseChannels

// NeededFor returns the ability that a command needs.
func NeededFor(c hypervisor.Command) hypervisor.Abilities {
	switch c.(type) {
	case hypervisor.Resize:
		return hypervisor.CanResize
	case hypervisor.Snapshot, hypervisor.DeleteSnapshot, hypervisor.RevertSnapshot:
		return hypervisor.CanSnapshot
	case hypervisor.AttachDisk, hypervisor.DetachDisk:
		return hypervisor.CanAttachDisk
	case hypervisor.MeasureDirtyRate:
		return hypervisor.CanMeasureDirtyRate
	}
	return 0
}

// NeededBy returns the abilities that the options of a transfer need.
func NeededBy(o hypervisor.TransferOptions) hypervisor.Abilities {
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

// Sensible reports whether the options of a transfer can be meant.
func Sensible(o hypervisor.TransferOptions) bool {
	return o.Bandwidth >= 0 && o.Downtime >= 0 && o.Channels >= 0 &&
		slices.Contains([]string{"", "zlib", "zstd"}, o.Method)
}

// Admit refuses what is not a VM, and what does not fit into what a host has left.
func Admit(vm hypervisor.VM, memory hypervisor.Bytes, cpus int) error {
	refuse := func(kind hypervisor.Kind, format string, args ...any) error {
		return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case !Possible(vm):
		return refuse(hypervisor.Invalid, "VM %q with %v, %d CPUs and disks %+v", vm.ID,
			vm.Memory, vm.CPUs, Disks(vm))
	case vm.Memory > memory:
		need, has := hypervisor.Apart(vm.Memory, memory)
		return refuse(hypervisor.NoRoom, "memory needs %s has %s", need, has)
	case vm.CPUs > cpus:
		return refuse(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, cpus)
	}
	return nil
}

// Possible reports whether a VM can be meant.
func Possible(vm hypervisor.VM) bool {
	return vm.ID != "" && vm.Memory > 0 && vm.CPUs >= 0 && PossibleDisks(Disks(vm))
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

// Disks returns the disks of a VM.
func Disks(vm hypervisor.VM) []hypervisor.Disk {
	if vm.Hardware == nil {
		return nil
	}
	return vm.Hardware.Disks
}

// WithDisks returns vm with other disks. Hardware is shared: it is replaced.
func WithDisks(vm hypervisor.VM, disks []hypervisor.Disk) hypervisor.VM {
	var hardware hypervisor.Hardware
	if vm.Hardware != nil {
		hardware = *vm.Hardware
	}
	hardware.Disks = disks
	vm.Hardware = &hardware
	return vm
}

// Resizes reports whether wanted is old with other sizes, and no smaller disk.
func Resizes(old, wanted hypervisor.VM) bool {
	before, disks := Disks(old), slices.Clone(Disks(wanted))
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
	return WithDisks(wanted, disks).Equal(WithDisks(old, before))
}

// Index returns where the disk of a name is; -1 is nowhere.
func Index(disks []hypervisor.Disk, name string) int {
	return slices.IndexFunc(disks, func(d hypervisor.Disk) bool { return d.Name == name })
}

// Plug returns vm with one more disk; false when it has another one of that name.
func Plug(vm hypervisor.VM, disk hypervisor.Disk) (hypervisor.VM, bool) {
	disks := Disks(vm)
	if i := Index(disks, disk.Name); i >= 0 {
		return vm, disks[i] == disk
	}
	return WithDisks(vm, append(slices.Clone(disks), disk)), true
}

// Unplug returns vm without the disk of a name.
func Unplug(vm hypervisor.VM, name string) hypervisor.VM {
	disks := Disks(vm)
	if i := Index(disks, name); i >= 0 {
		return WithDisks(vm, slices.Delete(slices.Clone(disks), i, i+1))
	}
	return vm
}
