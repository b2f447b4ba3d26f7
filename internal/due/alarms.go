package due

import "time"

// An Alarm is when one thing wants to be looked at. It belongs to one [Alarms], and whoever
// is looked at keeps it: nothing has to be searched for. The zero value, with Of, is ready.
type Alarm[T any] struct {
	Of    T
	at    int64 // nanoseconds since 1970
	seq   int
	place int // in the queue, from 1; 0 is not set
}

func (a *Alarm[T]) before(b *Alarm[T]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// Alarms is [Timers] for things that keep their own [Alarm]. The zero value is empty and
// ready.
type Alarms[T any] struct {
	queue []*Alarm[T] // a binary heap
	seq   int
}

// Set asks for what the alarm is of to be looked at no later than at.
func (s *Alarms[T]) Set(a *Alarm[T], at time.Time) {
	ns := at.UnixNano()
	if a.place > 0 && ns >= a.at {
		return
	}
	s.seq++
	a.at, a.seq = ns, s.seq
	if a.place == 0 {
		s.queue = append(s.queue, a)
		a.place = len(s.queue)
	}
	s.rise(a)
}

// Drop forgets an alarm, if it is set.
func (s *Alarms[T]) Drop(a *Alarm[T]) {
	if a.place == 0 {
		return
	}
	last := s.queue[len(s.queue)-1]
	s.queue[len(s.queue)-1] = nil
	s.queue = s.queue[:len(s.queue)-1]
	if last != a {
		last.place = a.place
		s.sink(last)
		s.rise(last)
	}
	a.place = 0
}

// Pop returns what is due next at now, in order of time and wish, and forgets its alarm.
func (s *Alarms[T]) Pop(now time.Time) (of T, ok bool) {
	if len(s.queue) == 0 || s.queue[0].at > now.UnixNano() {
		return of, false
	}
	first := s.queue[0]
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

// rise and sink bring an alarm from its place to where it belongs, towards the front and
// towards the back.
func (s *Alarms[T]) rise(a *Alarm[T]) {
	i := a.place - 1
	for ; i > 0; i = (i - 1) / 2 {
		parent := s.queue[(i-1)/2]
		if !a.before(parent) {
			break
		}
		s.put(i, parent)
	}
	s.put(i, a)
}

func (s *Alarms[T]) sink(a *Alarm[T]) {
	i := a.place - 1
	for child := 2*i + 1; child < len(s.queue); child = 2*i + 1 {
		if other := child + 1; other < len(s.queue) && s.queue[other].before(s.queue[child]) {
			child = other
		}
		if !s.queue[child].before(a) {
			break
		}
		s.put(i, s.queue[child])
		i = child
	}
	s.put(i, a)
}

func (s *Alarms[T]) put(i int, a *Alarm[T]) {
	s.queue[i] = a
	a.place = i + 1
}
