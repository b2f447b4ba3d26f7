package fake

import (
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

// before reports whether t is to fire before o.
func (t *Timer) before(o *Timer) bool {
	return t.At < o.At || t.At == o.At && t.order < o.order
}

// An Agenda is what will happen. The zero value is empty.
type EventQueue struct {
	queue []*Timer // a heap
	armed uint64
}

// Arm sets t to fire at, also if it was armed. Forever disarms it.
func (a *EventQueue) Arm(t *Timer, at time.Duration) {
	if at == hypervisor.Forever {
		a.Disarm(t)
		return
	}
	a.armed++
	t.At, t.order = at, a.armed
	if t.place == 0 {
		a.queue = append(a.queue, t)
		t.place = len(a.queue)
	}
	a.settle(t.place-1, t)
}

// Disarm makes t not fire.
func (a *EventQueue) Disarm(t *Timer) {
	if t.place == 0 {
		return
	}
	end := len(a.queue) - 1
	last := a.queue[end]
	a.queue[end] = nil
	a.queue = a.queue[:end]
	if last != t {
		a.settle(t.place-1, last)
	}
	t.place = 0
}

// Next returns the first timer; nil is none.
func (a *EventQueue) Next() *Timer {
	if len(a.queue) == 0 {
		return nil
	}
	return a.queue[0]
}

// settle brings t from a place to where it belongs.
func (a *EventQueue) settle(i int, t *Timer) {
	for ; i > 0 && t.before(a.queue[(i-1)/2]); i = (i - 1) / 2 {
		a.put(i, a.queue[(i-1)/2])
	}
	for child := 2*i + 1; child < len(a.queue); child = 2*i + 1 {
		if other := child + 1; other < len(a.queue) && a.queue[other].before(a.queue[child]) {
			child = other
		}
		if !a.queue[child].before(t) {
			break
		}
		a.put(i, a.queue[child])
		i = child
	}
	a.put(i, t)
}

func (a *EventQueue) put(i int, t *Timer) {
	a.queue[i] = t
	t.place = i + 1
}
