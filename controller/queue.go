package controller

// This file orders what waits for a slot.

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// An item is a migration that waits.
type item interface {
	comparable
	Asked() *migration.Spec // its precedence follows from it, and does not change
	Entry() *queueEntry     // the item's own, for the queue to write
}

// A queueEntry says where an item waits. The zero value is nowhere.
type queueEntry struct {
	source         *hypervisor.HostName
	inLine, behind bool // it is in that line, where it may be stale
}

func (t *queueEntry) waits() bool { return t.source != nil }

// A sourceState says what a source does while one waits to leave it.
type sourceState int

// The states of sources, the better ones last.
const (
	sourceBlocked sourceState = iota // no migration may leave now
	sourceBusy                       // it sends already: one more makes the others slower
	sourceIdle                       // it sends nothing
)

// A queue holds the migrations that wait for a slot. Those of one source wait
// behind each other; of every source that may send, the first is in line. So a
// saturated source costs nothing, and a freed slot goes to the first that can
// use it: among equals in priority to one whose source rests, for two that leave
// one host share its link. KubeVirt wakes the first in line whether they can use it or not.
// Source: KubeVirt v1.9.0 migration.go:452, for what is not done here. The zero value is empty.
type queue[T item] struct {
	bySource map[hypervisor.HostName]*sourceQueue[T]
	inLine   priorityQueue[T] // the first of each source that may send; may hold stale ones
	behind   priorityQueue[T] // those of them whose source was sending when it was asked
	// longer says of one that waits for a source which of equals in priority goes first there: the one with more.
	// It is asked when one is added, or its source is reordered. Default: the one that was created first.
	longer func(T) hypervisor.Bytes
}

// sourceQueue holds those who wait for one source.
type sourceQueue[T item] struct {
	source hypervisor.HostName // what their turns name
	priorityQueue[T]
}

// Add lets f wait behind the others of its source, which may be another one than
// before.
func (q *queue[T]) Add(f T, source hypervisor.HostName) {
	if waits(f, source) {
		return
	}
	q.Remove(f)
	if q.bySource == nil {
		q.bySource = map[hypervisor.HostName]*sourceQueue[T]{}
	}
	l := q.bySource[source]
	if l == nil {
		l = &sourceQueue[T]{source: source}
		q.bySource[source] = l
	}
	f.Entry().source = &l.source
	l.push(f, q.length(f))
	if l.First() == f {
		q.stand(&q.inLine, f)
	}
}

// stand puts one in a line, where it has one place: a second one would be asked about right after the
// first.
func (q *queue[T]) stand(line *priorityQueue[T], f T) {
	if in := q.in(line, f); !*in {
		*in = true
		line.Push(f)
	}
}

// pop removes and returns the first of a line.
func (q *queue[T]) pop(line *priorityQueue[T]) T {
	f := line.Pop()
	*q.in(line, f) = false
	return f
}

// in says whether one has a place in a line.
func (q *queue[T]) in(line *priorityQueue[T], f T) *bool {
	if line == &q.inLine {
		return &f.Entry().inLine
	}
	return &f.Entry().behind
}

// sift removes from a line the entries that are not to stay.
func (q *queue[T]) sift(line *priorityQueue[T], stays func(T) bool) {
	var stay []T
	for line.Len() > 0 {
		if f := q.pop(line); stays(f) {
			stay = append(stay, f)
		}
	}
	for _, f := range stay {
		q.stand(line, f)
	}
}

func (q *queue[T]) length(f T) hypervisor.Bytes {
	if q.longer == nil {
		return 0
	}
	return q.longer(f)
}

// Reorder asks again which entry goes first of those that wait for a source, and puts that one in line.
func (q *queue[T]) Reorder(source hypervisor.HostName) {
	l := q.bySource[source]
	if l == nil {
		return
	}
	old := l.priorityQueue
	l.priorityQueue = priorityQueue[T]{}
	for old.Len() > 0 {
		if f := old.Pop(); waits(f, source) {
			l.push(f, q.length(f))
		}
	}
	for _, line := range []*priorityQueue[T]{&q.inLine, &q.behind} { // without who was the first
		q.sift(line, func(f T) bool { return f.Entry().waits() && !waits(f, source) })
	}
	q.Freed(source)
}

// Remove takes f out; its places in the lines go stale and are skipped later.
func (q *queue[T]) Remove(f T) {
	if turn := f.Entry(); turn.waits() {
		source := *turn.source
		turn.source = nil
		q.Freed(source)
	}
}

// Freed puts the first of a source in line again.
func (q *queue[T]) Freed(source hypervisor.HostName) {
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
	q.stand(&q.inLine, l.First())
}

// Take removes and returns the first in line that may go: link is asked about the first of
// a source. It is asked again when something of the source is freed.
func (q *queue[T]) Take(link func(T, hypervisor.HostName) sourceState) T {
	for line := q.next(); line != nil; line = q.next() {
		f := q.pop(line)
		turn := f.Entry()
		if !turn.waits() {
			continue
		}
		switch does := link(f, *turn.source); {
		case does == sourceBlocked:
		case does == sourceBusy && line == &q.inLine:
			q.yield(f)
		default:
			q.Remove(f)
			return f
		}
	}
	var none T
	return none
}

// yield puts one behind all whose link rests. Those behind who were taken through the other line
// meanwhile are thrown out before they are more than those who wait.
func (q *queue[T]) yield(f T) {
	q.stand(&q.behind, f)
	if q.behind.Len() > 2*len(q.bySource)+fewStale {
		q.sift(&q.behind, func(f T) bool { return f.Entry().waits() })
	}
}

// fewStale is how many entries that no longer wait never matter.
const fewStale = 64

// next returns the line whose first is to be asked next; nil when none is in line.
func (q *queue[T]) next() *priorityQueue[T] {
	for q.behind.Len() > 0 && !q.behind.First().Entry().waits() {
		q.pop(&q.behind)
	}
	switch {
	case q.behind.Len() > 0 && (q.inLine.Len() == 0 ||
		q.behind.First().Asked().Priority > q.inLine.First().Asked().Priority):
		return &q.behind
	case q.inLine.Len() > 0:
		return &q.inLine
	}
	return nil
}

// fills reports whether so many migrations fill the link of their source, if each may have
// so much of it; zero is all of it, and a link whose speed is not known.
func fills(migrations int, each, link hypervisor.Bandwidth) bool {
	return migrations > 0 && (each <= 0 || link <= 0 ||
		each > (link-1)/hypervisor.Bandwidth(migrations))
}

func waits[T item](f T, source hypervisor.HostName) bool {
	turn := f.Entry()
	return turn.waits() && *turn.source == source
}
