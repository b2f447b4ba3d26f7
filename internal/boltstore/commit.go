package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/store"
)

// commit makes one transaction of a write and of the totals after it. When it answers an
// error other than Unanswered, nothing has changed.
func (s *Store) commit(op string, key store.Key, next totals,
	write func(*bbolt.Bucket) error) error {
	err := guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			if err := write(tx.Bucket([]byte(recordsBucket))); err != nil {
				return err
			}
			next.txn = uint64(tx.ID())
			about := tx.Bucket([]byte(aboutBucket))
			if err := s.keepHistory(about); err != nil {
				return err
			}
			return about.Put([]byte(totalsKey), next.encode())
		})
	})
	if err == nil {
		s.unkept = false
		return nil
	}
	if kindOf(err) == store.Full {
		return refuse(op, key, store.Full, fmt.Errorf("%s: %w: make room and write again",
			s.path, err))
	}
	// It may be on the disk, or half on its way there. Nothing more is built on it.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(fmt.Errorf("%s: a write has failed, open the file again: %w", s.path, err))
	if kindOf(err) == store.Unreadable {
		return refuse(op, key, store.Unreadable, s.broken)
	}
	return refuse(op, key, store.Unanswered, s.broken)
}

// guard calls f, and answers a damage when bbolt panics: it does so on pages that make no
// sense, and the file may have been cut off while it is mapped.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if what := recover(); what != nil {
			err = damaged("while it was open: %v", what)
		}
	}()
	return f()
}

// kindOf says what may be done about an error of the file.
func kindOf(err error) store.StoreKind {
	if e, is := errors.AsType[*store.StoreError](err); is {
		return e.Kind
	}
	if _, is := errors.AsType[damage](err); is {
		return store.Unreadable
	}
	if _, is := errors.AsType[*newer](err); is {
		return store.Unreadable
	}
	if _, is := errors.AsType[*unreadable](err); is {
		return store.Unreadable
	}
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) {
		return store.Full
	}
	// An error without the name of a file is of the last step, which makes sure that the
	// write is on the disk: then that is not known.
	_, writing := errors.AsType[*fs.PathError](err)
	if writing && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) ||
		errors.Is(err, unix.EFBIG)) {
		return store.Full
	}
	return store.Unavailable
}

// Size is how many bytes a copy of the store has.
func (s *Store) Size() (size int64, err error) {
	key := store.Key{Name: s.path}
	s.mu.RLock()
	err = s.usable(context.Background(), "Size", key)
	s.mu.RUnlock()
	if err != nil {
		return 0, err
	}
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			size = tx.Size()
			return nil
		})
	})
	if err != nil {
		return 0, refuse("Size", key, kindOf(err), err)
	}
	return size, nil
}

// Backup writes a copy of the store, as it is at one moment, and answers its size in
// bytes. The copy is a file that Open opens. Writes go on meanwhile: the copy is made in
// memory first.
func (s *Store) Backup(ctx context.Context, w io.Writer) (int64, error) {
	key := store.Key{Name: s.path}
	s.mu.RLock()
	err := s.usable(ctx, "Backup", key)
	s.mu.RUnlock()
	if err != nil {
		return 0, err
	}
	var all bytes.Buffer
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			all.Grow(int(tx.Size()))
			_, err := tx.WriteTo(&all)
			return err
		})
	})
	if err == nil { // what cannot be opened again is no backup
		_, err = readContents(bytes.NewReader(all.Bytes()), int64(all.Len()))
	}
	if err != nil {
		return 0, refuse("Backup", key, kindOf(err), err)
	}
	n, err := all.WriteTo(w)
	if err != nil {
		return n, refuse("Backup", key, store.Unavailable, err)
	}
	return n, nil
}
