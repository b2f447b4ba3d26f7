package qmp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/machine"
)

// rebootPatience is how long a guest that is asked to reboot may take to shut
// down before it is reset.
const rebootPatience = 30 * time.Second

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	op := strings.TrimPrefix(fmt.Sprintf("%T", c), "hypervisor.")
	d, release, err := h.hold(ctx, vm)
	if err != nil {
		return h.explain(op, vm, err)
	}
	defer release()
	if err := ctx.Err(); err != nil {
		return h.explain(op, vm, err)
	}
	return h.explain(op, vm, d.command(ctx, c))
}

// A present is a domain as a command finds it.
type present struct {
	rec   *journal.Domain
	job   *journal.Job // that rec names, or nil
	vm    *instance    // or nil
	look  life.Look
	state hypervisor.DomainState
}

// command performs one command. The caller holds the turn.
func (d *domain) command(ctx context.Context, c hypervisor.Command) error {
	l, _, err := d.look(ctx)
	if err != nil {
		return observing(err)
	}
	if !l.Alive && d.qemu() != nil { // it has just died: note that first
		d.settleHeld(ctx)
	}
	p := present{look: l}
	if p.rec, p.job, p.vm = d.present(); p.rec != nil {
		p.state = life.State(p.rec, p.job, l)
	}
	defer d.changed()
	switch c := c.(type) {
	case hypervisor.Start:
		return d.start(ctx, p, c.VM)
	case hypervisor.Discard:
		return d.discard(ctx, p, c)
	case hypervisor.Release:
		return d.release(ctx, p, c)
	case nil:
		return refuse(hypervisor.Invalid, "no command")
	}
	if p.rec == nil {
		return refuse(hypervisor.NotFound, "no such VM")
	}
	switch c := c.(type) {
	case hypervisor.Activate:
		return d.activate(ctx, p, c)
	case hypervisor.Resume:
		return d.resume(ctx, p, c)
	case hypervisor.Abandon:
		return d.abandon(ctx, p, c)
	case hypervisor.Resize:
		return d.resize(ctx, p, c.VM)
	case hypervisor.Snapshot:
		return d.snapshot(ctx, p, c)
	case hypervisor.AttachDisk:
		return d.attachDisk(ctx, p, c.Disk)
	case hypervisor.DetachDisk:
		return d.detachDisk(ctx, p, c.Name)
	case hypervisor.Forget:
		return d.forget(p)
	}
	return d.live(ctx, p, c)
}

// live performs the commands on a VM that has, or had, a process.
func (d *domain) live(ctx context.Context, p present, c hypervisor.Command) error {
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
	return refuse(hypervisor.Unsupported, "%T", c)
}

func (p present) conflict() error { return refuse(hypervisor.Conflict, "it is %v", p.state) }

// start runs a VM from its disks. Whether it runs elsewhere a hypervisor cannot
// know.
func (d *domain) start(ctx context.Context, p present, vm hypervisor.VM) error {
	h := d.host
	switch {
	case vm.ID != d.id:
		return refuse(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	case p.state == hypervisor.Starting || p.state == hypervisor.Running ||
		p.state == hypervisor.Rebooting:
		return nil
	case occupies(p.state) || p.job != nil && p.job.Cold && p.job.Role == journal.Source &&
		p.job.Stage.Live():
		return p.conflict()
	}
	if err := h.check(vm); err != nil {
		return err
	}
	if err := h.reserve(d, vm); err != nil {
		return err
	}
	rec := &journal.Domain{VM: vm, Own: true, Rest: hypervisor.Shutoff, Boot: h.boot,
		Doing: hypervisor.Starting}
	if p.rec != nil {
		rec.Job = p.rec.Job
	}
	err := d.set(rec, true)
	if err == nil {
		err = d.makeDisks(ctx, vm, false)
	}
	var in *instance
	if err == nil {
		in, err = h.launch(ctx, vm, false)
	}
	if err == nil {
		if err = in.pin(ctx, vm); err != nil {
			err = errors.Join(err, in.kill(ctx))
			in.letGo()
		}
	}
	if err != nil {
		return errors.Join(err, d.undo(p.rec, nil))
	}
	d.attach(in)
	return d.run(ctx, in)
}

// stop asks the guest to shut down, and gives it time. A second Stop may shorten
// the grace.
func (d *domain) stop(ctx context.Context, p present, grace time.Duration) error {
	by := time.Now().Add(max(0, grace)).UTC()
	switch p.state {
	case hypervisor.Shutoff, hypervisor.Crashed:
		return nil
	case hypervisor.Running, hypervisor.Starting, hypervisor.Rebooting:
	case hypervisor.Stopping:
		if p.rec.By.IsZero() || by.Before(p.rec.By) {
			return d.put(false, func(r *journal.Domain) { r.Doing, r.By = hypervisor.Stopping, by })
		}
		return nil
	default:
		return p.conflict()
	}
	err := d.put(true, func(r *journal.Domain) { r.Doing, r.By = hypervisor.Stopping, by })
	if err != nil {
		return err
	}
	return p.vm.SystemPowerdown(ctx)
}

// kill stops the VM now. Incoming domains are discarded and stopped sources
// released, never killed: they may be the last good copy.
func (d *domain) kill(ctx context.Context, p present) error {
	switch {
	case p.state == hypervisor.Shutoff || p.state == hypervisor.Crashed:
		return nil
	case p.state.Executes() || p.state == hypervisor.Paused:
		return d.end(ctx, p.vm)
	}
	return p.conflict()
}

// end ends a QEMU on purpose, and the migration that it takes part in.
func (d *domain) end(ctx context.Context, vm *instance) error {
	rec, job, _ := d.present()
	if job != nil && job.Stage.Live() && job.Role == journal.Source {
		err := d.putJob(true, func(j *journal.Job) {
			j.Stage, j.Last.Status = journal.Kept, hypervisor.JobFailed
			j.Last.Error = "the guest was shut down"
		})
		if err != nil {
			return err
		}
	}
	if !rec.Ending {
		if err := d.put(true, func(r *journal.Domain) { r.Ending = true }); err != nil {
			return err
		}
	}
	if vm == nil {
		return d.bury()
	}
	if err := vm.kill(ctx); err != nil {
		return err
	}
	return d.bury()
}

func (d *domain) reboot(ctx context.Context, p present) error {
	switch p.state {
	case hypervisor.Rebooting:
		return nil
	case hypervisor.Running:
		err := d.put(true, func(r *journal.Domain) {
			r.Doing, r.By = hypervisor.Rebooting, time.Now().Add(rebootPatience).UTC()
		})
		if err != nil {
			return err
		}
		return p.vm.SystemPowerdown(ctx)
	}
	return p.conflict()
}

// pause stops the guest's CPUs. A guest that a migration had paused then stays so.
func (d *domain) pause(ctx context.Context, p present) error {
	if p.state != hypervisor.Running && p.state != hypervisor.Paused {
		return p.conflict()
	}
	if !p.rec.Paused {
		if err := d.put(true, func(r *journal.Domain) { r.Paused = true }); err != nil {
			return err
		}
	}
	return p.vm.Stop(ctx)
}

func (d *domain) unpause(ctx context.Context, p present) error {
	switch p.state {
	case hypervisor.Running:
		return nil
	case hypervisor.Paused:
	default:
		return p.conflict()
	}
	if p.job != nil && p.job.GuestPaused && p.job.Stage.Live() {
		if err := d.putJob(false, func(j *journal.Job) { j.GuestPaused = false }); err != nil {
			return err
		}
	}
	if err := d.put(true, func(r *journal.Domain) { r.Paused = false }); err != nil {
		return err
	}
	return p.vm.Cont(ctx)
}

// measure begins to measure how fast the guest writes memory. QEMU measures whole
// seconds, 60 at most.
func (d *domain) measure(ctx context.Context, p present, window time.Duration) error {
	switch {
	case window <= 0:
		return refuse(hypervisor.Invalid, "it takes some time to measure, not %v", window)
	case p.state != hypervisor.Running:
		return p.conflict()
	case !p.rec.Measuring.IsZero():
		return nil
	}
	if err := d.host.need(hypervisor.CanMeasureDirtyRate); err != nil {
		return err
	}
	seconds := min(60, int((window+time.Second-1)/time.Second))
	if err := p.vm.CalcDirtyRate(ctx, seconds); err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second).UTC()
	return d.put(false, func(r *journal.Domain) { r.Measuring = until })
}

// measured takes over the result of a measurement, or returns when to ask again.
func (d *domain) measured(ctx context.Context, vm *instance) time.Duration {
	r, err := vm.QueryDirtyRate(ctx)
	if err != nil || r.Status == "measuring" {
		return 50 * time.Millisecond
	}
	err = d.put(false, func(rec *journal.Domain) {
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

// forget removes a VM that rests. The files of its disks stay.
func (d *domain) forget(p present) error {
	if p.state != hypervisor.Shutoff && p.state != hypervisor.Crashed ||
		p.job != nil && p.job.Role == journal.Source && p.job.Stage.Live() {
		return p.conflict()
	}
	return d.remove()
}

// check refuses a VM that QEMU will not take.
func (h *Host) check(vm hypervisor.VM) error {
	if vm.ID == "" || vm.Memory <= 0 || vm.CPUs < 1 {
		return refuse(hypervisor.Invalid, "VM %q with %v and %d CPUs", vm.ID, vm.Memory, vm.CPUs)
	}
	if err := machine.Check(vm, h.settings(vm.ID)); err != nil {
		return refuse(hypervisor.Invalid, "%w", err)
	}
	if hw := h.resolved(vm).Hardware; hw.Machine != "" {
		if _, known := h.features.Machine(hw.Machine); !known {
			return refuse(hypervisor.Unsupported, "%s has no machine type %q",
				h.features.Software(), hw.Machine)
		}
	}
	return nil
}

// reserve takes memory and CPUs for a domain, or answers NoRoom.
func (h *Host) reserve(d *domain, vm hypervisor.VM) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	memory, cpus := h.config.Memory, h.config.CPUs
	for _, o := range h.domains {
		if o != d {
			memory -= o.memory
			cpus -= o.cpus
		}
	}
	switch {
	case vm.Memory > memory:
		return refuse(hypervisor.NoRoom, "memory needs %v has %v", vm.Memory, max(0, memory))
	case vm.CPUs > cpus:
		return refuse(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, max(0, cpus))
	}
	d.memory, d.cpus = vm.Memory, vm.CPUs
	return nil
}

// unreserve gives back what a domain had reserved.
func (h *Host) unreserve(d *domain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.memory, d.cpus = 0, 0
}
