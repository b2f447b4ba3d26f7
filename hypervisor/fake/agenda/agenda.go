// Package agenda keeps what will happen, in order of time and then of arming.
package agenda

import (
	"container/heap"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Timer makes one thing happen at one time.
type Timer struct {
	At    time.Duration
	order uint64 // among those of the same time, the first armed is first
	place int    // in the queue, from 1; 0 is not armed
	Fire  func()
}

// An Agenda is what will happen. The zero value is empty.
type Agenda struct {
	queue queue
	armed uint64
}

// Arm sets t to fire at, also if it was armed. Forever disarms it.
func (a *Agenda) Arm(t *Timer, at time.Duration) {
	if at == hypervisor.Forever {
		a.Disarm(t)
		return
	}
	a.armed++
	t.At, t.order = at, a.armed
	if t.place > 0 {
		heap.Fix(&a.queue, t.place-1)
		return
	}
	heap.Push(&a.queue, t)
}

// Disarm makes t not fire.
func (a *Agenda) Disarm(t *Timer) {
	if t.place > 0 {
		heap.Remove(&a.queue, t.place-1)
	}
}

// Next returns the first timer; nil is none.
func (a *Agenda) Next() *Timer {
	if len(a.queue) == 0 {
		return nil
	}
	return a.queue[0]
}

// queue is a heap of timers.
type queue []*Timer

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].At < q[j].At || q[i].At == q[j].At && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}
func (q *queue) Push(t any) {
	*q = append(*q, t.(*Timer))
	t.(*Timer).place = len(*q)
}
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.place = 0
	return t
}
