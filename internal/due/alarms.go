package due

import (
	"slices"
	"time"
)

// An Alarm is when one thing wants to be looked at. It belongs to one [Alarms], and whoever
// is looked at keeps it: nothing has to be searched for. The zero value, with Of, is ready.
type Alarm[T any] struct {
	Of  T
	at  int64 // nanoseconds since 1970
	seq int   // of the wish that counts; 0 is not set
}

// Alarms is [Timers] for things that keep their own [Alarm]. The zero value is empty and
// ready.
type Alarms[T any] struct {
	queue []set[T] // a heap, of which each has four below it; may hold what no longer counts
	set   int      // alarms that are
	seq   int
}

// A set alarm has its time beside it: many are compared for each that is looked at. It counts
// as long as the alarm has its number.
type set[T any] struct {
	at    int64
	seq   int
	alarm *Alarm[T]
}

func (a *set[T]) before(b *set[T]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (a *set[T]) counts() bool { return a.alarm.seq == a.seq }

// Set asks for what the alarm is of to be looked at no later than at.
func (s *Alarms[T]) Set(a *Alarm[T], at time.Time) {
	ns := at.UnixNano()
	if a.seq > 0 && ns >= a.at {
		return
	}
	if a.seq == 0 {
		s.set++
	}
	s.seq++
	a.at, a.seq = ns, s.seq
	s.queue = append(s.queue, set[T]{ns, s.seq, a})
	s.rise(len(s.queue) - 1)
	s.tidy()
}

// Drop forgets an alarm, if it is set.
func (s *Alarms[T]) Drop(a *Alarm[T]) {
	if a.seq > 0 {
		a.seq = 0
		s.set--
		s.tidy()
	}
}

// Pop returns what is due next at now, in order of time and wish, and forgets its alarm.
func (s *Alarms[T]) Pop(now time.Time) (of T, ok bool) {
	if !s.first() || s.queue[0].at > now.UnixNano() {
		return of, false
	}
	a := s.queue[0].alarm
	s.shift()
	a.seq = 0
	s.set--
	return a.Of, true
}

// Next returns when the next alarm is due; the zero time is never.
func (s *Alarms[T]) Next() time.Time {
	if !s.first() {
		return time.Time{}
	}
	return time.Unix(0, s.queue[0].at).UTC()
}

// first reports whether an alarm is set, and has the next of them at the front.
func (s *Alarms[T]) first() bool {
	for len(s.queue) > 0 && !s.queue[0].counts() {
		s.shift()
	}
	return len(s.queue) > 0
}

// shift removes the first of the queue.
func (s *Alarms[T]) shift() {
	end := len(s.queue) - 1
	s.queue[0], s.queue[end] = s.queue[end], set[T]{}
	s.queue = s.queue[:end]
	s.sink(0)
}

// tidy removes what no longer counts once it is more than what does. The memory of a crowd is
// not kept.
func (s *Alarms[T]) tidy() {
	if len(s.queue) <= 2*s.set+fewStale {
		return
	}
	s.queue = slices.DeleteFunc(s.queue, func(e set[T]) bool { return !e.counts() })
	if cap(s.queue) > crowd && len(s.queue) < cap(s.queue)/4 {
		s.queue = slices.Clone(s.queue)
	}
	for i := len(s.queue) / 4; i >= 0; i-- {
		s.sink(i)
	}
}

// rise and sink bring what is in one place to where it belongs, towards the front and towards
// the back.
func (s *Alarms[T]) rise(i int) {
	a := s.queue[i]
	for ; i > 0 && a.before(&s.queue[(i-1)/4]); i = (i - 1) / 4 {
		s.queue[i] = s.queue[(i-1)/4]
	}
	s.queue[i] = a
}

func (s *Alarms[T]) sink(i int) {
	if i >= len(s.queue) {
		return
	}
	a := s.queue[i]
	for first := 4*i + 1; first < len(s.queue); first = 4*i + 1 {
		child := first
		for other := first + 1; other < min(first+4, len(s.queue)); other++ {
			if s.queue[other].before(&s.queue[child]) {
				child = other
			}
		}
		if !s.queue[child].before(&a) {
			break
		}
		s.queue[i] = s.queue[child]
		i = child
	}
	s.queue[i] = a
}
