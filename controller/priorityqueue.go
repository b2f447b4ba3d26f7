package controller

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
)

// A priorityQueue has migrations by precedence. One may be in it more than once. The zero value is
// empty.
type priorityQueue[T item] struct {
	heap workqueue.Heap[queuedItem[T]]
}

// queuedItem is one who stands in line. What [migration.ByPrecedence] compares first is kept beside
// it: looking at the migration itself for every comparison costs more than the rest.
type queuedItem[T item] struct {
	rank rank
	item T
}

// rank is what is kept.
type rank struct {
	seconds  int64 // since 1970, when it was created
	nanos    int32
	priority migration.Priority
	longer   hypervisor.Bytes // more goes first
}

// Before implements [workqueue.Item].
func (a queuedItem[T]) Before(b queuedItem[T]) bool {
	switch x, y := &a.rank, &b.rank; {
	case x.priority != y.priority:
		return x.priority > y.priority
	case x.longer != y.longer:
		return x.longer > y.longer
	case x.seconds != y.seconds:
		return x.seconds < y.seconds
	case x.nanos != y.nanos:
		return x.nanos < y.nanos
	}
	return a.item.Asked().ID < b.item.Asked().ID
}

// Len returns how many migrations are in the queue.
func (l *priorityQueue[T]) Len() int { return l.heap.Len() }

// First returns the migration that goes first. The queue must not be empty, as for Pop.
func (l *priorityQueue[T]) First() T { return l.heap.First().item }

// Push adds a migration.
func (l *priorityQueue[T]) Push(item T) { l.push(item, 0) }

// push adds a migration that goes before shorter ones of its priority.
func (l *priorityQueue[T]) push(item T, longer hypervisor.Bytes) {
	m := item.Asked()
	l.heap.Push(queuedItem[T]{rank{m.Created.Unix(), int32(m.Created.Nanosecond()), m.Priority, longer}, item})
}

// Pop removes the migration that goes first and returns it.
func (l *priorityQueue[T]) Pop() T { return l.heap.Pop().item }
