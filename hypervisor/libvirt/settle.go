//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// How long settle may wait for a change that libvirt would tell of anyway, for one
// that it does not tell, and after an error.
const (
	resync = 30 * time.Second
	often  = 100 * time.Millisecond
	again  = 500 * time.Millisecond
)

// Trigger makes the domain's worker look again, and starts it unless it runs.
func (d *domain) Trigger() {
	d.DomainLock.Trigger()
	d.Node.StartWorker(d.ID, d, d.run)
}

// run is the domain's worker, until there is nothing to wait for.
func (d *domain) run() {
	n := d.Node
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.Life.Done():
		case <-d.Triggered():
		case <-timer.C:
		}
		wait := time.Duration(0)
		if n.Life.Err() == nil {
			ctx, cancel := context.WithTimeout(n.Life, n.Timeout)
			wait = d.settle(ctx)
			cancel()
		}
		if wait == 0 && n.EndWorker(d.ID, d) {
			return
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// settle performs all next steps, and returns when to look again unless
// something happens before; 0 is never.
func (d *domain) settle(ctx context.Context) time.Duration {
	if left := d.switching(); left > 0 {
		return left
	}
	_, release, err := d.Node.Lock(ctx, d.ID)
	if err != nil {
		return again
	}
	defer release()
	return d.Settle(ctx)
}

// Settle is settle for a caller that holds the domain's lock.
func (d *domain) Settle(ctx context.Context) time.Duration {
	last := stepNone
	for {
		if d.Record() == nil {
			return 0
		}
		f, err := d.Find(ctx)
		if err != nil {
			return again
		}
		step := due(f.Rec, f.Job, f.Observed.domainLook, time.Now())
		if step == stepNone || step == last { // what does not help at once is not repeated at once
			return d.wait(ctx, f)
		}
		if err := d.do(ctx, step, f); err != nil {
			return again
		}
		last = step
		d.Node.Changed(d.ID)
	}
}

// wait returns how long until there may be a next step that no event announces; 0 is never.
func (d *domain) wait(ctx context.Context, f found) time.Duration {
	rec, job, now := d.Record(), f.Job, time.Now()
	if rec == nil {
		return 0
	}
	wait := time.Duration(0)
	sooner := func(t time.Duration) {
		if t = max(t, time.Millisecond); wait == 0 || t < wait {
			wait = t
		}
	}
	if !rec.By.IsZero() && rec.Doing != hypervisor.Absent {
		sooner(rec.By.Sub(now))
	}
	if rec.Doing != hypervisor.Absent {
		sooner(again)
	}
	if !rec.Measuring.IsZero() {
		if left := d.measured(ctx, now); left > 0 {
			sooner(left)
		}
	}
	if m := rec.Move; m != nil && !m.Tidied && f.Observed.Run.Alive() { // libvirt tells, but not all of it
		sooner(again)
		if m.Phase != backend.MoveCopying && m.Phase != backend.MoveReady {
			sooner(often)
		}
	}
	switch {
	case job.Sends() && f.Observed.Call == calling && !job.Cancelled:
		sooner(again) // its return is told
	case job.Sends():
		sooner(often)
	case job.Receives() && job.Seen:
		sooner(again)
	case job.Receives():
		sooner(resync)
	case job != nil && job.Role == backend.Target && job.Stage == stageArrived &&
		!job.Last.Status.Final():
		sooner(often)
	}
	return wait
}

// do performs one step. The caller holds the domain's lock.
func (d *domain) do(ctx context.Context, step nextStep, f found) error {
	switch step {
	case stepReap:
		return d.Reap(f)
	case stepForce:
		return d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Destroy() })
	case stepReset:
		if err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Reset(0) }); err != nil {
			return err
		}
		return d.Settled()
	case stepPress:
		return d.Press(ctx)
	case stepSettled:
		return d.Settled()
	case stepNoteReady, stepSwitchDisk, stepNoteSwitched, stepFailMove, stepTidyMove:
		return d.moveDisk(ctx, step, f)
	}
	return d.move(ctx, step, f.Observed)
}

// Press notes that the guest is asked now, and presses its power button: to reboot if that is
// what it was asked for. libvirt remembers the last of both that it was told.
func (d *domain) Press(ctx context.Context) error {
	now, reboots := time.Now(), false
	err := d.Put(false, func(r *domainRecord) {
		r.Asked, reboots = now, r.Doing == hypervisor.Rebooting
	})
	if err != nil {
		return err
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		if reboots {
			return dom.Reboot(libvirt.DOMAIN_REBOOT_ACPI_POWER_BTN)
		}
		return dom.ShutdownFlags(libvirt.DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
	})
}

// Settled notes that the guest runs and that what was asked is done.
func (d *domain) Settled() error {
	return d.Put(false, func(r *domainRecord) { r.Settled() })
}

// Reap notes how a domain has ended that has no process any more.
func (d *domain) Reap(f found) error {
	run := f.Observed.Run
	d.Node.Unreserve(d.ID)
	return d.Put(true, func(r *domainRecord) {
		lost := run == runShutoffCrashed || run == runShutoffUnknown && r.Ran
		r.Crashed = lost && r.Doing != hypervisor.Stopping
		r.Ran, r.Doing, r.By = false, hypervisor.Absent, time.Time{}
		r.Asked = time.Time{}
		r.Measuring = time.Time{}
	})
}

// measured keeps the result of a measurement whose time is over, and returns how
// long to wait for it otherwise.
func (d *domain) measured(ctx context.Context, now time.Time) time.Duration {
	rec := d.Record()
	if left := rec.Measuring.Sub(now); left > 0 {
		return left
	}
	rate, done, err := d.dirtyRate(ctx)
	if err != nil || !done {
		if now.Sub(rec.Measuring) > time.Minute { // libvirt has forgotten it
			_ = d.Put(false, func(r *domainRecord) { r.Measuring = time.Time{} })
			return 0
		}
		return often
	}
	_ = d.Put(false, func(r *domainRecord) {
		r.DirtyRate, r.Measured = rate, r.Measuring
		r.Measuring = time.Time{}
	})
	return 0
}

// dirtyRate returns what libvirt measured, if it has.
func (d *domain) dirtyRate(ctx context.Context) (rate hypervisor.Bandwidth, done bool, err error) {
	all, err := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) ([]libvirt.DomainStats, error) {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = dom.Free() }()
		stats, err := c.GetAllDomainStats([]*libvirt.Domain{dom}, libvirt.DOMAIN_STATS_DIRTYRATE, 0)
		for i := range stats {
			_ = stats[i].Domain.Free()
		}
		return stats, err
	})
	if err != nil || len(all) != 1 || all[0].DirtyRate == nil {
		return 0, false, err
	}
	r := all[0].DirtyRate
	rate = hypervisor.Bandwidth(max(0, r.MegabytesPerSecond)) * hypervisor.Bandwidth(hypervisor.MiB)
	return rate,
		r.CalcStatus == int(libvirt.DOMAIN_DIRTYRATE_MEASURED), nil
}
