package plan

import (
	"slices"

	"github.com/godwit-vm/godwit/migration/placement"
)

// books are who is where while batches are tried. They are a [State] that costs
// little to change: where nothing but memory and CPUs can run out for a VM, and no rule
// asks where it is, only these are booked. Hosts and VMs are positions in the fleet.
type books struct {
	fleet *Fleet
	rules []placement.Filter
	bound []bool // of each VM: it is booked in full
	hosts []placement.Host
	home  []int
	on    [][]int // the VMs on each host
}

func open(f *Fleet, bound []bool) *books {
	b := &books{fleet: f, rules: f.Rules(), bound: bound, hosts: slices.Clone(f.Hosts),
		home: make([]int, len(f.VMs)), on: make([][]int, len(f.Hosts))}
	for vm := range f.VMs {
		b.home[vm] = nowhere
		if at, ok := f.HostAt(f.VMs[vm].Home); ok {
			b.home[vm], b.on[at] = at, append(b.on[at], vm)
		}
	}
	return b
}

// clone returns books that change apart from b.
func (b *books) clone() *books {
	c := *b
	c.hosts, c.home, c.on = slices.Clone(b.hosts), slices.Clone(b.home), slices.Clone(b.on)
	for h := range c.on {
		c.on[h] = slices.Clip(c.on[h])
	}
	return &c
}

// A question is which hosts take one VM now.
type question struct {
	b     *books
	vm    *placement.VM
	o     placement.Options
	rules []placement.Filter
}

func (b *books) ask(vm int) question {
	v, at := &b.fleet.VMs[vm].VM, b.home[vm]
	seen := b.hosts[at : at+1]
	if len(v.Constraints.Groups) > 0 {
		seen = b.hosts
	}
	q := question{b: b, vm: v, o: placement.Options{Source: b.hosts[at].Name,
		Move: placement.CompareHosts(v, b.hosts[at].Name, seen)}}
	q.rules = placement.Active(b.rules, v, q.o)
	return q
}

func (q *question) fits(host int) bool {
	return placement.FitsAll(q.rules, q.vm, &q.b.hosts[host], q.o)
}

// move moves a VM, and reports whether the books allow it.
func (b *books) move(vm, target int) bool {
	v, source := &b.fleet.VMs[vm].VM, b.home[vm]
	if b.bound[vm] {
		to, in := b.hosts[target].With(v)
		from, out := b.hosts[source].Without(v, false)
		if !in || !out {
			return false
		}
		to.Incoming = b.hosts[target].Incoming // it has come
		b.hosts[target], b.hosts[source] = to, from
	} else {
		b.hosts[target].UsedMemory += v.Demand()
		b.hosts[target].UsedCPUs += v.DemandCPUs()
		b.hosts[source].UsedMemory -= v.Demand()
		b.hosts[source].UsedCPUs -= v.DemandCPUs()
	}
	gone := func(other int) bool { return other == vm }
	b.on[source] = slices.DeleteFunc(slices.Clone(b.on[source]), gone)
	b.on[target] = append(b.on[target], vm)
	b.home[vm] = target
	return true
}

// without returns the fleet as the books have it, without some hosts.
func (b *books) without(hosts []int) *Fleet {
	f := &Fleet{Filters: b.fleet.Filters, Hosts: slices.Clone(b.hosts),
		VMs: slices.Clone(b.fleet.VMs)}
	for vm, at := range b.home {
		if at >= 0 {
			f.VMs[vm].Home = f.Hosts[at].Name
		}
	}
	for _, h := range hosts {
		f.Hosts[h].Down = true
	}
	return f
}

// after returns the fleet as it is after moves, booked in full.
func after(f *Fleet, moves []Move) *Fleet {
	s := Begin(f)
	for _, m := range moves {
		vm, _ := f.VMAt(m.VM)
		target, _ := f.HostAt(m.Target)
		s.Move(vm, target)
	}
	now := &Fleet{Filters: f.Filters, Hosts: slices.Clone(f.Hosts), VMs: slices.Clone(f.VMs)}
	for h := range now.Hosts {
		now.Hosts[h] = *s.Host(h)
	}
	for vm := range now.VMs {
		if at := s.Home(vm); at >= 0 {
			now.VMs[vm].Home = now.Hosts[at].Name
		}
	}
	return now
}
