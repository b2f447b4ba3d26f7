package store

import (
	"time"
)

// A FailureDetector records the time since each owner's last heartbeat. The zero value has heard
// none. It belongs to one caller at a time.
type FailureDetector struct {
	heard map[string]sign
}

// sign is the last change of a lease that was seen, and when.
type sign struct {
	lease Lease
	at    time.Time
}

// See takes in a lease as it is stored, and reports whether it is a heartbeat:
// what has not changed since it was last seen is none. The first sight of a lease is
// one, whatever its age: an observer that has just begun waits as long as all others.
func (w *FailureDetector) See(l *Lease, now time.Time) bool {
	old, known := w.heard[l.Owner]
	same := old.lease.Boot == l.Boot && old.lease.Session == l.Session &&
		old.lease.Beats == l.Beats
	if known && same {
		return false
	}
	if w.heard == nil {
		w.heard = map[string]sign{}
	}
	w.heard[l.Owner] = sign{*l, now}
	return true
}

// Silent returns how long an owner has sent no heartbeat, and whether it ever has. A clock
// that was set back does not make a silence shorter than nothing.
func (w *FailureDetector) Silent(owner string, now time.Time) (time.Duration, bool) {
	s, known := w.heard[owner]
	return max(0, now.Sub(s.at)), known
}

// Forget forgets an owner whose lease is gone.
func (w *FailureDetector) Forget(owner string) { delete(w.heard, owner) }
