package plan

import (
	"cmp"
	"slices"
)

// takers are the hosts to which the VMs of a batch may go, in the order in which these like them. A move
// changes the place of one host only, so that a VM finds its host without a look at all.
type takers struct {
	b    *assignment
	m    manner
	fill int
	// lists have the hosts that need no more service, and those that do: the one with the most free
	// memory first, of equal ones the first of the fleet.
	lists [2][]int
	list  []int // of each host: in which of the lists it is
}

// takers returns the hosts that may take VMs in some manner.
func (p *maintenancePlanner) takers(b *assignment, m manner) *takers {
	t := &takers{b: b, m: m, fill: p.fill, list: make([]int, len(b.hosts))}
	for h := range b.hosts {
		if b.hosts[h].Cordoned || p.waits[h] && !m.again {
			continue
		}
		if p.waits[h] {
			t.list[h] = 1
		}
		t.lists[t.list[h]] = append(t.lists[t.list[h]], h)
	}
	for _, list := range t.lists {
		slices.SortFunc(list, t.compare)
	}
	return t
}

func (t *takers) compare(x, y int) int {
	return cmp.Or(cmp.Compare(t.b.hosts[y].FreeMemory(), t.b.hosts[x].FreeMemory()), cmp.Compare(x, y))
}

// target returns the best host for a VM that must leave: one that stays within the fill before one that
// does not, then one that needs no more service, then the one with the most free memory.
func (t *takers) target(vm int) int {
	if t.b.fleet.VMs[vm].Pinned != "" {
		return nowhere
	}
	q := t.b.ask(vm)
	for _, full := range []bool{false, true} {
		if full && !t.m.full {
			break
		}
		for _, list := range t.lists {
			if h := t.first(&q, vm, list, full); h != nowhere {
				return h
			}
		}
	}
	return nowhere
}

// first returns the first host of a list that takes a VM, of those that are fuller than is wished with it,
// or of the others.
func (t *takers) first(q *question, vm int, list []int, full bool) int {
	v := &t.b.fleet.VMs[vm]
	for _, h := range list {
		if t.b.full(h, v, t.fill) == full && q.fits(h) {
			return h
		}
	}
	return nowhere
}

// sink puts a host that has taken a VM where it belongs now.
func (t *takers) sink(host int) {
	list := t.lists[t.list[host]]
	at := slices.Index(list, host)
	rest := list[at+1:]
	to, _ := slices.BinarySearchFunc(rest, host, t.compare)
	copy(list[at:], rest[:to])
	list[at+to] = host
}
