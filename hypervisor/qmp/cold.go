package qmp

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
)

// migrateCold moves a VM at rest: its definition, which the target has, and its
// local disks, which a QEMU copies whose guest never runs.
func (d *domain) migrateCold(ctx context.Context, out hypervisor.Outgoing) error {
	h, rec := d.host, d.record()
	copies := len(locals(rec.VM)) > 0
	if copies {
		if err := h.reserve(d, rec.VM); err != nil {
			return err
		}
	}
	answer, err := d.agree(ctx, out, handover.Message{Cold: true})
	if err != nil {
		h.unreserve(d)
		return err
	}
	job := d.newJob(out)
	job.Cold = true
	job.Prepared = &journal.Prepared{Options: out.Options, Disks: answer.Disks}
	if !copies {
		if err := d.enlist(job); err != nil {
			return err
		}
		d.announce(0)
		return nil
	}
	job.Stage = journal.Mirroring
	if err := d.enlist(job); err != nil {
		h.unreserve(d)
		return err
	}
	return d.copyCold(ctx, answer.Disks)
}

// copyCold starts a QEMU for the disks and begins to copy them.
func (d *domain) copyCold(ctx context.Context, to string) error {
	vm, err := d.host.launch(ctx, d.record().VM, false)
	if err != nil {
		return errors.Join(err, d.bury())
	}
	d.attach(vm)
	err = vm.encrypt(ctx, d.host, atSource, nil)
	if err == nil {
		err = d.mirror(ctx, vm, to)
	}
	if err != nil {
		return errors.Join(err, d.giveUp(ctx, vm, hypervisor.JobFailed))
	}
	d.changed()
	return nil
}

// endCold ends the QEMU that copied disks.
func (d *domain) endCold(ctx context.Context, vm *instance) error {
	if vm == nil {
		return nil
	}
	err := d.put(true, func(r *journal.Domain) { r.Ending = true })
	return errors.Join(err, vm.kill(ctx))
}
