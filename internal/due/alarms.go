package due

import (
	"slices"
	"time"
)

// An Alarm is when one thing wants to be looked at. It belongs to one [Alarms], and whoever
// is looked at keeps it: nothing has to be searched for. The zero value, with Of, is ready.
type Alarm[T any] struct {
	Of    T
	at    int64 // nanoseconds since 1970
	place int   // in the queue, from 1; 0 is not set
}

// Alarms is [Timers] for things that keep their own [Alarm]. The zero value is empty and
// ready.
type Alarms[T any] struct {
	queue []set[T] // a heap, of which each has four below it: they are next to each other
	seq   int
}

// A set alarm has its time beside it: many are compared for each that is moved.
type set[T any] struct {
	at    int64
	seq   int
	alarm *Alarm[T]
}

func (a *set[T]) before(b *set[T]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// Set asks for what the alarm is of to be looked at no later than at.
func (s *Alarms[T]) Set(a *Alarm[T], at time.Time) {
	ns := at.UnixNano()
	if a.place > 0 && ns >= a.at {
		return
	}
	s.seq++
	a.at = ns
	if a.place == 0 {
		s.queue = append(s.queue, set[T]{})
		a.place = len(s.queue)
	}
	s.rise(a.place-1, set[T]{ns, s.seq, a})
}

// Drop forgets an alarm, if it is set.
func (s *Alarms[T]) Drop(a *Alarm[T]) {
	if a.place == 0 {
		return
	}
	end := len(s.queue) - 1
	last := s.queue[end]
	s.queue[end] = set[T]{}
	s.queue = s.queue[:end]
	switch i := a.place - 1; {
	case i == end:
	case i > 0 && last.before(&s.queue[(i-1)/4]):
		s.rise(i, last)
	default:
		s.sink(i, last)
	}
	if a.place = 0; cap(s.queue) > crowd && len(s.queue) < cap(s.queue)/4 {
		s.queue = slices.Clone(s.queue) // there were many once
	}
}

// Pop returns what is due next at now, in order of time and wish, and forgets its alarm.
func (s *Alarms[T]) Pop(now time.Time) (of T, ok bool) {
	if len(s.queue) == 0 || s.queue[0].at > now.UnixNano() {
		return of, false
	}
	first := s.queue[0].alarm
	s.Drop(first)
	return first.Of, true
}

// Next returns when the next alarm is due; the zero time is never.
func (s *Alarms[T]) Next() time.Time {
	if len(s.queue) == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.queue[0].at).UTC()
}

// rise and sink bring an alarm from a place to where it belongs, towards the front and
// towards the back.
func (s *Alarms[T]) rise(i int, a set[T]) {
	for ; i > 0; i = (i - 1) / 4 {
		parent := &s.queue[(i-1)/4]
		if !a.before(parent) {
			break
		}
		s.put(i, *parent)
	}
	s.put(i, a)
}

func (s *Alarms[T]) sink(i int, a set[T]) {
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
		s.put(i, s.queue[child])
		i = child
	}
	s.put(i, a)
}

func (s *Alarms[T]) put(i int, a set[T]) {
	s.queue[i] = a
	a.alarm.place = i + 1
}
