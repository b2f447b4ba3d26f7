//go:build linux

package qmp

// This file does what may be asked of a VM on its host: start, stop, pause,
// reboot, resize, snapshot, plug disks in and out. It waits for no guest: what takes
// time is noted, and done in later steps.

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A guest is a domain of which something is asked.
type guest struct{ *domain }

// command changes the life of one VM. The caller holds the domain's lock.
func command(ctx context.Context, of *domain, c hypervisor.Command) error {
	d := guest{of}
	p, err := d.Find(ctx)
	if err != nil && (!needsNoAnswer(c, p.Look) || p.Rec != d.Record()) {
		return err // what is there must be reaped
	}
	if _, starts := c.(hypervisor.Start); p.Rec == nil && d.Record() == nil && !starts { // a start looks by itself
		if err := d.Node.QEMU.Unknown(ctx, d.ID); err != nil {
			return err
		}
	}
	if m := d.Record(); m != nil && backend.ChangesDisks(c) && m.Move.Active() {
		return m.Move.Conflict()
	}
	defer d.Trigger()
	return backend.Do(ctx, commands{d, move{of}}, p, p.Rec != nil, c)
}

// commands are what may be asked of a domain.
type commands struct {
	guest
	move
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

// Start runs a VM from its disks. Whether it runs elsewhere a hypervisor cannot
// know.
func (d guest) Start(ctx context.Context, p found, c hypervisor.Start) error {
	h, vm := d.Node, c.VM.Started()
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
	err := h.Check(vm)
	if err != nil {
		return err
	}
	if err := d.declared(vm.Disks()...); err != nil {
		return err
	}
	if err := h.Reserve(vm, nil); err != nil {
		return err
	}
	rec := &domainRecord{Domain: backend.Domain{VM: vm, Doing: hypervisor.Starting}, Own: true,
		Rest: hypervisor.Shutoff, Boot: h.Boot}
	if p.Rec != nil {
		rec.Job = p.Rec.Job
	}
	if rec.Move, err = d.chooseDisk(vm); err != nil {
		return errors.Join(err, d.Undo(p.Rec))
	}
	_ = d.CutBack(ctx) // before the guest writes there; what cannot be cut is larger than it says
	err = d.Set(rec, true)
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

// Stop asks the guest to shut down, and gives it time. A second Stop may shorten
// the grace.
func (d guest) Stop(ctx context.Context, p found, grace time.Duration) error {
	by := time.Now().Add(max(0, grace))
	switch backend.Stop(p.State, p.kept(), by) {
	case backend.Refuse:
		return p.Conflict()
	case backend.Nothing:
		return nil
	case backend.Shorten:
		return d.Put(false, func(r *domainRecord) { r.Doing, r.By = hypervisor.Stopping, by })
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
	now := time.Now()
	err := d.Put(false, func(r *domainRecord) { r.Asked = now })
	if err == nil {
		err = p.VM.SystemPowerdown(ctx)
	}
	if errors.Is(err, qemu.NotSent) {
		err = errors.Join(err, d.Put(true, func(r *domainRecord) {
			r.Doing, r.By = p.Rec.Doing, p.Rec.By
		}))
	}
	return err
}

// Kill stops the VM now.
func (d guest) Kill(ctx context.Context, p found) error {
	switch backend.Kill(p.State) {
	case backend.Nothing:
		return nil
	case backend.Act:
		return d.End(ctx, p.VM)
	}
	return p.Conflict()
}

func (d guest) Reboot(ctx context.Context, p found) error {
	switch backend.Reboot(p.State) {
	case backend.Nothing:
		return nil
	case backend.Act:
		err := d.Put(true, func(r *domainRecord) {
			r.Doing, r.By = hypervisor.Rebooting, time.Now().Add(backend.RebootTimeout)
		})
		if err != nil {
			return err
		}
		return d.ask(ctx, p)
	}
	return p.Conflict()
}

// Pause stops the guest's CPUs. A guest that a migration had paused then stays so.
func (d guest) Pause(ctx context.Context, p found) error {
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

func (d guest) Unpause(ctx context.Context, p found) error {
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
		(m.Status == qemu.Completed || m.Status == qemu.Device) { // it has gone meanwhile
		return errors.Join(qemu.Observing(err), p.Conflict())
	}
	return p.VM.Cont(ctx)
}

// Measure begins to measure how fast the guest writes memory.
func (d guest) Measure(ctx context.Context, p found, window time.Duration) error {
	answer, window, err := backend.Measure(p.State, p.kept(), window)
	switch {
	case err != nil || answer == backend.Nothing:
		return err
	case answer == backend.Refuse:
		return p.Conflict()
	}
	if err := d.Node.QEMU.Need(hypervisor.CanMeasureDirtyRate); err != nil {
		return err
	}
	if err := p.VM.CalcDirtyRate(ctx, int(window/time.Second)); err != nil {
		return err
	}
	until := time.Now().Add(window)
	return d.Put(false, func(r *domainRecord) { r.Measuring = until })
}

// Forget removes a VM that rests. The files of its disks stay.
func (d guest) Forget(_ context.Context, p found, _ hypervisor.Forget) error {
	if !p.State.Rests() || p.Job != nil && p.Job.Role == backend.Source && p.Job.Stage.Live() {
		return p.Conflict()
	}
	return d.Remove()
}
