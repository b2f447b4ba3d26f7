package etcdstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/store"
)

// past is what is known of the history of the store. A snapshot that is restored makes a cluster of
// etcd with another id, of the same keys, unless it has the old token and the old peer URLs: then, and
// when data are put back by hand, only the revision says that it is older.
type past struct {
	mu       sync.Mutex
	known    *store.History // as last read; nil: it is read when it is needed
	instance string         // of etcd, when it was read
	now      store.Revision // then

	newest store.Revision // of all answers
	by     string         // the cluster of etcd that gave the last one
}

// instanceOf names the cluster of etcd that has answered.
func instanceOf(h *etcdserverpb.ResponseHeader) string { return fmt.Sprintf("%x", h.GetClusterId()) }

// headerOf returns what etcd says of itself in an answer.
func headerOf(r clientv3.OpResponse) *etcdserverpb.ResponseHeader {
	if t := r.Txn(); t != nil {
		return t.Header
	}
	return r.Get().Header
}

// top returns the newest revision that was answered.
func (p *past) top() store.Revision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// heard takes in an answer, and reports whether etcd was set back: it comes from another cluster, or
// is older than what had been answered before it was asked.
func (p *past) heard(before store.Revision, h *etcdserverpb.ResponseHeader) (back bool) {
	now, by := store.Revision(h.GetRevision()), instanceOf(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	back = now < before || p.by != "" && p.by != by
	p.by, p.newest = by, max(p.newest, now)
	if back {
		p.known, p.newest = nil, now
	}
	return back
}

// heard takes in an answer. When etcd was set back, all that is remembered is void: what it stores now
// has revisions that other records had.
func (s *Store) heard(before store.Revision, h *etcdserverpb.ResponseHeader) {
	if !s.past.heard(before, h) {
		return
	}
	s.known.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.restart(store.Revision(h.GetRevision()))
	}
}

var historyName = store.Key{Name: "history"}

// judge says why an answer must not be used by a reader that has seen the mark of the context. What is
// known of the history is read again before it is.
func (s *Store) judge(ctx context.Context, h *etcdserverpb.ResponseHeader) error {
	seen, is := store.MarkOf(ctx)
	if !is {
		return nil
	}
	known, _, _ := s.past.get()
	if known != nil && known.Judge(seen, instanceOf(h), store.Revision(h.GetRevision())) == nil {
		s.past.put(*known, instanceOf(h), store.Revision(h.GetRevision()))
		return nil
	}
	_, err := s.fresh(ctx, seen)
	return err
}

// fresh reads the history, and answers why it is not one in which a mark was seen. What was known of
// it says nothing: an etcd that was set back under a client that lives answers with an older revision.
func (s *Store) fresh(ctx context.Context, seen store.Mark) (store.History, error) {
	h, instance, err := s.History(ctx)
	if err != nil {
		return h, err
	}
	_, _, now := s.past.get()
	if old := h.Judge(seen, instance, now); old != nil {
		return h, old
	}
	return h, nil
}

// standing returns the history of the store for a reader with a mark, and why it is not in its past.
func (s *Store) standing(ctx context.Context) (h store.History, marked bool, err error) {
	seen, marked := store.MarkOf(ctx)
	if !marked {
		return h, false, nil
	}
	known, instance, now := s.past.get()
	if known == nil || known.Judge(seen, instance, now) != nil {
		h, err = s.fresh(ctx, seen)
		return h, true, err
	}
	return *known, true, nil
}

func (p *past) get() (*store.History, string, store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.instance, p.now
}

func (p *past) put(h store.History, instance string, now store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || p.known.Version <= h.Version {
		p.known, p.instance, p.now = &h, instance, now
	}
}

// told takes in up to which revision a watch has told.
func (p *past) told(at store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = max(p.newest, at)
}

// wrote takes in the revision of a write.
func (p *past) wrote(at store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = max(p.now, at)
}

// reset forgets what was read.
func (p *past) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = nil
}

// forget reads the history once more, and reports whether it has changed.
func (p *past) forget(ctx context.Context, s *Store) bool {
	before, _, _ := p.get()
	h, _, err := s.History(ctx)
	return err == nil && before != nil && before.Version != h.Version
}

// History implements [store.Historian]. Where there is none yet, it begins.
func (s *Store) History(ctx context.Context) (store.History, string, error) {
	for {
		got, err := s.readAny(ctx, clientv3.OpGet(s.keys.history()))
		if err != nil {
			return store.History{}, "", unread("History", historyName, err)
		}
		r := got.Get()
		instance := instanceOf(r.Header)
		if len(r.Kvs) > 0 {
			var h store.History
			if err := json.Unmarshal(r.Kvs[0].Value, &h); err != nil {
				return h, "", unreadable("History", historyName, err)
			}
			h.Version = store.Version(r.Kvs[0].ModRevision)
			s.past.reset()
			s.past.put(h, instance, store.Revision(r.Header.Revision))
			return h, instance, nil
		}
		_, err = s.Amend(ctx, store.History{Cluster: strings.ToLower(rand.Text()),
			Instance: instance})
		if err != nil && !errors.Is(err, store.Stale) {
			return store.History{}, "", err
		}
	}
}

// Amend implements [store.Historian].
func (s *Store) Amend(ctx context.Context, h store.History) (store.History, error) {
	key, was := s.keys.history(), revision(store.Revision(h.Version))
	h.Version = 0
	text, err := json.Marshal(h)
	if err != nil {
		return h, unreadable("Amend", historyName, err)
	}
	call, cancel := s.call(ctx)
	defer cancel()
	var d departure
	before := s.past.top()
	r, err := s.client.Txn(d.noted(call)).If(clientv3.Compare(clientv3.ModRevision(key), "=", was)).
		Then(clientv3.OpPut(key, string(text))).Commit()
	if err == nil {
		s.heard(before, r.Header)
	}
	switch {
	case err != nil:
		return h, &store.StoreError{Op: "Amend", Key: historyName, Kind: kindOf(err,
			d.left.Load()), Err: advised(err)}
	case !r.Succeeded:
		return h, stale("Amend", historyName)
	}
	h.Version = store.Version(r.Header.Revision)
	s.past.put(h, instanceOf(r.Header), store.Revision(r.Header.Revision))
	return h, nil
}
