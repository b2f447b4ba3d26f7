package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// A Gate is a store as a participant uses it. It remembers on disk the newest moment of the store
// that was seen, and answers SetBack or Foreign when the store has not got that in its past: then
// it was restored from a backup, or is another cluster's, and nothing that it says is to be acted
// upon. It is safe for concurrent use. Make it with [Remember].
//
//	read, written ──► the mark rises ──► it is kept on disk, at most once a second
//	a call ──► shows the mark ──► answered, or refused for all until it is reconciled
type Gate struct {
	store store.Historian
	path  string
	who   string

	mu       sync.Mutex
	mark     store.Mark
	saved    store.Mark
	at       time.Time // of the last saving
	unmarked bool      // nothing is kept before Vouch
	unkept   error     // why the mark could not be kept when that was last tried; nil: it was
	tell     func(error)
}

var (
	_ Store        = (*Gate)(nil)
	_ store.Waiter = (*Gate)(nil)
)

// saveEvery is how often a mark is kept on disk, at most: what was seen since the last time is
// forgotten when the process dies.
const saveEvery = time.Second

// Remember returns the store as a participant uses it that remembers in a file what it has seen.
// Path "" is that it remembers nothing. The error says that the file cannot be read, or that the
// store does not answer; that it was set back is told by the next look.
func Remember(ctx context.Context, store store.Historian, path, who string) (*Gate, error) {
	return (&Gate{store: store, path: path, who: who}).open(ctx)
}

// open reads what was seen, and asks the store.
func (g *Gate) open(ctx context.Context) (*Gate, error) {
	if path := g.path; path != "" {
		if err := durable.Owned(filepath.Dir(path)); err != nil {
			return nil, err
		}
		err := durable.Read(path, &g.mark)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("what was seen of the store: %w; without it an older store is "+
				"not recognised by %s alone", err, g.who)
		}
		g.saved = g.mark
	}
	if err := g.check(ctx); err != nil && !Refused(err) {
		return nil, err
	}
	return g, nil
}

// Gated is Remember for a process that can wait: as long as the store does not answer, it asks again.
func Gated(ctx context.Context, s Store, path, who string) (*Gate, error) {
	past, knows := s.(store.Historian)
	if !knows {
		return nil, errors.New("this store does not know its past")
	}
	for {
		g, err := Remember(ctx, past, path, who)
		if !errors.Is(err, store.Unavailable) {
			return g, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// Refused reports whether an error says that the store must not be used.
func Refused(err error) bool {
	return errors.Is(err, store.SetBack) || errors.Is(err, store.Foreign)
}

// beyond returns the store without the gate, to report there what is wrong.
func (g *Gate) beyond() store.Historian { return g.store }

// Mark returns the newest moment of the store that was seen.
func (g *Gate) Mark() store.Mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mark
}

// check asks the store for its history, and answers SetBack or Foreign when the store must not be
// used. When it was set back, and no participant has said so yet, that is said in the store: then
// all others are refused, too.
func (g *Gate) check(ctx context.Context) error {
	key := store.Key{Name: "history"}
	h, instance, err := g.store.History(ctx)
	if err != nil {
		return err
	}
	mark := g.Mark()
	_, err = g.store.Get(store.WithMark(ctx, mark), store.Key{Kind: store.LeaderKind,
		Name: "cluster"})
	switch {
	case err == nil:
		g.enter(store.Mark{Cluster: h.Cluster, Epoch: h.Epoch, Instance: instance}, mark)
		return g.save(time.Now())
	case errors.Is(err, store.SetBack) && h.Doubt == nil:
		h.Doubt = &store.Doubt{By: g.who, Why: plainly(err), Seen: mark,
			At: time.Now().UTC().Round(0)}
		if _, told := g.store.Amend(ctx, h); told != nil && !errors.Is(told, store.Stale) {
			err = errors.Join(err, told)
		}
	}
	if e, is := errors.AsType[*store.StoreError](err); is && Refused(err) {
		return &store.StoreError{Op: "Check", Key: key, Kind: e.Kind, Err: e.Err}
	}
	return err
}

// plainly returns why a store was set back, without what is to be done.
func plainly(err error) string {
	e, _ := errors.AsType[*store.StoreError](err)
	if e == nil || e.Err == nil {
		return err.Error()
	}
	return strings.TrimSuffix(e.Err.Error(), ": "+store.Advice)
}

// enter takes in in which cluster and epoch the store is: the revisions of another are forgotten.
func (g *Gate) enter(now, before store.Mark) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark != before && g.mark.Cluster == now.Cluster && g.mark.Epoch > now.Epoch {
		return // another call was faster
	}
	if g.mark.Cluster == now.Cluster && g.mark.Epoch == now.Epoch {
		now.Revision = g.mark.Revision
	}
	g.mark = now
}

// saw takes in the version of a record.
func (g *Gate) saw(v store.Version) {
	g.mu.Lock()
	g.mark.Revision = max(g.mark.Revision, store.Revision(v))
	due := g.path != "" && time.Since(g.at) >= saveEvery
	g.mu.Unlock()
	if due {
		_ = g.save(time.Now()) // what cannot be kept is tried again; Unkept tells of it
	}
}

// save keeps the mark on disk if it has changed, and tells of it when that begins to fail, or to succeed.
func (g *Gate) save(now time.Time) error {
	g.mu.Lock()
	before := g.unkept
	g.unkept = g.keep(now)
	err, tell := g.unkept, g.tell
	g.mu.Unlock()
	if tell != nil && (err == nil) != (before == nil) {
		tell(err)
	}
	return err
}

// keep is save; g.mu is held.
func (g *Gate) keep(now time.Time) error {
	if g.path == "" || g.mark == g.saved || g.mark.Cluster == "" || g.unmarked {
		return nil
	}
	g.at = now
	if err := durable.Write(g.path, g.mark, true); err != nil {
		return fmt.Errorf("what was seen of the store cannot be kept: %w", err)
	}
	g.saved = g.mark
	return nil
}

// Unmarked reports whether the store has hosts, and nothing was remembered of it here when it was
// opened: it may be a backup. Nothing is remembered then before [Gate.Vouch]. Only a file, which one
// controller serves, is judged so: etcd's cluster has another id after a restore.
func (g *Gate) Unmarked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unmarked
}

// Vouch says that every participant that could know a newer store was heard.
func (g *Gate) Vouch() {
	g.mu.Lock()
	g.unmarked = false
	g.mu.Unlock()
	_ = g.save(time.Now()) // what cannot be kept is tried again; Unkept tells of it
}

// Unkept returns why the newest moment that was seen could not be kept; nil is that it was. When the process ends then,
// it does not recognise a store that is set back to a moment in between.
func (g *Gate) Unkept() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unkept
}

// telling has a function told when the mark cannot be kept, once, and with nil when it can again.
func (g *Gate) telling(tell func(error)) {
	g.mu.Lock()
	g.tell = tell
	err := g.unkept
	g.mu.Unlock()
	if err != nil {
		tell(err)
	}
}

// Close keeps the mark on disk. It does not close the store.
func (g *Gate) Close() error { return g.save(time.Now()) }

// Get implements store.Store.
func (g *Gate) Get(ctx context.Context, key store.Key) (store.Record, error) {
	r, err := g.store.Get(store.WithMark(ctx, g.Mark()), key)
	if r != nil && err == nil {
		g.saw(r.RecordVersion())
	}
	return r, err
}

// Put implements store.Store.
func (g *Gate) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record,
	error) {
	stored, err := g.store.Put(store.WithMark(ctx, g.Mark()), r, while...)
	if err == nil {
		g.saw(stored.RecordVersion())
	}
	return stored, err
}

// Delete implements store.Store.
func (g *Gate) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	return g.store.Delete(store.WithMark(ctx, g.Mark()), r, while...)
}

// Changes implements store.Store.
func (g *Gate) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes,
	error) {
	c, err := g.store.Changes(store.WithMark(ctx, g.Mark()), f, since)
	if err != nil {
		return c, err
	}
	var last store.Version
	for _, r := range c.Records {
		last = max(last, r.RecordVersion())
	}
	g.saw(last)
	return c, nil
}

// Wait implements store.Waiter: at a store that cannot tell when to look it waits a while.
func (g *Gate) Wait(ctx context.Context, f store.Feed, since store.Revision) error {
	if w, is := g.store.(store.Waiter); is {
		return w.Wait(store.WithMark(ctx, g.Mark()), f, since)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(again):
		return nil
	}
}

// Judged returns the store as operators use it: it is read whatever its history is, and written
// only while it was not set back.
func Judged(s Store) Store {
	if h, is := s.(store.Historian); is {
		return judged{s, h}
	}
	return s
}

type judged struct {
	Store
	past store.Historian
}

// Put implements store.Store.
func (j judged) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record,
	error) {
	return j.Store.Put(store.WithMark(ctx, store.Mark{}), r, while...)
}

// Delete implements store.Store.
func (j judged) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	return j.Store.Delete(store.WithMark(ctx, store.Mark{}), r, while...)
}

// History implements store.Historian.
func (j judged) History(ctx context.Context) (store.History, string, error) {
	return j.past.History(ctx)
}

// Amend implements store.Historian.
func (j judged) Amend(ctx context.Context, h store.History) (store.History, error) {
	return j.past.Amend(ctx, h)
}
