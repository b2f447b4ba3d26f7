package workqueue

import "time"

// An Alarm is when one thing wants to be looked at. It belongs to one [Alarms], and what
// is looked at keeps it: nothing has to be searched for. The zero value, with Of, is ready.
type Alarm[T any] struct {
	Of  T
	at  instant
	seq int // of the wish that counts; 0 is not set
}

// Alarms is [Timers] for things that keep their own [Alarm]. The zero value is empty and
// ready.
type Alarms[T any] struct {
	near, far queue[T]  // those of soon after now are few, and come and go the most
	front     *queue[T] // the one that has the next alarm at its front; nil is that it has to be looked for
	now       instant   // when Pop was asked last
	set       int       // alarms that are
	seq       int
}

// soon is how far after now near alarms are, in nanoseconds.
const soon = instant(time.Second)

// Set asks for what the alarm is of to be looked at no later than at. An instant that is beyond
// the end of time, in the year 2554, is never.
func (s *Alarms[T]) Set(a *Alarm[T], at time.Time) {
	ns := instantOf(at)
	if ns == never || a.seq > 0 && ns >= a.at {
		return
	}
	if a.seq == 0 {
		s.set++
	}
	s.seq++
	a.at, a.seq, s.front = ns, s.seq, nil
	if ns < s.now || ns-s.now < soon {
		s.near.Push(set[T]{ns, s.seq, a})
	} else {
		s.far.Push(set[T]{ns, s.seq, a})
	}
	s.tidy()
}

// Drop forgets an alarm, if it is set.
func (s *Alarms[T]) Drop(a *Alarm[T]) {
	if a.seq > 0 {
		a.seq, s.front = 0, nil
		s.set--
		s.tidy()
	}
}

// Pop returns what is due next at now, in order of time and wish, and forgets its alarm.
func (s *Alarms[T]) Pop(now time.Time) (of T, ok bool) {
	s.now = instantOf(now)
	q := s.first()
	if q == nil || q.First().at > s.now {
		return of, false
	}
	a := q.First().alarm
	q.Pop()
	a.seq, s.front = 0, nil
	s.set--
	return a.Of, true
}

// Next returns when the next alarm is due; the zero time is never.
func (s *Alarms[T]) Next() time.Time {
	q := s.first()
	if q == nil {
		return time.Time{}
	}
	return q.First().at.time()
}

// first returns the queue that has the next alarm at its front; nil is that none is set.
func (s *Alarms[T]) first() *queue[T] {
	if s.front != nil || s.set == 0 {
		return s.front
	}
	switch near, far := s.near.clean(), s.far.clean(); {
	case near && (!far || s.near.First().Before(*s.far.First())):
		s.front = &s.near
	case far:
		s.front = &s.far
	}
	return s.front
}

// tidy removes what no longer counts once it is more than what does.
func (s *Alarms[T]) tidy() {
	if s.near.Len()+s.far.Len() > 2*s.set+fewStale {
		s.near.sweep()
		s.far.sweep()
	}
}
