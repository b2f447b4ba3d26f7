package plan

import (
	"cmp"
	"container/heap"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A ladder is the hosts in the order in which VMs of one size like them: many of one size in a
// row find theirs without a look at all hosts. A host on which there is no room for that size is
// off the ladder until it changes. It is a [heap.Interface].
type ladder struct {
	w       *work
	size    placement.Size
	state   ladderState
	need    hypervisor.Bytes
	hosts   []int  // the best is the first
	rung    []int  // where in hosts each host is; nowhere is off the ladder
	costs   []cost // of each host, as it stands on the ladder
	changed []int  // hosts that are not what they were when it was last in order
	passed  []int  // scratch of best
}

type ladderState uint8

const (
	unbuilt ladderState = iota // only the first of its size has come
	built
	useless // too many hosts refuse for other reasons than room
)

// mostPassed is how many hosts may refuse a VM for other reasons than room before all are
// looked at instead.
const mostPassed = 64

// climb returns the host that direct would choose, which may be nowhere. It does not know it of
// the first VM of a size, and of VMs that ask for more than room.
func (w *work) climb(vm, not int) (best int, known bool) {
	v, l := &w.fleet.VMs[vm].VM, &w.ladder
	if placement.Asks(&v.Constraints) {
		return nowhere, false
	}
	if of := placement.SizeOf(v); l.w == nil || l.size != of {
		l.w, l.size, l.state, l.need = w, of, unbuilt, v.Demand()
		return nowhere, false
	}
	switch l.state {
	case unbuilt:
		l.build()
	case built:
		l.repair()
	case useless:
		return nowhere, false
	}
	return l.best(vm, not)
}

// noteChange remembers that a host is not what it was.
func (l *ladder) noteChange(host int) {
	if l.state == built && host != nowhere {
		l.changed = append(l.changed, host)
	}
}

func (l *ladder) build() {
	n := len(l.w.fleet.Hosts)
	l.state, l.changed = built, l.changed[:0]
	l.hosts, l.rung, l.costs = make([]int, n), make([]int, n), make([]cost, n)
	for host := range n {
		l.hosts[host], l.rung[host] = host, host
		l.costs[host] = l.w.prefer(l.w, l.need, host)
	}
	heap.Init(l)
}

// repair puts the hosts that have changed where they belong.
func (l *ladder) repair() {
	for _, host := range l.changed {
		l.costs[host] = l.w.prefer(l.w, l.need, host)
		if at := l.rung[host]; at != nowhere {
			heap.Fix(l, at)
		} else {
			heap.Push(l, host)
		}
	}
	l.changed = l.changed[:0]
}

// best asks one host after another.
func (l *ladder) best(vm, not int) (best int, known bool) {
	q, w := l.w.s.Ask(vm), l.w
	best, l.passed = nowhere, l.passed[:0]
	for len(l.hosts) > 0 && len(l.passed) <= mostPassed {
		host := l.hosts[0]
		if w.tries--; host != not && q.Fits(host) {
			best = host
			break
		}
		heap.Pop(l)
		own := host == not || host == w.s.Home(vm)
		if h := w.s.Host(host); own || l.roomAt(h) && !h.Cordoned && !h.Down {
			l.passed = append(l.passed, host)
		}
	}
	if len(l.passed) > mostPassed {
		l.state = useless
		return nowhere, false
	}
	for _, host := range l.passed {
		heap.Push(l, host)
	}
	if best == nowhere {
		w.tries -= len(w.fleet.Hosts) // as if all had been asked
	}
	return best, true
}

// roomAt reports whether a host has room for the size.
func (l *ladder) roomAt(h *placement.Host) bool {
	cpus := cmp.Or(l.size.CPURequest, l.size.CPUs)
	return (l.need <= 0 || l.need <= h.FreeMemory()) && (cpus <= 0 || cpus <= h.FreeCPUs())
}

// Len implements [heap.Interface].
func (l *ladder) Len() int { return len(l.hosts) }

// Less implements [heap.Interface].
func (l *ladder) Less(i, j int) bool {
	a, b := l.hosts[i], l.hosts[j]
	c := l.costs[a].compare(l.costs[b])
	return c < 0 || c == 0 && a < b
}

// Swap implements [heap.Interface].
func (l *ladder) Swap(i, j int) {
	l.hosts[i], l.hosts[j] = l.hosts[j], l.hosts[i]
	l.rung[l.hosts[i]], l.rung[l.hosts[j]] = i, j
}

// Push implements [heap.Interface].
func (l *ladder) Push(host any) {
	at := host.(int)
	l.rung[at] = len(l.hosts)
	l.hosts = append(l.hosts, at)
}

// Pop implements [heap.Interface].
func (l *ladder) Pop() any {
	last := len(l.hosts) - 1
	host := l.hosts[last]
	l.hosts, l.rung[host] = l.hosts[:last], nowhere
	return host
}
