// Package agenda keeps what is to happen in a simulated world, and when.
package agenda

import (
	"container/heap"
	"time"
)

// An Agenda is what is to happen, in order of time, and at one moment in the order in
// which it was added. The zero value is empty.
type Agenda[T any] struct {
	plans plans[T]
	seq   int
}

// Add lets something happen at a time.
func (a *Agenda[T]) Add(at time.Duration, what T) {
	a.seq++
	heap.Push(&a.plans, plan[T]{at, a.seq, what})
}

// Len returns how much is to happen.
func (a *Agenda[T]) Len() int { return len(a.plans) }

// Next returns when something happens next; false is never.
func (a *Agenda[T]) Next() (time.Duration, bool) {
	if len(a.plans) == 0 {
		return 0, false
	}
	return a.plans[0].at, true
}

// Take removes and returns the first of what is due; false when nothing is.
func (a *Agenda[T]) Take(now time.Duration) (what T, due bool) {
	if len(a.plans) == 0 || a.plans[0].at > now {
		return what, false
	}
	return heap.Pop(&a.plans).(plan[T]).what, true
}

// A plan is something with its time.
type plan[T any] struct {
	at   time.Duration
	seq  int
	what T
}

type plans[T any] []plan[T]

func (p plans[T]) Len() int { return len(p) }
func (p plans[T]) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].seq < p[j].seq
}
func (p plans[T]) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plans[T]) Push(x any)   { *p = append(*p, x.(plan[T])) }
func (p *plans[T]) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
