// Package maxmin shares links between flows: no flow can have more without taking
// from one that has no more.
//
// A flow crosses a list of links and may have a limit of its own. A change is
// only noted; [Network.Settle] then recomputes the connected component of flows
// that share a link, directly or through others, with what changed. All
// arithmetic is on integers, so that a link may lose up to one byte per second
// and flow, and every machine computes the same shares.
package maxmin

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Unlimited is the limit of a flow that has none of its own.
const Unlimited = hypervisor.Bandwidth(math.MaxInt64)

// A Link carries flows up to its capacity.
type Link struct {
	id       int
	capacity hypervisor.Bandwidth
	flows    []*Flow
	seen     uint64 // the last settling that visited it
	free     hypervisor.Bandwidth
	open     int                  // flows without a share yet, while settling
	key      hypervisor.Bandwidth // its share when it was last placed in the queue
}

// Capacity returns what the link carries.
func (l *Link) Capacity() hypervisor.Bandwidth { return l.capacity }

// A Flow is one sender's use of the links it crosses.
type Flow struct {
	// Owner is the caller's; the package does not look at it.
	Owner any

	id    uint64
	links []*Link
	slots []int // where the flow stands in each link's flows
	limit hypervisor.Bandwidth
	rate  hypervisor.Bandwidth
	seen  uint64 // the last settling that visited it
	done  uint64 // the last settling that gave it a share

	linkRoom [few]*Link // where links and slots are, as a rule
	slotRoom [few]int
}

// few is how many links a flow crosses, as a rule, at most.
const few = 5

// Rate returns the flow's share, in bytes per second, as of the last Settle.
func (f *Flow) Rate() hypervisor.Bandwidth { return f.rate }

// A Network is links and the flows across them. The zero value is empty. It is
// not safe for concurrent use.
type Network struct {
	links      int
	flows      uint64
	epoch      uint64
	movedLinks []*Link // changed since the last Settle
	movedFlows []*Flow // changed since the last Settle

	component []*Flow // scratch of Settle
	queue     byShare // scratch of Settle
	changed   []*Flow // the answer of the last Settle

	gone []*Flow // removed since the last Settle, which may yet see them
	free []*Flow // to be used again
}

// AddLink adds a link. A capacity below zero counts as zero.
func (n *Network) AddLink(capacity hypervisor.Bandwidth) *Link {
	n.links++
	return &Link{id: n.links, capacity: max(0, capacity)}
}

// Add adds a flow across links, each of them named once, that takes no more than
// limit. Its rate is zero until Settle.
func (n *Network) Add(owner any, limit hypervisor.Bandwidth, links ...*Link) *Flow {
	n.flows++
	f := n.flow()
	f.Owner, f.id, f.limit = owner, n.flows, max(0, limit)
	f.links, f.slots = append(f.linkRoom[:0], links...), f.slotRoom[:0]
	for _, l := range links {
		f.slots = append(f.slots, len(l.flows))
		l.flows = append(l.flows, f)
	}
	n.movedFlows = append(n.movedFlows, f)
	return f
}

// flow returns an unused one.
func (n *Network) flow() *Flow {
	last := len(n.free) - 1
	if last < 0 {
		return &Flow{}
	}
	f := n.free[last]
	n.free = n.free[:last]
	*f = Flow{}
	return f
}

// Remove takes a flow away; it is not to be used afterwards. One that has nothing, and took
// nothing when the links were shared last, leaves nothing to others: no share changes.
func (n *Network) Remove(f *Flow) {
	idle := f.limit == 0 && f.rate == 0 && !slices.Contains(n.movedFlows, f)
	for i, l := range f.links {
		at, last := f.slots[i], l.flows[len(l.flows)-1]
		l.flows[at] = last
		last.slots[slices.Index(last.links, l)] = at
		l.flows[len(l.flows)-1] = nil
		l.flows = l.flows[:len(l.flows)-1]
		if !idle {
			n.movedLinks = append(n.movedLinks, l)
		}
	}
	f.links, f.rate, f.limit = nil, 0, 0
	n.gone = append(n.gone, f)
}

// SetLimit changes what a flow takes at most.
func (n *Network) SetLimit(f *Flow, limit hypervisor.Bandwidth) {
	if limit = max(0, limit); f.limit != limit {
		f.limit = limit
		n.movedFlows = append(n.movedFlows, f)
	}
}

// Settle shares the links anew and returns the flows whose rate changed, oldest
// first. The slice is valid until the next Settle.
func (n *Network) Settle() []*Flow {
	n.changed = n.changed[:0]
	if len(n.movedLinks)+len(n.movedFlows) == 0 {
		return nil
	}
	n.epoch++
	for _, f := range n.movedFlows {
		n.settle(nil, f)
	}
	for _, l := range n.movedLinks {
		n.settle(l, nil)
	}
	clear(n.movedFlows) // pointers to what may be gone
	clear(n.movedLinks)
	n.movedFlows, n.movedLinks = n.movedFlows[:0], n.movedLinks[:0]
	n.free = append(n.free, n.gone...)
	n.gone = n.gone[:0]
	slices.SortFunc(n.changed, func(a, b *Flow) int { return cmp.Compare(a.id, b.id) })
	return n.changed
}

// settle recomputes the component of one link or flow, unless this Settle did.
func (n *Network) settle(l *Link, f *Flow) {
	if f != nil && n.alone(f) || l != nil && len(l.flows) == 0 {
		return
	}
	n.component, n.queue = n.component[:0], n.queue[:0]
	if f != nil {
		n.visitFlow(f)
	}
	if l != nil {
		n.visitLink(l)
	}
	for i := 0; i < len(n.queue); i++ { // grows while it is walked
		for _, f := range n.queue[i].flows {
			n.visitFlow(f)
		}
	}
	n.fill()
}

// alone gives a flow that shares none of its links all that they carry, if it is one.
func (n *Network) alone(f *Flow) bool {
	rate := f.limit
	for _, l := range f.links {
		if len(l.flows) > 1 {
			return false
		}
		rate = min(rate, l.capacity)
	}
	f.seen = n.epoch
	n.turn(f, rate)
	return true
}

func (n *Network) visitFlow(f *Flow) {
	if f.seen == n.epoch {
		return
	}
	f.seen = n.epoch
	n.component = append(n.component, f)
	for _, l := range f.links {
		n.visitLink(l)
	}
}

func (n *Network) visitLink(l *Link) {
	if l.seen == n.epoch {
		return
	}
	l.seen, l.free, l.open = n.epoch, l.capacity, len(l.flows)
	l.key = l.share()
	n.queue = append(n.queue, l)
}

// fill gives every flow of the component its share: always next is the flow that is
// bound tightest, by its own limit or by the fullest link. A link's share only
// grows while others take less than it, so that an old key is never too large:
// the first link whose key is still true is the tightest.
func (n *Network) fill() {
	slices.SortFunc(n.component, func(a, b *Flow) int {
		return cmp.Or(cmp.Compare(a.limit, b.limit), cmp.Compare(a.id, b.id))
	})
	heap.Init(&n.queue)
	for next := 0; next < len(n.component); {
		f := n.component[next]
		l := n.tightest()
		switch {
		case f.done == n.epoch:
			next++
		case l == nil || f.limit <= l.share():
			n.give(f, f.limit)
		default:
			share := l.share()
			for _, f := range l.flows {
				if f.done != n.epoch {
					n.give(f, share)
				}
			}
		}
	}
}

// tightest returns the link that leaves the least to its flows; nil is none.
func (n *Network) tightest() *Link {
	for len(n.queue) > 0 {
		l := n.queue[0]
		switch share := l.share(); {
		case l.open == 0:
			heap.Pop(&n.queue)
		case l.key == share:
			return l
		default:
			l.key = share
			heap.Fix(&n.queue, 0)
		}
	}
	return nil
}

func (n *Network) give(f *Flow, rate hypervisor.Bandwidth) {
	f.done = n.epoch
	for _, l := range f.links {
		l.free -= rate
		l.open--
	}
	n.turn(f, rate)
}

// turn changes what a flow has.
func (n *Network) turn(f *Flow, rate hypervisor.Bandwidth) {
	if f.rate != rate {
		f.rate = rate
		n.changed = append(n.changed, f)
	}
}

// share is what the link has left for each of its flows without one.
func (l *Link) share() hypervisor.Bandwidth {
	if l.open == 0 {
		return Unlimited
	}
	return l.free / hypervisor.Bandwidth(l.open)
}

// byShare is a heap of links, the tightest first.
type byShare []*Link

func (q byShare) Len() int { return len(q) }
func (q byShare) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].key, q[j].key), cmp.Compare(q[i].id, q[j].id)) < 0
}
func (q byShare) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byShare) Push(l any)   { *q = append(*q, l.(*Link)) }
func (q *byShare) Pop() any {
	old := *q
	l := old[len(old)-1]
	*q = old[:len(old)-1]
	return l
}
