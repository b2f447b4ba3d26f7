package audit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
	"github.com/godwit-vm/godwit/record"
)

// A Trail writes what one participant notes and stores to a file. It is a [record.Noter] and
// a [record.Auditor], and [Trail.Over] makes a store that writes down what it stores.
type Trail struct {
	File *File
	// By names the participant: "controller/a".
	By string
	// Now is the clock of the lines.
	Now func() time.Time
	// Term is the term of the leader, 0 for whoever leads nobody. Default: 0.
	Term func() uint64
}

var _ record.Auditor = (*Trail)(nil)

// add writes a line. An error is kept by the file: see [File.Err].
func (t *Trail) add(l Line) {
	l.By = t.By
	if t.Term != nil {
		l.Term = t.Term()
	}
	if l.At.IsZero() {
		l.At = t.Now()
	}
	l.At = l.At.UTC().Round(0)
	_ = t.File.Append(l)
}

// Begin writes down that the participant begins.
func (t *Trail) Begin(what string) { t.add(Line{Kind: StartKind, What: what}) }

// Note implements record.Noter.
func (t *Trail) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	t.add(Line{At: at, Kind: NoteKind, VM: vm, Host: who, What: what})
}

// Audit implements record.Auditor.
func (t *Trail) Audit(e reserve.Entry) {
	t.add(Line{At: e.At, Kind: BooksKind, VM: e.VM, Migration: e.Move, Host: e.Target,
		What: fmt.Sprintf("%s by %s: %s and %d CPUs, %s→%s", e.Step, e.Owner, e.Amount.Memory,
			e.Amount.CPUs, e.Source, e.Target)})
}

// Over returns a store that does what s does, and writes down what was stored, but for
// leases: they say nothing but that their owners live.
func (t *Trail) Over(s record.Store) record.Store { return &audited{Store: s, trail: t} }

type audited struct {
	record.Store
	trail *Trail

	mu   sync.Mutex
	said map[record.Key]string // what was last said of a record
}

var _ record.Waiter = (*audited)(nil)

// Put implements record.Store.
func (a *audited) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	stored, err := a.Store.Put(ctx, r, while...)
	if err == nil && r.Key().Kind != record.LeaseKind {
		a.written(stored, r.At())
	}
	return stored, err
}

// Delete implements record.Store.
func (a *audited) Delete(ctx context.Context, r record.Record, while ...record.Record) error {
	err := a.Store.Delete(ctx, r, while...)
	if err == nil && r.Key().Kind != record.LeaseKind {
		key := r.Key()
		l := About(r)
		l.Kind, l.What, l.Reasons = WriteKind, "deleted", nil
		l.Record, l.Was = key.Kind.String()+" "+key.Name, uint64(r.At())
		a.forget(key)
		a.trail.add(l)
	}
	return err
}

// Wait implements record.Waiter: without one below it waits for the context only.
func (a *audited) Wait(ctx context.Context, f record.Feed, since record.Revision) error {
	if w, is := a.Store.(record.Waiter); is {
		return w.Wait(ctx, f, since)
	}
	<-ctx.Done()
	return ctx.Err()
}

// written adds the line of a record that was stored.
func (a *audited) written(r record.Record, was record.Version) {
	key := r.Key()
	l := About(r)
	l.Kind, l.Record = WriteKind, key.Kind.String()+" "+key.Name
	l.Was, l.Version = uint64(was), uint64(r.At())
	now := l.What
	if before := a.remember(key, now); before != "" && before != now {
		l.What = before + " → " + now
	}
	a.trail.add(l)
}

// maxSaid bounds what is remembered of records, for the sake of the text alone.
const maxSaid = 10_000

func (a *audited) remember(key record.Key, now string) (before string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said == nil || len(a.said) >= maxSaid {
		a.said = map[record.Key]string{}
	}
	before, a.said[key] = a.said[key], now
	return before
}

func (a *audited) forget(key record.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.said, key)
}
