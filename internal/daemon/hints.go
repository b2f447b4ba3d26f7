package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// hints tells when something has changed in the feeds that the participants of a loop
// follow, but for heartbeats: there is one every few moments, and an observer of them
// looks by the clock.
type hints struct {
	mu        sync.Mutex
	followers []*follower
	news      chan struct{} // a feed was read
	woken     store.Revision
}

func newHints() *hints { return &hints{news: make(chan struct{}, 1)} }

// follower is a store as one participant reads it.
type follower struct {
	store.Store
	hints *hints
	next  map[store.Feed]store.Revision
}

// follow returns a store that does what s does, and whose reader is told of changes.
func (h *hints) follow(s store.Store) store.Store {
	if _, is := s.(store.Waiter); !is {
		return s
	}
	f := &follower{Store: s, hints: h, next: map[store.Feed]store.Revision{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers = append(h.followers, f)
	return f
}

// forget forgets all followers.
func (h *hints) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers = nil
}

// Changes implements store.Store.
func (f *follower) Changes(ctx context.Context, feed store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := f.Store.Changes(ctx, feed, since)
	if err != nil || feed.Leases {
		return c, err
	}
	f.hints.mu.Lock()
	f.next[feed] = c.Next
	f.hints.mu.Unlock()
	select {
	case f.hints.news <- struct{}{}:
	default:
	}
	return c, nil
}

// feed is what is waited for.
type feed struct {
	store store.Waiter
	name  store.Feed
	since store.Revision
}

// feeds lists what is followed, and a number that changes when any of it was read on.
func (h *hints) feeds() (list []feed, sum store.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		for name, since := range f.next {
			list = append(list, feed{f.Store.(store.Waiter), name, since})
			sum += since
		}
	}
	return list, sum
}

// reread is how long to wait before changes are told again that were not taken in.
const reread = time.Second

// wait returns when something may have changed, for controller.Loop.Wait.
func (h *hints) wait(ctx context.Context) error {
	list, sum := h.feeds()
	for len(list) == 0 || sum == h.woken {
		var again <-chan time.Time
		if len(list) > 0 {
			again = time.After(reread)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.news:
		case <-again:
			h.woken = 0
		}
		list, sum = h.feeds()
	}
	err := first(ctx, list)
	h.woken = sum
	return err
}

// first waits for the first of several feeds to change.
func first(ctx context.Context, list []feed) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	for _, f := range list {
		go func() { ended <- f.store.Wait(ctx, f.name, f.since) }()
	}
	err := <-ended
	if ctx.Err() != nil {
		err = nil // it is time to stop
	}
	cancel()
	for range len(list) - 1 {
		<-ended
	}
	return err
}
