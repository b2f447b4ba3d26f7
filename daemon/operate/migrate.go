package operate

import (
	"context"
	"errors"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement/choose"
	"github.com/godwit-vm/godwit/record"
)

// A Move is what is asked of a migration.
type Move struct {
	VM       hypervisor.VMID
	Target   hypervisor.HostName // "" lets the controller choose
	Force    choose.Force        // only with a Target
	Priority migration.Priority
}

// Migrate asks for a migration.
func (d *Desk) Migrate(ctx context.Context, m Move) (*record.Migration, error) {
	if err := d.sensible(ctx, m); err != nil {
		return nil, err
	}
	now := d.Now().UTC().Round(0)
	r := &record.Migration{Spec: migration.Spec{ID: newID(m.VM, now), VM: m.VM, Created: now,
		Priority: m.Priority, By: migration.User, Target: m.Target, Force: m.Force}}
	stored, err := d.Store.Put(ctx, r)
	if errors.Is(err, record.Unanswered) {
		stored, err = d.landed(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	return stored.(*record.Migration), nil
}

// sensible refuses a migration that could not begin.
func (d *Desk) sensible(ctx context.Context, m Move) error {
	what := "migrate " + string(m.VM)
	r, err := d.Store.Get(ctx, vmKey(m.VM))
	if err != nil {
		return err
	}
	v, is := r.(*record.VM)
	switch {
	case !is:
		return d.Missing(ctx, vmKey(m.VM))
	case m.Target == "" && m.Force != choose.Absent:
		return refuse(what, "force needs a host to force: say --to HOST")
	case m.Target != "" && m.Target == v.Host:
		return refuse(what, "it is on %s already", m.Target)
	case v.Host == "":
		return refuse(what, "it has no host yet")
	case v.Stopped:
		return refuse(what, "it is stopped: godwit vm start it first")
	case v.Evicted != nil:
		return refuse(what, "it is shut down to leave %s: godwit host undrain lets it run on", v.Host)
	case !v.Migratable:
		return refuse(what, "it cannot migrate: %s", v.WhyNot)
	}
	if m.Target != "" {
		h, err := d.Store.Get(ctx, hostKey(m.Target))
		if err != nil {
			return err
		}
		if h == nil {
			return d.Missing(ctx, hostKey(m.Target))
		}
	}
	if v.Claim != "" {
		claimant, err := d.Store.Get(ctx, record.Key{Kind: record.MigrationKind, Name: string(v.Claim)})
		if err != nil {
			return err
		}
		if claimant == nil {
			return refuse(what, "migration %s has claimed it and is not known: godwit vm release %s takes "+
				"the claim back", v.Claim, m.VM)
		}
	}
	others, err := d.unfinished(ctx, m.VM)
	asked := migration.Spec{VM: m.VM, By: migration.User, Target: m.Target, Priority: m.Priority}
	others = slices.DeleteFunc(others, func(o *record.Migration) bool {
		return o.State.Target == "" && o.Options == nil && asked.Replaces(&o.Spec)
	})
	if err == nil && len(others) > 0 {
		o := others[0]
		return refuse(what, "migration %s of it has not ended: wait, or godwit cancel it",
			o.Spec.ID)
	}
	return err
}

// Cancel asks for migrations to end: the one of this name, or all of this VM that have not
// ended. It answers those that were asked. Past the switch-over it is too late: then they
// end as they will.
func (d *Desk) Cancel(ctx context.Context, name string) ([]*record.Migration, error) {
	found, err := d.found(ctx, name)
	if err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(slices.Clone(found), func(m *record.Migration) bool {
		return m.State.Phase.Final()
	})
	if len(open) == 0 {
		return nil, refuse("cancel "+name, "no migration of it is under way")
	}
	var asked []*record.Migration
	for _, m := range open {
		r, err := d.change(ctx, m.Key(), func(r record.Record) (record.Record, error) {
			next := *r.(*record.Migration)
			if next.State.Phase.Final() {
				return nil, refuse("cancel "+string(m.Spec.ID), "it has ended: %s",
					next.State.Phase)
			}
			next.Cancel = true
			return &next, nil
		})
		if err != nil {
			return asked, err
		}
		asked = append(asked, r.(*record.Migration))
	}
	return asked, nil
}

// found finds the migration of a name, or those of a VM.
func (d *Desk) found(ctx context.Context, name string) ([]*record.Migration, error) {
	key := record.Key{Kind: record.MigrationKind, Name: name}
	r, err := d.Store.Get(ctx, key)
	if m, is := r.(*record.Migration); is || err != nil {
		return []*record.Migration{m}, err
	}
	vm, err := d.Store.Get(ctx, vmKey(ID(name)))
	if err != nil {
		return nil, err
	}
	if vm == nil {
		return nil, d.Missing(ctx, vmKey(ID(name)))
	}
	all, err := list[*record.Migration](ctx, d.Store)
	return slices.DeleteFunc(all, func(m *record.Migration) bool {
		return m.Spec.VM != ID(name)
	}), err
}

// VMOf returns the VM of a name: its own, or that of one of its migrations.
func (d *Desk) VMOf(ctx context.Context, name string) (hypervisor.VMID, error) {
	r, err := d.Store.Get(ctx, record.Key{Kind: record.MigrationKind, Name: name})
	if m, is := r.(*record.Migration); is || err != nil {
		if err != nil {
			return "", err
		}
		return m.Spec.VM, nil
	}
	if r, err = d.Store.Get(ctx, vmKey(ID(name))); err != nil {
		return "", err
	}
	if r == nil {
		return "", d.Missing(ctx, vmKey(ID(name)))
	}
	return ID(name), nil
}
