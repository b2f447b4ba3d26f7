package sim

import "time"

// An Agenda is what is to happen, in order of time, and at one moment in the order in
// which it was added. The zero value is empty.
type EventQueue[T any] struct {
	plans []plan[T] // a binary heap, written out: nothing is boxed
	seq   int
}

// Add lets something happen at a time.
func (a *EventQueue[T]) Add(at time.Duration, what T) {
	a.seq++
	a.plans = append(a.plans, plan[T]{at, a.seq, what})
	for i := len(a.plans) - 1; i > 0 && a.before(i, (i-1)/2); i = (i - 1) / 2 {
		a.swap(i, (i-1)/2)
	}
}

// Len returns how much is to happen.
func (a *EventQueue[T]) Len() int { return len(a.plans) }

// Next returns when something happens next; false is never.
func (a *EventQueue[T]) Next() (time.Duration, bool) {
	if len(a.plans) == 0 {
		return 0, false
	}
	return a.plans[0].at, true
}

// Take removes and returns the first of what is due; false when nothing is.
func (a *EventQueue[T]) Take(now time.Duration) (what T, due bool) {
	if len(a.plans) == 0 || a.plans[0].at > now {
		return what, false
	}
	last := len(a.plans) - 1
	a.swap(0, last)
	what = a.plans[last].what
	a.plans[last] = plan[T]{}
	a.plans = a.plans[:last]
	for i, child := 0, 1; child < last; child = 2*i + 1 {
		if child+1 < last && a.before(child+1, child) {
			child++
		}
		if !a.before(child, i) {
			break
		}
		a.swap(i, child)
		i = child
	}
	return what, true
}

// A plan is something with its time.
type plan[T any] struct {
	at   time.Duration
	seq  int
	what T
}

func (a *EventQueue[T]) before(i, j int) bool {
	p, q := &a.plans[i], &a.plans[j]
	return p.at < q.at || p.at == q.at && p.seq < q.seq
}

func (a *EventQueue[T]) swap(i, j int) { a.plans[i], a.plans[j] = a.plans[j], a.plans[i] }
