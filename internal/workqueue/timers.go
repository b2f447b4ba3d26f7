// Package workqueue has the queues of what acts: [Work] is a work queue with back-off, [Timers] and
// [Alarms] say what is due when, [Heap] is the priority queue below them. It reads no clock.
package workqueue

import (
	"slices"
	"time"
)

// Timers remembers when each key is to be looked at. The earliest wish of a key
// counts until the key is dropped or popped. The zero value is empty and ready.
type Timers[K comparable] struct {
	queue Heap[timer[K]] // may hold wishes that no longer count
	due   map[K]wish
	seq   int
}

// wish is the wish of a key that counts.
type wish struct {
	at  instant
	seq int
}

// timer is one wish.
type timer[K comparable] struct {
	at  instant
	seq int
	key K
}

// Before implements [Item].
func (a timer[K]) Before(b timer[K]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// Set asks for key to be looked at no later than at. An instant that is beyond the end of time,
// in the year 2554, is never.
func (t *Timers[K]) Set(key K, at time.Time) {
	if t.due == nil {
		t.due = map[K]wish{}
	}
	ns := instantOf(at)
	if due, ok := t.due[key]; ns == never || ok && ns >= due.at {
		return
	}
	t.seq++
	t.due[key] = wish{ns, t.seq}
	t.queue.Push(timer[K]{ns, t.seq, key})
	if t.queue.Len() > 2*len(t.due)+fewStale {
		t.sweep()
	}
}

// fewStale is how many wishes that no longer count never matter.
const fewStale = 64

// sweep removes the wishes that no longer count: one for a day ahead would stay
// for a day, and every look at a migration leaves one behind.
func (t *Timers[K]) sweep() {
	t.queue.Delete(func(e timer[K]) bool { return !t.counts(e) })
}

// Drop forgets key.
func (t *Timers[K]) Drop(key K) { delete(t.due, key) }

// Pop returns the next key that is due at now, in order of time and wish.
func (t *Timers[K]) Pop(now time.Time) (key K, ok bool) {
	for ns := instantOf(now); t.queue.Len() > 0 && t.queue.First().at <= ns; {
		if e := t.queue.Pop(); t.counts(e) {
			delete(t.due, e.key)
			return e.key, true
		}
	}
	return key, false
}

// Next returns when the next key is due; the zero time is never.
func (t *Timers[K]) Next() time.Time {
	for t.queue.Len() > 0 {
		if t.counts(*t.queue.First()) {
			return t.queue.First().at.time()
		}
		t.queue.Pop()
	}
	return time.Time{}
}

// counts reports whether a wish is still the earliest of its key.
func (t *Timers[K]) counts(e timer[K]) bool {
	due, ok := t.due[e.key]
	return ok && due.seq == e.seq
}

// Earliest returns the earlier of two times, where zero is never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Between is b.Sub(a) of times that were not read from a clock just now. It takes a tenth of the
// time when a century is enough.
func Between(a, b time.Time) time.Duration {
	const century = 100 * 365 * 24 * 3600
	if s := b.Unix() - a.Unix(); -century < s && s < century {
		return time.Duration(s)*time.Second + time.Duration(b.Nanosecond()-a.Nanosecond())
	}
	return b.Sub(a)
}

// Shift returns t as a clock shows it that is ahead. Most are right.
func Shift(t time.Time, ahead time.Duration) time.Time {
	if ahead == 0 {
		return t
	}
	return t.Add(ahead)
}

// Work is a queue of keys to be looked at now, each once, in order of arrival.
// The zero value is empty and ready.
type Work[K comparable] struct {
	queue []K
	next  int        // in the queue; those before it have been popped
	in    map[K]bool // who is in a queue that was long; empty while it is short
	long  bool
}

// short is how many are searched for faster than a map answers, crowd how many are seldom there
// at once.
const (
	short = 8
	crowd = 1 << 12
)

// Add adds key unless it is there.
func (w *Work[K]) Add(key K) {
	if w.has(key) {
		return
	}
	if w.queue == nil {
		w.queue = make([]K, 0, short)
	}
	w.queue = append(w.queue, key)
	if w.long {
		w.in[key] = true
	}
}

func (w *Work[K]) has(key K) bool {
	if w.long {
		return w.in[key]
	}
	waiting := w.queue[w.next:]
	if len(waiting) <= short {
		return slices.Contains(waiting, key)
	}
	if w.long = true; w.in == nil {
		w.in = make(map[K]bool, 2*len(waiting))
	}
	for _, k := range waiting {
		w.in[k] = true
	}
	return w.in[key]
}

// Waiting returns a copy of those that would be popped, in that order.
func (w *Work[K]) Waiting() []K { return slices.Clone(w.queue[w.next:]) }

// Pop removes and returns the key that came first. The memory of a crowd is not kept.
func (w *Work[K]) Pop() (key K, ok bool) {
	if w.next == len(w.queue) {
		if w.queue, w.next, w.long = w.queue[:0], 0, false; cap(w.queue) > crowd {
			w.queue, w.in = nil, nil
		}
		return key, false
	}
	key = w.queue[w.next]
	w.next++
	if w.long {
		delete(w.in, key)
	}
	return key, true
}
