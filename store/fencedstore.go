package store

import (
	"context"
	"errors"
)

var errNotLeading = errors.New("this process does not lead, or no longer: nothing was written")

// FencedStore returns a store that writes only while the elector leads in the term in which it
// does now. The record that says so goes with every write as a condition, as fencing
// token: a write that was begun in time and arrives after another has taken over is
// refused by the store, whatever the writer believes. A write in another term answers Stale
// without asking. When the store says that the term is over, the elector is told.
//
// Reading is not guarded: a controller that no longer leads may read. The result is a
// [Waiter] if store is one. It belongs to the elector's caller.
func FencedStore(store Store, e *Elector) Store {
	leader, _ := e.Leading()
	g := &fencedStore{Store: store, elector: e, leader: leader}
	if w, ok := store.(Waiter); ok {
		return &waiting{g, w}
	}
	return g
}

// fencedStore is a store for one term; leader is nil when there is none.
type fencedStore struct {
	Store
	elector *Elector
	leader  *Leader
}

// waiting is a fencedStore of a store that can tell when to look.
type waiting struct {
	*fencedStore
	Waiter
}

// Put implements [Store].
func (g *fencedStore) Put(ctx context.Context, r Record, while ...Record) (
	Record, error) {
	if !g.elector.leads(g.leader) {
		return nil, g.over("Put")
	}
	stored, err := g.Store.Put(ctx, r, g.and(while)...)
	return stored, g.heed(err)
}

// Delete implements [Store].
func (g *fencedStore) Delete(ctx context.Context, r Record, while ...Record) error {
	if !g.elector.leads(g.leader) {
		return g.over("Delete")
	}
	return g.heed(g.Store.Delete(ctx, r, g.and(while)...))
}

// and adds the token to the conditions of a write, which it does not change.
func (g *fencedStore) and(while []Record) []Record {
	return append([]Record{g.leader}, while...)
}

// heed tells the elector when an error says that its term is over.
func (g *fencedStore) heed(err error) error {
	e, ok := errors.AsType[*StoreError](err)
	if ok && e.Kind == Stale && e.Key == g.leader.Key() {
		g.elector.lost(g.leader)
	}
	return err
}

// over is the answer to a write outside of the term.
func (g *fencedStore) over(op string) error {
	key := (&Leader{Name: g.elector.config.Name}).Key()
	return &StoreError{Op: op, Key: key, Kind: Stale, Err: errNotLeading}
}
