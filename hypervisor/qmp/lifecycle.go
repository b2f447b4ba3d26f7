//go:build linux

package qmp

// This file does what may be asked of a VM on its host: start, stop, pause,
// reboot, resize, snapshot, plug disks in and out. It waits for no guest: what takes
// time is noted, and done when it is due.

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/internal/backend"
	"github.com/godwit-vm/godwit/internal/monitor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// rebootPatience is how long a guest that is asked to reboot may take to shut
// down before it is reset.
const rebootPatience = 30 * time.Second

// A guest is a domain of which something is asked.
type guest struct{ *domain }

// command changes the life of one VM. The caller holds the domain's turn.
func command(ctx context.Context, of *domain, c hypervisor.Command) error {
	d := guest{of}
	p, err := d.Find(ctx)
	if err != nil && (!needsNoAnswer(c, p.Look) || p.Rec != d.Record()) {
		return err // what is there must be buried
	}
	if _, starts := c.(hypervisor.Start); p.Rec == nil && d.Record() == nil && !starts { // a start looks by itself
		if err := d.Node.QEMU.Unknown(ctx, d.ID); err != nil {
			return err
		}
	}
	defer d.Changed()
	if answered, err := transferCommand(ctx, of, p, c); answered {
		return err
	}
	switch c := c.(type) {
	case hypervisor.Start:
		return d.start(ctx, p, c.VM)
	case nil:
		return qemu.Refuse(hypervisor.Invalid, "no command")
	}
	if _, forgets := c.(hypervisor.Forget); forgets && p.Rec == nil {
		return nil
	}
	if p.Rec == nil {
		return qemu.Refuse(hypervisor.NotFound, "no such VM")
	}
	switch c := c.(type) {
	case hypervisor.Resize:
		return d.resize(ctx, p, c.VM)
	case hypervisor.Snapshot:
		return d.snapshot(ctx, p, c)
	case hypervisor.DeleteSnapshot:
		return d.deleteSnapshot(ctx, p, c)
	case hypervisor.RevertSnapshot:
		return d.revertSnapshot(ctx, p, c)
	case hypervisor.AttachDisk:
		return d.attachDisk(ctx, p, c.Disk)
	case hypervisor.DetachDisk:
		return d.detachDisk(ctx, p, c.Name)
	case hypervisor.Forget:
		return d.forget(p)
	}
	return d.live(ctx, p, c)
}

// needsNoAnswer reports whether a command ends a QEMU, which need not answer any
// more for that. An Abandon depends on how the guest is, which it has told once then. A Stop
// asks the guest first.
func needsNoAnswer(c hypervisor.Command, l look) bool {
	switch c.(type) {
	case hypervisor.Kill, hypervisor.Discard, hypervisor.Release:
		return true
	case hypervisor.Abandon:
		return l.Heard()
	}
	return false
}

// live performs the commands on a VM that has, or had, a process.
func (d guest) live(ctx context.Context, p found, c hypervisor.Command) error {
	switch c := c.(type) {
	case hypervisor.Stop:
		return d.stop(ctx, p, c.Grace)
	case hypervisor.Kill:
		return d.kill(ctx, p)
	case hypervisor.Reboot:
		return d.reboot(ctx, p)
	case hypervisor.Pause:
		return d.pause(ctx, p)
	case hypervisor.Unpause:
		return d.unpause(ctx, p)
	case hypervisor.MeasureDirtyRate:
		return d.measure(ctx, p, c.For)
	}
	return qemu.Refuse(hypervisor.Unsupported, "%T", c)
}

// start runs a VM from its disks. Whether it runs elsewhere a hypervisor cannot
// know.
func (d guest) start(ctx context.Context, p found, vm hypervisor.VM) error {
	h := d.Node
	switch {
	case vm.ID != d.ID:
		return qemu.Refuse(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	case p.State == hypervisor.Starting || p.State == hypervisor.Running ||
		p.State == hypervisor.Rebooting:
		return nil
	case p.Rec != nil && p.Rec.Unresolved:
		return qemu.Refuse(hypervisor.Conflict, "it may run at the target of job %s: abandon or "+
			"release it with evidence first", p.Rec.Job)
	case occupies(p.State) || p.Job != nil && p.Job.Role == backend.Source &&
		p.Job.Stage.Live(): // also one whose end is not noted
		return p.Conflict()
	}
	if err := h.Check(vm); err != nil {
		return err
	}
	if err := d.declared(disksOf(vm)...); err != nil {
		return err
	}
	if err := h.Reserve(d.domain, vm); err != nil {
		return err
	}
	rec := &domainRecord{Domain: backend.Domain{VM: vm, Doing: hypervisor.Starting}, Own: true,
		Rest: hypervisor.Shutoff, Boot: h.Boot}
	if p.Rec != nil {
		rec.Job = p.Rec.Job
	}
	_ = d.CutBack(ctx) // before the guest writes there; what cannot be cut is larger than it says
	err := d.Set(rec, true)
	if err == nil {
		err = d.MakeDisks(ctx, vm)
	}
	var in *qemu.Instance
	if err == nil {
		in, err = h.QEMU.Launch(ctx, vm, false)
	}
	if err == nil {
		if err = in.Pin(ctx, vm); err != nil {
			err = errors.Join(err, in.Kill(ctx))
			in.LetGo()
		}
	}
	if err != nil {
		return errors.Join(err, d.Undo(p.Rec))
	}
	d.Attach(in)
	return d.Run(ctx, in)
}

// stop asks the guest to shut down, and gives it time. A second Stop may shorten
// the grace.
func (d guest) stop(ctx context.Context, p found, grace time.Duration) error {
	by := time.Now().Add(max(0, grace)).UTC()
	switch p.State {
	case hypervisor.Shutoff, hypervisor.Crashed:
		return nil
	case hypervisor.Running, hypervisor.Starting, hypervisor.Rebooting:
	case hypervisor.Stopping:
		if p.Rec.By.IsZero() || by.Before(p.Rec.By) {
			return d.Put(false, func(r *domainRecord) { r.Doing, r.By = hypervisor.Stopping, by })
		}
		return nil
	default:
		return p.Conflict()
	}
	err := d.Put(true, func(r *domainRecord) { r.Doing, r.By = hypervisor.Stopping, by })
	switch {
	case err != nil:
		return err
	case p.VM == nil:
		return d.End(ctx, nil)
	}
	return d.ask(ctx, p)
}

// ask presses the guest's power button, after what follows from that was noted. What could not
// be sent does not follow: a guest that was not asked is not ended.
func (d guest) ask(ctx context.Context, p found) error {
	now := time.Now().UTC()
	err := d.Put(false, func(r *domainRecord) { r.Asked = now })
	if err == nil {
		err = p.VM.SystemPowerdown(ctx)
	}
	if errors.Is(err, monitor.NotSent) {
		err = errors.Join(err, d.Put(true, func(r *domainRecord) {
			r.Doing, r.By = p.Rec.Doing, p.Rec.By
		}))
	}
	return err
}

// kill stops the VM now. Incoming domains are discarded and stopped sources
// released, never killed: they may be the last good copy.
func (d guest) kill(ctx context.Context, p found) error {
	switch {
	case p.State.Rests():
		return nil
	case p.State.Executes() || p.State == hypervisor.Paused:
		return d.End(ctx, p.VM)
	}
	return p.Conflict()
}

func (d guest) reboot(ctx context.Context, p found) error {
	switch p.State {
	case hypervisor.Rebooting:
		return nil
	case hypervisor.Running:
		err := d.Put(true, func(r *domainRecord) {
			r.Doing, r.By = hypervisor.Rebooting, time.Now().Add(rebootPatience).UTC()
		})
		if err != nil {
			return err
		}
		return d.ask(ctx, p)
	}
	return p.Conflict()
}

// pause stops the guest's CPUs. A guest that a migration had paused then stays so.
func (d guest) pause(ctx context.Context, p found) error {
	if p.State != hypervisor.Running && p.State != hypervisor.Paused {
		return p.Conflict()
	}
	if !p.Rec.Paused {
		if err := d.Put(true, func(r *domainRecord) { r.Paused = true }); err != nil {
			return err
		}
	}
	return p.VM.Stop(ctx)
}

func (d guest) unpause(ctx context.Context, p found) error {
	switch p.State {
	case hypervisor.Running: // also what was to be paused, and is not
		if p.Rec.Paused {
			return d.Put(true, func(r *domainRecord) { r.Paused = false })
		}
		return nil
	case hypervisor.Paused:
	default:
		return p.Conflict()
	}
	if p.Job != nil && p.Job.GuestPaused && p.Job.Stage.Live() {
		if err := d.PutJob(false, func(j *jobRecord) { j.GuestPaused = false }); err != nil {
			return err
		}
	}
	if err := d.Put(true, func(r *domainRecord) { r.Paused = false }); err != nil {
		return err
	}
	d.Unexpect()
	if m, err := p.VM.QueryMigrate(ctx); err != nil || p.Job != nil && p.Job.Owes() &&
		(m.Status == monitor.Completed || m.Status == monitor.Device) { // it has gone meanwhile
		return errors.Join(qemu.Observing(err), p.Conflict())
	}
	return p.VM.Cont(ctx)
}

// measure begins to measure how fast the guest writes memory. QEMU measures whole
// seconds, 60 at most.
func (d guest) measure(ctx context.Context, p found, window time.Duration) error {
	switch {
	case window <= 0:
		return qemu.Refuse(hypervisor.Invalid, "it takes some time to measure, not %v", window)
	case p.State != hypervisor.Running:
		return p.Conflict()
	case !p.Rec.Measuring.IsZero():
		return nil
	}
	if err := d.Node.QEMU.Need(hypervisor.CanMeasureDirtyRate); err != nil {
		return err
	}
	seconds := min(60, int((window+time.Second-1)/time.Second))
	if err := p.VM.CalcDirtyRate(ctx, seconds); err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second).UTC()
	return d.Put(false, func(r *domainRecord) { r.Measuring = until })
}

// forget removes a VM that rests. The files of its disks stay.
func (d guest) forget(p found) error {
	if !p.State.Rests() || p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live() {
		return p.Conflict()
	}
	return d.Remove()
}
