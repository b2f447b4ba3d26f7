//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// diskOf returns a disk of a VM by its name.
func diskOf(vm hypervisor.VM, name string) (hypervisor.Disk, bool) {
	if vm.Hardware == nil {
		return hypervisor.Disk{}, false
	}
	i := slices.IndexFunc(vm.Hardware.Disks, func(d hypervisor.Disk) bool { return d.Name == name })
	if i < 0 {
		return hypervisor.Disk{}, false
	}
	return vm.Hardware.Disks[i], true
}

// settled refuses to change the hardware of a VM that is on its way somewhere.
func settled(f found) error {
	if f.State != hypervisor.Running && f.State != hypervisor.Paused &&
		!f.State.Rests() || f.Observed.Sends || f.Job != nil && f.Job.Stage.Live() {
		return f.Conflict()
	}
	return nil
}

// impact says that a change of devices is about what runs, what is defined, or both.
func impact(s observation) libvirt.DomainDeviceModifyFlags {
	var flags libvirt.DomainDeviceModifyFlags
	if s.Defined {
		flags |= libvirt.DOMAIN_DEVICE_MODIFY_CONFIG
	}
	if s.Run.Alive() {
		flags |= libvirt.DOMAIN_DEVICE_MODIFY_LIVE
	}
	return flags
}

func (d guest) AttachDisk(ctx context.Context, f found, disk hypervisor.Disk) error {
	old, has := diskOf(f.VM, disk.Name)
	switch {
	case has && old == disk:
		return nil
	case has:
		return backend.Errorf(hypervisor.Conflict, "it has a disk %s that is another one", disk.Name)
	}
	if err := settled(f); err != nil {
		return err
	}
	var disks []hypervisor.Disk
	if f.VM.Hardware != nil {
		disks = slices.Clone(f.VM.Hardware.Disks)
	}
	next := f.VM.WithDisks(append(disks, disk))
	if err := d.Node.Check(next); err != nil {
		return err
	}
	if err := declared(disk); err != nil {
		return err
	}
	xml, err := domxml.DiskXML(f.Observed.XML, disk, d.Node.Settings)
	if err != nil {
		return backend.Errorf(backend.KindOf(err), "%w", err)
	}
	if disk.Local() {
		if err := makeDisk(ctx, d.Node, d.Name, disk); err != nil {
			return err
		}
	}
	err = d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.AttachDeviceFlags(xml, impact(f.Observed))
	})
	if err != nil {
		return err
	}
	return d.describe(ctx, f, next)
}

// declared refuses shared disks whose format is not declared, and that do not look like raw images. A
// file that cannot be read here is not judged: libvirtd may be on another machine, or its user
// another one.
func declared(disks ...hypervisor.Disk) error {
	for _, disk := range disks {
		if err := backend.Undeclared(disk, disk.Path); errors.Is(err, hypervisor.Invalid) {
			return backend.Errorf(hypervisor.Invalid, "%w", err)
		}
	}
	return nil
}

// describe keeps what the VM is now, here and in the domain itself.
func (d guest) describe(ctx context.Context, f found, vm hypervisor.VM) error {
	m := f.Observed.Mark
	m.VM = vm
	text, err := m.XML()
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	err = d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.SetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, text, domxml.MarkPrefix,
			domxml.MarkURI, libvirt.DomainModificationImpact(impact(f.Observed)))
	})
	if err != nil {
		return err
	}
	return d.Put(true, func(r *domainRecord) {
		r.VM = vm
		r.Ran = r.Ran || f.Observed.Run.Alive()
	})
}

// DetachDisk asks the guest to let a disk go, or takes it from the definition. The
// image stays.
func (d guest) DetachDisk(ctx context.Context, f found, name string) error {
	if _, has := diskOf(f.VM, name); !has {
		return nil
	}
	if err := settled(f); err != nil {
		return err
	}
	xml, err := domxml.Device(f.Observed.XML, name)
	if err != nil {
		return backend.Errorf(backend.KindOf(err), "%w", err)
	}
	err = d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.DetachDeviceFlags(xml, impact(f.Observed))
	})
	if err != nil && !errors.Is(err, hypervisor.NotFound) {
		return err
	}
	if f.Observed.Run.Alive() {
		return nil // it is there until the guest has let it go
	}
	return d.describe(ctx, f, f.VM.WithDisks(slices.DeleteFunc(slices.Clone(f.VM.Hardware.Disks),
		func(disk hypervisor.Disk) bool { return disk.Name == name })))
}

// Resize changes memory, CPUs and the sizes of disks. Disks grow first: what they
// have grown is taken back when the rest fails.
func (d guest) Resize(ctx context.Context, f found, vm hypervisor.VM) error {
	if vm.ID != d.ID {
		return backend.Errorf(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	}
	vm = vm.Started()
	if err := d.Node.Check(vm); err != nil {
		return err
	}
	if f.State == hypervisor.Running || f.State == hypervisor.Paused {
		return d.hotplug(ctx, f, vm)
	}
	if !f.State.Rests() || f.Job != nil && f.Job.Stage.Live() || f.Unresolved() {
		return f.Conflict()
	}
	grow, err := growth(f.VM, vm)
	if err != nil {
		return err
	}
	for _, disk := range grow {
		if !disk.Local() {
			return backend.Errorf(hypervisor.Unsupported, "disk %s is shared, and its VM is shut off: grow it "+
				"where it is kept, or while the VM runs", disk.Name)
		}
	}
	if err := d.Node.Reserve(ctx, vm); err != nil {
		return err
	}
	d.Node.Unreserve(d.ID)
	xml, err := domxml.Resize(f.Observed.XML, vm)
	if err != nil {
		return backend.Errorf(backend.KindOf(err), "%w", err)
	}
	var undo []func() error
	for _, disk := range grow {
		back, err := growDisk(ctx, d.Node, d.Name, disk)
		if err != nil {
			return errors.Join(err, rollBack(undo))
		}
		undo = append(undo, back)
	}
	err = d.Node.Conn.Act(ctx, func(c *conn.Connect) error {
		dom, err := c.DomainDefineXML(xml)
		if err != nil {
			return err
		}
		return dom.Free()
	})
	if err != nil {
		return errors.Join(err, rollBack(undo))
	}
	return d.describe(ctx, f, vm)
}

func rollBack(undo []func() error) error {
	var bad []error
	for _, u := range slices.Backward(undo) {
		bad = append(bad, u())
	}
	return errors.Join(bad...)
}

// growth returns the disks that are to grow. Nothing else about disks changes
// by a resize, and no disk shrinks.
func growth(from, to hypervisor.VM) ([]hypervisor.Disk, error) {
	var grow, was, is []hypervisor.Disk
	if from.Hardware != nil {
		was = from.Hardware.Disks
	}
	if to.Hardware != nil {
		is = to.Hardware.Disks
	}
	if len(was) != len(is) {
		return nil, backend.Errorf(hypervisor.Invalid,
			"it has %d disks and not %d: attach or detach them", len(was), len(is))
	}
	for i, disk := range is {
		old := was[i]
		same := old
		same.Size = disk.Size
		switch {
		case same != disk:
			return nil, backend.Errorf(hypervisor.Invalid, "disk %s changes more than its size",
				disk.Name)
		case disk.Size < old.Size:
			return nil, backend.Errorf(hypervisor.Invalid, "disk %s has %v and cannot shrink to %v",
				disk.Name, old.Size, disk.Size)
		case disk.Size > old.Size:
			grow = append(grow, disk)
		}
	}
	return grow, nil
}

// Snapshot keeps the present contents of a qcow2 disk of a VM at rest that has no other.
// libvirt keeps those of one that runs only together with its memory, and of several
// disks only all.
// Source: libvirt 9.0 qemu_snapshot.c ("internal and full system snapshots require all
// disks to be selected for snapshot").
func (d guest) Snapshot(ctx context.Context, f found, c hypervisor.Snapshot) error {
	disk, has := diskOf(f.VM, c.Disk)
	switch {
	case c.Name == "":
		return backend.Errorf(hypervisor.Invalid, "the snapshot has no name")
	case !has:
		return backend.Errorf(hypervisor.NotFound, "it has no disk %q", c.Disk)
	case disk.Format != "qcow2":
		return backend.Errorf(hypervisor.Unsupported, "disk %s is %s: only qcow2 keeps snapshots",
			disk.Name, cmp.Or(disk.Format, "raw"))
	case len(f.VM.Hardware.Disks) > 1:
		return backend.Errorf(hypervisor.Unsupported, "it has %d disks: libvirt keeps the contents "+
			"of all of them or of none", len(f.VM.Hardware.Disks))
	}
	if err := settled(f); err != nil {
		return err
	}
	if f.Observed.Run.Alive() {
		return backend.Errorf(hypervisor.Conflict, "it is %v: libvirt keeps one disk of a VM only "+
			"while that is shut off", f.State)
	}
	xml, err := d.snapshotXML(f, c)
	if err != nil {
		return err
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		if s, err := dom.SnapshotLookupByName(c.Name, 0); err == nil {
			return s.Free()
		}
		s, err := dom.CreateSnapshotXML(xml, 0)
		if err != nil {
			return err
		}
		return s.Free()
	})
}

// onSnapshot does something with a snapshot of a VM at rest. One that is not there needs no removal.
func (d guest) onSnapshot(ctx context.Context, f found, name string, needed bool,
	do func(*libvirt.DomainSnapshot) error) error {
	if err := settled(f); err != nil {
		return err
	}
	if f.Observed.Run.Alive() {
		return backend.Errorf(hypervisor.Conflict, "it is %v: libvirt changes snapshots of one disk only "+
			"while the VM is shut off", f.State)
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		s, err := dom.SnapshotLookupByName(name, 0)
		if errors.Is(err, libvirt.ERR_NO_DOMAIN_SNAPSHOT) {
			if !needed {
				return nil
			}
			return backend.Errorf(hypervisor.NotFound, "it has no snapshot %q", name)
		}
		if err != nil {
			return err
		}
		defer func() { _ = s.Free() }()
		return do(s)
	})
}

// snapshotXML asks for one disk and for none of the others.
func (d guest) snapshotXML(f found, c hypervisor.Snapshot) (string, error) {
	var dom lx.Domain
	if err := dom.Unmarshal(f.Observed.XML); err != nil || dom.Devices == nil {
		return "", backend.Errorf(hypervisor.Conflict, "its XML cannot be read: %w", err)
	}
	image := d.Node.Settings.Image(d.Name, c.Disk)
	if disk, _ := diskOf(f.VM, c.Disk); !disk.Local() {
		image = disk.Path
	}
	want := &lx.DomainSnapshotDisks{}
	for _, disk := range dom.Devices.Disks {
		if disk.Target == nil {
			continue
		}
		kind := "no"
		if disk.Source != nil && disk.Source.File != nil && disk.Source.File.File == image {
			kind = "internal"
		}
		want.Disks = append(want.Disks,
			lx.DomainSnapshotDisk{Name: disk.Target.Dev, Snapshot: kind})
	}
	xml, err := (&lx.DomainSnapshot{Name: c.Name, Disks: want}).Marshal()
	if err != nil {
		return "", backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	return xml, nil
}
