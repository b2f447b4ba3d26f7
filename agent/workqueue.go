package agent

import (
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// A List is the records to look at. The zero value is empty and ready.
type workQueue struct {
	items items
	now   []*item
	taken int // so many of now
	later workqueue.Alarms[*item]
}

// Add lets a record be looked at now.
func (l *workQueue) Add(key store.Key) { l.add(l.items.of(key)) }

func (l *workQueue) add(i *item) {
	if !i.waits {
		i.waits = true
		l.now = append(l.now, i)
	}
}

// At lets a record be looked at no later than at.
func (l *workQueue) At(key store.Key, at time.Time) { l.at(l.items.of(key), at) }

func (l *workQueue) at(i *item, at time.Time) {
	l.later.Set(&i.alarm, at)
	i.timed = true
}

// Next returns when the next record is due; the zero time is when something changes.
func (l *workQueue) Next() time.Time { return l.later.Next() }

// RequeueDue lets all that is due be looked at now.
func (l *workQueue) RequeueDue(now time.Time) {
	for i, ok := l.later.Pop(now); ok; i, ok = l.later.Pop(now) {
		i.timed = false
		l.add(i)
	}
}

// Take removes and returns the record that is first to be looked at. Its time is forgotten:
// the caller says when to look again, and then that it is Done or has Failed.
func (l *workQueue) Take() (store.Key, bool) {
	if l.taken == len(l.now) {
		if l.now, l.taken = l.now[:0], 0; cap(l.now) > crowd {
			l.now = nil
		}
		return store.Key{}, false
	}
	i := l.now[l.taken]
	l.taken++
	i.waits = false
	l.forget(i)
	return i.key, true
}

// crowd is how many are seldom there at once: their memory is not kept.
const crowd = 64

// forget forgets the time of a record.
func (l *workQueue) forget(i *item) {
	l.later.Drop(&i.alarm)
	i.timed = false
}

// Done notes that a record could be dealt with.
func (l *workQueue) Done(key store.Key) {
	if i := l.items.find(key); i != nil {
		i.failed = 0
		l.items.settle(i)
	}
}

// Drop forgets a record that nothing is to be done about, unless it is to be looked at now.
func (l *workQueue) Drop(key store.Key) {
	if i := l.items.find(key); i != nil {
		l.forget(i)
		i.failed = 0
		l.items.settle(i)
	}
}

// Failed lets a record that could not be dealt with be looked at again after a while: each
// time twice as long, from least to most, whatever becomes of the others. A lost race is no
// failure.
// Source: Kubernetes client-go workqueue (ItemExponentialFailureRateLimiter).
func (l *workQueue) Failed(key store.Key, err error, now time.Time, least, most time.Duration) {
	wait, i := least, l.items.of(key)
	if !errors.Is(err, store.Stale) {
		wait = max(least, workqueue.Backoff(least, most, i.failed))
		i.failed++
	}
	l.forget(i) // what it asked for before it failed
	l.at(i, now.Add(wait))
}

// Failing reports whether a record could not be dealt with when it was last looked at.
func (l *workQueue) Failing(key store.Key) bool {
	i := l.items.find(key)
	return i != nil && i.failed > 0
}
