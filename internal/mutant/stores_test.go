package mutant_test

import (
	"context"
	"errors"
	"slices"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Stores that stand between a process and the records, and do something wrong.

// overwriting overwrites what another process has written meanwhile.
type overwriting struct{ store.Store }

func (s overwriting) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	stored, err := s.Store.Put(ctx, r, while...)
	if !errors.Is(err, store.Stale) {
		return stored, err
	}
	now, err := s.Store.Get(ctx, r.Key())
	if err != nil || now == nil {
		return nil, err
	}
	return s.Store.Put(ctx, r.WithVersion(now.RecordVersion()))
}

// leaky acknowledges every ninth write, and does not store it.
type leaky struct {
	store.Store
	writes *int
}

func (s leaky) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if *s.writes++; *s.writes%9 == 0 {
		return r.WithVersion(r.RecordVersion() + 1), nil
	}
	return s.Store.Put(ctx, r, while...)
}

// volatile loses the last write before a crash, which it has acknowledged.
type volatile struct{ *sim.FlakyStore }

func (s volatile) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if s.Dies && s.After == 1 {
		s.After = 0
		return r.WithVersion(r.RecordVersion() + 1), nil
	}
	return s.FlakyStore.Put(ctx, r, while...)
}

// distracted forgets every ninth answer to who asks what has changed.
type distracted struct {
	store.Store
	answers *int
}

func (s distracted) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	if *s.answers++; err == nil && !c.Reset && *s.answers%9 == 0 {
		return store.Changes{Next: c.Next}, nil
	}
	return c, err
}

// late tells of a change only with the next.
type late struct {
	store.Store
	held *store.Changes
}

func (s late) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	if err != nil || c.Reset || len(c.Records)+len(c.Gone) == 0 {
		return c, err
	}
	told := store.Changes{Records: s.held.Records, Gone: s.held.Gone, Next: c.Next}
	*s.held = c
	return told, nil
}

// backwards answers with hosts as they were at the last read but one.
type backwards struct {
	store.Store
	old map[store.Key]store.Record
}

func (s backwards) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	c.Records = slices.Clone(c.Records)
	for i, r := range c.Records {
		if old := s.old[r.Key()]; old != nil && r.Key().Kind == store.HostKind {
			c.Records[i] = old
		}
		s.old[r.Key()] = r
	}
	return c, err
}

// silent does not tell of what was deleted.
type silent struct{ store.Store }

func (s silent) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	c.Gone = nil
	return c, err
}

// undead keeps what it says was deleted.
type undead struct{ store.Store }

func (s undead) Delete(context.Context, store.Record, ...store.Record) error { return nil }
