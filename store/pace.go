package store

import "time"

// retry is the part of a period after which something that failed, or that another
// process may change, is looked at again.
const retry = 5

// pace says when something is due again. A clock that was set back makes it due: what
// was asked for by the old clock says nothing in the new one. The zero value is due.
type pace struct{ from, until time.Time }

func (p *pace) due(now time.Time) bool { return !now.Before(p.until) || now.Before(p.from) }

// rest makes it due again after d, and returns when that is.
func (p *pace) rest(now time.Time, d time.Duration) time.Time {
	p.from, p.until = now, now.Add(d)
	return p.until
}

// silence is how long what an owner writes has not changed. It adds up what passes
// between looks, each time at most a given step: a clock that is set forward, and a
// process that was stopped for a while, make no other silent; a clock that is set
// back prolongs a silence by one step. The zero value has seen nothing.
type silence[T comparable] struct {
	last   T
	known  bool
	looked time.Time
	lasted time.Duration
}

// see takes in what is written now, and returns for how long it has been the same. The
// first sight of it is the beginning of the silence, whatever its age.
func (s *silence[T]) see(what T, now time.Time, step time.Duration) time.Duration {
	if !s.known || s.last != what {
		*s = silence[T]{last: what, known: true, looked: now}
		return 0
	}
	s.lasted += min(max(0, now.Sub(s.looked)), step)
	s.looked = now
	return s.lasted
}

// forget begins again.
func (s *silence[T]) forget() { *s = silence[T]{} }
