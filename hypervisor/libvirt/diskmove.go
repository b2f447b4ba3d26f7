//go:build linux && libvirt_dlopen

package libvirt

// This file moves a disk of a VM that runs to another image of the same host.
//
//	MoveDisk → making → copying → ready → SwitchDisk → switching → switched → EndDiskMove
//
// Each phase is in the journal before what it allows is done. libvirt's block job writes everything to both
// images before the guest is told that it is done. The definition has the new path before the guest goes
// over to it, while both images hold the same. So it never names an older image.

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/durable"
)

// copySynchronous is the libvirt from which on a copy can be written to synchronously.
// Source: libvirt include/libvirt/libvirt-domain.h (VIR_DOMAIN_BLOCK_COPY_SYNCHRONOUS_WRITES, since 8.0.0).
const copySynchronous = 8_000_000

// Moving returns the move of a disk of the domain; nil is none.
func (f found) Moving() *backend.DiskMove {
	if f.Rec == nil {
		return nil
	}
	return f.Rec.Move
}

// MoveDisk begins to copy a disk to a file that it makes.
func (d guest) MoveDisk(ctx context.Context, f found, c hypervisor.MoveDisk) error {
	disk, has := diskOf(f.VM, c.Disk)
	if !has {
		return backend.Errorf(hypervisor.NotFound, "it has no disk %q", c.Disk)
	}
	if m := f.Moving(); m.Active() {
		return m.Asked(c)
	}
	m := backend.DiskMove{Disk: c.Disk, From: disk.Path, To: c.To, Phase: backend.MoveMaking}
	image, err := d.mayMove(ctx, f, disk, &m)
	if err != nil {
		return err
	}
	err = d.Put(true, func(r *domainRecord) { r.VM, r.Move, r.Ran = f.VM, &m, true })
	if err != nil {
		return err
	}
	disk.Size = image.size
	if err := d.makeCopy(ctx, disk, &m); err != nil {
		return errors.Join(err, d.unmake(&m), d.Put(true, func(r *domainRecord) { r.Move = nil }))
	}
	next := m
	next.Phase = backend.MoveCopying
	if err := d.putMove(next); err != nil {
		return err
	}
	err = d.copyDisk(ctx, image.dev, disk, c.To)
	if err == nil || backend.KindOf(err) == hypervisor.Unknown {
		return err // what has come of it is seen at the next look
	}
	next.Over = true
	return errors.Join(err, d.failMove(next, backend.ErrorText(err)))
}

// mayMove refuses to copy what cannot be copied, or not now.
func (d guest) mayMove(ctx context.Context, f found, disk hypervisor.Disk, m *backend.DiskMove) (imageSize, error) {
	none := imageSize{}
	if err := need(d.Node.able(), hypervisor.CanMoveDisk); err != nil {
		return none, err
	}
	if err := backend.MayMove(disk, m.To); err != nil {
		return none, err
	}
	switch {
	case f.Observed.Sends, f.Job != nil && f.Job.Stage.Live(),
		f.State != hypervisor.Running && f.State != hypervisor.Paused:
		return none, f.Conflict()
	case f.Observed.Run == runsPostCopy || f.Observed.Run == runsPostCopyFailed:
		return none, backend.Errorf(hypervisor.Conflict,
			"it has come by post-copy, and some of its memory has not")
	}
	if err := d.Node.Check(f.VM.AtPath(disk.Name, m.To)); err != nil {
		return none, err
	}
	if _, err := os.Stat(filepath.Dir(m.To)); err != nil {
		return none, backend.Errorf(hypervisor.Invalid, "disk %s: %w", disk.Name, err)
	}
	if _, err := os.Lstat(m.To); err == nil {
		return none, m.Taken()
	}
	return d.copyable(ctx, f, disk.Name, m.To)
}

// copyable refuses a disk with snapshots, which would not be copied, and a file whose file system has less
// room than its image takes now.
func (d guest) copyable(ctx context.Context, f found, disk, to string) (imageSize, error) {
	dev, err := domxml.Target(f.Observed.XML, disk)
	if err != nil {
		return imageSize{}, backend.Errorf(backend.KindOf(err), "%w", err)
	}
	info, err := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (*libvirt.DomainBlockInfo, error) {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = dom.Free() }()
		if n, err := dom.SnapshotNum(0); err != nil || n > 0 {
			return nil, cmp.Or(err, backend.Errorf(hypervisor.Conflict, "it has %d snapshots, which would not be "+
				"copied: delete them first", n))
		}
		return dom.GetBlockInfo(dev, 0)
	})
	if err != nil {
		return imageSize{}, err
	}
	return imageSize{dev, hypervisor.Bytes(info.Capacity)},
		backend.RoomFor("disk "+disk, hypervisor.Bytes(info.Allocation), to)
}

// putMove notes how far a move is.
func (d *domain) putMove(m backend.DiskMove) error {
	return d.Put(true, func(r *domainRecord) { r.Move = &m })
}

// makeCopy has libvirt make an empty image as large as a disk, and links it to its path here, where nothing
// is overwritten. That works only where libvirtd and this process have the same directory. Dying in between
// leaves a file that unmake knows for ours.
func (d guest) makeCopy(ctx context.Context, disk hypervisor.Disk, m *backend.DiskMove) error {
	claim := d.claim(m)
	text, err := (&lx.StorageVolume{Name: path.Base(claim),
		Capacity:   &lx.StorageVolumeSize{Unit: "bytes", Value: uint64(disk.Size)},
		Allocation: &lx.StorageVolumeSize{Value: 0},
		Target: &lx.StorageVolumeTarget{Format: &lx.StorageVolumeTargetFormat{
			Type: cmp.Or(disk.Format, "raw")}}}).Marshal()
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	err = d.atImage(ctx, claim, func(p *libvirt.StoragePool, old *libvirt.StorageVol) error {
		if old != nil {
			if err := old.Delete(0); err != nil {
				return err
			}
		}
		vol, err := p.StorageVolCreateXML(text, 0)
		if err != nil {
			return err
		}
		return vol.Free()
	})
	if err != nil {
		return err
	}
	if err = m.Publish(claim); err != nil {
		return errors.Join(err, d.dropImage(ctx, claim))
	}
	return nil
}

// atImage does something with the pool of an image's directory, and with the image; nil is none.
func (d guest) atImage(ctx context.Context, image string,
	do func(*libvirt.StoragePool, *libvirt.StorageVol) error) error {
	err := d.Node.Conn.Act(ctx, func(c *conn.Connect) error {
		pool, done, err := poolOf(c, path.Dir(image))
		if err != nil {
			return err
		}
		defer done()
		if err := pool.Refresh(0); err != nil {
			return err
		}
		vol, err := pool.LookupStorageVolByName(path.Base(image))
		if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
			return do(pool, nil)
		}
		if err != nil {
			return err
		}
		defer func() { _ = vol.Free() }()
		return do(pool, vol)
	})
	if errors.Is(err, hypervisor.NotFound) { // another client has ended the pool
		return backend.Errorf(hypervisor.Transient, "%s: %w", image, err)
	}
	return err
}

// dropImage removes a file, unless it is none.
func (d guest) dropImage(ctx context.Context, image string) error {
	is, err := os.Lstat(image)
	if strings.HasPrefix(image, "/dev/") || err == nil && !is.Mode().IsRegular() {
		return nil
	}
	return d.atImage(ctx, image, func(_ *libvirt.StoragePool, v *libvirt.StorageVol) error {
		if v == nil {
			return nil
		}
		info, err := v.GetInfo()
		if err != nil || info.Type != libvirt.STORAGE_VOL_FILE {
			return err
		}
		return v.Delete(0)
	})
}

// copyDisk has libvirt begin to copy a disk to an image that is there, as large, and empty.
func (d guest) copyDisk(ctx context.Context, dev string, disk hypervisor.Disk, to string) error {
	text, err := (&lx.DomainDisk{Device: "disk",
		Driver: &lx.DomainDiskDriver{Name: "qemu", Type: cmp.Or(disk.Format, "raw")},
		Source: &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: to}}}).Marshal()
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.BlockCopy(dev, text, &libvirt.DomainBlockCopyParameters{}, libvirt.DOMAIN_BLOCK_COPY_REUSE_EXT|
			libvirt.DOMAIN_BLOCK_COPY_SYNCHRONOUS_WRITES|libvirt.DOMAIN_BLOCK_COPY_TRANSIENT_JOB)
	})
}

// endCopy has libvirt end the copying of a disk; it goes on to do so after its answer.
func (d *domain) endCopy(ctx context.Context, xml, disk string, flags libvirt.DomainBlockJobAbortFlags) error {
	dev, err := domxml.Target(xml, disk)
	if err != nil {
		return backend.Errorf(backend.KindOf(err), "%w", err)
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.BlockJobAbort(dev, flags|libvirt.DOMAIN_BLOCK_JOB_ABORT_ASYNC)
	})
}

// copySeen is what libvirt shows of the copy of a disk that moves.
func (d *domain) copySeen(m *backend.DiskMove, xml string) diskCopy {
	c, err := domxml.CopyOf(xml, m.Disk)
	switch {
	case err != nil:
		return copyGone
	case c.To == m.To && c.State == "":
		return copyRuns
	case c.To == m.To && c.State == "yes":
		return copyReady
	case c.To == m.To:
		return copyEnds
	case c.Image == m.To:
		return copyTaken
	}
	return copyNone
}

// copied returns how much of a disk is copied; zero where libvirt does not tell.
func (d *domain) copied(ctx context.Context, f found) (done, total hypervisor.Bytes) {
	m := f.Moving()
	if m == nil || m.Phase != backend.MoveCopying && m.Phase != backend.MoveReady || !f.Observed.Run.Alive() {
		return 0, 0
	}
	dev, err := domxml.Target(f.Observed.XML, m.Disk)
	if err != nil {
		return 0, 0
	}
	info, err := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (*libvirt.DomainBlockJobInfo, error) {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = dom.Free() }()
		return dom.GetBlockJobInfo(dev, 0)
	})
	if err != nil || info == nil {
		return 0, 0
	}
	return hypervisor.Bytes(info.Cur), hypervisor.Bytes(info.End)
}

// claim is the name under which the copy of a move is made.
func (d *domain) claim(m *backend.DiskMove) string { return m.Claim(d.Node.Name, d.ID) }

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

// moveDisk performs a step of the move of a disk. The caller holds the domain's lock.
func (d *domain) moveDisk(ctx context.Context, step nextStep, f found) error {
	m := *f.Moving()
	switch step {
	case stepNoteReady:
		// QEMU has flushed it before it said that the copy is complete: one that only QEMU may read is flushed.
		// Source: QEMU 7.2 block/mirror.c (mirror_run).
		if err := durable.Sync(m.To); err != nil && !errors.Is(err, fs.ErrPermission) {
			return d.failMove(m, err.Error())
		}
		m.Phase = backend.MoveReady
		return d.putMove(m)
	case stepSwitchDisk:
		if err := d.define(ctx, f, &m); err != nil {
			return err
		}
		return d.endCopy(ctx, f.Observed.XML, m.Disk, libvirt.DOMAIN_BLOCK_JOB_ABORT_PIVOT)
	case stepNoteSwitched:
		return d.switched(m)
	case stepFailMove:
		why := "libvirt ended the copying"
		switch {
		case f.Observed.Run.Rests():
			why = "the VM stopped before the copy was complete"
		case m.Phase == backend.MoveMaking:
			why = "the copying was cut off"
		}
		return d.failMove(m, why)
	}
	return d.tidyMove(ctx, f)
}

// switched notes that the VM has the new image.
func (d *domain) switched(m backend.DiskMove) error {
	m.Phase, m.Error, m.Over = backend.MoveSwitched, "", false
	return d.Put(true, func(r *domainRecord) { r.VM, r.Move = r.VM.AtPath(m.Disk, m.To), &m })
}

// failMove notes that the VM stays with the image that it had.
func (d *domain) failMove(m backend.DiskMove, why string) error {
	m.Phase, m.Error = backend.MoveFailed, why
	return d.Put(true, func(r *domainRecord) { r.VM, r.Move = r.VM.AtPath(m.Disk, m.From), &m })
}

// define gives the definition the image that holds a disk.
func (d *domain) define(ctx context.Context, f found, m *backend.DiskMove) error {
	disk, has := diskOf(f.VM, m.Disk)
	if !has || !f.Observed.Defined {
		return nil
	}
	disk.Path = m.Image()
	return d.Node.Conn.Act(ctx, func(c *conn.Connect) error {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		old, err := dom.GetXMLDesc(libvirt.DOMAIN_XML_INACTIVE | libvirt.DOMAIN_XML_SECURE)
		if err != nil {
			return err
		}
		xml, err := domxml.AtPath(old, disk, d.Node.Settings)
		if errors.Is(err, hypervisor.NotFound) || err == nil && xml == old {
			return nil
		}
		if err != nil {
			return backend.Errorf(backend.KindOf(err), "%w", err)
		}
		next, err := c.DomainDefineXML(xml)
		if err != nil {
			return err
		}
		return next.Free()
	})
}

// tidyMove ends the copying, if libvirt still copies, and then removes what is left of it.
func (d *domain) tidyMove(ctx context.Context, f found) error {
	m := *f.Moving()
	if f.Observed.Run.Alive() {
		switch f.Observed.Copy {
		case copyRuns, copyReady:
			return d.endCopy(ctx, f.Observed.XML, m.Disk, 0)
		case copyEnds:
			return nil
		}
	}
	if err := d.define(ctx, f, &m); err != nil {
		return err
	}
	if m.Phase == backend.MoveFailed {
		if err := d.unmake(&m); err != nil {
			return err
		}
	}
	if f.Observed.Run != runGone {
		if err := (guest{d}).describe(ctx, f, f.VM); err != nil {
			return err
		}
	}
	m.Tidied = true
	return d.Put(true, func(r *domainRecord) {
		if r.Move = &m; m.Over && m.Phase == backend.MoveFailed {
			r.Move = nil
		}
	})
}

// chooseDisk takes in from which of two images a VM is to start that has stopped while a disk of it
// moved.
func (d guest) chooseDisk(ctx context.Context, f found, vm hypervisor.VM) (found, error) {
	for range 3 { // what has stopped with it, and was not noted
		m := f.Moving()
		if m == nil {
			return f, nil
		}
		step := dueDiskMove(m, f.Observed.domainLook)
		if step == stepNone {
			break
		}
		if err := d.moveDisk(ctx, step, f); err != nil {
			return f, err
		}
		var err error
		if f, err = d.Find(ctx); err != nil {
			return f, err
		}
	}
	m := *f.Moving()
	disk, has := diskOf(vm, m.Disk)
	err := m.MayStart(disk.Path)
	switch {
	case err != nil:
	case !has || disk.Path != m.From && disk.Path != m.To: // it was changed elsewhere since
		err = errors.Join(d.dropMove(), d.Put(true, func(r *domainRecord) { r.Move = nil }))
	case m.Phase != backend.MoveReady:
		return f, nil
	default:
		err = d.failMove(m, "the VM was started from the image that it had")
	}
	if err != nil {
		return f, err
	}
	if f, err = d.Find(ctx); err != nil || f.Moving() == nil {
		return f, err
	}
	if err := d.tidyMove(ctx, f); err != nil {
		return f, err
	}
	return d.Find(ctx)
}

// SwitchDisk lets the VM go on with the copy. That it does is noted first.
func (d guest) SwitchDisk(_ context.Context, f found, disk string) error {
	m := f.Moving()
	if err := m.MaySwitch(disk, !f.Observed.Run.Alive()); err != nil || m.Switched() {
		return err
	}
	next := *m
	next.Phase = backend.MoveSwitching
	return d.Put(true, func(r *domainRecord) { r.VM, r.Move = r.VM.AtPath(m.Disk, m.To), &next })
}

// EndDiskMove ends a move, and removes the image that the VM does not have.
func (d guest) EndDiskMove(ctx context.Context, f found, c hypervisor.EndDiskMove) error {
	m := f.Moving()
	if m == nil {
		return nil
	}
	if err := m.MayEnd(c, !f.Observed.Run.Alive()); err != nil {
		return err
	}
	switch {
	case !m.Switched() && c.On == m.To:
		return errors.Join(m.GoesOver(), d.switched(*m))
	case !m.Switched() && m.Tidied:
		return d.Put(true, func(r *domainRecord) { r.Move = nil })
	case !m.Switched():
		next := *m
		next.Over = true
		return d.failMove(next, "it was cancelled")
	case !m.Tidied:
		return m.GoesOver()
	}
	if disk, has := diskOf(f.VM, c.Disk); has && !c.Keep {
		disk.Path = m.From
		if err := d.dropImage(ctx, d.Node.Settings.ImageOf(d.Name, disk)); err != nil {
			return err
		}
	}
	if err := backend.RemoveFile(d.claim(m)); err != nil {
		return err
	}
	return d.Put(true, func(r *domainRecord) { r.Move = nil })
}
