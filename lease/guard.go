package lease

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/record"
)

var errNotLeading = errors.New("this process does not lead, or no longer: nothing was written")

// Guard returns a store that writes only while the elector leads in the term in which it
// does now. The record that says so goes with every write as a condition, as fencing
// token: a write that was begun in time and arrives after another has taken over is
// refused by the store, whatever anybody believes. A write in another term answers Stale
// without asking. When the store says that the term is over, the elector is told.
//
// Reading is not guarded: who no longer leads may read what they like. The result is a
// [record.Waiter] if store is one. It belongs to the elector's caller.
func Guard(store record.Store, e *Elector) record.Store {
	leader, _ := e.Leading()
	g := &guard{Store: store, elector: e, leader: leader}
	if w, ok := store.(record.Waiter); ok {
		return &waiting{g, w}
	}
	return g
}

// guard is a store for one term; leader is nil when there is none.
type guard struct {
	record.Store
	elector *Elector
	leader  *record.Leader
}

// waiting is a guard of a store that can tell when to look.
type waiting struct {
	*guard
	record.Waiter
}

// Put implements [record.Store].
func (g *guard) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	if !g.elector.leads(g.leader) {
		return nil, g.over("Put")
	}
	stored, err := g.Store.Put(ctx, r, g.and(while)...)
	return stored, g.heed(err)
}

// Delete implements [record.Store].
func (g *guard) Delete(ctx context.Context, r record.Record, while ...record.Record) error {
	if !g.elector.leads(g.leader) {
		return g.over("Delete")
	}
	return g.heed(g.Store.Delete(ctx, r, g.and(while)...))
}

// and adds the token to the conditions of a write, which it does not change.
func (g *guard) and(while []record.Record) []record.Record {
	return append([]record.Record{g.leader}, while...)
}

// heed tells the elector when an error says that its term is over.
func (g *guard) heed(err error) error {
	e, ok := errors.AsType[*record.StoreError](err)
	if ok && e.Kind == record.Stale && e.Key == g.leader.Key() {
		g.elector.lost(g.leader)
	}
	return err
}

// over is the answer to a write outside of the term.
func (g *guard) over(op string) error {
	key := (&record.Leader{Name: g.elector.config.Name}).Key()
	return &record.StoreError{Op: op, Key: key, Kind: record.Stale, Err: errNotLeading}
}
