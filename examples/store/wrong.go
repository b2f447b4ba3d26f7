package store

import (
	"context"
	"sync"

	"github.com/godwit-vm/godwit/store"
)

// Each of these is wrong in one way, and passes for right in a quick look: one process that
// writes, reads and is closed in order sees no difference.

// A careless store forgets that a write may depend on other records.
type careless struct{ *Store }

func (s careless) Put(ctx context.Context, r store.Record,
	_ ...store.Record) (store.Record, error) {
	return s.Store.Put(ctx, r)
}

// A hasty store acknowledges what it will write down later.
type hasty struct {
	*Store
	mu      sync.Mutex
	waiting func() error // the write that is acknowledged, and not on the disk
}

func (s *hasty) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		if err := s.waiting(); err != nil {
			return err
		}
	}
	s.waiting = func() error { return s.Store.Delete(ctx, r, while...) }
	return nil
}

// A forgetful store tells a reader only what there is, and never what is gone.
type forgetful struct{ *Store }

func (s forgetful) Changes(ctx context.Context, f store.Feed,
	since store.Revision) (store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	c.Reset = since == 0
	return c, err
}
