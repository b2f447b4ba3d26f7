package store

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// A Participant looks once, acts once, and says when it wants to look again.
type Participant interface {
	Reconcile(ctx context.Context, now time.Time) (wake time.Time, err error)
}

// LeaderRunner is a participant that acts only while its process leads. It belongs to one caller
// at a time.
type LeaderRunner struct {
	elector *Elector
	store   Store
	begin   func(Store) Participant

	inner Participant
	term  *Leader // in which inner acts
}

// NewLeaderRunner returns a participant that runs the elector, and, while that leads, the
// participant that begin makes. It makes a new one for every term, which knows nothing:
// what the one before knew, others may have changed since. Its store is guarded.
//
// The inner participant must not keep the caller longer than a part of
// [Election.LeaseDuration]: no heartbeat is sent meanwhile.
func NewLeaderRunner(e *Elector, store Store, begin func(Store) Participant) *LeaderRunner {
	return &LeaderRunner{elector: e, store: store, begin: begin}
}

// Reconcile runs the election, and then the inner participant if we lead. It answers the
// earlier of their wishes and both their errors.
func (l *LeaderRunner) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake, err := l.elector.Reconcile(ctx, now)
	leader, leading := l.elector.Leading()
	if !leading {
		l.inner, l.term = nil, nil
		return wake, err
	}
	if !l.elector.leads(l.term) {
		l.inner, l.term = l.begin(FencedStore(l.store, l.elector)), leader
	}
	again, inner := l.inner.Reconcile(ctx, now)
	if !l.elector.leads(l.term) {
		l.inner, l.term = nil, nil
		return now.Add(l.elector.config.HeartbeatInterval / retry), errors.Join(err, inner)
	}
	return workqueue.Earliest(wake, again), errors.Join(err, inner)
}

// Leading reports whether the inner participant acts, and in which term.
func (l *LeaderRunner) Leading() (term uint64, ok bool) {
	if l.term == nil {
		return 0, false
	}
	return l.term.Term, true
}

// Resign drops the inner participant and resigns: see [Elector.Resign].
func (l *LeaderRunner) Resign(ctx context.Context) error {
	l.inner, l.term = nil, nil
	return l.elector.Resign(ctx)
}
