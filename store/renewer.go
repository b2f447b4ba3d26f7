package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// LeaseConfig configures a [Renewer].
type LeaseConfig struct {
	// Owner names the lease: HostLease(host), or "controller/" and a name. It is
	// needed.
	Owner string
	// Boot says which start of the machine this is. Default: unknown.
	Boot string
	// Session says which start of the process this is, and must differ from that of
	// every other process, also of the one before. It is needed.
	Session string
	// HeartbeatInterval is how often a heartbeat is sent. Default: 5s, a sixth of the 30 s after which
	// the silent are taken for lost.
	HeartbeatInterval time.Duration
	// LeaseDuration is how long another process with our name must be silent before we take
	// its lease. It should be shorter than what makes others take the owner for
	// silent, so that a restart goes unnoticed. Default: three times HeartbeatInterval.
	LeaseDuration time.Duration
	// Alone says that no other process with this name lives, which the caller knows for
	// certain: it holds the lock of a file, say. A lease that is found is then taken at
	// once.
	Alone bool
	// Lock names a lock that this process holds, and that no other process on this machine can
	// hold meanwhile. A lease of the same Boot whose process held the same lock is taken at
	// once: that process is dead. Default: there is none.
	Lock string
}

func (c *LeaseConfig) complete() error {
	if c.HeartbeatInterval <= 0 {
		c.HeartbeatInterval = 5 * time.Second
	}
	if c.LeaseDuration <= 0 {
		c.LeaseDuration = 3 * min(c.HeartbeatInterval, math.MaxInt64/3)
	}
	switch {
	case c.Owner == "":
		return errors.New("store: Owner is empty: name whose heartbeat it is")
	case c.Session == "":
		return fmt.Errorf("lease %s: Session is empty: give each start of a process its own",
			c.Owner)
	case c.LeaseDuration/2 < c.HeartbeatInterval:
		return fmt.Errorf("lease %s: the lease duration is %v: give at least twice the heartbeat interval, %v", c.Owner,
			c.LeaseDuration, c.HeartbeatInterval)
	}
	return nil
}

// IdentityError says that another process with our name lives. One of the two is to be
// stopped, or to be given another name.
type IdentityError struct {
	Owner   string // the name of both
	Session string // the other process
}

// Error says which name it is, and what to do.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("store: two processes call themselves %s, and the other one lives "+
		"(session %s): stop one of them, or give it another name", e.Owner, e.Session)
}

// A Renewer sends heartbeats: it changes a lease in the store again and again. A lease
// that another process holds it takes only when that process is silent.
type Renewer struct {
	config LeaseConfig
	store  Store

	pace  pace
	mine  *Lease // as we stored it; nil when that is not known
	held  bool   // it was ours when last seen
	rival *Lease // another process's, as last seen; nil when it is not
	quiet silence[leaseState]
	alive bool // the rival has sent a heartbeat
	last  time.Time
	ended bool
}

// A leaseState is what changes in a lease with each heartbeat of its owner.
type leaseState struct {
	boot, session string
	beats         uint64
}

func stateOf(l *Lease) leaseState { return leaseState{l.Boot, l.Session, l.Beats} }

// NewRenewer returns a renewer that has not sent a heartbeat yet. The error says what is wrong
// with the configuration.
func NewRenewer(store Store, config LeaseConfig) (*Renewer, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	return &Renewer{config: config, store: store}, nil
}

// Reconcile sends a heartbeat when one is due, and says when the next one is. The error is an
// *[IdentityError] for as long as another process with our name lives, or a
// *StoreError; after either it wants to look again soon.
func (b *Renewer) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if b.ended {
		return time.Time{}, nil
	}
	if !b.pace.due(now) {
		return b.pace.until, b.identity()
	}
	soon := b.pace.rest(now, b.config.HeartbeatInterval/retry)
	next, err := b.next(ctx, now)
	if err == nil {
		err = b.identity()
	}
	if err != nil || next == nil {
		return soon, err
	}
	if err := b.put(ctx, next); err != nil || b.mine == nil {
		return soon, err
	}
	b.last = now
	return b.pace.rest(now, b.config.HeartbeatInterval), nil
}

// Last returns when a heartbeat was last stored, by the clock that Reconcile is given; the
// zero time is never.
func (b *Renewer) Last() time.Time { return b.last }

// Holds reports whether the lease is ours, as far as is known.
func (b *Renewer) Holds() bool { return b.held }

// End gives the lease back, so that the next process with our name need not wait. It
// sends no heartbeat after that. To observers, the owner is silent from now on.
func (b *Renewer) End(ctx context.Context) error {
	b.ended = true
	if b.mine == nil {
		return nil
	}
	next := *b.mine
	next.Session = ""
	next.Beats++
	b.mine, b.held = nil, false
	_, err := b.store.Put(ctx, &next)
	if errors.Is(err, Stale) {
		return nil // it was no longer ours
	}
	return err
}

// next returns the lease to be stored; nil when it is another's.
func (b *Renewer) next(ctx context.Context, now time.Time) (*Lease, error) {
	stored := b.mine
	if stored == nil {
		r, err := b.store.Get(ctx, (&Lease{Owner: b.config.Owner}).Key())
		if err != nil {
			return nil, err
		}
		stored, _ = r.(*Lease)
	}
	if stored != nil && b.leave(stored, now) {
		return nil, nil
	}
	next := Lease{Owner: b.config.Owner}
	if stored != nil {
		next = *stored
	} else {
		b.rival, b.alive = nil, false // what it wrote is gone
	}
	next.Boot, next.Session, next.Lock = b.config.Boot, b.config.Session, b.config.Lock
	next.Beats++
	return &next, nil
}

// leave reports whether the lease that is stored is another process's, and not to be
// taken now. One that took ours while we slept has sent a heartbeat by that.
func (b *Renewer) leave(stored *Lease, now time.Time) bool {
	given := stored.Session == "" || stored.Session == b.config.Session
	ours := b.config.Lock != "" && stored.Lock == b.config.Lock && stored.Boot != "" &&
		stored.Boot == b.config.Boot
	if given || (b.config.Alone || ours) && b.last.IsZero() {
		b.rival, b.alive = nil, false
		return false
	}
	silent := b.quiet.see(stateOf(stored), now, b.config.HeartbeatInterval)
	b.alive = b.held || b.rival != nil && (b.alive || stateOf(b.rival) != stateOf(stored))
	b.rival, b.held = stored, false
	if silent < b.config.LeaseDuration {
		return true
	}
	b.rival, b.alive = nil, false
	b.quiet.forget()
	return false
}

// identity answers what is wrong with our name.
func (b *Renewer) identity() error {
	if b.rival == nil || !b.alive {
		return nil
	}
	return &IdentityError{Owner: b.config.Owner, Session: b.rival.Session}
}

// put stores the lease. Of one that another process has written since, and of one without an
// answer, it is not known how it is stored: it is read again.
func (b *Renewer) put(ctx context.Context, next *Lease) error {
	b.mine = nil
	stored, err := b.store.Put(ctx, next)
	switch {
	case errors.Is(err, Stale):
		return nil
	case err != nil:
		return err
	}
	b.mine, b.held = stored.(*Lease), true
	return nil
}
