//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// adjust changes a job that this host sends. The caller holds the domain's lock.
func adjust(ctx context.Context, of *domain, id hypervisor.JobID,
	a hypervisor.Adjustment) error {
	d := move{of}
	f, err := d.Find(ctx)
	if err != nil {
		return err
	}
	j := d.Node.Job(id)
	status := j.Last.Status
	if f.Job != nil && f.Job.ID == id {
		j, status = f.Job, statusOf(f.Job, f.Observed.domainLook)
	}
	switch a := a.(type) {
	case hypervisor.Cancel:
		return d.cancel(ctx, f, status)
	case hypervisor.SwitchOver:
		return need(abilities, hypervisor.CanHoldSwitchOver)
	case hypervisor.StartPostCopy:
		return d.startPostCopy(ctx, f, j, status)
	case hypervisor.Recover:
		return d.recover(ctx, f, a.Address, status)
	case hypervisor.PauseGuest:
		return d.pauseGuest(ctx, f, status)
	case hypervisor.SetDowntime:
		if a.Limit <= 0 {
			return backend.Errorf(hypervisor.Invalid, "a downtime of %v", a.Limit)
		}
		return d.retune(ctx, f, status, func(dom *libvirt.Domain) error {
			return dom.MigrateSetMaxDowntime(downtime(a.Limit), 0)
		})
	case hypervisor.SetBandwidth:
		if a.Limit < 0 {
			return backend.Errorf(hypervisor.Invalid, "a bandwidth of %v", a.Limit)
		}
		return d.retune(ctx, f, status, func(dom *libvirt.Domain) error {
			err := dom.MigrateSetMaxSpeed(bandwidth(a.Limit), 0)
			if err == nil && j.Options.PostCopy { // which has a cap of its own
				err = dom.MigrateSetMaxSpeed(bandwidth(a.Limit),
					libvirt.MIGRATE_MAX_SPEED_POSTCOPY)
			}
			return err
		})
	case nil:
		return backend.Errorf(hypervisor.Invalid, "no adjustment")
	}
	return backend.Errorf(hypervisor.Unsupported, "%T", a)
}

// over refuses what comes too late.
func over(status hypervisor.JobStatus) error {
	if status.Final() || status == hypervisor.JobBroken {
		return backend.Errorf(hypervisor.Conflict, "the job is %v", status)
	}
	return nil
}

// cancel ends the job. It is noted first, and libvirt is told until it hears: it
// cannot be told before it has begun.
func (d move) cancel(ctx context.Context, f found, status hypervisor.JobStatus) error {
	switch {
	case status == hypervisor.JobFailed || status == hypervisor.JobCancelled:
		return nil
	case f.Observed.Run == runPausedPostCopy || f.Observed.Run == runPausedPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "the target runs, and lacks memory that is here")
	case status == hypervisor.JobSwitching:
		return backend.Errorf(hypervisor.Conflict, "the switch-over is under way")
	}
	if err := over(status); err != nil {
		return err
	}
	if !f.Job.Cancelled {
		if err := d.PutJob(true, func(j *jobRecord) { j.Cancelled = true }); err != nil {
			return err
		}
	}
	if !f.Observed.Sends {
		return nil
	}
	err := d.abort(ctx)
	if errors.Is(err, hypervisor.Conflict) { // it has just ended, or not begun
		return nil
	}
	if err != nil {
		return err
	}
	return d.heard(ctx)
}

// heard notes that libvirt gives the transfer up, which it shows only until it has told the
// target: some milliseconds. Missed, this host would not know of a guest that had stood that
// its target did not get it all.
func (d move) heard(ctx context.Context) error {
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		s, err := d.See(ctx)
		switch {
		case err != nil || !s.Sends:
			return nil // the cancel is noted: Step finds out what became of it
		case s.Aborted:
			return d.PutJob(true, func(j *jobRecord) { j.Aborted = true })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (d move) startPostCopy(ctx context.Context, f found, j *jobRecord,
	status hypervisor.JobStatus) error {
	if err := over(status); err != nil {
		return err
	}
	switch {
	case !j.Options.PostCopy:
		return backend.Errorf(hypervisor.Invalid, "the job was begun without PostCopy")
	case j.PostCopied || f.Observed.Run == runPausedPostCopy:
		return nil // whether or not libvirt has heard: Step tells it
	case status != hypervisor.JobActive:
		return backend.Errorf(hypervisor.Conflict, "the job is %v", status)
	}
	pauses := d.Node.QEMU >= resumesPostCopied && f.Observed.Run.Executes()
	err := d.PutJob(true, func(j *jobRecord) {
		j.PostCopied, j.GuestPaused = true, j.GuestPaused || pauses
	})
	if err != nil {
		return err
	}
	return d.goOver(ctx)
}

// resumesPostCopied is the first QEMU that lets the guest of a source run again when its migration
// fails after post-copy began, although the guest may run at the target by then. One that was
// paused before stays paused.
// Source: QEMU 9.0 migration/migration.c (migration_stop_vm, migration_iteration_finish);
// docs/known-hypervisor-faults.md.
const resumesPostCopied = 9000000

// goOver has libvirt go over to post-copy. It may be asked again while QEMU is about to. The guest
// of a QEMU that would let it run again later is paused first, as PauseGuest does.
func (d move) goOver(ctx context.Context) error {
	job := d.Node.Job(d.Record().Job)
	pauses := d.Node.QEMU >= resumesPostCopied && job != nil && job.GuestPaused
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		if pauses {
			if err := dom.Suspend(); err != nil {
				return err
			}
		}
		return dom.MigrateStartPostCopy(0)
	})
}

// recover has libvirt connect a broken post-copy anew. The job is broken until libvirt has.
func (d move) recover(ctx context.Context, f found, to hypervisor.Address,
	status hypervisor.JobStatus) error {
	if err := d.need(hypervisor.CanRecover); err != nil {
		return err
	}
	t, err := parseAddress(to)
	switch {
	case status != hypervisor.JobBroken || f.Observed.Run != runPausedPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "the job is %v", status)
	case err != nil:
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	case t.Job != f.Job.ID:
		return backend.Errorf(hypervisor.Invalid, "the address is for job %s", t.Job)
	case f.Job.Sends() && f.Observed.Call == calling:
		return nil // libvirt is at it
	}
	flags := flagsOf(f.Job, t) | libvirt.MIGRATE_POSTCOPY_RESUME
	if f.Observed.Defined {
		flags |= libvirt.MIGRATE_PERSIST_DEST
	}
	if d.Node.TLS && f.Job.Options.Encryption != hypervisor.EncryptOff {
		flags |= libvirt.MIGRATE_TLS
	}
	err = d.PutJob(true, func(j *jobRecord) { j.Stage, j.Last.Status = stageSending, hypervisor.JobBroken })
	if err != nil {
		return err
	}
	job := f.Job.ID
	return d.Begin(ctx, func(_ *connect, dom *libvirt.Domain) error {
		resume := func() error { return dom.MigrateToURI3(t.Peer, &libvirt.DomainMigrateParameters{}, flags) }
		return reconnect(resume, func() bool { return d.recovers(job, dom) })
	})
}

// notices is how long QEMU, and the other side's libvirtd, may take to notice that a
// connection is lost. Until both have, libvirt refuses to recover, and no harm is done.
const notices = 20 * time.Second

// reconnect asks libvirt to recover a post-copy until it does, and no longer than the post-copy can be recovered.
func reconnect(resume func() error, still func() bool) error {
	for end := time.Now().Add(notices); ; time.Sleep(50 * time.Millisecond) {
		err := resume()
		if err == nil || time.Now().After(end) || !still() {
			return err
		}
	}
}

// recovers reports whether a job is a post-copy that can be recovered still. One that has ended, or whose memory was
// given up, must not be asked for again: libvirt would connect the next post-copy of the same VM, to the target of this one.
func (d move) recovers(job hypervisor.JobID, dom *libvirt.Domain) bool {
	if j := d.Job(); j == nil || j.ID != job || !j.Sends() {
		return false
	}
	state, reason, err := dom.GetState()
	run := runOf(state, reason)
	return err == nil && (run == runPausedPostCopyFailed || run == runPausedPostCopy)
}

func (d move) pauseGuest(ctx context.Context, f found, status hypervisor.JobStatus) error {
	if err := over(status); err != nil {
		return err
	}
	if f.Observed.Run == runPausedMigration || f.Job.GuestPaused && !f.Observed.Run.Executes() {
		return nil
	}
	if !f.Observed.Sends {
		return backend.Errorf(hypervisor.Transient, "libvirt has not begun yet")
	}
	if !f.Job.GuestPaused {
		if err := d.PutJob(true, func(j *jobRecord) { j.GuestPaused = true }); err != nil {
			return err
		}
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Suspend() })
}

// retune gives libvirt another limit. libvirt takes one as soon as it has begun, and then gives QEMU those that the
// job began with, some time later: when it has prepared the target. From then on it tells how much there is to send.
func (d move) retune(ctx context.Context, f found, status hypervisor.JobStatus,
	set func(*libvirt.Domain) error) error {
	if err := over(status); err != nil {
		return err
	}
	if !f.Observed.Moving && f.Observed.Stats.DiskTotal == 0 {
		return backend.Errorf(hypervisor.Transient, "libvirt has not begun to send yet")
	}
	return d.Do(ctx, set)
}
