package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Operation is what an agent is about to do, or does, to a VM. It is stored before the agent
// acts, and taken back when it has seen the result.
type Operation string

// What an agent does to a VM.
const (
	Nothing   Operation = ""
	Starting  Operation = "Starting"  // from its disks
	Stopping  Operation = "Stopping"  // its guest shuts down, and it stays off
	Rebooting Operation = "Rebooting" // its guest reboots
	Resizing  Operation = "Resizing"  // it takes its new size: it is shut down and starts again, or grows while it runs
	Pausing   Operation = "Pausing"   // its guest is stopped, and keeps its memory
	Resuming  Operation = "Resuming"  // and runs on
	Plugging  Operation = "Plugging"  // a disk is attached or detached
	// Snapshotting: a snapshot of one of its disks is made, deleted or reverted to.
	Snapshotting Operation = "Snapshotting"
	Renaming     Operation = "Renaming" // it gets another name
)

// Asked is a request of an operator.
type Asked struct {
	By   string    // the name of the operator
	What string    // in words: "pause"
	At   time.Time // by the operator's clock
}

// Words names the requester, for people; "" is that it is not known.
func (a *Asked) Words() string {
	if a == nil || a.By == "" {
		return ""
	}
	return a.What + " asked for by " + a.By
}

// A Size is what a resize changes of a VM.
type Size struct {
	Memory hypervisor.Bytes
	CPUs   int
	Disks  map[string]hypervisor.Bytes `json:",omitempty"` // by name; without those of no size
	// The room to grow that it was started with, and the memory that was plugged in since: see
	// [hypervisor.Hardware].
	MaxMemory hypervisor.Bytes   `json:",omitempty"`
	MaxCPUs   int                `json:",omitempty"`
	DIMMs     []hypervisor.Bytes `json:",omitempty"`
}

// SizeOf returns the size of a VM.
func SizeOf(vm hypervisor.VM) *Size {
	s := &Size{Memory: vm.Memory, CPUs: vm.CPUs}
	if vm.Hardware == nil {
		return s
	}
	s.MaxMemory, s.MaxCPUs, s.DIMMs = vm.Hardware.MaxMemory, vm.Hardware.MaxCPUs, vm.Hardware.DIMMs
	for _, d := range vm.Hardware.Disks {
		if d.Size > 0 {
			if s.Disks == nil {
				s.Disks = map[string]hypervisor.Bytes{}
			}
			s.Disks[d.Name] = d.Size
		}
	}
	return s
}

// Is reports whether vm has this size. A disk that only one of them has does not count: a
// resize neither plugs nor unplugs. Nil is every size.
func (s *Size) Is(vm hypervisor.VM) bool {
	if s == nil {
		return true
	}
	var dimms []hypervisor.Bytes
	if vm.Hardware != nil {
		dimms = vm.Hardware.DIMMs
	}
	return s.fits(vm) && slices.Equal(s.DIMMs, dimms)
}

// fits is Is, in whatever parts the memory was plugged in.
func (s *Size) fits(vm hypervisor.VM) bool {
	if s == nil {
		return true
	}
	if s.Memory != vm.Memory || s.CPUs != vm.CPUs {
		return false
	}
	if vm.Hardware == nil {
		return s.MaxMemory == 0 && s.MaxCPUs == 0
	}
	if s.MaxMemory != vm.Hardware.MaxMemory || s.MaxCPUs != vm.Hardware.MaxCPUs {
		return false
	}
	for _, d := range vm.Hardware.Disks {
		if size, both := s.Disks[d.Name]; both && d.Size > 0 && size != d.Size {
			return false
		}
	}
	return true
}

// Of returns vm with this size. Nil leaves it as it is.
func (s *Size) Of(vm hypervisor.VM) hypervisor.VM {
	if s.Is(vm) {
		return vm
	}
	vm.Memory, vm.CPUs = s.Memory, s.CPUs
	if vm.Hardware == nil && s.MaxMemory == 0 && s.MaxCPUs == 0 {
		return vm
	}
	var hardware hypervisor.Hardware
	if vm.Hardware != nil {
		hardware = *vm.Hardware // it is shared: replaced, never changed
	}
	hardware.MaxMemory, hardware.MaxCPUs, hardware.DIMMs = s.MaxMemory, s.MaxCPUs, s.DIMMs
	hardware.Disks = append([]hypervisor.Disk(nil), hardware.Disks...)
	for i := range hardware.Disks {
		if size := s.Disks[hardware.Disks[i].Name]; size > 0 {
			hardware.Disks[i].Size = size
		}
	}
	vm.Hardware = &hardware
	return vm
}

// Now returns the VM as it runs, or was when it ran last: with the size that it has, which is
// not always the one that is wanted.
func (v *VM) Now() hypervisor.VM { return v.Size.Of(v.VM) }

// Resized reports whether another size is wanted than the VM has.
func (v *VM) Resized() bool { return !v.Size.fits(v.VM) }

// Grows returns the VM as it is when it was given, while it runs as it is now, the size that is wanted;
// an error says why it takes that when it starts the next time. A part of it may be had so: the room
// that another start has is not.
func (v *VM) Grows(now hypervisor.VM) (hypervisor.VM, error) {
	return now.Grow(v.VM)
}

// Resize says what a VM has when it was resized, for people: its memory and CPUs, and the disks that
// are larger than before.
func Resize(before, after hypervisor.VM) string {
	text := fmt.Sprintf("%v and %d CPUs", after.Memory, after.CPUs)
	if before.Hardware == nil || after.Hardware == nil {
		return text
	}
	for _, d := range after.Hardware.Disks {
		old := func(o hypervisor.Disk) bool { return o.Name == d.Name && o.Size < d.Size }
		if slices.ContainsFunc(before.Hardware.Disks, old) {
			text += fmt.Sprintf(", disk %s of %v", d.Name, d.Size)
		}
	}
	return text
}

// Startable reports whether the VM is off, by the word of its host's agent, and is to run again.
// It holds nothing of its host until that announces the start: another may start it as well.
func (v *VM) Startable() bool {
	return !v.Stopped && v.Rename == nil && (v.Evicted == nil || v.Evicted.Restart) && v.Ended && v.Operation == Nothing && v.ActiveMigration == "" && v.Host != ""
}

// Off reports whether the VM shall not run on its host: its operator has stopped it, or it is shut
// down to leave the host.
func (v *VM) Off() bool { return v.Stopped || v.Evicted != nil }

// Start lets the VM run that its operator has stopped, or that was shut down to leave its host: then
// it starts on another one.
func (v *VM) Start() {
	v.Stopped, v.Kill = false, false
	if v.Ended { // it has no memory to keep
		v.Pause = false
	}
	if e := v.Evicted; e != nil && !e.Restart {
		v.Evicted = &Eviction{Restart: true, Grace: e.Grace}
	}
}

// Between reports whether the VM is on its way up or down: it starts, stops, or is shut down to
// be resized, its disks change, or it gets another name. It cannot migrate until that is over.
func (v *VM) Between() bool {
	return v.Operation == Starting || v.Operation == Stopping || v.Operation == Resizing ||
		v.Operation == Plugging || v.Operation == Snapshotting || v.Operation == Renaming || v.MovesDisk()
}

// Stands reports whether the guest of the VM is paused, as its operator wants it, by the word of its
// host's agent.
func (v *VM) Stands() bool {
	return v.Pause && v.Paused && !v.Off() && !v.Ended && v.Operation == Nothing &&
		len(v.DiskChanges) == 0 && !v.Asking()
}

// Settled reports whether nothing is to be done about the VM as long as it runs.
func (v *VM) Settled() bool {
	return !v.Off() && !v.Ended && !v.Releasing() && v.Operation == Nothing &&
		v.Reboots == v.Rebooted && !v.Pause && !v.Paused && len(v.DiskChanges) == 0 && !v.Asking()
}
