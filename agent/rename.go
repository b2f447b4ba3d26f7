package agent

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// rename gives a VM that rests its new name. What the host knows of the old one goes first: only a
// record starts a VM, and until one of the new name is stored none does. The record of the new name is
// stored on condition that the one of the old has not changed, which is deleted then. Each step is
// found done by the next agent.
func (a *Agent) rename(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) error {
	as, err := store.VMNamed(ctx, a.store, v.Rename.To)
	switch {
	case err != nil:
		return err
	case v.Rename.Done(as):
		return a.dropName(ctx, v, as, now)
	case as != nil:
		return a.notRenamed(ctx, v, "there is another VM of this name", now)
	}
	if why := v.CannotRename(); why != "" {
		return a.notRenamed(ctx, v, why, now)
	}
	if v, err = a.begins(ctx, v, store.Renaming); err != nil {
		return err
	}
	if d.State != hypervisor.Absent {
		err = a.hv.Do(ctx, v.VM.ID, hypervisor.Forget{})
		if refuses(err, hypervisor.Conflict, hypervisor.Invalid, hypervisor.Unsupported) {
			return a.notRenamed(ctx, v, errorText(err), now)
		}
		if err != nil {
			return err
		}
	}
	life, err := store.NewLife(ctx, a.store, v.Rename.ID)
	if err != nil {
		return err
	}
	if a.config.Epoch != nil {
		life.Epoch = a.config.Epoch()
	}
	stored, err := a.store.Put(ctx, v.Renamed(*life), v, a.ownRecord())
	if err != nil {
		return err
	}
	return a.dropName(ctx, v, stored.(*store.VM), now)
}

// dropName deletes the record of a VM that has its new name. Nothing of it runs: it was stopped.
func (a *Agent) dropName(ctx context.Context, v, as *store.VM, now time.Time) error {
	if err := a.store.Delete(ctx, v, a.ownRecord()); err != nil && !errors.Is(err, store.Stale) {
		return err
	}
	said := asked("renamed to "+string(as.VM.ID), v.Rename.By)
	a.recorder.Note(now, a.host, v.VM.ID, said)
	a.recorder.Note(now, a.host, as.VM.ID, asked("was "+string(v.VM.ID), v.Rename.By))
	return nil
}

// notRenamed takes the request back, and tells why.
func (a *Agent) notRenamed(ctx context.Context, v *store.VM, why string, now time.Time) error {
	said := "not renamed to " + string(v.Rename.To) + ": " + why
	_, err := a.tell(ctx, v, func(next *store.VM) {
		next.Rename, next.Trouble = nil, said
		if next.Operation == store.Renaming {
			next.Operation = store.Nothing
		}
	})
	if err == nil {
		a.recorder.Note(now, a.host, v.VM.ID, said)
	}
	return err
}
