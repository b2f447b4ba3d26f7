package placement

import "github.com/godwit-vm/godwit/hypervisor"

// A tree is a tournament of hosts: every inner node knows the best host below
// it and the most CPUs that one host below it has free. Hosts that can take
// no VM do not take part, so that nothing looks at them.
//
// A sorted list would do for the best host alone. The tournament also skips
// whole subtrees that lack memory or CPUs, and costs O(log n) for every change.
type tree struct {
	hosts []Host
	nodes []node // nodes[1] is the root; the children of i are 2i and 2i+1
	leafs int    // a power of two; the leaf of host i is nodes[leafs+i]
}

// A node sums up the hosts below it that take part. Where none does, only best has a meaning.
type node struct {
	best int              // the position of the best host; none if no host takes part
	free hypervisor.Bytes // the best host's memory that is free
	cpus int              // the most free CPUs of one host
}

const none = -1

// better orders nodes by their best hosts: most free memory, which spreads the load, then the
// smaller name.
func (t *tree) better(a, b *node) bool {
	if a.free != b.free {
		return a.free > b.free
	}
	return t.hosts[a.best].Name < t.hosts[b.best].Name
}

// add appends a host that does not take part yet, and returns its position.
// Room is doubled, so that n additions cost O(n).
func (t *tree) add(h Host) int {
	t.hosts = append(t.hosts, h)
	if len(t.hosts) > t.leafs {
		t.grow()
	}
	return len(t.hosts) - 1
}

func (t *tree) grow() {
	old := t.nodes[t.leafs:]
	t.leafs = max(1, 2*t.leafs)
	t.nodes = make([]node, 2*t.leafs)
	for i := range t.nodes {
		t.nodes[i].best = none
	}
	copy(t.nodes[t.leafs:], old)
	for i := t.leafs - 1; i > 0; i-- {
		t.nodes[i] = t.join(&t.nodes[2*i], &t.nodes[2*i+1])
	}
}

// set says whether host i takes part, and carries its present numbers upwards: as far as they
// matter, which is not beyond a node that stays as it was.
func (t *tree) set(i int, takesPart bool) {
	leaf := node{best: none}
	if takesPart {
		leaf = node{best: i, free: t.hosts[i].FreeMemory(), cpus: t.hosts[i].FreeCPUs()}
	}
	at := t.leafs + i
	if t.nodes[at] == leaf {
		return
	}
	t.nodes[at] = leaf
	for at /= 2; at > 0; at /= 2 {
		sum := t.join(&t.nodes[2*at], &t.nodes[2*at+1])
		if t.nodes[at] == sum {
			return
		}
		t.nodes[at] = sum
	}
}

func (t *tree) join(a, b *node) node {
	switch {
	case a.best == none:
		return *b
	case b.best == none:
		return *a
	}
	both := *a
	if t.better(b, a) {
		both = *b
	}
	both.cpus = max(a.cpus, b.cpus)
	return both
}

// hopeless reports whether no host below node i has room for vm: the best host
// has the most memory of all.
func (t *tree) hopeless(i int, vm *VM) bool {
	n := t.nodes[i]
	return n.best == none || memoryLacks(vm, &t.hosts[n.best], Options{}) ||
		vm.DemandCPUs() > 0 && vm.DemandCPUs() > n.cpus
}
