package controller_test

import (
	"context"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/store"
)

func newBoss(c *cluster, s store.Store) *controller.Controller {
	return controller.New(c.config, s, store.DiscardEvents{})
}

// A rival writes a VM just before the controller does, so many times.
type rival struct {
	*cluster
	left int
}

// Get implements store.Store.
func (r *rival) Get(ctx context.Context, key store.Key) (store.Record, error) {
	return r.store.Get(ctx, key)
}

// Put implements store.Store.
func (r *rival) Put(ctx context.Context, rec store.Record, while ...store.Record) (
	store.Record, error) {
	if v, ok := rec.(*store.VM); ok && r.left > 0 {
		r.left--
		next := *r.vm(v.VM.ID)
		next.Labels = map[string]string{"written": "by an operator"}
		r.put(&next)
	}
	return r.store.Put(ctx, rec)
}

// Delete implements store.Store.
func (r *rival) Delete(ctx context.Context, rec store.Record, while ...store.Record) error {
	return r.store.Delete(ctx, rec)
}

// Changes implements store.Store.
func (r *rival) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	return r.store.Changes(ctx, f, since)
}

// blocked is a store that takes no VMs until it is open.
type blocked struct {
	*saboteur
	open bool
}

// Put implements store.Store.
func (b *blocked) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if _, vm := r.(*store.VM); vm && !b.open {
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unavailable}
	}
	return b.saboteur.Put(ctx, r)
}

// Put implements store.Store.
func (b *between) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if b.at--; b.at == 0 {
		b.then()
	}
	return b.saboteur.Put(ctx, r)
}
