package etcdstore

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A write is one transaction, on condition that every record is as it was read.
type write struct {
	store *Store
	op    string
	key   store.Key
	read  []store.Record // the record itself, then those it depends on
	then  []clientv3.Op
}

func (s *Store) write(op string, r store.Record, while []store.Record) *write {
	return &write{store: s, op: op, key: r.Key(), read: append([]store.Record{r}, while...)}
}

// put writes a record, and its markers and heads.
func (w *write) put(old, r store.Record, text string) {
	keys := w.store.keys
	w.do(clientv3.OpPut(keys.record(w.key), text))
	for _, f := range store.Feeds(r) {
		if f.Host != "" {
			w.do(clientv3.OpPut(keys.marker(f.Host, w.key), ""))
		}
		w.do(clientv3.OpPut(keys.head(f), ""))
	}
	w.leave(leaves(old, r))
}

// remove deletes a record, and its markers.
func (w *write) remove(old store.Record) {
	w.do(clientv3.OpDelete(w.store.keys.record(w.key)))
	w.leave(leaves(old, nil))
}

// leave takes the record out of feeds, and tells them. A feed of no host needs no head: the
// head of a host goes with its record, and without a head a feed is read in full.
func (w *write) leave(feeds []store.Feed) {
	keys := w.store.keys
	for _, f := range feeds {
		if f.Host != "" {
			w.do(clientv3.OpDelete(keys.marker(f.Host, w.key)))
		}
		if w.key.Kind == store.HostKind && f.Host == hypervisor.HostName(w.key.Name) &&
			f.Host != "" {
			w.do(clientv3.OpDelete(keys.head(f)))
			continue
		}
		w.do(clientv3.OpPut(keys.head(f), ""))
	}
}

func (w *write) do(op clientv3.Op) { w.then = append(w.then, op) }

// commit sends the transaction, once, and answers the version of what was written.
func (w *write) commit(ctx context.Context) (store.Version, error) {
	var conditions []clientv3.Cmp
	var otherwise []clientv3.Op
	for _, r := range w.read {
		key := w.store.keys.record(r.Key())
		at := revision(store.Revision(r.RecordVersion()))
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", at))
		otherwise = append(otherwise, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	past, marked, err := w.store.standing(ctx)
	if err != nil {
		return 0, unread(w.op, w.key, err)
	}
	if marked { // it is the store that was judged, and no participant has doubted it since
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(
			w.store.keys.history()), "=", int64(past.Version)))
	}
	call, cancel := w.store.call(ctx)
	defer cancel()
	var d departure
	before := w.store.past.top()
	r, err := w.store.client.Txn(d.noted(call)).
		If(conditions...).Then(w.then...).Else(otherwise...).Commit()
	if err == nil {
		w.store.heard(before, r.Header)
	}
	switch {
	case err != nil:
		return 0, w.failed(ctx, err, d.left.Load())
	case !r.Succeeded && marked && w.store.past.forget(ctx, w.store):
		return w.commit(ctx) // what is known of the past has changed
	case !r.Succeeded:
		return 0, w.refused(r)
	}
	if err := w.store.judge(ctx, r.Header); err != nil { // etcd was set back since it was last read
		return 0, unread(w.op, w.key, err)
	}
	w.store.past.wrote(store.Revision(r.Header.Revision))
	return store.Version(r.Header.Revision), nil
}

// refused says which of the records is not as it was read. What is gone need not be
// deleted.
func (w *write) refused(r *clientv3.TxnResponse) error {
	for i, read := range w.read {
		var at int64
		if kvs := r.Responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			at = kvs[0].ModRevision
		}
		if i == 0 && at == 0 && w.op == "Delete" {
			w.store.known.drop(w.key)
			return nil
		}
		if at != revision(store.Revision(read.RecordVersion())) {
			return stale(w.op, read.Key())
		}
	}
	return stale(w.op, w.key) // they were as read, but not all at one time
}

// failed says what is known about a write that was not answered as it should be.
func (w *write) failed(ctx context.Context, err error, left bool) error {
	kind := kindOf(err, left)
	if kind == store.Full && is(err, rpctypes.ErrNoSpace) {
		kind = w.full(ctx)
	}
	return &store.StoreError{Op: w.op, Key: w.key, Kind: kind, Err: advised(err)}
}

// full looks whether a write that etcd had no room for was written all the same: the one
// that crosses the limit is. Reading comes after it: etcd answered.
func (w *write) full(ctx context.Context) store.StoreKind {
	key := w.store.keys.record(w.key)
	got, err := w.store.read(context.WithoutCancel(ctx),
		clientv3.OpGet(key, clientv3.WithKeysOnly()))
	if err != nil {
		return store.Unanswered
	}
	var at store.Version
	if kvs := got.Get().Kvs; len(kvs) > 0 {
		at = store.Version(kvs[0].ModRevision)
	}
	if at == w.read[0].RecordVersion() {
		return store.Full
	}
	return store.Unanswered
}
