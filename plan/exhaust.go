package plan

import (
	"slices"
)

// Bounds of the search through arrangements.
const (
	mostStates = 20_000
	mostWork   = 3_000_000 // states times VMs times hosts
)

// A node is an arrangement, and how it was reached with the fewest moves.
type node struct {
	s      *State
	from   int // the node before; nowhere for the first
	move   Move
	moves  int // of every member of groups
	left   int // VMs on the hosts to be emptied
	closed bool
}

// exhaust looks for a plan with the fewest moves among all arrangements that can be
// reached, those first that need the fewest moves in all at least (A*: each VM that
// is left needs one). With beat it looks only for plans with fewer moves than most.
// It returns the plan that leaves the fewest, of those the one with the fewest moves; and whether
// it has looked at all that matter. Nil is, with beat, that no plan is better.
func (p *planner) exhaust(most int, beat bool) (best *attempt, ended bool) {
	limit := min(mostStates, mostWork/max(1, len(p.fleet.VMs)*len(p.fleet.Hosts)))
	x := search{planner: p, seen: map[string]int{}}
	x.add(node{s: p.start.Clone(), from: nowhere, left: p.weight(p.leavers)})
	for total := 0; total < len(x.queue); total++ {
		if beat && total >= most {
			return nil, p.exact()
		}
		for len(x.queue[total]) > 0 { // moves that go astray lengthen later queues only
			last := len(x.queue[total]) - 1
			at := x.queue[total][last]
			x.queue[total] = x.queue[total][:last]
			switch n := &x.nodes[at]; {
			case n.closed || n.moves+n.left != total:
				continue
			case n.left == 0:
				return x.attempt(at), true
			case len(x.nodes) > limit && beat:
				return nil, false
			case len(x.nodes) > limit:
				return x.fewest(), false
			}
			x.expand(at)
		}
	}
	if p.exact() {
		p.states, p.never = len(x.nodes), x.never()
	}
	return x.fewest(), p.exact()
}

// never returns the VMs that are on the hosts to be emptied in every arrangement.
func (x *search) never() map[int]bool {
	all := map[int]bool{}
	for _, vm := range x.leavers {
		all[vm] = !slices.ContainsFunc(x.nodes, func(n node) bool { return !x.drained[n.s.Home(vm)] })
	}
	return all
}

// fewest returns the way to the arrangement with the fewest left, of all that were reached.
func (x *search) fewest() *attempt {
	best := 0
	for at := range x.nodes {
		n, b := &x.nodes[at], &x.nodes[best]
		if n.left < b.left || n.left == b.left && n.moves < b.moves {
			best = at
		}
	}
	return x.attempt(best)
}

// attempt returns the way to an arrangement, and the VMs that are left in it.
func (x *search) attempt(at int) *attempt {
	a := &attempt{moves: x.path(at)}
	for _, vm := range x.leavers {
		if x.drained[x.nodes[at].s.Home(vm)] {
			a.left = append(a.left, vm)
		}
	}
	return a
}

// exact reports whether the hosts of all VMs determine all reservations. The cells that a VM
// sits in depend on the way that was taken.
func (p *planner) exact() bool {
	return !slices.ContainsFunc(p.fleet.VMs, func(v VM) bool {
		return v.Constraints.Topology != nil
	})
}

// A search holds the arrangements that were reached.
type search struct {
	*planner
	nodes []node
	seen  map[string]int
	queue [][]int // nodes by the moves that they need in all at least
}

func (x *search) add(n node) {
	key := x.key(n.s)
	at, known := x.seen[key]
	switch {
	case !known:
		at = len(x.nodes)
		x.nodes, x.seen[key] = append(x.nodes, n), at
	case x.nodes[at].moves <= n.moves:
		return
	default:
		x.nodes[at] = n
	}
	total := n.moves + n.left
	for len(x.queue) <= total {
		x.queue = append(x.queue, nil)
	}
	x.queue[total] = append(x.queue[total], at)
}

func (x *search) key(s *State) string {
	key := make([]byte, 0, 3*len(x.fleet.VMs))
	for vm := range x.fleet.VMs {
		at := s.Home(vm)
		key = append(key, byte(at), byte(at>>8), byte(at>>16))
	}
	return string(key)
}

// expand adds every arrangement that is one move away.
func (x *search) expand(at int) {
	n := &x.nodes[at]
	n.closed = true
	s, moves, left := n.s, n.moves, n.left
	for vm := range x.fleet.VMs {
		if x.fleet.VMs[vm].Pinned != "" || s.Home(vm) < 0 {
			continue
		}
		after := left
		if x.drained[s.Home(vm)] {
			after -= x.fleet.VMs[vm].weight()
		}
		q := s.Ask(vm)
		for host := range x.fleet.Hosts {
			if !q.Fits(host) {
				continue
			}
			next := s.Clone()
			if next.Move(vm, host) {
				x.add(node{s: next, from: at, move: s.Name(vm, host),
					moves: moves + x.fleet.VMs[vm].weight(), left: after})
			}
		}
	}
}

func (x *search) path(at int) []Move {
	moves := []Move{}
	for ; x.nodes[at].from != nowhere; at = x.nodes[at].from {
		moves = append(moves, x.nodes[at].move)
	}
	slices.Reverse(moves)
	return moves
}
