package controller

import "github.com/godwit-vm/godwit/migration"

// A Line is a heap of migrations by precedence. One may stand in it more than once. The
// zero value is empty.
type PriorityQueue[T Item] struct {
	heap []stander[T]
}

// stander is one who stands in line. What [migration.ByPrecedence] compares first is kept beside
// it: looking at the migration itself for every comparison costs more than the rest.
type stander[T Item] struct {
	rank rank
	item T
}

// rank is what is kept.
type rank struct {
	seconds  int64 // since 1970, when it was created
	nanos    int32
	priority migration.Priority
}

func (a *stander[T]) before(b *stander[T]) bool {
	switch x, y := &a.rank, &b.rank; {
	case x.priority != y.priority:
		return x.priority > y.priority
	case x.seconds != y.seconds:
		return x.seconds < y.seconds
	case x.nanos != y.nanos:
		return x.nanos < y.nanos
	}
	return a.item.Asked().ID < b.item.Asked().ID
}

// Len returns how many stand in line.
func (l *PriorityQueue[T]) Len() int { return len(l.heap) }

// First returns who goes first. The line must not be empty, as for Pop.
func (l *PriorityQueue[T]) First() T { return l.heap[0].item }

// Push adds one.
func (l *PriorityQueue[T]) Push(item T) {
	m := item.Asked()
	l.heap = append(l.heap, stander[T]{rank{m.Created.Unix(), int32(m.Created.Nanosecond()),
		m.Priority}, item})
	h := l.heap
	for at := len(h) - 1; at > 0; {
		parent := (at - 1) / 2
		if !h[at].before(&h[parent]) {
			return
		}
		h[at], h[parent] = h[parent], h[at]
		at = parent
	}
}

// Pop removes and returns who goes first.
func (l *PriorityQueue[T]) Pop() T {
	h := l.heap
	first, last := h[0].item, len(h)-1
	h[0], h[last] = h[last], stander[T]{}
	h, l.heap = h[:last], h[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return first
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[at]) {
			return first
		}
		h[at], h[child] = h[child], h[at]
		at = child
	}
}
