package audit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A History writes what one participant notes and stores to a file. It is a [store.EventRecorder] and
// a [store.Auditor], and [History.Over] makes a store that writes down what it stores.
type History struct {
	File *File
	// By names the participant: "controller/a".
	By string
	// Now is the clock of the lines.
	Now func() time.Time
	// Term is the term of the leader, 0 for other participants. Default: 0.
	Term func() uint64
}

var _ store.Auditor = (*History)(nil)

// add writes lines. An error is kept by the file: see [File.Err].
func (t *History) add(lines ...Line) error {
	for i := range lines {
		l := &lines[i]
		l.By = t.By
		if t.Term != nil {
			l.Term = t.Term()
		}
		if l.At.IsZero() {
			l.At = t.Now()
		}
		l.At = l.At.UTC().Round(0)
	}
	return t.File.Append(lines...)
}

// Begin writes down that the participant begins.
func (t *History) Begin(what string) { _ = t.add(Line{Kind: startKind, What: what}) }

// Note implements store.EventRecorder.
func (t *History) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	_ = t.add(noted(at, who, vm, what))
}

// Audit implements store.Auditor.
func (t *History) Audit(e placement.LedgerEntry) { _ = t.add(Reserved(e)) }

// Asked records a request about a record, and its user; nil is none.
func (t *History) Asked(who, what string, r store.Record) {
	l := Line{}
	if r != nil {
		l = About(r)
		l.Record, l.Version = nameOf(r.Key()), uint64(r.RecordVersion())
	}
	l.Kind, l.Who, l.What, l.Reasons = askedKind, who, cut(what), nil
	_ = t.add(l)
}

// noted is the line of a note.
func noted(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) Line {
	return Line{At: at, Kind: NoteKind, VM: vm, Host: who, What: cut(what)}
}

// Reserved is the line of a step of a reservation.
func Reserved(e placement.LedgerEntry) Line {
	return Line{At: e.At, Kind: reservationKind, VM: e.VM, Migration: e.Move, Host: e.Target,
		What: fmt.Sprintf("%s by %s: %s and %d CPUs, %s→%s", e.Step, e.Owner, e.Amount.Memory,
			e.Amount.CPUs, e.Source, e.Target)}
}

// Over returns a store that does what s does, and writes down what was stored, but for
// leases: they say nothing but that their owners live.
func (t *History) Over(s store.Store) store.Store { return &audited{Store: s, trail: t} }

type audited struct {
	store.Store
	trail *History
	said  said
}

var _ store.Waiter = (*audited)(nil)

// Put implements store.Store.
func (a *audited) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	stored, err := a.Store.Put(ctx, r, while...)
	if err == nil && r.Key().Kind != store.LeaseKind {
		_ = a.trail.add(a.said.written(stored, r.RecordVersion()))
	}
	return stored, err
}

// Delete implements store.Store.
func (a *audited) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	err := a.Store.Delete(ctx, r, while...)
	if err == nil && r.Key().Kind != store.LeaseKind {
		_ = a.trail.add(a.said.deleted(r))
	}
	return err
}

// Wait implements store.Waiter: without one below it waits for the context only.
func (a *audited) Wait(ctx context.Context, f store.Feed, since store.Revision) error {
	if w, is := a.Store.(store.Waiter); is {
		return w.Wait(ctx, f, since)
	}
	<-ctx.Done()
	return ctx.Err()
}

// said remembers what was last said of each record.
type said struct {
	mu   sync.Mutex
	last map[store.Key]string
}

// written returns the line of a record that was stored.
func (s *said) written(r store.Record, was store.Version) Line {
	l := about(r)
	l.Was, l.Version = uint64(was), uint64(r.RecordVersion())
	now := l.What
	if before := s.remember(r.Key(), now); before != "" && before != now {
		l.What = before + " → " + now
	}
	return l
}

// deleted returns the line of a record that was deleted.
func (s *said) deleted(r store.Record) Line {
	s.forget(r.Key())
	l := about(r)
	l.What, l.Reasons, l.Was = "deleted", nil, uint64(r.RecordVersion())
	return l
}

func about(r store.Record) Line {
	l := About(r)
	l.Kind, l.Record = writeKind, nameOf(r.Key())
	return l
}

// maxSaid bounds what is remembered of records, for the sake of the text alone.
const maxSaid = 10_000

func (s *said) remember(key store.Key, now string) (before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || len(s.last) >= maxSaid {
		s.last = map[store.Key]string{}
	}
	before, s.last[key] = s.last[key], now
	return before
}

func (s *said) forget(key store.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
}
