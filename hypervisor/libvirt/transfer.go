//go:build linux && libvirt_dlopen

package libvirt

// This file moves VMs with libvirt's own migration, and adopts its outcome.
//
//	target   Receive → libvirt receives → the guest runs        Discard bars the door
//	source   Migrate → libvirt sends    → shut off (migrated)   Release undefines
//
// All of it is done under the domain's lock, and follows from the journal
// and from what libvirt shows, so that dying in between does no harm.

import (
	"context"
	"errors"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// abilities are what can be done with libvirt 6.0 or newer. A source cannot take a VM
// back that libvirt's migration has taken away, and libvirt does not wait before
// its switch-over.
const abilities = hypervisor.CanAutoConverge | hypervisor.CanPostCopy | hypervisor.CanRecover |
	hypervisor.CanUseChannels | hypervisor.CanCompress | hypervisor.CanXBZRLE |
	hypervisor.CanEncrypt | hypervisor.CanCopyStorage | hypervisor.CanMoveCold |
	hypervisor.CanMeasureDirtyRate | hypervisor.CanResize | hypervisor.CanSnapshot |
	hypervisor.CanAttachDisk | hypervisor.CanResizeLive

type connect = libvirt.Connect

// A move is a domain that takes part in a migration.
type move struct{ *domain }

// move performs a step of a migration. The caller holds the domain's lock.
func (d *domain) move(ctx context.Context, step nextStep, s observation) error {
	return move{d}.step(ctx, step, s)
}

func (d move) step(ctx context.Context, step nextStep, s observation) error {
	switch step {
	case stepSend:
		return d.send(ctx)
	case stepAbort:
		return d.abort(ctx)
	case stepSwitchToPostCopy:
		return d.goOver(ctx)
	case stepNoteStop:
		d.SetStood()
		return d.PutJob(true, func(j *jobRecord) { j.Stopped = true })
	case stepNoteAbort:
		return d.PutJob(true, func(j *jobRecord) { j.Aborted = true })
	case stepAsk:
		return d.inquire(ctx, s)
	case stepMove:
		return d.moved(ctx, s)
	case stepKeepAtSource:
		return d.keep(ctx, s)
	case stepMarkUnresolved:
		return d.strand(ctx, s)
	case stepNoteArrival:
		return d.noteArrival()
	case stepArrive:
		return d.arrive(ctx, s)
	case stepLapse:
		return d.lapse(ctx)
	case stepRecovered:
		return d.recovered(s)
	}
	return nil
}

// inquire asks the target's libvirtd about a source that has stood for long. If the VM runs
// there, what is here must never run again: libvirt would let it, when it gives up to
// wait for an answer that was lost.
func (d move) inquire(ctx context.Context, s observation) error {
	j := d.Job()
	t, err := parseAddress(j.Address)
	if err != nil {
		return err
	}
	peer, err := d.Node.Reach(ctx, t.Peer)
	if err != nil {
		return err
	}
	there, err := seeAt(ctx, peer, d.Name)
	if err != nil || there.UUID != s.UUID || there.Job != j.ID || !there.Run.Executes() {
		return err
	}
	err = d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Destroy() })
	if err != nil && !errors.Is(err, hypervisor.Conflict) {
		return err
	}
	return d.moved(ctx, s)
}

// moved: libvirt says that the target has the VM.
func (d move) moved(ctx context.Context, s observation) error {
	p := d.final(ctx, d.Job(), s)
	p.Status, p.Error = hypervisor.JobSucceeded, ""
	err := d.PutJob(true, func(j *jobRecord) { j.Stage, j.Last = stageMoved, p })
	if err != nil {
		return err
	}
	d.Forget()
	return d.rests()
}

// rests notes that the domain runs here no more, and nothing is open about it.
func (d move) rests() error {
	d.Node.Unreserve(d.ID)
	return d.Put(true, func(r *domainRecord) {
		r.Ran, r.Unresolved, r.Crashed = false, false, false
	})
}

// keep: the migration has ended, and the VM stays here. Why it has failed only the
// call tells, which is about to return.
func (d move) keep(ctx context.Context, s observation) error {
	if s.Call == calling && !d.Job().Cancelled {
		return nil
	}
	p := d.final(ctx, d.Job(), s)
	if j := d.Job(); s.Run == runPausedUser && j.GuestPaused &&
		!j.Resting { // it was paused when libvirt had given up already
		err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Resume() })
		if err != nil {
			return err
		}
	}
	err := d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last = stageKept, p
		j.Last.Status, j.Last.Error, j.Last.Downtime = hypervisor.JobFailed, d.Why(), 0
		if j.Cancelled {
			j.Last.Status = hypervisor.JobCancelled
		}
	})
	if err == nil {
		d.Forget()
		err = d.Put(true, func(r *domainRecord) { r.Unresolved = false })
	}
	return err
}

// strand: only the target knows how it ended. What libvirt let run again stands until
// the target was asked.
func (d move) strand(ctx context.Context, s observation) error {
	if s.Run.Executes() {
		err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Suspend() })
		if err != nil {
			return err
		}
	}
	p := d.final(ctx, d.Job(), s)
	err := d.Put(true, func(r *domainRecord) { r.Unresolved = true })
	if err != nil {
		return err
	}
	return d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last = stageStranded, p
		j.Last.Status, j.Last.Error = hypervisor.JobBroken, d.Why()
		if j.Last.Error == "" {
			j.Last.Error = "libvirt's answer was lost"
		}
	})
}

// abort has libvirt end the migration. That it is not at it, or not any more, the
// domain tells.
func (d move) abort(ctx context.Context) error {
	return d.Do(ctx, func(dom *libvirt.Domain) error { return dom.AbortJob() })
}
