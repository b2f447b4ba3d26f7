package sim

import (
	"context"

	"github.com/godwit-vm/godwit/store"
)

// FlakyStore is a process's connection to the store. The fields may be changed at any
// time.
type FlakyStore struct {
	Real store.Store

	// Dies: the process dies when it attempts one write more than After.
	Dies  bool
	After int
	Died  bool // it did: nothing takes effect any more

	Full        bool // the store takes no writes
	DropAnswers int  // so many writes take effect without an answer
	StaleReads  bool // what changes from now on is not seen

	Unanswered bool // a write has taken effect without an answer, since it was last cleared
}

// Get implements [store.Store].
func (s *FlakyStore) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if s.Died {
		return nil, &store.StoreError{Op: "Get", Key: key, Kind: store.Unavailable}
	}
	return s.Real.Get(ctx, key)
}

// Put implements [store.Store].
func (s *FlakyStore) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if err := s.refuse("Put", r); err != nil {
		return nil, err
	}
	stored, err := s.Real.Put(ctx, r, while...)
	if err == nil && s.DropAnswers > 0 {
		s.DropAnswers--
		s.Unanswered = true
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unanswered}
	}
	return stored, err
}

// Delete implements [store.Store].
func (s *FlakyStore) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	if err := s.refuse("Delete", r); err != nil {
		return err
	}
	return s.Real.Delete(ctx, r, while...)
}

// Changes implements [store.Store]. A frozen store still answers a process that starts
// anew: a process without any view cannot be stale.
func (s *FlakyStore) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	if s.StaleReads && since != 0 {
		return store.Changes{Next: since}, nil
	}
	return s.Real.Changes(ctx, f, since)
}

// refuse lets the process die, or the store be full.
func (s *FlakyStore) refuse(op string, r store.Record) error {
	if s.Dies && s.After == 0 {
		s.Died = true
	}
	s.After--
	if s.Died || s.Full {
		return &store.StoreError{Op: op, Key: r.Key(), Kind: store.Unavailable}
	}
	return nil
}
