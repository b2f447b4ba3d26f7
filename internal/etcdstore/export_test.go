package etcdstore

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/store"
)

// Knows reports whether a record is remembered as it is.
func (s *Store) Knows(r store.Record) bool { return s.known.find(r.Key(), r.RecordVersion()) != nil }

// Forget has the client forget what it was told, as if it had just been opened: a reader that asks
// for changes then is answered by etcd alone.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, f := range s.feeds {
		delete(s.feeds, of)
		f.stop()
	}
	s.known.clear()
}

// Break ends the present watches: others begin where those were.
func (s *Store) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.mu.Lock()
		if f.again != nil {
			f.again()
		}
		f.mu.Unlock()
	}
}

// Page has the client read so many keys at once.
func (s *Store) Page(keys int64) { s.page = keys }

// DropWatch has the present watches go unheard, as those of a member that is cut off.
func (s *Store) DropWatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.mu.Lock()
		f.turn++
		f.mu.Unlock()
	}
}

// Raw returns the client of etcd below a store.
func (s *Store) Raw() *clientv3.Client { return s.client }
