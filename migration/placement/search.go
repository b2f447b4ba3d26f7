package placement

// A search visits the hosts of a tree that may have room for vm, best first.
// It keeps a heap of subtrees that share no host; the one with the best host
// is first. A visit of k hosts costs O(k log n), and the memory is used again.
type search struct {
	filters []Filter
	heap    []int // nodes of the tree
}

// best returns the first host in order of rank that takes vm, or none.
func (s *search) best(t *tree, vm *VM, o Options) int {
	s.heap = s.heap[:0]
	if len(t.hosts) > 0 {
		s.push(t, vm, 1)
	}
	for len(s.heap) > 0 {
		at := s.pop(t)
		i := t.nodes[at].best
		if FitsAll(s.filters, vm, &t.hosts[i], o) {
			return i
		}
		s.without(t, vm, at)
	}
	return none
}

// without puts back the hosts below node at, except its best one: the siblings
// along the way down to that host.
func (s *search) without(t *tree, vm *VM, at int) {
	for best := t.nodes[at].best; at < t.leafs; {
		at = 2 * at
		other := at + 1
		if t.nodes[at].best != best {
			at, other = other, at
		}
		s.push(t, vm, other)
	}
}

// push adds the subtree of node i, unless it is hopeless.
func (s *search) push(t *tree, vm *VM, i int) {
	if t.hopeless(i, vm) {
		return
	}
	s.heap = append(s.heap, i)
	for at := len(s.heap) - 1; at > 0; {
		parent := (at - 1) / 2
		if !s.before(t, at, parent) {
			return
		}
		s.swap(at, parent)
		at = parent
	}
}

// pop removes the subtree with the best host.
func (s *search) pop(t *tree) int {
	top, last := s.heap[0], len(s.heap)-1
	s.swap(0, last)
	s.heap = s.heap[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return top
		}
		if child+1 < last && s.before(t, child+1, child) {
			child++
		}
		if !s.before(t, child, at) {
			return top
		}
		s.swap(at, child)
		at = child
	}
}

func (s *search) before(t *tree, a, b int) bool {
	return t.better(&t.nodes[s.heap[a]], &t.nodes[s.heap[b]])
}

func (s *search) swap(a, b int) { s.heap[a], s.heap[b] = s.heap[b], s.heap[a] }
