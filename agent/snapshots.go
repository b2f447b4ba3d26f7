package agent

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// snapshots does what is asked for of a VM's snapshots, one request after the other. It returns the VM
// as it is stored then.
func (a *Agent) snapshots(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	if !v.Asking() {
		return v, nil
	}
	calm := v.Operation == store.Nothing || v.Operation == store.Snapshotting
	steady := d.State == hypervisor.Running || d.State == hypervisor.Paused || rests(d.State)
	if !calm || !steady || v.MovesDisk() {
		a.queue.At(v.Key(), now.Add(a.config.Poll))
		return v, nil
	}
	for i := range v.SnapshotRequests {
		if !v.SnapshotRequests[i].Ended.IsZero() {
			continue
		}
		next, err := a.snapshot(ctx, v, i, d, now)
		if err != nil {
			return nil, err
		}
		v = next
	}
	return v, nil
}

// snapshot does what request i asks for, once: what is refused has ended, and is not tried again. It
// is announced before: no migration begins until it has ended. A call without an answer is repeated.
func (a *Agent) snapshot(ctx context.Context, v *store.VM, i int, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	r := v.SnapshotRequests[i]
	v, err := a.begins(ctx, v, store.Snapshotting)
	if err != nil {
		return nil, err
	}
	why, err := a.doSnapshot(ctx, v, r, d)
	if err != nil {
		return nil, err
	}
	v, err = a.tell(ctx, v, func(next *store.VM) {
		if next.EndSnapshot(i, why, now.UTC().Round(0)); !next.Asking() {
			next.Operation = store.Nothing
		}
	})
	if err == nil {
		said := asked(r.Words(), r.By) + ": done"
		if why != "" {
			said = asked(r.Words(), r.By) + ": refused: " + why
		}
		a.recorder.Note(now, a.host, v.VM.ID, said)
	}
	return v, err
}

// doSnapshot does what a request asks for, or returns why not, in words.
func (a *Agent) doSnapshot(ctx context.Context, v *store.VM, r store.SnapshotRequest,
	d hypervisor.Domain) (string, error) {
	host, err := a.hv.Host(ctx)
	switch {
	case err != nil:
		return "", err
	case !host.Abilities.Has(hypervisor.CanSnapshot):
		return string(a.host) + " cannot make snapshots", nil
	case d.State == hypervisor.Absent || d.State == hypervisor.Crashed:
		return "it has to be running, or shut off, and is " + d.State.String(), nil
	case r.What == store.RevertSnapshot && d.State != hypervisor.Shutoff:
		return "a disk is reverted only while its VM is stopped: godwit vm stop it first", nil
	}
	var what hypervisor.Command = hypervisor.Snapshot{Disk: r.Disk, Name: r.Name}
	switch r.What {
	case store.DeleteSnapshot:
		what = hypervisor.DeleteSnapshot{Disk: r.Disk, Name: r.Name}
	case store.RevertSnapshot:
		what = hypervisor.RevertSnapshot{Disk: r.Disk, Name: r.Name}
	}
	err = a.hv.Do(ctx, v.VM.ID, what)
	if refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict, hypervisor.NotFound, hypervisor.Transient) {
		return errorText(err), nil
	}
	return "", err
}
