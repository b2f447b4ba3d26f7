package agent

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// receive does what a migration asks of its target.
func (a *Agent) receive(ctx context.Context, m *store.Migration, now time.Time) error {
	switch p := m.State.Phase; {
	case m.Source.Ceded && !p.Final() && !m.Target.Completed && !m.Source.Failed:
		return a.arrivedWithoutMemory(ctx, m, now) // this host has what is left of it
	case p == migration.Pending || p == migration.Scheduling || p == migration.Scheduled:
		return a.makeRoom(ctx, m, now)
	case p == migration.Failed:
		return a.discard(ctx, m, now)
	case p.Final() || m.Target.Completed || m.Target.Discarded:
		return nil
	case m.Target.Address == "" && m.Target.Down:
		return nil // refused
	case m.Target.Address == "":
		return a.listen(ctx, m, now)
	}
	return a.watchArrival(ctx, m, now)
}

// makeRoom says whether this host can take the VM. The reservations of the controller
// say so already; this is the late check, on the host itself.
func (a *Agent) makeRoom(ctx context.Context, m *store.Migration, now time.Time) error {
	switch {
	case m.Attach && m.Target.Ready && !m.Target.Attached && !m.Target.Detached:
		_, err := a.report(ctx, m, func(r *store.Migration) { r.Target.Attached = true })
		return err
	case m.Target.Ready || m.Target.Refused != nil:
		return nil
	}
	vm, err := store.VMNamed(ctx, a.store, m.Spec.VM)
	if err != nil || vm == nil {
		return err
	}
	why, err := a.lacks(ctx, m, vm)
	if err != nil {
		return err
	}
	if len(why) > 0 {
		refusal := &hypervisor.Refusal{Reasons: why}
		return a.announce(ctx, m, now, "target refused: "+refusal.Error(),
			func(r *store.Migration) { r.Target.Refused = why })
	}
	_, err = a.report(ctx, m, func(r *store.Migration) { r.Target.Ready = true })
	return err
}

// listen opens the target and tells where it listens. Nothing else of the VM may
// be here: what rests here later has come by this migration.
func (a *Agent) listen(ctx context.Context, m *store.Migration, now time.Time) error {
	vm, err := store.VMNamed(ctx, a.store, m.Spec.VM)
	if err != nil || vm == nil {
		return err
	}
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	switch {
	case err != nil:
		return err
	case d.State != hypervisor.Absent && d.Job != m.Spec.ID:
		return a.refuse(ctx, m, "the VM is here: "+d.State.String(), now)
	}
	address, err := a.hv.Receive(ctx, hypervisor.Incoming{Job: m.Spec.ID, VM: vm.Now()})
	switch {
	case refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict):
		return a.refuse(ctx, m, err.Error(), now)
	case err != nil:
		return errors.Join(err, a.cannotListen(ctx, m, err))
	}
	_, err = a.report(ctx, m, func(r *store.Migration) {
		r.Target.Address, r.Target.Error = address, ""
	})
	return err
}

// cannotListen tells why this host could not prepare the VM, once for each reason. A call that
// was not answered says nothing.
func (a *Agent) cannotListen(ctx context.Context, m *store.Migration, why error) error {
	words := errorText(why)
	if errors.Is(why, hypervisor.Unknown) || m.Target.Error == words {
		return nil
	}
	_, err := a.report(ctx, m, func(r *store.Migration) { r.Target.Error = words })
	return err
}

// refuse tells that this host will not receive the VM.
func (a *Agent) refuse(ctx context.Context, m *store.Migration, why string, now time.Time) error {
	return a.announce(ctx, m, now, "target refused: "+why, func(r *store.Migration) {
		r.Target.Down = true
	})
}

// watchArrival tells that the VM runs here, or that the copy here never will.
func (a *Agent) watchArrival(ctx context.Context, m *store.Migration, now time.Time) error {
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	if err != nil {
		return err
	}
	own := d.Job == m.Spec.ID
	switch {
	case own && (d.State.Executes() || d.State == hypervisor.Paused):
		return a.arriving(ctx, m, now)
	case own && d.State.Rests():
		return a.arrivedWithoutMemory(ctx, m, now)
	case own && d.State == hypervisor.Received:
		return a.activate(ctx, m, now)
	case own && d.State == hypervisor.Receiving && !m.Source.Unresolved && !m.Dead(m.State.Source):
		a.again(m, now, a.config.Resync)
		return nil
	case m.Source.HandedOver: // nothing is left of it but its disks
		return a.arrivedWithoutMemory(ctx, m, now)
	}
	// What is here, if anything, holds no complete state, and its source has
	// stopped or is gone, or it has ended: make sure that it never runs.
	return a.giveUp(ctx, m, now)
}

// activate starts a VM that was received and held. A host with take-back has received it
// only when its source has stopped for good; on the others the hypervisor may yet let the
// source run again, until that is handed over. A host that is cut off starts nothing.
func (a *Agent) activate(ctx context.Context, m *store.Migration, now time.Time) error {
	if may, err := a.mayRun(ctx, m, now); err != nil || !may {
		return err
	}
	host, err := a.hv.Host(ctx)
	if err != nil {
		return err
	}
	if !host.Abilities.Has(hypervisor.CanTakeBack) && !m.Source.HandedOver {
		a.again(m, now, a.config.Poll)
		return nil
	}
	return a.hv.Do(ctx, m.Spec.VM, hypervisor.Activate{Job: m.Spec.ID,
		Stopped: hypervisor.Evidence{Proof: hypervisor.SourceStopped, VM: m.Spec.VM,
			Host: m.State.Source, Job: m.Spec.ID, By: "agent/" + string(a.host)}})
}

// arrived tells that the VM is here.
func (a *Agent) arrived(ctx context.Context, m *store.Migration, now time.Time) error {
	return a.announce(ctx, m, now, "arrived", func(r *store.Migration) {
		r.Target.Completed = true
	})
}

// arrivedWithoutMemory tells that the VM came here, ran, and was lost with its
// memory: it rests here and starts anew.
func (a *Agent) arrivedWithoutMemory(ctx context.Context, m *store.Migration,
	now time.Time) error {
	return a.announce(ctx, m, now, "arrived, but has lost its memory", func(r *store.Migration) {
		r.Target.Completed, r.Target.Lost = true, true
	})
}

// arriving waits until nothing is missing any more: a VM that runs here and still
// fetches memory has not arrived, nor has one that cannot fetch it any more. Whether it
// does this host knows before the source has told.
func (a *Agent) arriving(ctx context.Context, m *store.Migration, now time.Time) error {
	p, err := a.hv.Progress(ctx, m.Spec.ID)
	if err != nil {
		return err
	}
	under := p.Status != hypervisor.JobNone && !p.Status.Final()
	if under && (p.Mode == hypervisor.PostCopy || m.Source.Mode == hypervisor.PostCopy) {
		a.again(m, now, a.config.Poll)
		return nil
	}
	return a.arrived(ctx, m, now)
}

// giveUp discards the copy here and says so: that is evidence for the source. A host
// that does not discard it while its source sends is asked again.
func (a *Agent) giveUp(ctx context.Context, m *store.Migration, now time.Time) error {
	err := a.hv.Do(ctx, m.Spec.VM, hypervisor.Discard{Job: m.Spec.ID})
	if errors.Is(err, hypervisor.Conflict) {
		a.again(m, now, a.config.Retry)
		return nil
	}
	if err != nil && !errors.Is(err, hypervisor.NotFound) {
		return err
	}
	return a.announce(ctx, m, now, "target discarded", func(r *store.Migration) {
		r.Target.Down, r.Target.Discarded = true, true
	})
}

// discard clears away the target of a migration that has failed: its source
// has kept the VM, or never began.
func (a *Agent) discard(ctx context.Context, m *store.Migration, now time.Time) error {
	if m.Target.Address == "" && m.Target.Discarded {
		return nil
	}
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	own := d.Job == m.Spec.ID
	switch {
	case err != nil:
		return err
	case own && (d.State.Executes() || d.State == hypervisor.Paused):
		a.note(now, m, "runs here although its migration failed: left alone")
		return nil
	case own && d.State.Rests() && a.home.Get(m.Spec.VM) == nil:
		err = a.removeRest(ctx, m)
	case m.Target.Discarded && (!own || d.State == hypervisor.Absent):
		return nil
	case own && !d.State.Rests() || d.State == hypervisor.Absent:
		err = a.hv.Do(ctx, m.Spec.VM, hypervisor.Discard{Job: m.Spec.ID})
	}
	switch refused := errors.Is(err, hypervisor.Conflict); {
	case refused && d.State == hypervisor.Absent: // it ran here, and its rest was removed
	case refused: // not before its hypervisor misses the source
		a.again(m, now, a.config.Retry)
		return nil
	case err != nil && !errors.Is(err, hypervisor.NotFound):
		return err
	}
	if m.Target.Discarded {
		return nil
	}
	_, err = a.report(ctx, m, func(r *store.Migration) { r.Target.Discarded = true })
	return err
}

// removeRest removes what a VM that ran here and was lost has left: the record
// says that it is at the source.
func (a *Agent) removeRest(ctx context.Context, m *store.Migration) error {
	return a.hv.Do(ctx, m.Spec.VM, hypervisor.Release{Job: m.Spec.ID,
		Moved: m.Testimony(hypervisor.RunsAtTarget, m.State.Source)})
}
