//go:build linux

package qmp

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// migrateCold moves a VM at rest: its definition, which the target has, and its
// local disks, which a QEMU copies whose guest never runs.
func (d move) migrateCold(ctx context.Context, out hypervisor.Outgoing) error {
	_ = d.CutBack(ctx) // what cannot be cut does not fit at the target, which QEMU tells
	h, rec := d.Node, d.Record()
	copies := len(rec.VM.LocalDisks()) > 0
	if copies {
		if err := h.Reserve(rec.VM, nil); err != nil {
			return err
		}
	}
	answer, err := d.agree(ctx, out, message{Cold: true})
	if err != nil {
		h.Unreserve(d.ID)
		return err
	}
	job := d.newJob(out)
	job.Cold = true
	job.Prepared = &prepared{Options: out.Options, Disks: answer.Disks}
	if !copies {
		if err := d.enlist(job); err != nil {
			return err
		}
		d.announce(0)
		return nil
	}
	job.Stage = stageMirroring
	if err := d.enlist(job); err != nil {
		h.Unreserve(d.ID)
		return err
	}
	return d.copyCold(ctx, answer.Disks, out.Options.Bandwidth)
}

// copyCold starts a QEMU for the disks and begins to copy them.
func (d move) copyCold(ctx context.Context, to string, limit hypervisor.Bandwidth) error {
	vm, err := d.Node.QEMU.Launch(ctx, d.Record().VM, false)
	if err != nil {
		return errors.Join(err, d.Reap())
	}
	d.Attach(vm)
	err = vm.Encrypt(ctx, qemu.AtSource, d.Node.Job(d.Record().Job).Options, nil)
	if err == nil {
		err = vm.Mirror(ctx, d.Record().VM, to, limit)
	}
	if err != nil {
		return errors.Join(err, d.giveUp(ctx, vm, hypervisor.JobFailed))
	}
	d.Trigger()
	return nil
}

// endCold ends the QEMU that copied disks.
func (d move) endCold(ctx context.Context, vm *qemu.Instance) error {
	if vm == nil {
		return nil
	}
	err := d.Put(true, func(r *domainRecord) { r.Ending = true })
	return errors.Join(err, vm.Kill(ctx))
}
