package agent

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// moveDisk brings the disk that is to move next, or moves, one step further. The record leads: it says
// that a move has begun before it does, and where the disk is before the VM goes over to it. Until then
// both images hold the same, and an agent that starts the VM starts it from one that is whole. It returns the
// VM as it is stored then.
func (a *Agent) moveDisk(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	i := v.NextMove()
	runs := d.State == hypervisor.Running || d.State == hypervisor.Paused
	switch {
	case !runs && !rests(d.State):
		return v, nil // it is on its way: later
	case i < 0 && d.Moving != nil:
		return v, a.forgetMove(ctx, v, d.Moving)
	case i < 0:
		return v, nil
	}
	m := v.DiskChanges[i].Move
	switch {
	case m.Switched:
		return a.switchDisk(ctx, v, i, d, now)
	case m.Cancel:
		return a.cancelMove(ctx, v, i, d, now)
	case !runs && (!m.Begun || d.Moving == nil):
		return a.notMoved(ctx, v, i, "its VM has to run meanwhile, and is "+d.State.String(), now)
	case m.Begun:
		return a.followMove(ctx, v, i, d, now)
	case v.Operation != store.Nothing:
		a.queue.At(v.Key(), now.Add(a.config.Poll))
		return v, nil
	}
	return a.beginMove(ctx, v, i, now)
}

// forgetMove ends a move that the record does not ask for, as of a VM that was elsewhere in between. The
// image that the host knows the VM to have had before stays.
func (a *Agent) forgetMove(ctx context.Context, v *store.VM, m *hypervisor.DiskMove) error {
	on := m.From
	if v.VM.HasDisk(m.Disk, m.To) {
		on = m.To
	}
	err := a.hv.Do(ctx, v.VM.ID, hypervisor.EndDiskMove{Disk: m.Disk, On: on, Keep: true})
	if refuses(err, hypervisor.Conflict, hypervisor.Transient) {
		return nil // it is looked at again
	}
	return err
}

// beginMove has a disk copied, or tells why not.
func (a *Agent) beginMove(ctx context.Context, v *store.VM, i int, now time.Time) (*store.VM, error) {
	host, err := a.hv.Host(ctx)
	if err != nil {
		return nil, err
	}
	if !host.Abilities.Has(hypervisor.CanMoveDisk) {
		return a.notMoved(ctx, v, i, string(a.host)+" cannot move disks", now)
	}
	c := v.DiskChanges[i]
	if !c.Move.Begun {
		v, err = a.tell(ctx, v, func(next *store.VM) {
			next.ChangeMove(i, func(m *store.DiskMove) { m.Begun, m.Copied, m.Total = true, 0, 0 })
			next.DiskChanges[i].Why = ""
		})
		if err != nil {
			return nil, err
		}
		a.recorder.Note(now, a.host, v.VM.ID, asked("copies disk "+c.Disk()+" to "+c.Move.To, c.By))
	}
	err = a.hv.Do(ctx, v.VM.ID, hypervisor.MoveDisk{Disk: c.Move.Disk, To: c.Move.To})
	if refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict, hypervisor.NotFound, hypervisor.Transient) {
		return a.notMoved(ctx, v, i, errorText(err), now)
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	return v, err
}

// notMoved tells why a disk does not move; it is tried again.
func (a *Agent) notMoved(ctx context.Context, v *store.VM, i int, why string, now time.Time) (
	*store.VM, error) {
	a.queue.At(v.Key(), now.Add(a.config.Retry))
	m := v.DiskChanges[i].Move
	if m.Begun || m.Switched {
		var err error
		v, err = a.tell(ctx, v, func(next *store.VM) {
			if m.Switched {
				next.VM = next.VM.AtPath(m.Disk, m.From)
			}
			next.ChangeMove(i, func(m *store.DiskMove) { m.Begun, m.Switched, m.From, m.Boots = false, false, "", 0 })
		})
		if err != nil {
			return nil, err
		}
	}
	return a.notChanged(ctx, v, i, why, now)
}

// moves reports whether a host's move is the one that was asked for.
func moves(d hypervisor.Domain, m *store.DiskMove) bool {
	return d.Moving != nil && d.Moving.Disk == m.Disk && d.Moving.To == m.To
}

// followMove looks how far the copy is. When it is complete, the record says that the disk is there.
func (a *Agent) followMove(ctx context.Context, v *store.VM, i int, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	m := v.DiskChanges[i].Move
	if !moves(d, m) { // it was not asked, or the answer was lost
		return a.beginMove(ctx, v, i, now)
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	switch at := d.Moving; {
	case at.Phase == hypervisor.DiskFailed:
		return a.notMoved(ctx, v, i, at.Error, now)
	case at.Phase == hypervisor.DiskReady && rests(d.State):
		return a.notMoved(ctx, v, i, stoppedBefore, now)
	case at.Phase == hypervisor.DiskCopying:
		if at.Total <= 0 || m.Total == at.Total && at.Copied-m.Copied < at.Total/worthTelling {
			return v, nil
		}
		return a.tell(ctx, v, func(next *store.VM) {
			next.ChangeMove(i, func(m *store.DiskMove) { m.Copied, m.Total = at.Copied, at.Total })
		})
	}
	v, err := a.tell(ctx, v, func(next *store.VM) {
		next.ChangeMove(i, func(m *store.DiskMove) { m.Switched, m.From, m.Boots = true, d.Moving.From, next.Boots })
		next.VM = next.VM.AtPath(m.Disk, m.To)
	})
	if err != nil {
		return nil, err
	}
	return a.switchDisk(ctx, v, i, d, now)
}

// stoppedBefore tells why a disk with a complete copy does not move: the copy may have broken while this agent did
// not run, and nothing tells that after the VM has stopped.
const stoppedBefore = "its VM stopped before it went over to the copy"

// worthTelling is into how many steps the progress of a copy is divided: each is a writing.
const worthTelling = 20

// switchDisk lets a VM go over to the image that its record names, and ends the move when it has.
func (a *Agent) switchDisk(ctx context.Context, v *store.VM, i int, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	m := v.DiskChanges[i].Move
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	switch {
	case !moves(d, m) && d.State == hypervisor.Absent:
		return v, nil // it is started from there
	case !moves(d, m) && !d.VM.HasDisk(m.Disk, m.To):
		return a.notMoved(ctx, v, i, string(a.host)+" has the disk elsewhere, and knows of no move", now)
	case !moves(d, m):
		return a.movedDisk(ctx, v, i, "", now)
	}
	switch phase := d.Moving.Phase; {
	case phase == hypervisor.DiskFailed:
		return a.notMoved(ctx, v, i, d.Moving.Error, now)
	case phase == hypervisor.DiskReady && rests(d.State) && v.Boots == m.Boots:
		return a.notMoved(ctx, v, i, stoppedBefore, now)
	case phase == hypervisor.DiskReady && !rests(d.State):
		err := a.hv.Do(ctx, v.VM.ID, hypervisor.SwitchDisk{Disk: m.Disk})
		if refuses(err, hypervisor.Conflict, hypervisor.Transient) {
			return v, nil // it is looked at again
		}
		return v, err
	}
	err := a.hv.Do(ctx, v.VM.ID, hypervisor.EndDiskMove{Disk: m.Disk, On: m.To, Keep: m.Keep})
	switch {
	case refuses(err, hypervisor.Conflict, hypervisor.Transient):
		return v, nil // it is going over
	case err != nil:
		return nil, err
	case m.Keep:
		return a.movedDisk(ctx, v, i, ", and kept the old image", now)
	}
	return a.movedDisk(ctx, v, i, ", and removed the old image", now)
}

// movedDisk takes back the request for a move that has ended.
func (a *Agent) movedDisk(ctx context.Context, v *store.VM, i int, old string, now time.Time) (*store.VM, error) {
	c := v.DiskChanges[i]
	v, err := a.tell(ctx, v, func(next *store.VM) { next.Changed(i) })
	if err == nil {
		a.recorder.Note(now, a.host, v.VM.ID, asked("moved disk "+c.Disk()+" to "+c.Move.To+old, c.By))
	}
	return v, err
}

// cancelMove has a copy removed, and takes back the request when it is.
func (a *Agent) cancelMove(ctx context.Context, v *store.VM, i int, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	c := v.DiskChanges[i]
	if moves(d, c.Move) {
		a.queue.At(v.Key(), now.Add(a.config.Poll))
		err := a.hv.Do(ctx, v.VM.ID, hypervisor.EndDiskMove{Disk: c.Move.Disk, On: d.Moving.From})
		if refuses(err, hypervisor.Conflict, hypervisor.Transient) {
			err = nil // it is looked at again
		}
		return v, err
	}
	v, err := a.tell(ctx, v, func(next *store.VM) { next.Changed(i) })
	if err == nil {
		a.recorder.Note(now, a.host, v.VM.ID, asked("disk "+c.Disk()+" stays where it is: the move was cancelled", c.By))
	}
	return v, err
}
