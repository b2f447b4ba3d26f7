package controller

import (
	"container/heap"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// queue holds the migrations that wait for a slot. Those of one source wait
// behind each other; of every source that may send, the first is in line. So a
// saturated source costs nothing, and a freed slot goes to the first that can
// use it. KubeVirt wakes the first in line whether they can use it or not.
// Source: KubeVirt v1.9.0 migration.go:452, for what is not done here.
type queue struct {
	bySource map[hypervisor.HostName]*line
	inLine   line // the first of each source that may send; may hold stale ones
	waiting  map[*flight]hypervisor.HostName
}

// add lets f wait behind the others of its source, which may be another one than
// before.
func (q *queue) add(f *flight, source hypervisor.HostName) {
	if q.waits(f, source) {
		return
	}
	q.remove(f)
	if q.waiting == nil {
		q.waiting = map[*flight]hypervisor.HostName{}
		q.bySource = map[hypervisor.HostName]*line{}
	}
	q.waiting[f] = source
	l := q.bySource[source]
	if l == nil {
		l = &line{}
		q.bySource[source] = l
	}
	heap.Push(l, f)
	if (*l)[0] == f {
		heap.Push(&q.inLine, f)
	}
}

// remove takes f out; its places in the lines go stale and are skipped later.
func (q *queue) remove(f *flight) {
	source, ok := q.waiting[f]
	if !ok {
		return
	}
	delete(q.waiting, f)
	q.freed(source)
}

// freed puts the first of a source in line again.
func (q *queue) freed(source hypervisor.HostName) {
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

// take removes and returns the first in line whose source may send.
func (q *queue) take(open func(hypervisor.HostName) bool) *flight {
	for q.inLine.Len() > 0 {
		f := heap.Pop(&q.inLine).(*flight)
		source, waits := q.waiting[f]
		if !waits || !open(source) {
			continue // freed brings the source's first back
		}
		q.remove(f)
		return f
	}
	return nil
}

func (q *queue) waits(f *flight, source hypervisor.HostName) bool {
	s, ok := q.waiting[f]
	return ok && s == source
}

// line is a heap of migrations by precedence.
type line []*flight

func (l line) Len() int { return len(l) }
func (l line) Less(i, j int) bool {
	return migration.ByPrecedence(l[i].rec.Spec, l[j].rec.Spec) < 0
}
func (l line) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *line) Push(x any)   { *l = append(*l, x.(*flight)) }
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
