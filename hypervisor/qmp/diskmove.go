//go:build linux

package qmp

// This file moves a disk of a VM that runs to another image of the same host.
//
//	MoveDisk → making → copying → ready → SwitchDisk → switching → switched → EndDiskMove
//
// Each phase is in the journal before what it allows is done. QEMU copies with every write going to both
// images before the guest is told that it is done. So from MoveReady on both hold what the guest knows to
// be written, until its QEMU, told so after MoveSwitching was noted, writes to the copy alone. Dying at any
// instruction leaves one image that is whole, and the phase says which.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// MoveDisk begins to copy a disk to a file that it makes.
func (d guest) MoveDisk(ctx context.Context, p found, c hypervisor.MoveDisk) error {
	i, err := indexOf(p.Rec.VM, c.Disk)
	if err != nil {
		return err
	}
	disk := p.Rec.VM.Hardware.Disks[i]
	if m := p.Rec.Move; m.Active() {
		return m.Asked(c)
	}
	if err := d.mayMove(ctx, p, disk, c.To); err != nil {
		return err
	}
	m := backend.DiskMove{Disk: c.Disk, From: disk.Path, To: c.To, Phase: backend.MoveMaking}
	if err := d.putMove(m); err != nil {
		return err
	}
	if err = d.makeCopy(ctx, p.VM, disk, &m); err == nil {
		m.Phase = backend.MoveCopying
		if err = d.putMove(m); err == nil {
			err = p.VM.CopyDisk(ctx, p.Rec.VM, i, c.To)
		}
	}
	if err == nil || qemu.Classify(err) == hypervisor.Unknown {
		return err // what has come of it is seen at the next look
	}
	return errors.Join(err, d.unmake(&m), d.Put(true, func(r *domainRecord) { r.Move = nil }))
}

// mayMove refuses to copy what cannot be copied, or not now.
func (d guest) mayMove(ctx context.Context, p found, disk hypervisor.Disk, to string) error {
	if err := d.Node.QEMU.Need(hypervisor.CanMoveDisk); err != nil {
		return err
	}
	if err := backend.MayMove(disk, to); err != nil {
		return err
	}
	switch {
	case p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live():
		return qemu.Refuse(hypervisor.Conflict, "job %s is under way", p.Job.ID)
	case p.State != hypervisor.Running && p.State != hypervisor.Paused:
		return p.Conflict()
	case p.Look.inPostCopy():
		return qemu.Refuse(hypervisor.Conflict, "it has come by post-copy, and some of its memory has not")
	}
	if err := d.Node.Check(p.Rec.VM.AtPath(disk.Name, to)); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return (&backend.DiskMove{To: to}).Taken()
	}
	_, names, err := p.VM.SnapshotsOf(ctx, disk.Name)
	if err != nil {
		return qemu.Observing(err)
	}
	if len(names) > 0 {
		return qemu.Refuse(hypervisor.Conflict, "its image keeps the snapshot %s, which would not be copied: "+
			"delete it first", names[0])
	}
	var has syscall.Stat_t
	image := d.Node.QEMU.DiskPath(d.ID, disk)
	if syscall.Stat(image, &has) != nil {
		return nil // it is not known: QEMU tells
	}
	return backend.RoomFor(image, hypervisor.Bytes(has.Blocks)*512, to)
}

// putMove notes how far a move is.
func (d *domain) putMove(m backend.DiskMove) error {
	return d.Put(true, func(r *domainRecord) { r.Move = &m })
}

// claim is the name under which the copy of a move is made.
func (d *domain) claim(m *backend.DiskMove) string { return m.Claim(d.Node.Name, d.ID) }

// makeCopy makes an empty image as large as a disk, and links it to its path, where nothing is
// overwritten. Dying in between leaves a file that unmake knows for ours.
func (d guest) makeCopy(ctx context.Context, vm *qemu.Instance, disk hypervisor.Disk, m *backend.DiskMove) error {
	made, err := d.claim(m), error(nil)
	if disk.Size, err = vm.DiskSize(ctx, disk.Name); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if old, err := os.Stat(d.Node.QEMU.DiskPath(d.ID, disk)); err == nil && old.Mode().IsRegular() {
		mode = old.Mode().Perm()
	}
	_ = os.Remove(made)
	f, err := os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return qemu.Refuse(hypervisor.Invalid, "disk %s: %w", disk.Name, err)
	}
	if err := f.Close(); err != nil {
		return qemu.Refuse(hypervisor.Transient, "disk %s: %w", disk.Name, err)
	}
	if err := d.Node.QEMU.CreateImage(ctx, disk, made); err != nil {
		return err
	}
	return m.Publish(made)
}

// unmake removes the file of a copy that is not to be, if it is ours.
func (d *domain) unmake(m *backend.DiskMove) error { return m.Unmake(d.claim(m)) }

// dropMove removes what a move has left of files, when its VM is forgotten. A copy that may be the
// VM's disk stays.
func (d *domain) dropMove() error {
	rec := d.Record()
	if rec == nil || rec.Move == nil {
		return nil
	}
	return rec.Move.Drop(d.claim(rec.Move))
}

// moveOn performs a step of the move of a disk. The caller holds the domain's lock.
func (d *domain) moveOn(ctx context.Context, vm *qemu.Instance, step nextStep, j qemu.Job) error {
	m := *d.Record().Move
	switch step {
	case stepNoteReady:
		if err := durable.Sync(m.To); err != nil {
			return d.failMove(m, err.Error())
		}
		m.Phase = backend.MoveReady
		return d.putMove(m)
	case stepSwitchDisk:
		return vm.SwitchDisk(ctx, m.Disk)
	case stepNoteSwitched:
		m.Phase = backend.MoveSwitched
		return d.putMove(m)
	case stepFailMove:
		why := j.Error
		switch {
		case why != "":
		case m.Phase == backend.MoveMaking || j.Status == qemu.JobNull:
			why = "the copying was cut off"
		default:
			why = "QEMU ended the copying"
		}
		return d.failMove(m, why)
	}
	return d.tidyMove(ctx, vm)
}

// failMove notes that the VM stays with the image that it had.
func (d *domain) failMove(m backend.DiskMove, why string) error {
	if m.Phase == backend.MoveMaking { // QEMU does not know of it
		if err := d.unmake(&m); err != nil {
			return err
		}
		m.Tidied = true
	}
	m.Phase, m.Error = backend.MoveFailed, why
	return d.Put(true, func(r *domainRecord) {
		r.VM, r.Move = r.VM.AtPath(m.Disk, m.From), &m
		r.dropMove()
	})
}

// dropMove forgets a move of which nothing is to be kept.
func (r *domainRecord) dropMove() {
	if r.Move != nil && r.Move.Tidied && r.Move.Over {
		r.Move = nil
	}
}

// tidyMove removes what is left of the copying; vm is nil when the QEMU has ended.
func (d *domain) tidyMove(ctx context.Context, vm *qemu.Instance) error {
	m := *d.Record().Move
	if vm != nil {
		if err := vm.TidyCopy(ctx, m.Disk); err != nil {
			return err
		}
	}
	if m.Phase == backend.MoveFailed {
		if err := d.unmake(&m); err != nil {
			return err
		}
	}
	m.Tidied = true
	return d.Put(true, func(r *domainRecord) { r.Move = &m; r.dropMove() })
}

// stopMove takes in that the VM's QEMU has ended. A copy that is complete stays so.
func (d *domain) stopMove() error {
	rec := d.Record()
	if rec == nil || rec.Move == nil {
		return nil
	}
	m, err := *rec.Move, error(nil)
	switch m.Phase {
	case backend.MoveMaking, backend.MoveCopying:
		err = d.failMove(m, "the VM stopped before the copy was complete")
	case backend.MoveSwitching:
		m.Phase = backend.MoveSwitched
		err = d.putMove(m)
	}
	if m := d.Record().Move; err == nil && m != nil && !m.Tidied && m.Phase != backend.MoveReady {
		err = d.tidyMove(d.Node.Life, nil)
	}
	return err
}

// chooseDisk takes in from which of two images a VM is to start that has stopped while a disk of it
// moved, and returns what is kept of the move then.
func (d guest) chooseDisk(vm hypervisor.VM) (*backend.DiskMove, error) {
	rec := d.Record()
	if rec == nil || rec.Move == nil {
		return nil, nil
	}
	m := *rec.Move
	i, err := indexOf(vm, m.Disk)
	if err != nil || vm.Hardware.Disks[i].Path != m.From && vm.Hardware.Disks[i].Path != m.To {
		return nil, d.dropMove() // it was changed elsewhere since, and neither is its disk any more
	}
	if err := m.MayStart(vm.Hardware.Disks[i].Path); err != nil || m.Phase != backend.MoveReady {
		return &m, err
	}
	if err := d.failMove(m, "the VM was started from the image that it had"); err != nil {
		return nil, err
	}
	return d.Record().Move, d.tidyMove(d.Node.Life, nil)
}

// SwitchDisk lets the VM go on with the copy. That it does is noted first.
func (d guest) SwitchDisk(ctx context.Context, p found, disk string) error {
	m := p.Rec.Move
	if err := m.MaySwitch(disk, p.VM == nil); err != nil || m.Switched() {
		return err
	}
	next := *m
	next.Phase = backend.MoveSwitching
	return d.Put(true, func(r *domainRecord) { r.VM, r.Move = r.VM.AtPath(m.Disk, m.To), &next })
}

// EndDiskMove ends a move, and removes the image that the VM does not have.
func (d guest) EndDiskMove(ctx context.Context, p found, c hypervisor.EndDiskMove) error {
	m := p.Rec.Move
	if m == nil {
		return nil
	}
	if err := m.MayEnd(c, p.VM == nil); err != nil {
		return err
	}
	switch {
	case !m.Switched() && c.On == m.To:
		next := *m
		next.Phase, next.Tidied = backend.MoveSwitched, true
		return errors.Join(m.GoesOver(),
			d.Put(true, func(r *domainRecord) { r.VM, r.Move = r.VM.AtPath(m.Disk, m.To), &next }))
	case !m.Switched():
		next := *m
		next.Over = true
		return d.failMove(next, "it was cancelled")
	case !m.Tidied:
		return m.GoesOver()
	}
	if i, err := indexOf(p.Rec.VM, c.Disk); err == nil && !c.Keep {
		disk := p.Rec.VM.Hardware.Disks[i]
		disk.Path = m.From
		old := d.Node.QEMU.DiskPath(d.ID, disk)
		if is, err := os.Lstat(old); err == nil && is.Mode().IsRegular() {
			if err := backend.RemoveFile(old); err != nil {
				return err
			}
		}
	}
	if err := backend.RemoveFile(d.claim(m)); err != nil {
		return err
	}
	return d.Put(true, func(r *domainRecord) { r.Move = nil })
}
