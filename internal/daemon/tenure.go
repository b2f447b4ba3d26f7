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

// lapse is how long an agent may have stored no heartbeat before it begins anew, at least: no
// other controller leads by then, and no operator has set a store back and started another one.
const lapse = 15 * time.Second

// A tenure is how long an agent's claim lasts without a gap. It is safe for concurrent use by the
// loop that holds the claim and the one that acts.
type tenure struct {
	claim  *store.LeaseClaim
	uptime func() time.Duration
	most   time.Duration
	last   atomic.Pointer[sign]
}

// sign is when a heartbeat was stored: by the clock, which may be set, and by the uptime, which
// may miss that the machine was suspended.
type sign struct {
	at time.Time
	up time.Duration
}

func newTenure(c *store.LeaseClaim, every time.Duration, uptime func() time.Duration) *tenure {
	return &tenure{claim: c, uptime: uptime, most: max(lapse, 3*every)}
}

// lapsed reports whether there was no heartbeat for too long, by either clock: one that was set back
// hides a gap from itself only.
func (t *tenure) lapsed(now time.Time, up time.Duration) bool {
	last := t.last.Load()
	return last != nil && max(now.Round(0).Sub(last.at), up-last.up) > t.most
}

// Reconcile sends a heartbeat when one is due. The error is errLapsed when that is the first one
// after too long.
func (t *tenure) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	up, before := t.uptime(), t.claim.Last()
	wake, err := t.claim.Reconcile(ctx, now)
	switch last := t.claim.Last(); {
	case last == before:
	case t.lapsed(now, up):
		return wake, errLapsed
	default:
		t.last.Store(&sign{last.Round(0), up})
	}
	return wake, err
}

// within returns a participant that looks only while the claim lasts.
func (t *tenure) within(p store.Participant) store.Participant {
	return participant(func(ctx context.Context, now time.Time) (time.Time, error) {
		if t.lapsed(now, t.uptime()) {
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
