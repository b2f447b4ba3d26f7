package store_test

import (
	"context"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/store"
)

// shared is a Memory that many may use at once. It wakes every waiter at every change.
type shared struct {
	mu      sync.Mutex
	store   *store.Memory
	changed chan struct{}
}

func share(s *store.Memory) *shared { return &shared{store: s, changed: make(chan struct{})} }

func (s *shared) Get(ctx context.Context, k store.Key) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Get(ctx, k)
}

func (s *shared) Put(ctx context.Context, r store.Record,
	while ...store.Record) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tell()
	return s.store.Put(ctx, r, while...)
}

func (s *shared) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tell()
	return s.store.Delete(ctx, r, while...)
}

func (s *shared) Changes(ctx context.Context, f store.Feed,
	since store.Revision) (store.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Changes(ctx, f, since)
}

func (s *shared) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *shared) Wait(ctx context.Context, f store.Feed, since store.Revision) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		c, err := s.store.Changes(ctx, f, since)
		changed := s.changed
		s.mu.Unlock()
		if err != nil || len(c.Records)+len(c.Gone) > 0 || c.Next > since && c.Reset {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func TestMemoryConforms(t *testing.T) {
	conformance.Store(t, func(*testing.T) conformance.Subject {
		s := share(store.NewMemory())
		return conformance.Subject{Store: s, Volatile: true,
			Again: func(*testing.T) store.Store { return s }}
	})
}
