// Package todo keeps what an agent is to look at: now, at its time, or once more after it
// could not be dealt with. It decides how long to wait after a failure, and nothing else.
package todo

import (
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/record"
)

// A List is the records to look at. The zero value is empty and ready.
type List struct {
	now    due.Work[record.Key]
	later  due.Timers[record.Key]
	failed map[record.Key]int // how often looking at it has failed in a row
}

// Add lets a record be looked at now.
func (l *List) Add(key record.Key) { l.now.Add(key) }

// At lets a record be looked at no later than at.
func (l *List) At(key record.Key, at time.Time) { l.later.Set(key, at) }

// Next returns when the next record is due; the zero time is when something changes.
func (l *List) Next() time.Time { return l.later.Next() }

// Wake lets all that is due be looked at now.
func (l *List) Wake(now time.Time) {
	for key, ok := l.later.Pop(now); ok; key, ok = l.later.Pop(now) {
		l.now.Add(key)
	}
}

// Take removes and returns the record that is first to be looked at. Its time is forgotten:
// whoever looks says when to look again.
func (l *List) Take() (record.Key, bool) {
	key, ok := l.now.Pop()
	if ok {
		l.later.Drop(key)
	}
	return key, ok
}

// Done notes that a record could be dealt with.
func (l *List) Done(key record.Key) { delete(l.failed, key) }

// Drop forgets a record that nothing is to be done about, unless it is to be looked at now.
func (l *List) Drop(key record.Key) {
	l.later.Drop(key)
	l.Done(key)
}

// Failed lets a record that could not be dealt with be looked at again after a while: each
// time twice as long, from least to most, whatever becomes of the others. A lost race is no
// failure.
// Source: Kubernetes client-go workqueue (ItemExponentialFailureRateLimiter).
func (l *List) Failed(key record.Key, err error, now time.Time, least, most time.Duration) {
	wait := least
	if !errors.Is(err, record.Stale) {
		if l.failed == nil {
			l.failed = map[record.Key]int{}
		}
		n := l.failed[key]
		l.failed[key] = n + 1
		wait = max(least, min(least<<min(n, 16), most))
	}
	l.later.Drop(key) // what it asked for before it failed
	l.later.Set(key, now.Add(wait))
}

// Failing reports whether a record could not be dealt with when it was last looked at.
func (l *List) Failing(key record.Key) bool { return l.failed[key] > 0 }
