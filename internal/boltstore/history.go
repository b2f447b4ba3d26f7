package boltstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/godwit-vm/godwit/store"
)

// recall takes in what the file says of its past, and that it was opened now: the versions
// between its last one and those that follow were given, if at all, by a newer file of which this
// one is a copy. It is written with the first write: until then nothing is given.
func (s *Store) recall(held *contents) {
	s.unkept = true
	if held.history == nil {
		s.history = store.History{Cluster: strings.ToLower(rand.Text())}
		return
	}
	s.history = held.history.Jumped(store.Revision(held.totals.last),
		store.Revision(s.totals.last))
}

// keepHistory writes the history if it has changed; s.writing is held.
func (s *Store) keepHistory(about *bbolt.Bucket) error {
	if !s.unkept {
		return nil
	}
	s.mu.RLock()
	text, err := json.Marshal(s.history)
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	return about.Put([]byte(historyKey), append(historySum(text), text...))
}

func historySum(text []byte) []byte {
	return binary.BigEndian.AppendUint64(nil, sumOf([]byte(historyKey), 0, text))
}

var historyName = store.Key{Name: "history"}

// History implements store.Historian. What it answers is on the disk.
func (s *Store) History(ctx context.Context) (store.History, string, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.ready(ctx, "History"); err != nil {
		return store.History{}, "", err
	}
	if s.unkept {
		if err := s.commit("History", historyName, s.totals, nothing); err != nil {
			return store.History{}, "", err
		}
	}
	return s.history, "", nil // its writers hold s.writing
}

func nothing(*bbolt.Bucket) error { return nil }

// ready answers why the store cannot be used.
func (s *Store) ready(ctx context.Context, op string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.working(ctx, op, historyName)
}

// Amend implements store.Historian.
func (s *Store) Amend(ctx context.Context, h store.History) (store.History, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.ready(ctx, "Amend"); err != nil {
		return store.History{}, err
	}
	before := s.history
	if before.Version != h.Version {
		return store.History{}, refuse("Amend", historyName, store.Stale, nil)
	}
	h.Version++
	s.remember(h)
	if err := s.commit("Amend", historyName, s.totals, nothing); err != nil {
		s.remember(before)
		return store.History{}, err
	}
	return h, nil
}

// remember changes the history; s.writing is held.
func (s *Store) remember(h store.History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.unkept = h, true
}
