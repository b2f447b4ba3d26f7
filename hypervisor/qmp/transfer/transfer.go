//go:build linux

// Package transfer moves VMs: a target that is opened and starts, a source that
// sends and stops, and what either does with evidence about the other.
//
//	target   Receive → Prepare heard → memory → Stopped heard → the guest runs
//	source   Migrate → memory → the guest stands → Stopped said → Release
//
// Everything is done by who holds the domain's turn, and follows from the journal
// and from what QEMU says, so that dying in between does no harm.
package transfer

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/domain"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// A move is a domain that takes part in a migration.
type move struct{ *domain.Domain }

// Step does a step of a migration that is due. The caller holds the domain's turn.
func Step(ctx context.Context, of *domain.Domain, step life.Step, m qapi.Migration) error {
	d := move{of}
	rec, _, vm := d.Present()
	switch step {
	case life.Activate:
		return d.letArrive(ctx, vm, func(*journal.Job) {})
	case life.Arrive:
		return d.arriveCold(ctx, vm)
	case life.Send:
		return d.send(ctx, vm)
	case life.FinishMirrors:
		return vm.FinishMirrors(ctx, rec.VM)
	case life.GoOver:
		return d.goOver(ctx, vm)
	case life.Halt:
		return vm.Stop(ctx)
	case life.Continue, life.EndWait:
		return vm.MigrateContinue(ctx, m.Status)
	case life.Announce:
		d.announce(d.stood(m))
	case life.Keep:
		return d.keep(ctx, vm, m)
	case life.GiveUp:
		return d.giveUp(ctx, vm, hypervisor.JobFailed)
	}
	return nil
}
