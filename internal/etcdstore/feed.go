package etcdstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-vm/godwit/store"
)

// A feed is what one watch has told lately about a feed.
type feed struct {
	mu     sync.Mutex
	base   store.Revision            // all that changed after this is in the log
	latest store.Revision            // of the last change in the log; at least base
	log    []change                  // in order
	last   map[string]store.Revision // the last change of each key in the log
	news   chan struct{}             // closed with the next change
	turn   int                       // counts the watches; what an earlier one tells is void
	again  context.CancelFunc        // ends the present watch: another one begins
	keep   int                       // how many keys the log remembers

	calls int       // that wait for a change
	used  time.Time // when one looked last, or was there
	ctx   context.Context
	stop  context.CancelFunc // ends ctx: it is no longer watched
}

// change is a change of one key.
type change struct {
	at   store.Revision
	key  string
	text []byte // the record; empty in a host's feed
	gone bool
}

// idle is for how long a feed is watched without readers. Each takes a stream of etcd, and memory.
const idle = 10 * time.Minute

// remembered is how many keys the log of a feed remembers; a reader that is further behind gets
// everything.
const remembered = 4096

func newFeed(base store.Revision) *feed {
	return &feed{base: base, latest: base, last: map[string]store.Revision{},
		news: make(chan struct{}), keep: remembered}
}

// follow returns a feed, and begins to watch it from a revision if it is not watched yet. That is one that
// etcd has come to: what a reader says that it has seen may be of another store, or a lie.
func (s *Store) follow(of store.Feed, since store.Revision) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	f := s.feeds[of]
	if f == nil {
		f = newFeed(since)
		f.ctx, f.stop = context.WithCancel(s.ctx)
		s.feeds[of] = f
		if s.ctx.Err() == nil {
			s.followers.Go(func() { s.watch(of, f) })
		}
	}
	f.use(now)
	s.forgetIdle(now)
	return f
}

// followed returns a feed if it is watched.
func (s *Store) followed(of store.Feed) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[of]
	if f != nil {
		f.use(time.Now())
	}
	return f
}

// forgetIdle ends the watches of feeds that were not asked for lately; s.mu is held.
func (s *Store) forgetIdle(now time.Time) {
	for of, f := range s.feeds {
		if f.unused(now) {
			f.stop()
			delete(s.feeds, of)
		}
	}
}

// use notes that a feed is asked for.
func (f *feed) use(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = now
}

// unused reports whether no call waits for a feed, or has asked for it lately.
func (f *feed) unused(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls == 0 && now.Sub(f.used) > idle
}

// watch keeps a feed's log until it is no longer followed.
func (s *Store) watch(of store.Feed, f *feed) {
	const first, longest = 50 * time.Millisecond, 2 * time.Second
	for wait := first; f.ctx.Err() == nil; {
		if s.watchOnce(of, f) {
			wait = first
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longest)
	}
}

// watchOnce takes in what one watch tells until it ends, and reports whether that was
// anything. Each has a stream, and so a member, of its own: one that is silent is left.
func (s *Store) watchOnce(of store.Feed, f *feed) (told bool) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(f.ctx))
	defer cancel()
	turn, from := f.begin(cancel)
	ctx = metadata.AppendToOutgoingContext(ctx, "godwit-watch", fmt.Sprintf("%p %d", f, turn))
	for r := range s.client.Watch(ctx, s.keys.feed(of), clientv3.WithPrefix(),
		clientv3.WithRev(revision(from)), clientv3.WithProgressNotify(), clientv3.WithFragment()) {
		if r.CompactRevision > 0 {
			f.lose(turn, store.Revision(r.CompactRevision))
			return true
		}
		if r.Err() != nil {
			return told
		}
		s.past.told(f.take(turn, r.Events))
		told = true
	}
	return told
}

// begin says from where the next watch is to tell.
func (f *feed) begin(again context.CancelFunc) (turn int, from store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	f.again = again
	return f.turn, f.latest + 1
}

// take enters what a watch has told, and returns how far the log has come; zero: the watch is void.
func (f *feed) take(turn int, events []*clientv3.Event) store.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn != f.turn || len(events) == 0 {
		return 0
	}
	for _, e := range events {
		c := change{at: store.Revision(e.Kv.ModRevision), key: string(e.Kv.Key),
			text: e.Kv.Value, gone: e.Type == clientv3.EventTypeDelete}
		f.log = append(f.log, c)
		f.last[c.key] = c.at
		f.latest = c.at
	}
	f.trim()
	f.tell()
	return f.latest
}

// trim forgets what was superseded, and then what is old.
func (f *feed) trim() {
	if len(f.log) < 2*f.keep {
		return
	}
	kept := make([]change, 0, f.keep)
	for _, c := range f.log {
		if f.last[c.key] == c.at {
			kept = append(kept, c)
		}
	}
	for len(kept) > f.keep {
		f.base = kept[0].at
		delete(f.last, kept[0].key)
		kept = kept[1:]
	}
	f.log = kept
}

// lose notes that what changed until a revision is no longer known to etcd.
func (f *feed) lose(turn int, at store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn == f.turn {
		f.reset(at)
	}
}

// restart gives up a watch that is behind, or that watches what no longer is: the next one
// tells what comes after a revision.
func (f *feed) restart(at store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	f.reset(at)
	if f.again != nil {
		f.again()
	}
}

func (f *feed) reset(at store.Revision) {
	f.base, f.latest, f.log = at, at, nil
	clear(f.last)
	f.tell()
}

// tell wakes all that wait.
func (f *feed) tell() {
	close(f.news)
	f.news = make(chan struct{})
}

// after answers the last change of each key after a revision, in order, as soon as the log
// has come to another, and how far it has come. It answers false when the log does not
// reach back so far, or does not get there before ctx ends.
func (f *feed) after(ctx context.Context, since, until store.Revision) (
	[]change, store.Revision, bool) {
	f.wait(1)
	defer f.wait(-1)
	for {
		changes, latest, news, ok := f.look(since, until)
		if news == nil {
			return changes, latest, ok
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, 0, false
		}
	}
}

// wait counts the calls that wait.
func (f *feed) wait(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls += more
	f.used = time.Now()
}

// look is one look at the log. It answers what to wait for when it is to be repeated.
func (f *feed) look(since, until store.Revision) (
	changes []change, latest store.Revision, news chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case since < f.base:
		return nil, 0, nil, false
	case f.latest < until:
		return nil, 0, f.news, false
	}
	for i := len(f.log) - 1; i >= 0 && f.log[i].at > since; i-- {
		if c := f.log[i]; f.last[c.key] == c.at {
			changes = append(changes, c)
		}
	}
	return changes, f.latest, nil, true
}
