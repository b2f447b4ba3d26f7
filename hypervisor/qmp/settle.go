package qmp

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// How long settle may wait for a change that it would be told of anyway, for one
// that QEMU does not tell, and after an error.
const (
	resync = 30 * time.Second
	soon   = 2 * time.Millisecond
	again  = time.Second
)

// settle does everything that is due of a domain, and returns when to look again
// unless something happens before.
func (d *domain) settle(ctx context.Context) time.Duration {
	_, release, err := d.host.hold(ctx, d.id)
	if err != nil {
		return again
	}
	defer release()
	return d.settleHeld(ctx)
}

// settleHeld is settle for who holds the turn.
func (d *domain) settleHeld(ctx context.Context) time.Duration {
	for {
		rec := d.record()
		if rec == nil {
			return resync
		}
		l, m, err := d.look(ctx)
		if err != nil {
			return again
		}
		rec, job, _ := d.present()
		step := life.Due(rec, job, l, time.Now())
		if step == life.Rest || step == life.Announce && d.announcing != nil {
			return d.wait(ctx, l)
		}
		if err := d.do(ctx, step, m); err != nil {
			return again
		}
		switch step {
		case life.Bury:
			return resync
		case life.FinishMirrors:
			return soon
		}
	}
}

// wait returns when something may be due that no event tells of.
func (d *domain) wait(ctx context.Context, l life.Look) time.Duration {
	rec, job, vm := d.present()
	now := time.Now()
	wait := resync
	if !rec.By.IsZero() {
		wait = min(wait, rec.By.Sub(now))
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
	case job.Stage == journal.Mirroring:
		wait = min(wait, 50*time.Millisecond)
	case job.Stage == journal.Sending && l.Migration == qapi.PreSwitchover &&
		!job.Options.HoldSwitchOver:
		wait = min(wait, soon)
	case job.Stage == journal.Listening && job.Stopped && !job.Hold:
		wait = min(wait, soon) // post-copy: the guest is let run without an event
	}
	return max(wait, soon)
}

// do performs one step. The caller holds the turn.
func (d *domain) do(ctx context.Context, step life.Step, m qapi.Migration) error {
	_, _, vm := d.present()
	switch step {
	case life.Bury:
		return d.bury()
	case life.Quit:
		if err := d.put(false, func(r *journal.Domain) { r.Ending = true }); err != nil {
			return err
		}
		return vm.kill(ctx)
	case life.Reset:
		return d.reset(ctx, vm)
	case life.Run:
		return d.run(ctx, vm)
	case life.Activate:
		return d.letArrive(ctx, vm)
	case life.Arrive:
		return d.arriveCold(ctx, vm)
	case life.Send:
		return d.send(ctx, vm)
	case life.FinishMirrors:
		return d.finishMirrors(ctx, vm)
	case life.Continue:
		return vm.MigrateContinue(ctx)
	case life.Announce:
		d.announce(time.Duration(m.Downtime) * time.Millisecond)
		return nil
	case life.Keep:
		return d.keep(ctx, vm, m)
	case life.GiveUp:
		return d.giveUp(ctx, vm, hypervisor.JobFailed)
	}
	return nil
}

// run lets the guest run. That it may have run is written first.
func (d *domain) run(ctx context.Context, vm *instance) error {
	rec := d.record()
	if !rec.Ran {
		if err := d.put(false, func(r *journal.Domain) { r.Ran = true }); err != nil {
			return err
		}
	}
	if err := vm.Cont(ctx); err != nil {
		return err
	}
	if rec.Doing == hypervisor.Starting {
		return d.put(false, func(r *journal.Domain) { r.Doing, r.By = hypervisor.Absent, time.Time{} })
	}
	return nil
}

// reset boots the guest anew.
func (d *domain) reset(ctx context.Context, vm *instance) error {
	if err := vm.SystemReset(ctx); err != nil {
		return err
	}
	if err := vm.Cont(ctx); err != nil {
		return err
	}
	return d.put(false, func(r *journal.Domain) { r.Doing, r.By = hypervisor.Absent, time.Time{} })
}

// bury notes what is left of a domain whose process has ended. A guest that ran
// and was not meant to end has crashed, and stays to be seen: to a cluster, a VM
// that its host does not know has never run there.
func (d *domain) bury() error {
	rec, job, vm := d.present()
	words := lastWords(d.host.settings(d.id))
	rebooted := rec.Boot != "" && rec.Boot != d.host.boot
	d.hangUp()
	target := job != nil && job.Role == journal.Target && job.Stage == journal.Listening
	ran := rec.Ran || job != nil && job.Stage == journal.Activating && !job.Cold ||
		rebooted && target && job.Prepared != nil // it may have run before the power went
	if job != nil && job.Stage.Live() {
		if err := d.buryJob(job, ran, words); err != nil {
			return err
		}
	}
	if vm != nil {
		vm.letGo()
	}
	d.mu.Lock()
	d.vm, d.seen = nil, life.Look{}
	d.mu.Unlock()
	if err := clean(d.host.settings(d.id)); err != nil {
		return err
	}
	d.host.unreserve(d)
	if !ran && !rec.Own { // it never was here, or is no more
		return errors.Join(d.dropDisks(), d.remove())
	}
	lost := ran && !rec.Ending
	return d.put(true, func(r *journal.Domain) {
		r.Own, r.Ran, r.Ending, r.Paused = true, false, false, false
		r.Doing, r.By, r.Measuring = hypervisor.Absent, time.Time{}, time.Time{}
		r.Rest = hypervisor.Shutoff
		switch {
		case lost:
			r.Rest = hypervisor.Crashed
		case target && !ran:
			r.Job = "" // it left the VM as it was before
		}
	})
}

// buryJob ends the job of a domain whose process has died.
func (d *domain) buryJob(job *journal.Job, ran bool, words string) error {
	if job.Cold && job.Role == journal.Source && job.Stage == journal.Sending {
		return nil // it needed a process only to copy its disks
	}
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	status, stage := life.Status(d.record(), job, seen), journal.Kept
	late := !seen.Alive || status == hypervisor.JobSwitching || status == hypervisor.JobBroken ||
		life.Mode(job, seen) == hypervisor.PostCopy
	switch {
	case job.Role == journal.Target && !ran:
		status, stage = hypervisor.JobFailed, journal.Discarded
	case job.Role == journal.Target && status.Final():
		stage = job.Stage
	case status.Final():
	case late:
		status = hypervisor.JobBroken
	default:
		status = hypervisor.JobFailed
	}
	err := d.putJob(true, func(j *journal.Job) {
		j.Stage, j.Last.Status = stage, status
		j.Last.Error = "the QEMU on this host has ended: " + words
	})
	if err != nil || status != hypervisor.JobBroken || job.Role != journal.Source {
		return err
	}
	return d.put(true, func(r *journal.Domain) { r.Unresolved = true })
}
