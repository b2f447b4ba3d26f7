package queue

import (
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// A Line is a heap of migrations by precedence. One may stand in it more than once. The
// zero value is empty.
type Line[T Item] struct {
	heap []stander[T]
}

// stander is one who stands in line. What it is compared by is kept beside it: looking at
// the migration itself for every comparison costs more than the rest.
type stander[T Item] struct {
	rank rank
	item T
}

// rank is what [migration.ByPrecedence] compares.
type rank struct {
	priority migration.Priority
	created  time.Time
	id       migration.ID
}

func (a *rank) before(b *rank) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case !a.created.Equal(b.created):
		return a.created.Before(b.created)
	}
	return a.id < b.id
}

// Len returns how many stand in line.
func (l *Line[T]) Len() int { return len(l.heap) }

// First returns who goes first. The line must not be empty, as for Pop.
func (l *Line[T]) First() T { return l.heap[0].item }

// Push adds one.
func (l *Line[T]) Push(item T) {
	m := item.Asked()
	l.heap = append(l.heap, stander[T]{rank{m.Priority, m.Created, m.ID}, item})
	h := l.heap
	for at := len(h) - 1; at > 0; {
		parent := (at - 1) / 2
		if !h[at].rank.before(&h[parent].rank) {
			return
		}
		h[at], h[parent] = h[parent], h[at]
		at = parent
	}
}

// Pop removes and returns who goes first.
func (l *Line[T]) Pop() T {
	h := l.heap
	first, last := h[0].item, len(h)-1
	h[0], h[last] = h[last], stander[T]{}
	h, l.heap = h[:last], h[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return first
		}
		if child+1 < last && h[child+1].rank.before(&h[child].rank) {
			child++
		}
		if !h[child].rank.before(&h[at].rank) {
			return first
		}
		h[at], h[child] = h[child], h[at]
		at = child
	}
}
