// Package queue orders what waits for a slot.
package queue

import (
	"container/heap"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// An Item is a migration that waits.
type Item interface {
	comparable
	Asked() migration.Spec // its precedence follows from it
}

// A Queue holds the migrations that wait for a slot. Those of one source wait
// behind each other; of every source that may send, the first is in line. So a
// saturated source costs nothing, and a freed slot goes to the first that can
// use it. KubeVirt wakes the first in line whether they can use it or not.
// Source: KubeVirt v1.9.0 migration.go:452, for what is not done here. The zero value is empty.
type Queue[T Item] struct {
	bySource map[hypervisor.HostName]*Line[T]
	inLine   Line[T] // the first of each source that may send; may hold stale ones
	waiting  map[T]hypervisor.HostName
}

// Add lets f wait behind the others of its source, which may be another one than
// before.
func (q *Queue[T]) Add(f T, source hypervisor.HostName) {
	if q.waits(f, source) {
		return
	}
	q.Remove(f)
	if q.waiting == nil {
		q.waiting = map[T]hypervisor.HostName{}
		q.bySource = map[hypervisor.HostName]*Line[T]{}
	}
	q.waiting[f] = source
	l := q.bySource[source]
	if l == nil {
		l = &Line[T]{}
		q.bySource[source] = l
	}
	heap.Push(l, f)
	if (*l)[0] == f {
		heap.Push(&q.inLine, f)
	}
}

// Remove takes f out; its places in the lines go stale and are skipped later.
func (q *Queue[T]) Remove(f T) {
	source, ok := q.waiting[f]
	if !ok {
		return
	}
	delete(q.waiting, f)
	q.Freed(source)
}

// Freed puts the first of a source in line again.
func (q *Queue[T]) Freed(source hypervisor.HostName) {
	l := q.bySource[source]
	if l == nil {
		return
	}
	for l.Len() > 0 && !q.waits((*l)[0], source) {
		heap.Pop(l)
	}
	if l.Len() == 0 {
		delete(q.bySource, source)
		return
	}
	heap.Push(&q.inLine, (*l)[0])
}

// Take removes and returns the first in line that may go: open is asked about the first of
// a source. Who may not is asked again when something of its source is freed.
func (q *Queue[T]) Take(open func(T, hypervisor.HostName) bool) T {
	for q.inLine.Len() > 0 {
		f := heap.Pop(&q.inLine).(T)
		source, waits := q.waiting[f]
		if !waits || !open(f, source) {
			continue // Freed brings the source's first back
		}
		q.Remove(f)
		return f
	}
	var nobody T
	return nobody
}

func (q *Queue[T]) waits(f T, source hypervisor.HostName) bool {
	s, ok := q.waiting[f]
	return ok && s == source
}

// A Line is a heap of migrations by precedence.
type Line[T Item] []T

// Len implements [heap.Interface], as the next four do.
func (l Line[T]) Len() int { return len(l) }

// Less orders by precedence.
func (l Line[T]) Less(i, j int) bool {
	return migration.ByPrecedence(l[i].Asked(), l[j].Asked()) < 0
}

// Swap exchanges two.
func (l Line[T]) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push appends one.
func (l *Line[T]) Push(x any) { *l = append(*l, x.(T)) }

// Pop removes the last.
func (l *Line[T]) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
