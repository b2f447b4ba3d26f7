package client

import (
	"context"
	"errors"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A Move is a request for a migration.
type Move struct {
	VM       hypervisor.VMID
	Target   hypervisor.HostName // "" lets the controller choose
	Force    placement.Force     // only with a Target
	Priority migration.Priority
}

// Migrate requests a migration.
func (d *Client) Migrate(ctx context.Context, m Move) (*store.Migration, error) {
	if err := d.sensible(ctx, m); err != nil {
		return nil, err
	}
	now := d.Now().UTC().Round(0)
	r := &store.Migration{Spec: migration.Spec{ID: newID(m.VM, now), VM: m.VM, Created: now,
		Priority: m.Priority, By: migration.User, Target: m.Target, Force: m.Force}}
	stored, err := d.Store.Put(ctx, r)
	if errors.Is(err, store.Unanswered) {
		stored, err = d.landed(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	return stored.(*store.Migration), nil
}

// sensible refuses a migration that could not begin.
func (d *Client) sensible(ctx context.Context, m Move) error {
	what := "migrate " + string(m.VM)
	r, err := d.Store.Get(ctx, vmKey(m.VM))
	if err != nil {
		return err
	}
	v, is := r.(*store.VM)
	switch {
	case !is:
		return d.Missing(ctx, vmKey(m.VM))
	case m.Target == "" && m.Force != placement.Absent:
		return refuse(what, "--force needs --to HOST")
	case m.Target != "" && m.Target == v.Host:
		return refuse(what, "it is on %s already", m.Target)
	case v.Host == "":
		return refuse(what, "it has no host yet")
	case v.Stopped:
		return refuse(what, "it is stopped: godwit vm start it first")
	case v.Evicted != nil:
		return refuse(what, "it is shut down because %s drains: godwit host undrain starts it again", v.Host)
	}
	if can, why := v.CanMigrate(); !can {
		return refuse(what, "it cannot migrate: %s", why)
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
	if v.ActiveMigration != "" {
		claimant, err := d.Store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(v.ActiveMigration)})
		if err != nil {
			return err
		}
		if claimant == nil {
			return refuse(what, "migration %s has claimed it and does not exist: godwit vm release %s "+
				"removes the claim", v.ActiveMigration, m.VM)
		}
	}
	others, err := d.unfinished(ctx, m.VM)
	asked := migration.Spec{VM: m.VM, By: migration.User, Target: m.Target, Priority: m.Priority}
	others = slices.DeleteFunc(others, func(o *store.Migration) bool {
		return o.State.Target == "" && o.Options == nil && asked.Replaces(&o.Spec)
	})
	if err == nil && len(others) > 0 {
		o := others[0]
		return refuse(what, "migration %s of it has not ended: wait, or godwit cancel it",
			o.Spec.ID)
	}
	return err
}

// Cancel cancels migrations: the one with this name, or all of this VM that have not ended. It
// returns the cancelled ones. After the switch-over a cancellation has no effect.
func (d *Client) Cancel(ctx context.Context, name string) ([]*store.Migration, error) {
	found, err := d.found(ctx, name)
	if err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(slices.Clone(found), func(m *store.Migration) bool {
		return m.State.Phase.Final()
	})
	if len(open) == 0 {
		return nil, refuse("cancel "+name, "no migration of it is running")
	}
	var asked []*store.Migration
	for _, m := range open {
		r, err := d.change(ctx, m.Key(), func(r store.Record) (store.Record, error) {
			next := *r.(*store.Migration)
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
		asked = append(asked, r.(*store.Migration))
	}
	return asked, nil
}

// found finds the migration of a name, or those of a VM.
func (d *Client) found(ctx context.Context, name string) ([]*store.Migration, error) {
	key := store.Key{Kind: store.MigrationKind, Name: name}
	r, err := d.Store.Get(ctx, key)
	if m, is := r.(*store.Migration); is || err != nil {
		return []*store.Migration{m}, err
	}
	vm, err := d.Store.Get(ctx, vmKey(ID(name)))
	if err != nil {
		return nil, err
	}
	if vm == nil {
		return nil, d.Missing(ctx, vmKey(ID(name)))
	}
	all, err := list[*store.Migration](ctx, d.Store)
	return slices.DeleteFunc(all, func(m *store.Migration) bool {
		return m.Spec.VM != ID(name)
	}), err
}

// VMOf returns the VM of a name: its own, or that of one of its migrations.
func (d *Client) VMOf(ctx context.Context, name string) (hypervisor.VMID, error) {
	r, err := d.Store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: name})
	if m, is := r.(*store.Migration); is || err != nil {
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
