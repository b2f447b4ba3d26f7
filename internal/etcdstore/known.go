package etcdstore

import (
	"sync"

	"github.com/godwit-vm/godwit/store"
)

// known remembers the records that were read or written here, so that a write knows which
// feeds the record was in, and what is told of a record that is known is not read again.
// It holds the youngest few ten thousand, in two generations.
type known struct {
	mu         sync.Mutex
	young, old map[store.Key]store.Record
	size       int // of a generation
}

// generation is how many records a generation has, usually.
const generation = 1 << 15

// keep remembers a record unless a newer one is remembered.
func (k *known) keep(r store.Record) {
	key := r.Key()
	k.mu.Lock()
	defer k.mu.Unlock()
	if have := k.at(key); have != nil && have.RecordVersion() > r.RecordVersion() {
		return
	}
	if k.young == nil {
		k.young = map[store.Key]store.Record{}
	}
	k.young[key] = r
	if len(k.young) >= k.size {
		k.young, k.old = nil, k.young
	}
}

// find returns a record if this very version of it is remembered.
func (k *known) find(key store.Key, v store.Version) store.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.at(key); r != nil && r.RecordVersion() == v {
		return r
	}
	return nil
}

func (k *known) at(key store.Key) store.Record {
	if r := k.young[key]; r != nil {
		return r
	}
	return k.old[key]
}

// drop forgets a record that is gone.
func (k *known) drop(key store.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.young, key)
	delete(k.old, key)
}

// clear forgets everything: the store was put back to an older state, and may give the
// same versions again.
func (k *known) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.young, k.old = nil, nil
}
