package etcdstore

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/store"
)

// Changes implements [store.Store]. It answers all that was written before it was asked.
func (s *Store) Changes(ctx context.Context, of store.Feed, since store.Revision) (
	store.Changes, error) {
	if err := of.Check(); err != nil {
		return store.Changes{}, unreadable("Changes", store.Key{Name: string(of.Host)}, err)
	}
	head, now, err := s.head(ctx, of)
	if err != nil {
		return store.Changes{}, unread("Changes", store.Key{}, err)
	}
	// What is above now was seen of another store, or never: that etcd was set back is found out from its own
	// answers (heard), and no reader's word is believed.
	if since == 0 || since > now || head == 0 {
		return s.everything(ctx, of)
	}
	f := s.follow(of, since)
	if head <= since {
		return store.Changes{Next: now}, nil
	}
	soon, cancel := context.WithTimeout(ctx, s.timeout/4)
	defer cancel()
	changed, latest, ok := f.after(soon, since, head)
	if !ok {
		late := soon.Err() != nil
		c, err := s.everything(ctx, of)
		if err == nil && late {
			f.restart(c.Next)
		}
		return c, err
	}
	slices.Reverse(changed)
	c, err := s.answer(ctx, of, changed)
	c.Next = max(now, latest)
	return c, err
}

// head answers when a feed changed last, and which revision that was asked at. Zero is
// not known, or never.
func (s *Store) head(ctx context.Context, of store.Feed) (head, now store.Revision, err error) {
	got, err := s.read(ctx, clientv3.OpGet(s.keys.head(of), clientv3.WithKeysOnly()))
	if err != nil {
		return 0, 0, err
	}
	r := got.Get()
	if len(r.Kvs) > 0 {
		head = store.Revision(r.Kvs[0].ModRevision)
	}
	return head, store.Revision(r.Header.Revision), nil
}

// answer reads what has changed.
func (s *Store) answer(ctx context.Context, of store.Feed, changed []change) (
	store.Changes, error) {
	var c store.Changes
	var told []mark
	for _, e := range changed {
		key, err := s.keys.parse(of, e.key)
		switch {
		case err != nil && e.gone: // it was never one of ours
		case err != nil:
			return store.Changes{}, unreadable("Changes", key, err)
		case of.Host != "":
			told = append(told, mark{key, e.at, e.gone})
		case e.gone:
			s.known.drop(key)
			c.Gone = append(c.Gone, key)
		default:
			r, err := s.decode("Changes", key, e.text, int64(e.at))
			if err != nil {
				return store.Changes{}, err
			}
			c.Records = append(c.Records, r)
		}
	}
	if len(told) == 0 {
		return c, nil
	}
	return s.fetch(ctx, told, 0)
}

// A mark says that a record has changed, and whether it has left the feed.
type mark struct {
	key  store.Key
	at   store.Revision
	left bool
}

// everything answers all that is in a feed, as it was at one moment.
func (s *Store) everything(ctx context.Context, of store.Feed) (store.Changes, error) {
	c, err := s.snapshot(ctx, of)
	for range 2 { // a compaction between two pages
		if !compacted(err) {
			break
		}
		c, err = s.snapshot(ctx, of)
	}
	if err != nil {
		return store.Changes{}, err
	}
	c.Reset = true
	s.follow(of, c.Next)
	return c, nil
}

func (s *Store) snapshot(ctx context.Context, of store.Feed) (store.Changes, error) {
	var told []mark
	var c store.Changes
	kvs, at, err := s.list(ctx, s.keys.feed(of), of.Host != "")
	if err != nil {
		return c, unread("Changes", store.Key{}, err)
	}
	for _, kv := range kvs {
		key, err := s.keys.parse(of, string(kv.Key))
		if err != nil {
			return c, unreadable("Changes", key, err)
		}
		if of.Host != "" {
			told = append(told, mark{key: key, at: store.Revision(kv.ModRevision)})
			continue
		}
		r, err := s.decode("Changes", key, kv.Value, kv.ModRevision)
		if err != nil {
			return c, err
		}
		c.Records = append(c.Records, r)
	}
	if len(told) > 0 {
		c, err = s.fetch(ctx, told, at)
	}
	c.Next = at
	return c, err
}

// page is how many keys are read at once, usually.
const page = 500

// list reads all keys with a prefix as they were at one revision, which it answers.
func (s *Store) list(ctx context.Context, prefix string, keysOnly bool) (
	[]*mvccpb.KeyValue, store.Revision, error) {
	var all []*mvccpb.KeyValue
	var at int64
	options := []clientv3.OpOption{clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)),
		clientv3.WithLimit(s.page)}
	if keysOnly {
		options = append(options, clientv3.WithKeysOnly())
	}
	for from := prefix; ; {
		got, err := s.read(ctx, clientv3.OpGet(from, append(options, clientv3.WithRev(at))...))
		if err != nil {
			return nil, 0, err
		}
		r := got.Get()
		if at == 0 {
			at = r.Header.Revision
		}
		all = append(all, r.Kvs...)
		if !r.More || len(r.Kvs) == 0 {
			return all, store.Revision(at), nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

// batch is how many records are asked for in one transaction; etcd takes 128.
const batch = 100

// fetch answers the records that a host was told of, as they were at a revision; zero is
// now. What is known in the very version that was told is not read.
func (s *Store) fetch(ctx context.Context, told []mark, at store.Revision) (
	store.Changes, error) {
	found := make([]store.Record, len(told))
	var missing []int
	for i, m := range told {
		if !m.left {
			found[i] = s.known.find(m.key, store.Version(m.at))
		}
		if found[i] == nil {
			missing = append(missing, i)
		}
	}
	for some := range slices.Chunk(missing, batch) {
		if err := s.fetchSome(ctx, told, some, found, at); err != nil {
			return store.Changes{}, err
		}
	}
	var c store.Changes
	for i, m := range told {
		if found[i] == nil {
			c.Gone = append(c.Gone, m.key)
			continue
		}
		c.Records = append(c.Records, found[i])
	}
	return c, nil
}

// fetchSome reads some of the records in one transaction.
func (s *Store) fetchSome(ctx context.Context, told []mark, some []int, found []store.Record,
	at store.Revision) error {
	var gets []clientv3.Op
	for _, i := range some {
		gets = append(gets, clientv3.OpGet(s.keys.record(told[i].key),
			clientv3.WithRev(revision(at))))
	}
	got, err := s.read(ctx, clientv3.OpTxn(nil, gets, nil))
	if err != nil {
		return unread("Changes", store.Key{}, err)
	}
	for n, r := range got.Txn().Responses {
		key := told[some[n]].key
		kvs := r.GetResponseRange().GetKvs()
		if len(kvs) == 0 {
			continue
		}
		r, err := s.decode("Changes", key, kvs[0].Value, kvs[0].ModRevision)
		if err != nil {
			return err
		}
		found[some[n]] = r
	}
	return nil
}

// Wait implements [store.Waiter].
func (s *Store) Wait(ctx context.Context, of store.Feed, since store.Revision) error {
	if since == 0 {
		return ctx.Err() // a reader that has not looked yet need not wait
	}
	if err := of.Check(); err != nil {
		return unreadable("Wait", store.Key{Name: string(of.Host)}, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	switch f, err := s.awaited(ctx, of, since); {
	case err != nil && ctx.Err() == nil:
		return unread("Wait", store.Key{}, err)
	case err != nil: // below
	case f == nil:
		return nil // it was seen of another store: the reader is to look
	default:
		if _, _, ok := f.after(ctx, since, since+1); ok || ctx.Err() == nil {
			return nil
		}
	}
	if s.ctx.Err() != nil {
		return &store.StoreError{Op: "Wait", Kind: store.Unavailable, Err: errClosed}
	}
	return ctx.Err()
}

// awaited returns the feed in which a reader waits for what comes after a revision; nil is that etcd has not come
// to that one.
func (s *Store) awaited(ctx context.Context, of store.Feed, since store.Revision) (*feed, error) {
	if f := s.followed(of); f != nil {
		return f, nil
	}
	_, now, err := s.head(ctx, of)
	if err != nil || since > now {
		return nil, err
	}
	return s.follow(of, since), nil
}
