//go:build linux

package qmp

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/monitor"
)

// A move is a domain that takes part in a migration.
type move struct{ *Domain }

// Step does a step of a migration that is due. The caller holds the domain's turn.
func Step(ctx context.Context, of *Domain, step NextStep, m monitor.Migration) error {
	d := move{of}
	rec, _, vm := d.Present()
	switch step {
	case Activate:
		return d.letArrive(ctx, vm, func(*Job) {})
	case Arrive:
		return d.arriveCold(ctx, vm)
	case Send:
		return d.send(ctx, vm)
	case FinishMirrors:
		return vm.FinishMirrors(ctx, rec.VM)
	case GoOver:
		return d.goOver(ctx, vm)
	case Halt:
		return vm.Stop(ctx)
	case Continue, EndWait:
		return vm.MigrateContinue(ctx, m.Status)
	case Announce:
		d.announce(d.stood(m))
	case Keep:
		return d.keep(ctx, vm, m)
	case GiveUp:
		return d.giveUp(ctx, vm, hypervisor.JobFailed)
	}
	return nil
}
