package sim

import (
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// An eventQueue is what is to happen, in order of time, and at one moment in the order in
// which it was added. The zero value is empty.
type eventQueue[T any] struct {
	plans workqueue.Heap[plan[T]]
	seq   int
}

// Add lets something happen at a time.
func (a *eventQueue[T]) Add(at time.Duration, what T) {
	a.seq++
	a.plans.Push(plan[T]{at, a.seq, what})
}

// Len returns how much is to happen.
func (a *eventQueue[T]) Len() int { return a.plans.Len() }

// Next returns when something happens next; false is never.
func (a *eventQueue[T]) Next() (time.Duration, bool) {
	if a.plans.Len() == 0 {
		return 0, false
	}
	return a.plans.First().at, true
}

// Take removes and returns the first of what is due; false when nothing is.
func (a *eventQueue[T]) Take(now time.Duration) (what T, due bool) {
	if a.plans.Len() == 0 || a.plans.First().at > now {
		return what, false
	}
	return a.plans.Pop().what, true
}

// A plan is something with its time.
type plan[T any] struct {
	at   time.Duration
	seq  int
	what T
}

// Before implements [workqueue.Item].
func (p plan[T]) Before(q plan[T]) bool { return p.at < q.at || p.at == q.at && p.seq < q.seq }
