//go:build linux

package qmp

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// Resize changes a VM that rests: all of it or nothing. Disks grow first, and are cut back when
// one of them fails, or the rest: what was not there before is empty. If we end before, or that
// fails, too, their next user does it.
func (d guest) Resize(ctx context.Context, p found, vm hypervisor.VM) error {
	h := d.Node
	if vm.ID != d.ID {
		return qemu.Refuse(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	}
	if p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live() {
		return p.Conflict()
	}
	if p.State == hypervisor.Running || p.State == hypervisor.Paused {
		return d.hotplug(ctx, p, vm)
	}
	if p.State != hypervisor.Shutoff {
		return p.Conflict()
	}
	if vm = vm.Started(); p.Rec.VM.Equal(vm) {
		return nil
	}
	err := resizable(p.Rec.VM, vm)
	if err == nil {
		err = h.Check(vm)
	}
	if err == nil {
		err = h.Reserve(vm, nil)
		h.Unreserve(d.ID) // it rests
	}
	if err != nil {
		return err
	}
	_ = d.CutBack(ctx) // what cannot be cut is grown already, or told of
	if err = d.grow(ctx, growth(p.Rec.VM, vm)); err == nil {
		err = d.Put(true, func(r *domainRecord) { r.VM, r.Growing, r.Hotplug = vm, nil, nil })
	}
	if err != nil {
		return errors.Join(err, d.CutBack(ctx))
	}
	return nil
}

// resizable refuses a change of anything but sizes, and disks that shrink.
func resizable(old, vm hypervisor.VM) error {
	same := vm
	same.Memory, same.CPUs = old.Memory, old.CPUs
	if vm.Hardware != nil && old.Hardware != nil &&
		len(vm.Hardware.Disks) == len(old.Hardware.Disks) {
		hw := *vm.Hardware
		hw.Disks = slices.Clone(hw.Disks)
		for i, before := range old.Hardware.Disks {
			if now := hw.Disks[i]; now.Size < before.Size {
				return qemu.Refuse(hypervisor.Invalid, "disk %s: it never shrinks, from %v to %v",
					now.Name, before.Size, now.Size)
			}
			hw.Disks[i].Size = before.Size
		}
		hw.Pins = old.Hardware.Pins // there is one for each CPU
		hw.MaxMemory, hw.MaxCPUs, hw.DIMMs = old.Hardware.MaxMemory, old.Hardware.MaxCPUs, old.Hardware.DIMMs
		same.Hardware = &hw
	}
	if !same.Equal(old) {
		return qemu.Refuse(hypervisor.Invalid,
			"only memory, CPUs, the room for more, pins and the sizes of disks can be changed")
	}
	return nil
}

// growth returns the disks that are larger in vm than in old, which has the same disks.
func growth(old, vm hypervisor.VM) []hypervisor.Disk {
	var larger []hypervisor.Disk
	if vm.Hardware == nil {
		return nil
	}
	for i, disk := range vm.Hardware.Disks {
		if disk.Size > old.Hardware.Disks[i].Size {
			larger = append(larger, disk)
		}
	}
	return larger
}

// grow gives the images of a VM at rest the sizes of disks. That it may have made some larger is
// written before, with the sizes that they had, whatever was noted of them.
func (d guest) grow(ctx context.Context, disks []hypervisor.Disk) error {
	var grow, were []hypervisor.Disk
	for _, disk := range disks {
		path := d.Node.QEMU.DiskPath(d.ID, disk)
		if _, missing := os.Stat(path); missing != nil && disk.Local() {
			continue // it is made in its size when the VM starts
		}
		had, err := d.Node.QEMU.ImageSize(ctx, disk, path)
		switch {
		case err != nil:
			return err
		case had > disk.Size:
			return qemu.Refuse(hypervisor.Invalid,
				"disk %s: %s has %v already, and never shrinks", disk.Name, path, had)
		case had < disk.Size:
			grow = append(grow, disk)
			disk.Size = had
			were = append(were, disk)
		}
	}
	if len(grow) == 0 {
		return nil
	}
	err := d.Put(true, func(r *domainRecord) { r.Growing = were })
	for _, disk := range grow {
		if err == nil {
			err = d.Node.QEMU.GrowImage(ctx, disk, d.Node.QEMU.DiskPath(d.ID, disk))
		}
	}
	return err
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
	return -1, qemu.Refuse(hypervisor.NotFound, "it has no disk %q", name)
}

// Snapshot keeps the contents of a disk inside its image.
func (d guest) Snapshot(ctx context.Context, p found, c hypervisor.Snapshot) error {
	disk, node, has, err := d.hasSnapshot(ctx, p, c.Disk, c.Name)
	switch {
	case err != nil || has:
		return err
	case p.State == hypervisor.Shutoff:
		return d.Node.QEMU.SnapshotImage(ctx, c.Name, d.Node.QEMU.DiskPath(d.ID, disk))
	}
	return p.VM.SnapshotInternal(ctx, node, c.Name)
}

// DeleteSnapshot removes a snapshot from the image of a disk.
func (d guest) DeleteSnapshot(ctx context.Context, p found, c hypervisor.DeleteSnapshot) error {
	disk, node, has, err := d.hasSnapshot(ctx, p, c.Disk, c.Name)
	switch {
	case err != nil || !has:
		return err
	case p.State == hypervisor.Shutoff:
		return d.Node.QEMU.DeleteSnapshot(ctx, c.Name, d.Node.QEMU.DiskPath(d.ID, disk))
	}
	return p.VM.SnapshotDeleteInternal(ctx, node, c.Name)
}

// RevertSnapshot gives a disk the contents that a snapshot has kept.
func (d guest) RevertSnapshot(ctx context.Context, p found, c hypervisor.RevertSnapshot) error {
	disk, _, has, err := d.hasSnapshot(ctx, p, c.Disk, c.Name)
	switch {
	case err != nil:
		return err
	case !has:
		return qemu.Refuse(hypervisor.NotFound, "disk %s has no snapshot %q", disk.Name, c.Name)
	case p.State != hypervisor.Shutoff:
		return p.Conflict()
	}
	return d.Node.QEMU.RevertSnapshot(ctx, c.Name, d.Node.QEMU.DiskPath(d.ID, disk))
}

// hasSnapshot finds a disk that can keep snapshots, its node in a QEMU that runs, and whether it has
// one of a name. Only qcow2 can.
// A VM that moves is refused: the target's disk would not be the same.
func (d guest) hasSnapshot(ctx context.Context, p found, name, snapshot string) (disk hypervisor.Disk,
	node string, has bool, err error) {
	i, err := indexOf(p.Rec.VM, name)
	if err != nil {
		return disk, "", false, err
	}
	disk = p.Rec.VM.Hardware.Disks[i]
	switch {
	case snapshot == "" || len(snapshot) > 255:
		return disk, "", false, qemu.Refuse(hypervisor.Invalid, "a snapshot's name has 1 to 255 bytes, not %d",
			len(snapshot))
	case disk.Format != "qcow2":
		return disk, "", false, qemu.Refuse(hypervisor.Unsupported,
			"disk %s: a %s image cannot keep snapshots, qcow2 can", disk.Name, qemu.Format(disk))
	case p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live():
		return disk, "", false, qemu.Refuse(hypervisor.Conflict, "job %s is under way", p.Job.ID)
	case p.State == hypervisor.Shutoff:
		has, err = d.Node.QEMU.HasSnapshot(ctx, snapshot, d.Node.QEMU.DiskPath(d.ID, disk))
		return disk, "", has, err
	case p.State != hypervisor.Running && p.State != hypervisor.Paused:
		return disk, "", false, p.Conflict()
	}
	if err := d.Node.QEMU.Need(hypervisor.CanSnapshot); err != nil {
		return disk, "", false, err
	}
	node, names, err := p.VM.SnapshotsOf(ctx, disk.Name)
	return disk, node, slices.Contains(names, snapshot), err
}

// AttachDisk plugs a disk in.
func (d guest) AttachDisk(ctx context.Context, p found, disk hypervisor.Disk) error {
	if i, err := indexOf(p.Rec.VM, disk.Name); err == nil {
		if p.Rec.VM.Hardware.Disks[i] == disk {
			return nil
		}
		return qemu.Refuse(hypervisor.Conflict, "it has another disk %q", disk.Name)
	}
	if err := d.mayPlug(p); err != nil {
		return err
	}
	vm := p.Rec.VM.WithDisks(append(slices.Clone(p.Rec.VM.Disks()), disk))
	err := d.Node.Check(vm)
	if err == nil {
		err = d.declared(disk)
	}
	if err == nil {
		err = d.MakeDisks(ctx, vm)
	}
	if err != nil {
		return err
	}
	if p.VM != nil {
		if err := p.VM.Plug(ctx, vm); err != nil {
			return err
		}
	}
	return d.Define(vm)
}

// declared refuses shared disks whose format is not declared, and that do not look like raw images. A
// target is not asked: what its source runs with, it runs with, too.
func (d guest) declared(disks ...hypervisor.Disk) error {
	for _, disk := range disks {
		err := backend.Undeclared(disk, d.Node.QEMU.DiskPath(d.ID, disk))
		if errors.Is(err, hypervisor.Invalid) {
			return qemu.Refuse(hypervisor.Invalid, "%w", err)
		}
		if err != nil {
			return qemu.Refuse(hypervisor.Transient, "disk %s: %v", disk.Name, err)
		}
	}
	return nil
}

// mayPlug refuses to change the disks of a VM that moves, or is on its way to
// another state.
func (d guest) mayPlug(p found) error {
	switch {
	case p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live():
		return qemu.Refuse(hypervisor.Conflict, "job %s is under way", p.Job.ID)
	case p.State != hypervisor.Running && p.State != hypervisor.Paused &&
		p.State != hypervisor.Shutoff:
		return p.Conflict()
	}
	return d.Node.QEMU.Need(hypervisor.CanAttachDisk)
}

// DetachDisk asks the guest to let a disk go, and takes its image away when it
// has: until then the disk stays.
func (d guest) DetachDisk(ctx context.Context, p found, name string) error {
	i, err := indexOf(p.Rec.VM, name)
	if err != nil {
		return nil // it is gone already
	}
	if err := d.mayPlug(p); err != nil {
		return err
	}
	if err := qemu.CheckDetach(p.Rec.VM.Hardware, i); err != nil {
		return qemu.Refuse(hypervisor.Conflict, "%w", err)
	}
	if p.VM != nil {
		err := p.VM.DeviceDel(ctx, qemu.DeviceID(name))
		if err != nil && !errors.Is(err, qemu.DeviceNotFound) {
			return err
		}
		node, err := p.VM.NodeOf(ctx, name)
		if err == nil {
			err = letGo(ctx, p.VM, node)
		}
		if err != nil {
			return qemu.Refuse(hypervisor.Transient, "the guest has not let go of disk %s yet: "+
				"ask again: %w", name, err)
		}
	}
	left := slices.Delete(slices.Clone(p.Rec.VM.Hardware.Disks), i, i+1)
	return d.Define(p.Rec.VM.WithDisks(left))
}

// letGo removes a block node whose device was asked to go, unless it has gone before. QEMU
// frees it a moment after the device has gone.
func letGo(ctx context.Context, vm *qemu.Instance, node string) error {
	nodes, err := vm.QueryNamedNodes(ctx)
	is := func(n qemu.NamedNode) bool { return n.Name == node }
	if err != nil || !slices.ContainsFunc(nodes, is) {
		return err
	}
	for range 100 {
		err := vm.BlockdevDel(ctx, node)
		if _, refused := errors.AsType[*qemu.Error](err); !refused {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
	return vm.BlockdevDel(ctx, node)
}
