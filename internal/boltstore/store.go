package boltstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/store"
)

// A Store is a [store.Store] and a [store.Waiter] in one file. It is safe for concurrent
// use.
type Store struct {
	path string
	file *os.File // the same that db has; it holds the lock

	writing sync.Mutex // held from the check of a write to its end
	db      *bbolt.DB  // used while writing is held, but for backups
	unkept  bool       // history is to be written with the next write

	mu      sync.RWMutex // guards the rest; changed while writing is held, too
	records map[store.Key]stored
	totals  totals
	log     *store.ChangeLog
	waiting map[store.Feed]*waiters
	broken  error // why nothing is answered any more
	history store.History
}

// waiters are the calls that wait for the next change in a feed.
type waiters struct {
	wake  chan struct{} // closed with the change
	calls int
}

var (
	_ store.Historian = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
)

// newStore begins with what was read from the file.
func newStore(path string, db *bbolt.DB, file *os.File, held *contents) *Store {
	s := &Store{path: path, db: db, file: file, records: held.records, totals: held.totals,
		waiting: map[store.Feed]*waiters{}}
	// A write takes longer than a nanosecond: all versions that are given until the file is
	// opened again, or a copy of it, are below what that begins with.
	s.totals.last = max(s.totals.last+1, uint64(max(0, time.Now().UnixNano())))
	s.recall(held)
	s.log = store.NewChangeLog(store.Revision(s.totals.last), func(yield func(store.Record) bool) {
		for r := range maps.Values(held.records) {
			if !yield(r.record) {
				return
			}
		}
	})
	return s
}

var errClosed = errors.New("the store is closed")

// Close closes the file. Whatever is asked of the store afterwards is Unavailable.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	before := s.broken
	s.fail(errClosed)
	s.mu.Unlock()
	switch {
	case errors.Is(before, errClosed):
		return nil
	case kindOf(before) == store.Unreadable:
		return s.abandon() // bbolt may have stopped amid anything
	}
	return s.db.Close()
}

// abandon gives the file free without a word to bbolt. That the file is closed is not
// enough: it is mapped, and the lock lives as long as the map does.
func (s *Store) abandon() error {
	return errors.Join(unix.Flock(int(s.file.Fd()), unix.LOCK_UN), s.file.Close())
}

// fail lets every caller know that nothing is answered any more; s.mu is held.
func (s *Store) fail(why error) {
	if s.broken == nil || errors.Is(why, errClosed) {
		s.broken = why
	}
	for f, w := range s.waiting {
		close(w.wake)
		delete(s.waiting, f)
	}
}

// refuse is an error of an operation.
func refuse(op string, key store.Key, kind store.StoreKind, why error) error {
	return &store.StoreError{Op: op, Key: key, Kind: kind, Err: why}
}

// usable answers why an operation cannot begin; s.mu is held.
func (s *Store) usable(ctx context.Context, op string, key store.Key) error {
	if err := s.working(ctx, op, key); err != nil {
		return err
	}
	if seen, is := store.MarkOf(ctx); is {
		if old := s.history.Judge(seen, "", store.Revision(s.totals.last)); old != nil {
			return refuse(op, key, old.Kind, old.Err)
		}
	}
	return nil
}

// working answers why the store cannot be used; s.mu is held.
func (s *Store) working(ctx context.Context, op string, key store.Key) error {
	if err := context.Cause(ctx); err != nil {
		return refuse(op, key, store.Unavailable, err)
	}
	if s.broken != nil {
		kind := store.Unavailable
		if kindOf(s.broken) == store.Unreadable {
			kind = store.Unreadable
		}
		return refuse(op, key, kind, s.broken)
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "Get", key); err != nil {
		return nil, err
	}
	return s.records[key].record, nil
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, f store.Feed,
	since store.Revision) (store.Changes, error) {
	if err := f.Check(); err != nil {
		return store.Changes{}, refuse("Changes", store.Key{Name: string(f.Host)}, store.Unreadable, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "Changes", store.Key{Name: string(f.Host)}); err != nil {
		return store.Changes{}, err
	}
	return s.log.Since(f, since, func(k store.Key) store.Record {
		return s.records[k].record
	}), nil
}

// Wait implements store.Waiter.
func (s *Store) Wait(ctx context.Context, f store.Feed, since store.Revision) error {
	if err := f.Check(); err != nil {
		return refuse("Wait", store.Key{Name: string(f.Host)}, store.Unreadable, err)
	}
	s.mu.Lock()
	if err := s.usable(ctx, "Wait", store.Key{Name: string(f.Host)}); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.log.Changed(f, since) {
		s.mu.Unlock()
		return nil
	}
	w := s.waiting[f]
	if w == nil {
		w = &waiters{wake: make(chan struct{})}
		s.waiting[f] = w
	}
	w.calls++
	s.mu.Unlock()
	select {
	case <-w.wake:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.calls--; w.calls == 0 && s.waiting[f] == w { // it was not woken: nothing is kept of it
		delete(s.waiting, f)
	}
	return s.usable(ctx, "Wait", store.Key{Name: string(f.Host)})
}

// Compact forgets what has changed until now: a reader that asks from before is answered
// everything.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Forget()
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, r store.Record,
	while ...store.Record) (store.Record, error) {
	key := r.Key()
	text, err := encode(r)
	if err != nil {
		return nil, refuse("Put", key, store.Unreadable, err)
	}
	if err := store.CheckSize(r, text); err != nil {
		return nil, refuse("Put", key, store.Full, err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.admit(ctx, "Put", r, while); err != nil {
		return nil, err
	}
	next := s.totals
	next.last++
	name := keyOf(key)
	value, sum := valueOf(name, store.Version(next.last), text)
	old, was := s.records[key]
	next = next.with(old.sum, sum, was, true)
	if err := s.commit("Put", key, next, func(b *bbolt.Bucket) error {
		return b.Put(name, value)
	}); err != nil {
		return nil, err
	}
	r = r.WithVersion(store.Version(next.last))
	s.apply(next, key, old.record, stored{r, sum})
	return r, nil
}

// encode writes a record that will be read again.
func encode(r store.Record) ([]byte, error) {
	key := r.Key()
	if name := keyOf(key); len(name) > bbolt.MaxKeySize {
		return nil, fmt.Errorf("its name has %d bytes; at most %d are kept", len(key.Name),
			bbolt.MaxKeySize-len(name)+len(key.Name))
	}
	if !utf8.ValidString(key.Name) {
		return nil, errors.New("its name is not UTF-8")
	}
	return store.Encode(r)
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	key := r.Key()
	s.writing.Lock()
	defer s.writing.Unlock()
	old, was := s.records[key]
	if !was {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.usable(ctx, "Delete", key)
	}
	if err := s.admit(ctx, "Delete", r, while); err != nil {
		return err
	}
	next := s.totals
	next.last++
	next = next.with(old.sum, 0, true, false)
	if err := s.commit("Delete", key, next, func(b *bbolt.Bucket) error {
		return b.Delete(keyOf(key))
	}); err != nil {
		return err
	}
	s.apply(next, key, old.record, stored{})
	return nil
}

// admit answers why a write cannot begin: Stale unless it and all in while are as they
// were read. s.writing is held.
func (s *Store) admit(ctx context.Context, op string, r store.Record,
	while []store.Record) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, op, r.Key()); err != nil {
		return err
	}
	for _, read := range append([]store.Record{r}, while...) {
		var at store.Version
		if is := s.records[read.Key()].record; is != nil {
			at = is.RecordVersion()
		}
		if at != read.RecordVersion() {
			return refuse(op, read.Key(), store.Stale, nil)
		}
	}
	return nil
}

// apply takes in what is on the disk now, and wakes the calls that wait for it.
func (s *Store) apply(next totals, key store.Key, old store.Record, now stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals = next
	if now.record != nil {
		s.records[key] = now
	} else {
		delete(s.records, key)
	}
	for _, f := range s.log.Enter(store.Revision(next.last), old, now.record) {
		if w := s.waiting[f]; w != nil {
			close(w.wake)
			delete(s.waiting, f)
		}
	}
}
