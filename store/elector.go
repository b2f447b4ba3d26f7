package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// Election configures an [Elector].
type Election struct {
	// Name is what is led. Default: "cluster".
	Name string
	// Identity names this process among those that stand for election; it stays the
	// same when the process starts again. It is needed.
	Identity string
	// Boot says which start of the machine this is. Default: unknown.
	Boot string
	// Session says which start of the process this is, and must differ from that of
	// every other process, also of the one before. It is needed.
	Session string
	// HeartbeatInterval is how often a heartbeat is sent. Default: 5s.
	HeartbeatInterval time.Duration
	// LeaseDuration is how long the leader must be silent, by our own clock, before we take
	// over. Default: 30s.
	LeaseDuration time.Duration
	// Alone says that no other process with this identity lives: see [LeaseConfig].
	Alone bool
}

// LeaderLeaseDuration returns how long a leader must be silent before another process takes over, by what is
// configured of [Election]: its duration, or a multiple of every; zero is the default.
func LeaderLeaseDuration(every, duration time.Duration) time.Duration {
	if duration > 0 {
		return duration
	}
	if every <= 0 {
		every = 5 * time.Second
	}
	return 6 * min(every, math.MaxInt64/6)
}

func (c *Election) complete() error {
	if c.Name == "" {
		c.Name = "cluster"
	}
	if c.HeartbeatInterval <= 0 {
		c.HeartbeatInterval = 5 * time.Second
	}
	c.LeaseDuration = LeaderLeaseDuration(c.HeartbeatInterval, c.LeaseDuration)
	switch {
	case c.Identity == "":
		return fmt.Errorf("lease %s: Identity is empty: name the process that is to lead", c.Name)
	case c.LeaseDuration/2 < c.HeartbeatInterval:
		return fmt.Errorf("lease %s: the lease duration is %v: give at least twice the heartbeat interval, %v", c.Name,
			c.LeaseDuration, c.HeartbeatInterval)
	}
	return nil
}

// An Elector makes one process of several the leader. It sends heartbeats, and takes
// over when the leader is silent, has resigned, or is an earlier start of some process
// that has started again. The leader is the one that the store names: what an elector believes may
// be out of date at any moment, and only [FencedStore] makes that harmless. It belongs to one
// caller at a time.
type Elector struct {
	config Election
	store  Store
	beater *Renewer

	pace   pace
	leader *Leader // ours, as it is stored; nil when we do not lead
	seen   *Leader // the leader, as last seen; nil is none
	quiet  silence[reign]
	ended  bool
}

// reign is what changes while a leader lives.
type reign struct {
	version    Version
	leaseState leaseState
}

// NewElector returns an elector that does not lead yet. The error says what is wrong
// with the configuration.
func NewElector(store Store, config Election) (*Elector, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	beater, err := NewRenewer(store, LeaseConfig{Owner: "controller/" + config.Identity,
		Boot: config.Boot, Session: config.Session, HeartbeatInterval: config.HeartbeatInterval, Alone: config.Alone})
	if err != nil {
		return nil, err
	}
	return &Elector{config: config, store: store, beater: beater}, nil
}

// Reconcile sends a heartbeat, leads, follows or takes over, and says when it next
// wants to look. The error is an *[IdentityError] when another process with our name
// lives, and then we do not lead; or a *StoreError: what is believed stays as it
// was, and it looks again soon.
func (e *Elector) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if e.ended {
		return time.Time{}, nil
	}
	wake, err := e.beater.Reconcile(ctx, now)
	if _, two := errors.AsType[*IdentityError](err); two {
		e.leader = nil
		return wake, err
	}
	if e.pace.due(now) {
		soon := e.config.HeartbeatInterval / retry
		e.pace.rest(now, soon)
		seen := e.look(ctx, now)
		if err = errors.Join(err, seen); seen == nil && e.leader != nil {
			e.pace.rest(now, e.config.HeartbeatInterval)
		}
	}
	return workqueue.Earliest(wake, e.pace.until), err
}

// Leading returns the record that says that we lead, as we believe.
func (e *Elector) Leading() (*Leader, bool) { return e.leader, e.leader != nil }

// Resign stops leading and standing for election, for good. The next leader takes over
// when it next looks, and a process with our name begins at once. When it fails they
// wait as if we had died.
func (e *Elector) Resign(ctx context.Context) error {
	e.ended = true
	var err error
	if leader := e.leader; leader != nil {
		e.leader = nil
		vacant := *leader // the terms go on counting
		vacant.Holder, vacant.Session = "", ""
		if _, err = e.store.Put(ctx, &vacant); errors.Is(err, Stale) {
			err = nil // there is a leader already
		}
	}
	return errors.Join(err, e.beater.End(ctx))
}

// look reads the leader, and takes over when there is none.
func (e *Elector) look(ctx context.Context, now time.Time) error {
	r, err := e.store.Get(ctx, (&Leader{Name: e.config.Name}).Key())
	if err != nil {
		return err
	}
	e.seen, _ = r.(*Leader)
	if e.seen != nil && e.seen.Session == e.config.Session {
		e.leader = e.seen
		return nil
	}
	e.leader = nil
	if e.seen != nil && e.seen.Holder != "" {
		if lives, err := e.lives(ctx, now); err != nil || lives {
			return err
		}
	}
	return e.takeOver(ctx)
}

// lives reports whether the leader is to be taken for alive. Its lease in the hands
// of another session says that it has ended: a lease is not taken from the living, or
// it was so slow that it must find out.
func (e *Elector) lives(ctx context.Context, now time.Time) (bool, error) {
	r, err := e.store.Get(ctx, (&Lease{Owner: e.seen.Holder}).Key())
	if err != nil {
		return true, err
	}
	what := reign{version: e.seen.Version}
	if l, ok := r.(*Lease); ok {
		if l.Session != e.seen.Session {
			return false, nil
		}
		what.leaseState = stateOf(l)
	}
	return e.quiet.see(what, now, e.config.HeartbeatInterval) < e.config.LeaseDuration, nil
}

// takeOver makes us the leader unless another was faster, or our name is not ours.
func (e *Elector) takeOver(ctx context.Context) error {
	if e.beater.mine == nil {
		return nil
	}
	next := &Leader{Name: e.config.Name}
	if e.seen != nil {
		*next = *e.seen
	}
	next.Holder, next.Session = e.beater.config.Owner, e.config.Session
	next.Term++
	stored, err := e.store.Put(ctx, next, e.beater.mine)
	switch {
	case errors.Is(err, Stale):
		return nil
	case err != nil:
		return err
	}
	e.leader = stored.(*Leader)
	e.seen = e.leader
	return nil
}

// leads reports whether we believe to lead, in the very term that leader began.
func (e *Elector) leads(leader *Leader) bool {
	return leader != nil && e.leader != nil && e.leader.Version == leader.Version
}

// lost takes in that the term which leader began is over, and looks again at once.
func (e *Elector) lost(leader *Leader) {
	if e.leads(leader) {
		e.leader = nil
		e.pace = pace{}
	}
}
