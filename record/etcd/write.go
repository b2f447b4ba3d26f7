package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// A write is one transaction, on condition that every record is as it was read.
type write struct {
	store *Store
	op    string
	key   record.Key
	read  []record.Record // the record itself, then those it depends on
	then  []clientv3.Op
}

func (s *Store) write(op string, r record.Record, while []record.Record) *write {
	return &write{store: s, op: op, key: r.Key(), read: append([]record.Record{r}, while...)}
}

// put writes a record, and its markers and heads.
func (w *write) put(old, r record.Record, text string) {
	keys := w.store.keys
	w.do(clientv3.OpPut(keys.record(w.key), text))
	for _, f := range record.Feeds(r) {
		if f.Host != "" {
			w.do(clientv3.OpPut(keys.marker(f.Host, w.key), ""))
		}
		w.do(clientv3.OpPut(keys.head(f), ""))
	}
	w.leave(leaves(old, r))
}

// remove deletes a record, and its markers.
func (w *write) remove(old record.Record) {
	w.do(clientv3.OpDelete(w.store.keys.record(w.key)))
	w.leave(leaves(old, nil))
}

// leave takes the record out of feeds, and tells them. Nobody's feed needs no head: the
// head of a host goes with its record, and without a head a feed is read in full.
func (w *write) leave(feeds []record.Feed) {
	keys := w.store.keys
	for _, f := range feeds {
		if f.Host != "" {
			w.do(clientv3.OpDelete(keys.marker(f.Host, w.key)))
		}
		if w.key.Kind == record.HostKind && f.Host == hypervisor.HostName(w.key.Name) &&
			f.Host != "" {
			w.do(clientv3.OpDelete(keys.head(f)))
			continue
		}
		w.do(clientv3.OpPut(keys.head(f), ""))
	}
}

func (w *write) do(op clientv3.Op) { w.then = append(w.then, op) }

// commit sends the transaction, once, and answers the version of what was written.
func (w *write) commit(ctx context.Context) (record.Version, error) {
	var conditions []clientv3.Cmp
	var otherwise []clientv3.Op
	for _, r := range w.read {
		key := w.store.keys.record(r.Key())
		at := revision(record.Revision(r.At()))
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
	r, err := w.store.client.Txn(d.noted(call)).
		If(conditions...).Then(w.then...).Else(otherwise...).Commit()
	switch {
	case err != nil:
		return 0, w.failed(ctx, err, d.left.Load())
	case !r.Succeeded && marked && w.store.past.forget(ctx, w.store):
		return w.commit(ctx) // what is known of the past has changed
	case !r.Succeeded:
		return 0, w.refused(r)
	}
	w.store.past.wrote(record.Revision(r.Header.Revision))
	return record.Version(r.Header.Revision), nil
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
		if at != revision(record.Revision(read.At())) {
			return stale(w.op, read.Key())
		}
	}
	return stale(w.op, w.key) // they were as read, but not all at one time
}

// failed says what is known about a write that was not answered as it should be.
func (w *write) failed(ctx context.Context, err error, left bool) error {
	kind := kindOf(err, left)
	if kind == record.Full && is(err, rpctypes.ErrNoSpace) {
		kind = w.full(ctx)
	}
	return &record.StoreError{Op: w.op, Key: w.key, Kind: kind, Err: advised(err)}
}

// full looks whether a write that etcd had no room for was written all the same: the one
// that crosses the limit is. Reading comes after it: etcd answered.
func (w *write) full(ctx context.Context) record.StoreKind {
	key := w.store.keys.record(w.key)
	got, err := w.store.read(context.WithoutCancel(ctx),
		clientv3.OpGet(key, clientv3.WithKeysOnly()))
	if err != nil {
		return record.Unanswered
	}
	var at record.Version
	if kvs := got.Get().Kvs; len(kvs) > 0 {
		at = record.Version(kvs[0].ModRevision)
	}
	if at == w.read[0].At() {
		return record.Full
	}
	return record.Unanswered
}
