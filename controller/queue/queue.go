// Package queue orders what waits for a slot.
package queue

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// An Item is a migration that waits.
type Item interface {
	comparable
	Asked() *migration.Spec // its precedence follows from it, and does not change
	Turn() *Turn            // the item's own, for the queue to write
}

// A Turn says where an item waits. The zero value is nowhere.
type Turn struct {
	source hypervisor.HostName
	waits  bool
}

// A Queue holds the migrations that wait for a slot. Those of one source wait
// behind each other; of every source that may send, the first is in line. So a
// saturated source costs nothing, and a freed slot goes to the first that can
// use it. KubeVirt wakes the first in line whether they can use it or not.
// Source: KubeVirt v1.9.0 migration.go:452, for what is not done here. The zero value is empty.
type Queue[T Item] struct {
	bySource map[hypervisor.HostName]*Line[T]
	inLine   Line[T] // the first of each source that may send; may hold stale ones
}

// Add lets f wait behind the others of its source, which may be another one than
// before.
func (q *Queue[T]) Add(f T, source hypervisor.HostName) {
	if waits(f, source) {
		return
	}
	q.Remove(f)
	if q.bySource == nil {
		q.bySource = map[hypervisor.HostName]*Line[T]{}
	}
	*f.Turn() = Turn{source, true}
	l := q.bySource[source]
	if l == nil {
		l = &Line[T]{}
		q.bySource[source] = l
	}
	l.Push(f)
	if l.First() == f {
		q.inLine.Push(f)
	}
}

// Remove takes f out; its places in the lines go stale and are skipped later.
func (q *Queue[T]) Remove(f T) {
	if turn := f.Turn(); turn.waits {
		source := turn.source
		*turn = Turn{}
		q.Freed(source)
	}
}

// Freed puts the first of a source in line again.
func (q *Queue[T]) Freed(source hypervisor.HostName) {
	l := q.bySource[source]
	if l == nil {
		return
	}
	for l.Len() > 0 && !waits(l.First(), source) {
		l.Pop()
	}
	if l.Len() == 0 {
		delete(q.bySource, source)
		return
	}
	q.inLine.Push(l.First())
}

// Take removes and returns the first in line that may go: open is asked about the first of
// a source. Who may not is asked again when something of its source is freed.
func (q *Queue[T]) Take(open func(T, hypervisor.HostName) bool) T {
	for q.inLine.Len() > 0 {
		f := q.inLine.Pop()
		if turn := f.Turn(); !turn.waits || !open(f, turn.source) {
			continue // Freed brings the source's first back
		}
		q.Remove(f)
		return f
	}
	var nobody T
	return nobody
}

func waits[T Item](f T, source hypervisor.HostName) bool {
	turn := f.Turn()
	return turn.waits && turn.source == source
}
