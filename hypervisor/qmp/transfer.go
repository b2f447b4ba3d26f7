//go:build linux

package qmp

// This file moves VMs: a target that is opened and starts, a source that
// sends and stops, and what either does with evidence about the other.
//
//	target   Receive → Prepare heard → memory → Stopped heard → the guest runs
//	source   Migrate → memory → the guest stands → Stopped said → Release
//
// All of it is done under the domain's lock, and follows from the journal
// and from what QEMU says, so that dying in between does no harm.

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A move is a domain that takes part in a migration.
type move struct{ *domain }

// move performs a step of a migration. The caller holds the domain's lock.
func (d *domain) move(ctx context.Context, step nextStep, m qemu.Migration) error {
	return move{d}.step(ctx, step, m)
}

func (d move) step(ctx context.Context, step nextStep, m qemu.Migration) error {
	rec, _, vm := d.Present()
	switch step {
	case stepActivate:
		return d.letArrive(ctx, vm, func(*jobRecord) {})
	case stepArrive:
		return d.arriveCold(ctx, vm)
	case stepSend:
		return d.send(ctx, vm)
	case stepFinishMirrors:
		return vm.FinishMirrors(ctx, rec.VM)
	case stepSwitchToPostCopy:
		return d.goOver(ctx, vm)
	case stepHalt:
		return vm.Stop(ctx)
	case stepContinue, stepEndWait:
		return vm.MigrateContinue(ctx, m.Status)
	case stepAnnounce:
		d.announce(d.stood(m))
	case stepKeepAtSource:
		return d.keep(ctx, vm, m)
	case stepGiveUp:
		return d.giveUp(ctx, vm, hypervisor.JobFailed)
	}
	return nil
}
