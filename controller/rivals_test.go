package controller_test

import (
	"context"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/record"
)

func newBoss(c *cluster, s record.Store) *controller.Controller {
	return controller.New(c.config, s, record.Silent{})
}

// A rival writes a VM just before the controller does, so many times.
type rival struct {
	*cluster
	left int
}

// Get implements record.Store.
func (r *rival) Get(ctx context.Context, key record.Key) (record.Record, error) {
	return r.store.Get(ctx, key)
}

// Put implements record.Store.
func (r *rival) Put(ctx context.Context, rec record.Record, while ...record.Record) (
	record.Record, error) {
	if v, ok := rec.(*record.VM); ok && r.left > 0 {
		r.left--
		next := *r.vm(v.VM.ID)
		next.Labels = map[string]string{"written": "by an operator"}
		r.put(&next)
	}
	return r.store.Put(ctx, rec)
}

// Delete implements record.Store.
func (r *rival) Delete(ctx context.Context, rec record.Record, while ...record.Record) error {
	return r.store.Delete(ctx, rec)
}

// Changes implements record.Store.
func (r *rival) Changes(ctx context.Context, f record.Feed, since record.Revision) (
	record.Changes, error) {
	return r.store.Changes(ctx, f, since)
}

// blocked is a store that takes no VMs until it is open.
type blocked struct {
	*saboteur
	open bool
}

// Put implements record.Store.
func (b *blocked) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	if _, vm := r.(*record.VM); vm && !b.open {
		return nil, &record.StoreError{Op: "Put", Key: r.Key(), Kind: record.Unavailable}
	}
	return b.saboteur.Put(ctx, r)
}

// Put implements record.Store.
func (b *between) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	if b.at--; b.at == 0 {
		b.then()
	}
	return b.saboteur.Put(ctx, r)
}
