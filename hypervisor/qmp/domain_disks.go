//go:build linux

package qmp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// NoDisks refuses an incoming VM one of whose local disks is here already: it would
// be overwritten, and removed if the VM does not come. It is asked before anything
// is noted of the VM.
func (d *domain) NoDisks(vm hypervisor.VM) error {
	if vm.Hardware == nil {
		return nil
	}
	var bad []error
	for _, disk := range vm.Hardware.Disks {
		path := d.Node.QEMU.DiskPath(vm.ID, disk)
		if _, err := os.Stat(path); err == nil && disk.Local() {
			bad = append(bad, qemu.Refuse(hypervisor.Conflict,
				"disk %s: %s is here already: move it away", disk.Name, path))
		}
	}
	return errors.Join(bad...)
}

// MakeDisks makes the images of local disks that are not there yet, and refuses a
// VM whose shared disks are not there. For an incoming VM, ask NoDisks first.
func (d *domain) MakeDisks(ctx context.Context, vm hypervisor.VM) error {
	if vm.Hardware == nil {
		return nil
	}
	var bad []error
	for _, disk := range vm.Hardware.Disks {
		path := d.Node.QEMU.DiskPath(vm.ID, disk)
		_, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && disk.Local():
			err = d.Node.makeDisk(ctx, path, disk)
		case errors.Is(err, fs.ErrNotExist):
			err = qemu.Refuse(hypervisor.Invalid,
				"disk %s: %s does not exist: make it, or correct "+
					"Hardware.Disks", disk.Name, path)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// unfinished ends the name of an image that is being made. No disk has such a name.
const unfinished = ".new"

// makeDisk makes an empty image that only we can read. Dying in between leaves none.
func (n *node) makeDisk(ctx context.Context, path string, d hypervisor.Disk) error {
	made := path + unfinished
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(made, nil, 0o600)
	}
	if err != nil {
		return qemu.Refuse(hypervisor.Transient, "disk %s: %v", d.Name, err)
	}
	if err = n.QEMU.CreateImage(ctx, d, made); err == nil {
		if err = os.Rename(made, path); err == nil {
			return nil
		}
		err = qemu.Refuse(hypervisor.Transient, "disk %s: %v", d.Name, err)
	}
	_ = os.Remove(made) // what went wrong before is to be told
	return err
}

// CutBack gives the images that a resize has made larger, and that did not come to its end, the
// sizes that they had: nothing is there yet. Their user asks for that before. QEMU cannot
// make every image smaller: the VM is not lost for that.
func (d *domain) CutBack(ctx context.Context) error {
	rec := d.Record()
	if rec == nil || len(rec.Growing) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var bad []error
	for _, disk := range rec.Growing {
		path := d.Node.QEMU.DiskPath(d.ID, disk)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, d.Node.QEMU.CutImage(ctx, disk, path))
		}
	}
	if err := errors.Join(bad...); err != nil {
		return err
	}
	return d.Put(true, func(r *domainRecord) { r.Growing = nil })
}

// DropDisks removes the images of the local disks of a VM that has moved away, or
// did not come. Other files stay.
func (d *domain) DropDisks(vm hypervisor.VM) error {
	var bad []error
	for _, disk := range vm.LocalDisks() {
		err := os.Remove(d.Node.QEMU.DiskPath(d.ID, disk))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, qemu.Refuse(hypervisor.Transient, "remove a local disk: %v", err))
		}
	}
	_ = os.Remove(d.Node.Journal.Disks(d.ID)) // unless something else is there
	return errors.Join(bad...)
}
