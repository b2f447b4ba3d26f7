package agent

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// keepRunning sees to it that a VM that belongs here does what its record says.
// A VM that a migration has claimed is left alone, whatever it does.
func (a *Agent) keepRunning(ctx context.Context, v *record.VM, now time.Time) error {
	if v.Claim != "" || v.Ended {
		return nil
	}
	d, err := a.hv.Domain(ctx, v.VM.ID)
	if err != nil {
		return err
	}
	switch d.State {
	case hypervisor.Shutoff, hypervisor.Crashed, hypervisor.Absent:
		if v.Stopped {
			return a.ended(ctx, v)
		}
		return a.startAnew(ctx, v, now)
	case hypervisor.Running:
		if v.Stopped {
			a.timers.Set(v.Key(), now.Add(a.config.Poll))
			return a.hv.Do(ctx, v.VM.ID, hypervisor.Stop{Grace: time.Minute})
		}
	}
	return nil
}

// startAnew starts a VM from its disks. It announces that first: the writing
// fails when the VM has been claimed or has moved since this agent read it.
func (a *Agent) startAnew(ctx context.Context, v *record.VM, now time.Time) error {
	next := *v
	next.Boots++
	stored, err := a.store.Put(ctx, &next)
	if err != nil {
		return err
	}
	a.vms[v.VM.ID] = stored.(*record.VM)
	a.noter.Note(now, a.host, v.VM.ID, "starts anew")
	return a.hv.Do(ctx, v.VM.ID, hypervisor.Start{VM: v.VM})
}

// ended tells that a VM that shall not run has stopped.
func (a *Agent) ended(ctx context.Context, v *record.VM) error {
	next := *v
	next.Ended = true
	stored, err := a.store.Put(ctx, &next)
	if err == nil {
		a.vms[v.VM.ID] = stored.(*record.VM)
	}
	return err
}
