package flaky

import (
	"context"

	"github.com/godwit-vm/godwit/record"
)

// Store is a process's connection to the store. The fields may be changed at any
// time.
type Store struct {
	Real record.Store

	// Dies: the process dies when it attempts one write more than After.
	Dies  bool
	After int
	Died  bool // it did: nothing takes effect any more

	Full   bool // the store takes no writes
	Mute   int  // so many writes take effect without an answer
	Frozen bool // what changes from now on is not seen

	Unanswered bool // a write has taken effect without an answer, since it was last cleared
}

// Get implements [record.Store].
func (s *Store) Get(ctx context.Context, key record.Key) (record.Record, error) {
	if s.Died {
		return nil, &record.StoreError{Op: "Get", Key: key, Kind: record.Unavailable}
	}
	return s.Real.Get(ctx, key)
}

// Put implements [record.Store].
func (s *Store) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	if err := s.refuse("Put", r); err != nil {
		return nil, err
	}
	stored, err := s.Real.Put(ctx, r, while...)
	if err == nil && s.Mute > 0 {
		s.Mute--
		s.Unanswered = true
		return nil, &record.StoreError{Op: "Put", Key: r.Key(), Kind: record.Unanswered}
	}
	return stored, err
}

// Delete implements [record.Store].
func (s *Store) Delete(ctx context.Context, r record.Record, while ...record.Record) error {
	if err := s.refuse("Delete", r); err != nil {
		return err
	}
	return s.Real.Delete(ctx, r, while...)
}

// Changes implements [record.Store]. A frozen store still answers whoever starts
// anew: a process without any view cannot be stale.
func (s *Store) Changes(ctx context.Context, f record.Feed, since record.Revision) (
	record.Changes, error) {
	if s.Frozen && since != 0 {
		return record.Changes{Next: since}, nil
	}
	return s.Real.Changes(ctx, f, since)
}

// refuse lets the process die, or the store be full.
func (s *Store) refuse(op string, r record.Record) error {
	if s.Dies && s.After == 0 {
		s.Died = true
	}
	s.After--
	if s.Died || s.Full {
		return &record.StoreError{Op: op, Key: r.Key(), Kind: record.Unavailable}
	}
	return nil
}
