package qmp

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/machine"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
)

// resize changes a VM that rests: all of it or nothing. Disks grow first, and are
// cut back when something fails: what was not there before is empty.
func (d *domain) resize(ctx context.Context, p present, vm hypervisor.VM) error {
	h := d.host
	if vm.ID != d.id {
		return refuse(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	}
	if p.state != hypervisor.Shutoff || p.job != nil && p.job.Role == journal.Source &&
		p.job.Stage.Live() {
		return p.conflict()
	}
	if p.rec.VM.Equal(vm) {
		return nil
	}
	grow, err := growing(p.rec.VM, vm)
	if err == nil {
		err = h.check(vm)
	}
	if err == nil {
		err = h.reserve(d, vm)
		h.unreserve(d) // it rests
	}
	if err != nil {
		return err
	}
	s := h.settings(d.id)
	var done []hypervisor.Disk
	for _, disk := range grow {
		path := disk.Path
		if disk.Local() {
			path = s.LocalDisk(disk.Name)
		}
		if _, missing := os.Stat(path); missing != nil && disk.Local() {
			continue // it is made in its size when the VM starts
		}
		err = h.image(ctx, "resize", "-q", "-f", format(disk), path,
			strconv.FormatInt(int64(disk.Size), 10))
		if err != nil {
			break
		}
		done = append(done, disk)
	}
	if err == nil {
		err = d.put(true, func(r *journal.Domain) { r.VM = vm })
	}
	if err != nil {
		return errors.Join(err, h.shrink(ctx, s, p.rec.VM, done))
	}
	return nil
}

// growing returns the disks that grow, in their new size. It refuses a change of
// anything but sizes.
func growing(old, vm hypervisor.VM) ([]hypervisor.Disk, error) {
	var grow []hypervisor.Disk
	same := vm
	same.Memory, same.CPUs = old.Memory, old.CPUs
	if vm.Hardware != nil && old.Hardware != nil &&
		len(vm.Hardware.Disks) == len(old.Hardware.Disks) {
		hw := *vm.Hardware
		hw.Disks = slices.Clone(hw.Disks)
		for i, before := range old.Hardware.Disks {
			switch now := hw.Disks[i]; {
			case now.Size < before.Size:
				return nil, refuse(hypervisor.Invalid, "disk %s: it never shrinks, from %v to %v",
					now.Name, before.Size, now.Size)
			case now.Size > before.Size:
				grow = append(grow, now)
			}
			hw.Disks[i].Size = before.Size
		}
		hw.Pins = old.Hardware.Pins // there is one for each CPU
		same.Hardware = &hw
	}
	if !same.Equal(old) {
		return nil, refuse(hypervisor.Invalid,
			"only memory, CPUs, their pins and the sizes of disks can be changed")
	}
	return grow, nil
}

// shrink takes back what was grown.
func (h *Host) shrink(ctx context.Context, s machine.Settings, old hypervisor.VM,
	grown []hypervisor.Disk) error {
	var bad []error
	for _, disk := range grown {
		i := slices.IndexFunc(old.Hardware.Disks, func(o hypervisor.Disk) bool {
			return o.Name == disk.Name
		})
		path := disk.Path
		if disk.Local() {
			path = s.LocalDisk(disk.Name)
		}
		bad = append(bad, h.image(context.WithoutCancel(ctx), "resize", "-q", "--shrink", "-f",
			format(disk), path, strconv.FormatInt(int64(old.Hardware.Disks[i].Size), 10)))
	}
	return errors.Join(bad...)
}

// indexOf returns which disk has a name, or NotFound.
func indexOf(vm hypervisor.VM, name string) (int, error) {
	if vm.Hardware != nil {
		for i, disk := range vm.Hardware.Disks {
			if disk.Name == name {
				return i, nil
			}
		}
	}
	return -1, refuse(hypervisor.NotFound, "it has no disk %q", name)
}

// snapshot keeps the contents of a disk inside its image. Only qcow2 can.
func (d *domain) snapshot(ctx context.Context, p present, c hypervisor.Snapshot) error {
	i, err := indexOf(p.rec.VM, c.Disk)
	if err != nil {
		return err
	}
	disk := p.rec.VM.Hardware.Disks[i]
	switch {
	case c.Name == "" || len(c.Name) > 255:
		return refuse(hypervisor.Invalid, "a snapshot's name has 1 to 255 bytes, not %d",
			len(c.Name))
	case disk.Format != "qcow2":
		return refuse(hypervisor.Unsupported, "disk %s: a %s image cannot keep snapshots, qcow2 can",
			disk.Name, format(disk))
	case p.state == hypervisor.Running || p.state == hypervisor.Paused:
		if p.job != nil && p.job.Role == journal.Source && p.job.Stage.Live() {
			return refuse(hypervisor.Conflict, "job %s is under way", p.job.ID)
		}
		if err := d.host.need(hypervisor.CanSnapshot); err != nil {
			return err
		}
		return p.vm.SnapshotInternal(ctx, machine.NodeName(disk.Name), c.Name)
	case p.state != hypervisor.Shutoff:
		return p.conflict()
	}
	path := disk.Path
	if disk.Local() {
		path = d.host.settings(d.id).LocalDisk(disk.Name)
	}
	return d.host.image(ctx, "snapshot", "-q", "-c", c.Name, path)
}

// attachDisk plugs a disk in.
func (d *domain) attachDisk(ctx context.Context, p present, disk hypervisor.Disk) error {
	if i, err := indexOf(p.rec.VM, disk.Name); err == nil {
		if p.rec.VM.Hardware.Disks[i] == disk {
			return nil
		}
		return refuse(hypervisor.Conflict, "it has another disk %q", disk.Name)
	}
	if err := d.mayPlug(p); err != nil {
		return err
	}
	vm := withDisks(p.rec.VM, append(slices.Clone(disksOf(p.rec.VM)), disk))
	err := d.host.check(vm)
	if err == nil {
		err = d.makeDisks(ctx, vm, false)
	}
	if err != nil {
		return err
	}
	if p.vm != nil {
		if err := d.plug(ctx, p.vm, vm); err != nil {
			return err
		}
	}
	return d.put(true, func(r *journal.Domain) { r.VM = vm })
}

// mayPlug refuses to change the disks of a VM that moves, or is on its way to
// another state.
func (d *domain) mayPlug(p present) error {
	switch {
	case p.job != nil && p.job.Role == journal.Source && p.job.Stage.Live():
		return refuse(hypervisor.Conflict, "job %s is under way", p.job.ID)
	case p.state != hypervisor.Running && p.state != hypervisor.Paused &&
		p.state != hypervisor.Shutoff:
		return p.conflict()
	}
	return d.host.need(hypervisor.CanAttachDisk)
}

func disksOf(vm hypervisor.VM) []hypervisor.Disk {
	if vm.Hardware == nil {
		return nil
	}
	return vm.Hardware.Disks
}

// withDisks returns the VM with other disks.
func withDisks(vm hypervisor.VM, disks []hypervisor.Disk) hypervisor.VM {
	hw := hypervisor.Hardware{}
	if vm.Hardware != nil {
		hw = *vm.Hardware
	}
	hw.Disks = disks
	vm.Hardware = &hw
	return vm
}

// plug gives the last disk of vm to its QEMU. What we did not survive to note is
// there already.
func (d *domain) plug(ctx context.Context, in *instance, vm hypervisor.VM) error {
	i := len(vm.Hardware.Disks) - 1
	name := vm.Hardware.Disks[i].Name
	nodes, err := in.QueryNamedNodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Name == machine.NodeName(name) {
			return nil
		}
	}
	if err := in.BlockdevAdd(ctx, machine.DiskNode(vm, i, d.host.settings(d.id))); err != nil {
		return refuse(hypervisor.Invalid, "disk %s: %w", name, err)
	}
	if err := in.DeviceAdd(ctx, machine.DiskDevice(vm.Hardware, i)); err != nil {
		return errors.Join(err, in.BlockdevDel(ctx, machine.NodeName(name)))
	}
	return nil
}

// detachDisk asks the guest to let a disk go, and takes its image away when it
// has: until then the disk stays.
func (d *domain) detachDisk(ctx context.Context, p present, name string) error {
	i, err := indexOf(p.rec.VM, name)
	if err != nil {
		return err
	}
	if err := d.mayPlug(p); err != nil {
		return err
	}
	if err := machine.CheckDetach(p.rec.VM.Hardware, i); err != nil {
		return refuse(hypervisor.Conflict, "%w", err)
	}
	if p.vm != nil {
		err := p.vm.DeviceDel(ctx, machine.DeviceID(name))
		if err != nil && !errors.Is(err, monitor.DeviceNotFound) {
			return err
		}
		if err := p.vm.BlockdevDel(ctx, machine.NodeName(name)); err != nil {
			return refuse(hypervisor.Transient, "the guest has not let go of disk %s yet: "+
				"ask again: %w", name, err)
		}
	}
	return d.put(true, func(r *journal.Domain) {
		r.VM = withDisks(r.VM, slices.Delete(slices.Clone(r.VM.Hardware.Disks), i, i+1))
	})
}
