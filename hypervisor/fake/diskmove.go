package fake

import (
	"path"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// diskRate is how fast the image of a disk is copied on its host. It is a guess: a quarter of what one
// SATA solid state disk reads and writes.
const diskRate = hypervisor.Bandwidth(125_000_000)

// diskMoves reports whether a disk is on its way to another image.
func (d *domain) diskMoves() bool { return d.moving != nil && d.moving.Phase != hypervisor.DiskFailed }

func (d *domain) conflictOfMove() error {
	return refuse(hypervisor.Conflict, "disk %s is on its way to %s", d.moving.Disk, d.moving.To)
}

// moveDisk begins to copy a disk.
func (d *domain) moveDisk(c hypervisor.MoveDisk) error {
	disks := d.VM.Disks()
	i := slices.IndexFunc(disks, func(o hypervisor.Disk) bool { return o.Name == c.Disk })
	switch {
	case i < 0:
		return refuse(hypervisor.NotFound, "it has no disk %q", c.Disk)
	case !path.IsAbs(c.To):
		return refuse(hypervisor.Invalid, "%q is not an absolute path", c.To)
	case d.diskMoves() && d.moving.Disk == c.Disk && d.moving.To == c.To:
		return nil
	case d.diskMoves():
		return d.conflictOfMove()
	case disks[i].ReadOnly:
		return refuse(hypervisor.Invalid, "disk %s is read only", c.Disk)
	case d.taken(c.To):
		return refuse(hypervisor.Conflict, "%s is there already", c.To)
	case d.transfer != nil || d.State != hypervisor.Running && d.State != hypervisor.Paused:
		return d.conflict()
	}
	m := &hypervisor.DiskMove{Disk: c.Disk, From: disks[i].Path, To: c.To, Phase: hypervisor.DiskCopying,
		Total: disks[i].Size}
	d.setMove(m)
	d.host.network.world.In(m.Total.At(diskRate), func() {
		if d.moving == m {
			ready := *m
			ready.Phase, ready.Copied = hypervisor.DiskReady, m.Total
			d.setMove(&ready)
			d.host.network.hint(d, DomainChanged)
		}
	})
	return nil
}

// taken reports whether a disk of a VM is at a path on its host.
func (d *domain) taken(at string) bool {
	for _, o := range d.host.sorted {
		if slices.ContainsFunc(o.VM.Disks(), func(disk hypervisor.Disk) bool { return disk.Path == at }) {
			return true
		}
	}
	return false
}

func (d *domain) setMove(m *hypervisor.DiskMove) {
	d.moving = m
	d.host.listed.Mark(d.VM.ID)
}

// stopCopy takes in that the VM has stopped. A copy that is complete stays so.
func (d *domain) stopCopy() {
	if d.moving.Phase == hypervisor.DiskCopying {
		failed := *d.moving
		failed.Phase, failed.Error = hypervisor.DiskFailed, "the VM stopped before the copy was complete"
		d.setMove(&failed)
	}
}

// startsWith reports whether a VM may start from the images that it names.
func (d *domain) startsWith(vm hypervisor.VM) bool {
	m := d.moving
	switch {
	case m == nil:
		return true
	case m.Phase == hypervisor.DiskSwitched:
		return vm.AtPath(m.Disk, m.To).Equal(vm)
	}
	return m.Phase != hypervisor.DiskReady || !vm.HasDisk(m.Disk, m.To)
}

// keepDisk takes in that a VM starts from the image that it had.
func (d *domain) keepDisk() {
	if d.moving == nil || d.moving.Phase != hypervisor.DiskReady {
		return
	}
	failed := *d.moving
	failed.Phase, failed.Error = hypervisor.DiskFailed, "the VM was started from the image that it had"
	d.setMove(&failed)
}

// switchDisk lets the VM go on with the copy.
func (d *domain) switchDisk(disk string) error {
	m := d.moving
	switch {
	case m == nil || m.Disk != disk:
		return refuse(hypervisor.Conflict, "disk %q does not move", disk)
	case m.Phase == hypervisor.DiskSwitched:
		return nil
	case m.Phase != hypervisor.DiskReady:
		return refuse(hypervisor.Conflict, "the copy of disk %s is %s", disk, m.Phase)
	case !occupies(d.State):
		return refuse(hypervisor.Conflict, "the VM stopped before its disk %s went over to %s", disk, m.To)
	}
	done := *m
	done.Phase = hypervisor.DiskSwitched
	d.setMove(&done)
	d.VM = d.machine.as(d.VM.AtPath(m.Disk, m.To))
	return nil
}

// endDiskMove ends a move. The model has no files to remove.
func (d *domain) endDiskMove(c hypervisor.EndDiskMove) error {
	m := d.moving
	switch {
	case m == nil:
		return nil
	case m.Disk != c.Disk:
		return d.conflictOfMove()
	case m.Phase == hypervisor.DiskReady && c.On == m.To && !occupies(d.State):
		d.VM = d.machine.as(d.VM.AtPath(m.Disk, m.To)) // it may have run elsewhere since
	case m.Phase == hypervisor.DiskSwitched && c.On != m.To, m.Phase != hypervisor.DiskSwitched && c.On != m.From:
		return refuse(hypervisor.Conflict, "disk %s does not go on with %q: its move is %s", c.Disk, c.On, m.Phase)
	}
	d.setMove(nil)
	return nil
}
