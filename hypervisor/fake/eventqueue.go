package fake

import (
	"container/heap"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A timer makes one thing happen at one time.
type timer struct {
	At    time.Duration
	order uint64 // among those of the same time, the first armed is first
	place int    // in the queue, from 1; 0 is not armed
	alone bool   // it is of no transfer: see eventQueue.Alone
	Fire  func()
}

// Armed reports whether t is to fire.
func (t *timer) Armed() bool { return t.place > 0 }

// before reports whether t is to fire before o.
func (t *timer) before(o *timer) bool {
	return t.At < o.At || t.At == o.At && t.order < o.order
}

// An eventQueue is what will happen. The zero value is empty.
type eventQueue struct {
	queue timers
	armed uint64
	alone int // timers in the queue that are
}

// Alone returns how many timers are armed that are of no transfer: of starts, shutdowns, copies of disks.
func (a *eventQueue) Alone() int { return a.alone }

// Arm sets t to fire at, also if it was armed. Forever disarms it.
func (a *eventQueue) Arm(t *timer, at time.Duration) {
	if at == hypervisor.Forever {
		a.Disarm(t)
		return
	}
	a.armed++
	t.At, t.order = at, a.armed
	if t.place == 0 {
		a.count(t, 1)
		heap.Push(&a.queue, t)
		return
	}
	heap.Fix(&a.queue, t.place-1)
}

// Disarm makes t not fire.
func (a *eventQueue) Disarm(t *timer) {
	if t.place > 0 {
		a.count(t, -1)
		heap.Remove(&a.queue, t.place-1)
	}
}

func (a *eventQueue) count(t *timer, n int) {
	if t.alone {
		a.alone += n
	}
}

// Next returns the first timer; nil is none.
func (a *eventQueue) Next() *timer {
	if len(a.queue) == 0 {
		return nil
	}
	return a.queue[0]
}

// timers is a [heap.Interface] in which each timer knows its place.
type timers []*timer

// Len implements [heap.Interface].
func (q timers) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q timers) Less(i, j int) bool { return q[i].before(q[j]) }

// Swap implements [heap.Interface].
func (q timers) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push implements [heap.Interface].
func (q *timers) Push(t any) {
	*q = append(*q, t.(*timer))
	t.(*timer).place = len(*q)
}

// Pop implements [heap.Interface].
func (q *timers) Pop() any {
	end := len(*q) - 1
	t := (*q)[end]
	(*q)[end] = nil
	*q = (*q)[:end]
	t.place = 0
	return t
}
