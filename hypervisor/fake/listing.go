package fake

import (
	"cmp"
	"slices"
	"sort"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A list is what a host answered last. The zero value is empty and ready.
type list struct {
	answered []hypervisor.Domain
	marked   []hypervisor.VMID // may have changed since
	unsure   bool              // so may all
}

// most is how many marks are kept: beyond, everything is compared.
const most = 16

// Mark says that the domain of a VM may have changed, come or gone.
func (l *list) Mark(vm hypervisor.VMID) {
	switch n := len(l.marked); {
	case l.unsure || n > 0 && l.marked[n-1] == vm:
	case n == most:
		l.Doubt()
	default:
		l.marked = append(l.marked, vm)
	}
}

// Doubt says that any may have changed.
func (l *list) Doubt() { l.unsure, l.marked = true, l.marked[:0] }

// Now returns the n domains that there are, in the order of at, which is that of their VMs.
// With over, it may write over what it has answered before.
func (l *list) Now(n int, at func(int) hypervisor.Domain, over bool) []hypervisor.Domain {
	if l.answered == nil || l.unsure {
		l.compare(n, at, over)
	}
	list, copied := l.answered, over
	for _, vm := range l.marked {
		i, was := slices.BinarySearchFunc(list, vm, byVM)
		d, is := find(vm, i, n, at)
		if !is && !was || is && was && d == list[i] {
			continue
		}
		if !copied {
			list = append(make([]hypervisor.Domain, 0, len(list)+len(l.marked)), list...)
			copied = true
		}
		switch {
		case !is:
			list = deleteAt(list, i)
		case was:
			list[i] = d
		default:
			list = insertAt(roomier(list), i, d)
		}
	}
	l.answered, l.marked = list, l.marked[:0]
	return list
}

// compare makes a new list if anything has changed.
func (l *list) compare(n int, at func(int) hypervisor.Domain, over bool) {
	l.unsure, l.marked = false, l.marked[:0]
	same := l.answered != nil && len(l.answered) == n
	for i := 0; same && i < n; i++ {
		same = l.answered[i] == at(i)
	}
	if same {
		return
	}
	list := l.answered[:0]
	if !over || cap(list) < n || cap(list) > 2*n+8 {
		list = make([]hypervisor.Domain, 0, n)
	}
	for i := range n {
		list = append(list, at(i))
	}
	clear(list[n:cap(list)])
	l.answered = list
}

// find returns the domain of a VM, and whether there is one. It is nearly always at guess.
func find(vm hypervisor.VMID, guess, n int, at func(int) hypervisor.Domain) (d hypervisor.Domain,
	is bool) {
	if guess < n {
		if d = at(guess); d.VM.ID == vm {
			return d, true
		}
	}
	i, is := sort.Find(n, func(i int) int { return cmp.Compare(vm, at(i).VM.ID) })
	if !is {
		return d, false
	}
	return at(i), true
}

func byVM(d hypervisor.Domain, vm hypervisor.VMID) int { return cmp.Compare(d.VM.ID, vm) }
