package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// errLapsed says that an agent has not reached the store for so long that it cannot know any more
// whether the store was set back meanwhile.
var errLapsed = errors.New("the store was not reached for a while: what was stored then may be gone")

// lapse is how long an agent may have stored no sign of life before it begins anew, at least: no
// other controller leads by then, and nobody has set a store back and started another one.
const lapse = 15 * time.Second

// A tenure is how long an agent's claim lasts without a gap. It is safe for concurrent use by the
// loop that holds the claim and the one that acts.
type tenure struct {
	claim *store.LeaseClaim
	most  time.Duration
	last  atomic.Int64 // when a sign was stored
}

func newTenure(c *store.LeaseClaim, every time.Duration) *tenure {
	t := &tenure{claim: c, most: max(lapse, 3*every)}
	t.last.Store(c.Last().UnixNano())
	return t
}

// lapsed reports whether there was no sign for too long.
func (t *tenure) lapsed(now time.Time) bool {
	return now.Sub(time.Unix(0, t.last.Load())) > t.most
}

// Reconcile gives a sign of life when one is due. The error is errLapsed when that is the first one
// after too long.
func (t *tenure) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake, err := t.claim.Reconcile(ctx, now)
	switch last := t.claim.Last().UnixNano(); {
	case last == t.last.Load():
	case t.lapsed(now):
		return wake, errLapsed
	default:
		t.last.Store(last)
	}
	return wake, err
}

// within returns a participant that looks only while the claim lasts.
func (t *tenure) within(p store.Participant) store.Participant {
	return participant(func(ctx context.Context, now time.Time) (time.Time, error) {
		if t.lapsed(now) {
			return now.Add(time.Second), nil // the loop that holds the claim tells of it
		}
		return p.Reconcile(ctx, now)
	})
}

// participant is a function that looks.
type participant func(context.Context, time.Time) (time.Time, error)

// Reconcile lets it look.
func (p participant) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	return p(ctx, now)
}
