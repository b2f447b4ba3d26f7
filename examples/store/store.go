// Package store is a store of one's own for godwit's records, as small as one can be: a map,
// and a file with one line for each write. It shows what [store.Store] asks of a store, and
// how package conformance tells whether it does so.
//
// What makes it right, in the order in which the suite finds the lack of it:
//
//  1. A write needs the version that is stored, and what it depends on to be as it was read.
//  2. It is acknowledged when it is on the disk, and not before.
//  3. A reader that asks what has changed is told everything, or that it is told everything anew.
//     This store always says the latter: that is allowed, and costs time in large fleets.
//  4. Every error is a *[store.StoreError] whose kind says what may be done about it.
//
// wrong.go has three stores that lack one each of the first three, and the test shows that the
// suite finds out. For production, see internal/boltstore and internal/etcdstore.
package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/store"
)

// A Store keeps records in a file. Use [Open].
type Store struct {
	mu      sync.Mutex
	file    *os.File
	records map[store.Key]store.Record
	last    store.Version // the number of writes so far
	broken  error         // why a write failed: what the file holds is not known since
}

// A line is one write; without a record it is a deletion.
type line struct {
	Kind, Name string // numbers may change their meaning, words do not
	Version    store.Version
	Record     json.RawMessage `json:",omitempty"`
}

// Open reads the store in a file, a new one if there is none. What follows the last whole
// line was never acknowledged, and is cut off.
func Open(path string) (*Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &Store{file: file, records: map[store.Key]store.Record{}}
	text, err := os.ReadFile(path)
	if err == nil {
		whole := bytes.LastIndexByte(text, '\n') + 1
		err = errors.Join(s.replay(text[:whole]), file.Truncate(int64(whole)))
	}
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", path, errors.Join(err, file.Close()))
	}
	return s, nil
}

// replay repeats the writes in a text.
func (s *Store) replay(text []byte) error {
	for n, written := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if len(written) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(written, &l); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		s.last = l.Version
		key := store.Key{Name: l.Name}
		for _, k := range store.Kinds() {
			if k.String() == l.Kind {
				key.Kind = k
			}
		}
		if l.Record == nil {
			delete(s.records, key)
			continue
		}
		r, err := store.Decode(key, l.Record, l.Version)
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		s.records[key] = r
	}
	return nil
}

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

// Get implements [store.Store].
func (s *Store) Get(_ context.Context, key store.Key) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key], s.usable("Get", key)
}

// Put implements [store.Store].
func (s *Store) Put(_ context.Context, r store.Record,
	while ...store.Record) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Key()
	text, err := store.Encode(r)
	if err == nil && !utf8.ValidString(key.Name) {
		err = errors.New("its name is not UTF-8")
	}
	if err != nil {
		return nil, failed("Put", key, store.Unreadable, err)
	}
	if err := s.still("Put", key, r, while); err != nil {
		return nil, err
	}
	if err := s.write("Put", key, text); err != nil {
		return nil, err
	}
	s.records[key] = r.WithVersion(s.last)
	return s.records[key], nil
}

// Delete implements [store.Store].
func (s *Store) Delete(_ context.Context, r store.Record, while ...store.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Key()
	if s.records[key] == nil {
		return s.usable("Delete", key) // it is gone already
	}
	if err := s.still("Delete", key, r, while); err != nil {
		return err
	}
	if err := s.write("Delete", key, nil); err != nil {
		return err
	}
	delete(s.records, key)
	return nil
}

// Changes implements [store.Store]: nothing, or all that is in the feed.
func (s *Store) Changes(_ context.Context, f store.Feed,
	since store.Revision) (store.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := store.Changes{Next: store.Revision(s.last)}
	if since == c.Next && since > 0 {
		return c, s.usable("Changes", store.Key{})
	}
	c.Reset = true
	for _, r := range s.records {
		if slices.Contains(store.Feeds(r), f) {
			c.Records = append(c.Records, r)
		}
	}
	slices.SortFunc(c.Records, func(a, b store.Record) int { return cmp.Compare(a.RecordVersion(), b.RecordVersion()) })
	return c, s.usable("Changes", store.Key{})
}

// still answers Stale unless the records are stored as they were read.
func (s *Store) still(op string, key store.Key, r store.Record, while []store.Record) error {
	for _, read := range append([]store.Record{r}, while...) {
		var at store.Version
		if stored := s.records[read.Key()]; stored != nil {
			at = stored.RecordVersion()
		}
		if at != read.RecordVersion() {
			return failed(op, key, store.Stale, nil)
		}
	}
	return s.usable(op, key)
}

// write adds a line to the file, and waits until it is on the disk. When that fails it is not
// known whether it is: the store must be opened again.
func (s *Store) write(op string, key store.Key, written json.RawMessage) error {
	text, err := json.Marshal(line{key.Kind.String(), key.Name, s.last + 1, written})
	if err != nil {
		return failed(op, key, store.Unavailable, err)
	}
	if _, err = s.file.Write(append(text, '\n')); err == nil {
		err = s.file.Sync()
	}
	if s.broken = err; err != nil {
		return failed(op, key, store.Unanswered, err)
	}
	s.last++
	return nil
}

// usable answers why the store cannot be used any more.
func (s *Store) usable(op string, key store.Key) error {
	if s.broken == nil {
		return nil
	}
	return failed(op, key, store.Unavailable, s.broken)
}

func failed(op string, key store.Key, kind store.StoreKind, err error) error {
	return &store.StoreError{Op: op, Key: key, Kind: kind, Err: err}
}
