//go:build linux

package qmp

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// How long settle may wait for a change that it would be told of anyway, for one
// that QEMU does not tell and makes in its own time, or at once, and after an error.
const (
	resync = 30 * time.Second
	later  = 50 * time.Millisecond
	soon   = 2 * time.Millisecond
	again  = time.Second
)

// settle performs all next steps of a domain, and returns when to look again
// unless something happens before.
func (d *domain) settle(ctx context.Context) time.Duration {
	_, release, err := d.Node.Lock(ctx, d.ID)
	if err != nil {
		return again
	}
	defer release()
	return d.Settle(ctx)
}

// Settle is settle for a caller that holds the domain's lock.
func (d *domain) Settle(ctx context.Context) time.Duration {
	for {
		rec := d.Record()
		if rec == nil || d.Process() == nil { // it was ended and reaped elsewhere
			return resync
		}
		l, m, err := d.glance(ctx)
		if err != nil {
			return d.silence(ctx)
		}
		rec, job, _ := d.Present()
		step := due(rec, job, l, time.Now())
		if step == stepNone || step == stepAnnounce && d.Announcing != nil {
			return d.wait(ctx, l)
		}
		if err := d.do(ctx, step, l, m); err != nil {
			return again
		}
		switch step {
		case stepReap:
			return resync
		case stepFinishMirrors, stepReset, stepSwitchDisk:
			return soon // it takes effect a little later
		case stepSwitchToPostCopy:
			return later
		case stepEndWait: // once is enough
			return again
		}
	}
}

// silence performs the next step of a QEMU that does not answer.
func (d *domain) silence(ctx context.Context) time.Duration {
	rec, job, vm := d.Present()
	if vm != nil && dueUnanswered(rec, job, time.Now()) == stepQuit {
		_ = d.do(ctx, stepQuit, look{}, qemu.Migration{}) // it is tried again
		return again
	}
	d.unblock(ctx)
	return again
}

// unblock ends the transfer of a source that has not answered for long: to its QEMU the link
// is lost. QEMU sends the last of a guest while it does nothing else, and the guest stands; a
// link that takes nothing any more would keep it until its kernel gives up, which may take a
// quarter of an hour. A downtime that was allowed is waited for, and a QEMU that is only slow
// has all its time to answer.
// Source: QEMU 7.2 migration/migration.c (migration_completion holds the lock of all else);
// Linux Documentation/networking/ip-sysctl.rst (tcp_retries2).
func (d *domain) unblock(ctx context.Context) {
	_, job, vm := d.Present()
	d.mu.Lock()
	silent := d.silent
	d.mu.Unlock()
	if vm == nil || job == nil || job.Role != backend.Source || job.Stage != stageSending ||
		job.PostCopied || silent.IsZero() || time.Since(silent) < job.Options.Downtime {
		return
	}
	patient, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	if _, err := vm.Status(patient); err != nil && ctx.Err() == nil {
		_ = vm.Yank(ctx) // it is asked again, after as long
	}
	d.mu.Lock()
	d.silent = time.Now()
	d.mu.Unlock()
}

// wait returns how long until there may be a next step that no event announces.
func (d *domain) wait(ctx context.Context, l look) time.Duration {
	rec, job, vm := d.Present()
	now := time.Now()
	wait := resync
	if vm != nil {
		_ = qemu.CutConsoleLog(d.Node.QEMU.Settings(d.ID).ConsoleLog()) // it is tried again
	}
	if !rec.By.IsZero() {
		wait = min(wait, rec.By.Sub(now))
	}
	if rec.Doing != hypervisor.Absent && !rec.Asked.IsZero() {
		wait = min(wait, max(later, rec.Asked.Add(backend.PressAgain).Sub(now)))
	}
	if !rec.Measuring.IsZero() && vm != nil {
		if now.Before(rec.Measuring) {
			wait = min(wait, rec.Measuring.Sub(now))
		} else {
			wait = min(wait, d.measured(ctx, vm))
		}
	}
	switch {
	case job == nil || !l.Alive:
	case job.Stage == stageMirroring:
		wait = min(wait, later)
	case job.Stage == stageSending && l.Migration == qemu.Failed:
		wait = min(wait, soon) // QEMU is about to say what its guest does now
	case job.Stage == stageSending && l.Migration == qemu.PreSwitchover &&
		!job.Options.HoldSwitchOver:
		wait = min(wait, soon)
	case job.Stage == stageListening && job.Stopped && !job.Hold:
		wait = min(wait, soon) // post-copy: the guest is let run without an event
	}
	return max(wait, soon)
}

// do performs one step. The caller holds the domain's lock.
func (d *domain) do(ctx context.Context, step nextStep, l look, m qemu.Migration) error {
	_, _, vm := d.Present()
	switch step {
	case stepReap:
		return d.Reap()
	case stepQuit:
		if err := d.Put(false, func(r *domainRecord) { r.Ending = true }); err != nil {
			return err
		}
		return vm.Kill(ctx) // one that its kernel does not let end yet is tried again
	case stepReset:
		return d.reset(ctx, vm, l)
	case stepPress:
		return d.press(ctx, vm)
	case stepNotePlugged:
		return d.hotplugged(ctx, vm)
	case stepNoteReady, stepSwitchDisk, stepNoteSwitched, stepFailMove, stepTidyMove:
		return d.moveOn(ctx, vm, step, l.Copy)
	case stepRun:
		return d.Run(ctx, vm)
	case stepNone:
		return nil
	}
	return d.move(ctx, step, m)
}

// press presses the guest's power button once more.
func (d *domain) press(ctx context.Context, vm *qemu.Instance) error {
	now := time.Now()
	if err := d.Put(false, func(r *domainRecord) { r.Asked = now }); err != nil {
		return err
	}
	return vm.SystemPowerdown(ctx)
}

// reset resets the machine, which was seen so, so that its guest boots anew.
func (d *domain) reset(ctx context.Context, vm *qemu.Instance, l look) error {
	if err := vm.SystemReset(ctx); err != nil || l.Run != qemu.Running {
		return err // one that had shut down stands then, and stepRun is next
	}
	return d.settled()
}

// Reap notes what is left of a domain whose process has ended. A guest that ran
// and was not meant to end has crashed, and stays to be seen: to a cluster, a VM
// that its host does not know has never run there.
func (d *domain) Reap() error {
	rec, job, vm := d.Present()
	words := qemu.LastWords(d.Node.QEMU.Settings(d.ID))
	told := d.Announcing != nil || job != nil && job.Acknowledged
	if vm != nil {
		vm.LetGo()
	}
	target := job != nil && job.Role == backend.Target
	incoming := incoming(rec, job)
	ran := rec.Ran || target && job.Stage.MayHaveRun() && !job.Cold
	if job != nil && job.Stage.Live() {
		if err := d.reapJob(job, ran, told, words); err != nil {
			return err
		}
	}
	d.HangUp() // not before: it is known by it what was told
	if err := qemu.Clean(d.Node.QEMU.Settings(d.ID)); err != nil {
		return err
	}
	if err := d.stopMove(); err != nil {
		return err
	}
	d.Node.Unreserve(d.ID)
	if err := d.leave(d.Record(), incoming, ran); err != nil {
		return err
	}
	d.mu.Lock()
	d.vm, d.seen = nil, look{} // not before: the goroutine that watches it tries again
	d.mu.Unlock()
	if d.Record() == nil || job == nil || !job.Cold || !job.Owes() {
		return nil
	}
	return d.move(d.Node.Life, stepAnnounce, qemu.Migration{}) // it needs no process
}

// leave notes what a domain is without its process. One that is not to be here is forgotten,
// or is what it was before it came, when nothing is left of its disks.
func (d *domain) leave(rec *domainRecord, incoming, ran bool) error {
	if !rec.Leaving && !incoming {
		return d.Put(true, func(r *domainRecord) {
			r.Own, r.Ran, r.Ending, r.Paused, r.Before = true, false, false, false, nil
			r.Doing, r.By, r.Measuring = hypervisor.Absent, time.Time{}, time.Time{}
			r.Asked, r.Hotplug = time.Time{}, nil
			r.Rest = hypervisor.Shutoff
			if ran && !rec.Ending {
				r.Rest = hypervisor.Crashed
			}
		})
	}
	if err := d.DropDisks(rec.VM); err != nil {
		return err
	}
	if rec.Leaving || rec.Before == nil {
		return d.Remove()
	}
	return d.Set(rec.Before, true)
}

// HasLeft notes of a source's job that its VM runs at the target.
func (d *domain) HasLeft() error {
	return d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last.Status = stageLeft, hypervisor.JobSucceeded
	})
}

// reapJob ends the job of a domain whose process has died. A source that has told its target
// that the guest stopped for good had stopped, whatever was seen of it last.
func (d *domain) reapJob(job *jobRecord, ran, told bool, words string) error {
	if d.Record().Leaving && job.Role == backend.Source {
		return d.HasLeft()
	}
	if job.Cold && job.Role == backend.Source && job.Stage == stageSending {
		return nil // it needed a process only to copy its disks
	}
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	status, stage := statusOf(d.Record(), job, seen), stageKept
	late := !seen.Alive || status == hypervisor.JobSwitching || status == hypervisor.JobBroken ||
		modeOf(job, seen) == hypervisor.PostCopy
	if job.Stage.MayHaveRun() { // it must not be said later that it never ran, or let it run again
		stage = stageArrived
	}
	switch {
	case job.Stage.MayHaveRun() && status.Final():
	case job.Role == backend.Target && !ran:
		stage = stageDiscarded
		if !status.Final() {
			status = hypervisor.JobFailed
		}
	case told && job.Role == backend.Source && status != hypervisor.JobSucceeded:
		status = hypervisor.JobBroken
	case status.Final():
	case late:
		status = hypervisor.JobBroken
	default:
		status = hypervisor.JobFailed
	}
	unknown := status == hypervisor.JobBroken || status == hypervisor.JobSucceeded
	if job.Role == backend.Source && unknown { // it may run at the target: first of all
		err := d.Put(true, func(r *domainRecord) { r.Unresolved = true })
		if err != nil {
			return err
		}
	}
	return d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last.Status = stage, status
		j.Last.Error = "the QEMU on this host has ended: " + words
	})
}

// Run lets the guest run. That it may have run is written first, and that its reboot is as
// good as done: it would be reset once more otherwise, if we died before that was noted.
func (d *domain) Run(ctx context.Context, vm *qemu.Instance) error {
	rec := d.Record()
	d.Unexpect()
	if !rec.Ran || rec.Doing == hypervisor.Rebooting {
		err := d.Put(false, func(r *domainRecord) {
			if r.Ran = true; r.Doing == hypervisor.Rebooting {
				r.Doing, r.By, r.Asked = hypervisor.Starting, time.Time{}, time.Time{}
			}
		})
		if err != nil {
			return err
		}
	}
	if err := vm.Cont(ctx); err != nil || d.Record().Doing != hypervisor.Starting {
		return err
	}
	return d.settled()
}

// settled notes that what was under way is done.
func (d *domain) settled() error {
	return d.Put(false, func(r *domainRecord) { r.Settled() })
}

// measured takes over the result of a measurement, or returns when to ask again.
func (d *domain) measured(ctx context.Context, vm *qemu.Instance) time.Duration {
	r, err := vm.QueryDirtyRate(ctx)
	if err != nil || r.Status == "measuring" {
		return 50 * time.Millisecond
	}
	err = d.Put(false, func(rec *domainRecord) {
		rec.Measuring = time.Time{}
		if r.Status == "measured" {
			rec.DirtyRate = hypervisor.Bandwidth(hypervisor.Bytes(max(0, r.Rate)) * hypervisor.MiB)
			rec.Measured = time.Now().UTC()
		}
	})
	if err != nil {
		return again
	}
	return resync
}

// End ends a QEMU on purpose, and the migration that it takes part in.
func (d *domain) End(ctx context.Context, vm *qemu.Instance) error {
	rec, job, _ := d.Present()
	if !rec.Ending { // first: else its job is over, and its migration goes on
		if err := d.Put(true, func(r *domainRecord) { r.Ending = true }); err != nil {
			return err
		}
	}
	if job != nil && job.Stage.Live() && job.Role == backend.Source {
		err := d.PutJob(true, func(j *jobRecord) {
			j.Stage, j.Last.Status = stageKept, hypervisor.JobFailed
			j.Last.Error = "the guest was shut down"
		})
		if err != nil {
			return err
		}
	}
	if vm == nil {
		return d.Reap()
	}
	if err := vm.Kill(ctx); err != nil {
		return err
	}
	return d.Reap()
}
