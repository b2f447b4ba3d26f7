//go:build linux

package qmp

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/monitor"
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

// settle does everything that is due of a domain, and returns when to look again
// unless something happens before.
func (d *Domain) settle(ctx context.Context) time.Duration {
	_, release, err := d.Node.Hold(ctx, d.ID)
	if err != nil {
		return again
	}
	defer release()
	return d.Settle(ctx)
}

// Settle is settle for who holds the turn.
func (d *Domain) Settle(ctx context.Context) time.Duration {
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
		step := Due(rec, job, l, time.Now())
		if step == Rest || step == Announce && d.Announcing != nil {
			return d.wait(ctx, l)
		}
		if err := d.do(ctx, step, l, m); err != nil {
			return again
		}
		switch step {
		case Bury:
			return resync
		case FinishMirrors, Reset:
			return soon // it takes effect a little later
		case GoOver:
			return later
		case EndWait: // once is enough
			return again
		}
	}
}

// silence does what is due of a QEMU that does not answer.
func (d *Domain) silence(ctx context.Context) time.Duration {
	rec, job, vm := d.Present()
	if vm != nil && DueInSilence(rec, job, time.Now()) == Quit {
		_ = d.do(ctx, Quit, Look{}, monitor.Migration{}) // it stays due
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
func (d *Domain) unblock(ctx context.Context) {
	_, job, vm := d.Present()
	d.mu.Lock()
	silent := d.silent
	d.mu.Unlock()
	if vm == nil || job == nil || job.Role != Source || job.Stage != Sending ||
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

// wait returns when something may be due that no event tells of.
func (d *Domain) wait(ctx context.Context, l Look) time.Duration {
	rec, job, vm := d.Present()
	now := time.Now()
	wait := resync
	if !rec.By.IsZero() {
		wait = min(wait, rec.By.Sub(now))
	}
	if rec.Doing != hypervisor.Absent && !rec.Asked.IsZero() {
		wait = min(wait, max(later, rec.Asked.Add(PressAgain).Sub(now)))
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
	case job.Stage == Mirroring:
		wait = min(wait, later)
	case job.Stage == Sending && l.Migration == monitor.Failed:
		wait = min(wait, soon) // QEMU is about to say what its guest does now
	case job.Stage == Sending && l.Migration == monitor.PreSwitchover &&
		!job.Options.HoldSwitchOver:
		wait = min(wait, soon)
	case job.Stage == Listening && job.Stopped && !job.Hold:
		wait = min(wait, soon) // post-copy: the guest is let run without an event
	}
	return max(wait, soon)
}

// do performs one step. The caller holds the turn.
func (d *Domain) do(ctx context.Context, step NextStep, l Look, m monitor.Migration) error {
	_, _, vm := d.Present()
	switch step {
	case Bury:
		return d.Bury()
	case Quit:
		if err := d.Put(false, func(r *DomainRecord) { r.Ending = true }); err != nil {
			return err
		}
		return vm.Kill(ctx) // one that its kernel does not let end yet is tried again
	case Reset:
		return d.reset(ctx, vm, l)
	case Press:
		return d.press(ctx, vm)
	case Run:
		return d.Run(ctx, vm)
	case Rest:
		return nil
	}
	return d.Node.Move(ctx, d, step, m)
}

// press presses the guest's power button once more.
func (d *Domain) press(ctx context.Context, vm *qemu.Instance) error {
	now := time.Now().UTC()
	if err := d.Put(false, func(r *DomainRecord) { r.Asked = now }); err != nil {
		return err
	}
	return vm.SystemPowerdown(ctx)
}

// reset resets the machine, which was seen so, so that its guest boots anew.
func (d *Domain) reset(ctx context.Context, vm *qemu.Instance, l Look) error {
	if err := vm.SystemReset(ctx); err != nil || l.Run != monitor.Running {
		return err // one that had shut down stands then, and Run is due
	}
	return d.settled()
}

// Bury notes what is left of a domain whose process has ended. A guest that ran
// and was not meant to end has crashed, and stays to be seen: to a cluster, a VM
// that its host does not know has never run there.
func (d *Domain) Bury() error {
	rec, job, vm := d.Present()
	words := qemu.LastWords(d.Node.QEMU.Settings(d.ID))
	told := d.Announcing != nil || job != nil && job.Acknowledged
	if vm != nil {
		vm.LetGo()
	}
	target := job != nil && job.Role == Target
	incoming := Incoming(rec, job)
	ran := rec.Ran || target && job.Stage.MayHaveRun() && !job.Cold
	if job != nil && job.Stage.Live() {
		if err := d.buryJob(job, ran, told, words); err != nil {
			return err
		}
	}
	d.HangUp() // not before: it is known by it what was told
	if err := qemu.Clean(d.Node.QEMU.Settings(d.ID)); err != nil {
		return err
	}
	d.Node.Unreserve(d)
	if err := d.leave(rec, incoming, ran); err != nil {
		return err
	}
	d.mu.Lock()
	d.vm, d.seen = nil, Look{} // not before: the goroutine that watches it tries again
	d.mu.Unlock()
	if d.Record() == nil || job == nil || !job.Cold || !job.Owes() {
		return nil
	}
	return d.Node.Move(d.Node.Life, d, Announce, monitor.Migration{}) // it needs no process
}

// leave notes what a domain is without its process. One that is not to be here is forgotten,
// or is what it was before it came, when nothing is left of its disks.
func (d *Domain) leave(rec *DomainRecord, incoming, ran bool) error {
	if !rec.Leaving && !incoming {
		return d.Put(true, func(r *DomainRecord) {
			r.Own, r.Ran, r.Ending, r.Paused, r.Before = true, false, false, false, nil
			r.Doing, r.By, r.Measuring = hypervisor.Absent, time.Time{}, time.Time{}
			r.Asked = time.Time{}
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
func (d *Domain) HasLeft() error {
	return d.PutJob(true, func(j *Job) {
		j.Stage, j.Last.Status = Left, hypervisor.JobSucceeded
	})
}

// buryJob ends the job of a domain whose process has died. A source that has told its target
// that the guest stopped for good had stopped, whatever was seen of it last.
func (d *Domain) buryJob(job *Job, ran, told bool, words string) error {
	if d.Record().Leaving && job.Role == Source {
		return d.HasLeft()
	}
	if job.Cold && job.Role == Source && job.Stage == Sending {
		return nil // it needed a process only to copy its disks
	}
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	status, stage := Status(d.Record(), job, seen), KeptRecord
	late := !seen.Alive || status == hypervisor.JobSwitching || status == hypervisor.JobBroken ||
		Mode(job, seen) == hypervisor.PostCopy
	if job.Stage.MayHaveRun() { // it must not be said later that it never ran, or let it run again
		stage = Arrived
	}
	switch {
	case job.Stage.MayHaveRun() && status.Final():
	case job.Role == Target && !ran:
		stage = Discarded
		if !status.Final() {
			status = hypervisor.JobFailed
		}
	case told && job.Role == Source && status != hypervisor.JobSucceeded:
		status = hypervisor.JobBroken
	case status.Final():
	case late:
		status = hypervisor.JobBroken
	default:
		status = hypervisor.JobFailed
	}
	unknown := status == hypervisor.JobBroken || status == hypervisor.JobSucceeded
	if job.Role == Source && unknown { // it may run at the target: first of all
		err := d.Put(true, func(r *DomainRecord) { r.Unresolved = true })
		if err != nil {
			return err
		}
	}
	return d.PutJob(true, func(j *Job) {
		j.Stage, j.Last.Status = stage, status
		j.Last.Error = "the QEMU on this host has ended: " + words
	})
}

// Run lets the guest run. That it may have run is written first, and that its reboot is as
// good as done: it would be reset once more otherwise, if we died before that was noted.
func (d *Domain) Run(ctx context.Context, vm *qemu.Instance) error {
	rec := d.Record()
	d.Unexpect()
	if !rec.Ran || rec.Doing == hypervisor.Rebooting {
		err := d.Put(false, func(r *DomainRecord) {
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
func (d *Domain) settled() error {
	return d.Put(false, func(r *DomainRecord) {
		r.Doing, r.By, r.Asked = hypervisor.Absent, time.Time{}, time.Time{}
	})
}

// measured takes over the result of a measurement, or returns when to ask again.
func (d *Domain) measured(ctx context.Context, vm *qemu.Instance) time.Duration {
	r, err := vm.QueryDirtyRate(ctx)
	if err != nil || r.Status == "measuring" {
		return 50 * time.Millisecond
	}
	err = d.Put(false, func(rec *DomainRecord) {
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
func (d *Domain) End(ctx context.Context, vm *qemu.Instance) error {
	rec, job, _ := d.Present()
	if !rec.Ending { // first: else its job is over, and its migration goes on
		if err := d.Put(true, func(r *DomainRecord) { r.Ending = true }); err != nil {
			return err
		}
	}
	if job != nil && job.Stage.Live() && job.Role == Source {
		err := d.PutJob(true, func(j *Job) {
			j.Stage, j.Last.Status = KeptRecord, hypervisor.JobFailed
			j.Last.Error = "the guest was shut down"
		})
		if err != nil {
			return err
		}
	}
	if vm == nil {
		return d.Bury()
	}
	if err := vm.Kill(ctx); err != nil {
		return err
	}
	return d.Bury()
}
