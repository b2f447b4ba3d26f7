package fake

import (
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// able refuses what the host cannot do.
func (h *Host) able(needs hypervisor.Abilities) error {
	if lacks := needs &^ h.host.Abilities; lacks != 0 {
		return refuse(hypervisor.Unsupported, "the host cannot %s",
			strings.Join(lacks.Names(), ", "))
	}
	return nil
}

// resize changes the sizes of a VM that is shut off, or grows one that runs.
func (d *domain) resize(vm hypervisor.VM) error {
	switch {
	case vm.ID != d.VM.ID || !possible(vm) || !resizes(*d.VM, vm):
		return refuse(hypervisor.Invalid, "%s with %v and %d CPUs is no other size of it", vm.ID,
			vm.Memory, vm.CPUs)
	case d.State == hypervisor.Shutoff:
		vm = vm.Started()
	case d.transfer != nil || d.diskMoves() || d.State != hypervisor.Running && d.State != hypervisor.Paused ||
		d.host.able(hypervisor.CanResizeLive) != nil:
		return d.conflict()
	default:
		grown, err := d.VM.Grow(vm)
		if err != nil {
			return refuse(hypervisor.Conflict, "%v", err)
		}
		vm = grown
	}
	if err := d.host.admit(vm); err != nil {
		return err
	}
	d.VM = d.machine.as(vm)
	return nil
}

// attach plugs a disk in.
func (d *domain) attach(disk hypervisor.Disk) error {
	with, ok := plug(*d.VM, disk)
	switch {
	case !PossibleDisks([]hypervisor.Disk{disk}):
		return refuse(hypervisor.Invalid, "disk %+v", disk)
	case !d.pluggable():
		return d.conflict()
	case !ok:
		return refuse(hypervisor.Conflict, "there is another disk %q", disk.Name)
	}
	d.VM = d.machine.as(with)
	return nil
}

// detach unplugs a disk; the modelled guest lets it go at once.
func (d *domain) detach(name string) error {
	if !d.pluggable() {
		return d.conflict()
	}
	d.VM = d.machine.as(unplug(*d.VM, name))
	return nil
}

// snapshot answers what is asked about a snapshot of a disk. The model has no contents of disks, and
// keeps none.
func (d *domain) snapshot(disk, name string, atRest bool) error {
	has := d.VM.Hardware != nil && slices.ContainsFunc(d.VM.Hardware.Disks, func(o hypervisor.Disk) bool {
		return o.Name == disk && o.Format == "qcow2"
	})
	switch {
	case name == "":
		return refuse(hypervisor.Invalid, "the snapshot has no name")
	case !has:
		return refuse(hypervisor.NotFound, "it has no qcow2 disk %q", disk)
	case !d.pluggable(), atRest && d.State != hypervisor.Shutoff:
		return d.conflict()
	}
	return nil
}

// pluggable reports whether disks may come and go: both ends of a migration
// describe the same machine.
func (d *domain) pluggable() bool {
	return d.transfer == nil && !d.diskMoves() && (d.State == hypervisor.Running || d.State == hypervisor.Paused ||
		!occupies(d.State))
}

// measure finds how much the guest writes from now on. A guest that does not run
// all the time, or leaves, is not measured.
func (d *domain) measure(period time.Duration) error {
	switch {
	case period <= 0:
		return refuse(hypervisor.Invalid, "a measurement of %v", period)
	case !d.State.Executes():
		return d.conflict()
	case d.measured:
		return nil
	}
	d.measured = true
	f := d.host.network
	f.world.In(period, func() {
		d.measured = false
		if d.host.listed.Mark(d.VM.ID); d.State.Executes() {
			dirtied := min(d.VM.Memory, d.Workload().Dirtied(period))
			d.found = &finding{hypervisor.Bandwidth(float64(dirtied) / period.Seconds()),
				f.world.Start.Add(f.world.Now)}
		}
	})
	return nil
}

// undefine removes a VM that has no process.
func (d *domain) undefine() error {
	if !d.State.Rests() {
		return d.conflict()
	}
	d.Become(hypervisor.Absent)
	return nil
}
