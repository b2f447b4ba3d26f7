package etcdstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/store"
)

// Store keeps records in etcd. It is safe for concurrent use. It implements
// [store.Store] and [store.Waiter].
type Store struct {
	client  *clientv3.Client
	keys    keys
	timeout time.Duration
	known   known
	page    int64 // how many keys are read at once

	ctx       context.Context // ends with Close
	stop      context.CancelFunc
	followers sync.WaitGroup

	past past

	mu    sync.Mutex
	feeds map[store.Feed]*feed
}

var (
	_ store.Historian = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
)

// Close ends the connection and all that waits on it.
func (s *Store) Close() error {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.followers.Wait()
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	got, err := s.read(ctx, clientv3.OpGet(s.keys.record(key)))
	if err != nil {
		return nil, unread("Get", key, err)
	}
	return s.first("Get", key, got.Get())
}

// first decodes the only record of an answer; nil when there is none.
func (s *Store) first(op string, key store.Key, r *clientv3.GetResponse) (store.Record, error) {
	if len(r.Kvs) == 0 {
		s.known.drop(key)
		return nil, nil
	}
	return s.decode(op, key, r.Kvs[0].Value, r.Kvs[0].ModRevision)
}

// decode reads a stored record, unless it is known.
func (s *Store) decode(op string, key store.Key, text []byte, at int64) (store.Record, error) {
	v := store.Version(at)
	if r := s.known.find(key, v); r != nil {
		return r, nil
	}
	r, err := store.Decode(key, text, v)
	if err != nil {
		return nil, unreadable(op, key, err)
	}
	s.known.keep(r)
	return r, nil
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	key := r.Key()
	if err := storable(r); err != nil {
		return nil, unreadable("Put", key, err)
	}
	text, err := store.Encode(r)
	if err != nil {
		return nil, unreadable("Put", key, err)
	}
	if err := store.CheckSize(r, text); err != nil {
		return nil, &store.StoreError{Op: "Put", Key: key, Kind: store.Full, Err: err}
	}
	old, err := s.before(ctx, "Put", r)
	if err != nil {
		return nil, err
	}
	if old == nil && r.RecordVersion() != 0 {
		return nil, stale("Put", key)
	}
	w := s.write("Put", r, while)
	w.put(old, r, string(text))
	at, err := w.commit(ctx)
	if err != nil {
		return nil, err
	}
	stored := r.WithVersion(at)
	s.known.keep(stored)
	return stored, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	old, err := s.before(ctx, "Delete", r)
	switch {
	case err != nil:
		return err
	case old == nil:
		return nil
	}
	w := s.write("Delete", r, while)
	w.remove(old)
	if _, err := w.commit(ctx); err != nil {
		return err
	}
	s.known.drop(r.Key())
	return nil
}

// before returns the record as it is stored, for the feeds that it is in. It answers nil
// for one that is to be created, or is not there, and Stale for one that has changed.
func (s *Store) before(ctx context.Context, op string, r store.Record) (store.Record, error) {
	if r.RecordVersion() == 0 && op == "Put" {
		return nil, nil
	}
	key := r.Key()
	if old := s.known.find(key, r.RecordVersion()); old != nil {
		return old, nil
	}
	if signs(key.Kind) && r.RecordVersion() != 0 {
		return r, nil // they are always in the same feed
	}
	got, err := s.read(ctx, clientv3.OpGet(s.keys.record(key)))
	if err != nil {
		return nil, unread(op, key, err)
	}
	if kvs := got.Get().Kvs; len(kvs) > 0 && store.Version(kvs[0].ModRevision) != r.RecordVersion() {
		return nil, stale(op, key)
	}
	return s.first(op, key, got.Get())
}

func stale(op string, key store.Key) error {
	return &store.StoreError{Op: op, Key: key, Kind: store.Stale}
}

var errNoText = errors.New("its name, or that of a host, is not UTF-8 text")

// storable refuses what would not be read as it was written.
func storable(r store.Record) error {
	if !utf8.ValidString(r.Key().Name) {
		return errNoText
	}
	for _, h := range r.RelatedHosts() {
		if !utf8.ValidString(string(h)) {
			return errNoText
		}
	}
	return nil
}

// attempts is how many members a read may ask before its time is up: one that is cut off
// or stopped does not answer at all.
const attempts = 3

// pause is how long a read waits before it is repeated.
const pause = 50 * time.Millisecond

// read asks etcd for what is true now, and answers it unless the context has seen a newer store.
func (s *Store) read(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	r, err := s.readAny(ctx, op)
	if err == nil {
		err = s.judge(ctx, headerOf(r))
	}
	return r, err
}

// readAny asks etcd for what is true now. It may be repeated, and is.
func (s *Store) readAny(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	for {
		before := s.past.top()
		once, cancel := context.WithTimeout(ctx, s.timeout/attempts)
		r, err := s.client.Do(once, op)
		cancel()
		switch {
		case err == nil:
			s.heard(before, headerOf(r))
			return r, nil
		case s.ctx.Err() != nil:
			return r, errClosed
		case ctx.Err() != nil, !passing(err):
			return r, advised(err)
		}
		select {
		case <-ctx.Done(): // the next attempt says so
		case <-time.After(pause):
		}
	}
}

// call returns the context of one call: it ends when its time is up, and with the store.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.timeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// revision is a revision as etcd takes it; one that cannot be is in the far future.
func revision(r store.Revision) int64 {
	return int64(min(r, math.MaxInt64-1))
}

// compacted reports whether what was asked for is no longer known.
func compacted(err error) bool { return is(err, rpctypes.ErrCompacted) }

// leaves lists the feeds that old is in and r is not.
func leaves(old, r store.Record) []store.Feed {
	if old == nil {
		return nil
	}
	gone := store.Feeds(old)
	if r == nil {
		return gone
	}
	stays := store.Feeds(r)
	return slices.DeleteFunc(gone, func(f store.Feed) bool { return slices.Contains(stays, f) })
}

// Backup writes a snapshot of all of etcd, its keys that are not godwit's included, as it is at one
// moment, and answers its size in bytes. Writes go on meanwhile. etcdutl snapshot restore reads it.
func (s *Store) Backup(ctx context.Context, w io.Writer) (int64, error) {
	r, err := s.client.Snapshot(ctx)
	if err != nil {
		return 0, unread("Backup", store.Key{}, err)
	}
	defer r.Close()
	n, err := io.Copy(w, r)
	if err != nil {
		return n, unread("Backup", store.Key{}, err)
	}
	if n%512 != sha256.Size { // pages, and a sum over them
		return n, unreadable("Backup", store.Key{}, fmt.Errorf("the snapshot is cut off at %d bytes", n))
	}
	return n, nil
}
