package plan

import (
	"slices"

	"github.com/godwit-vm/godwit/migration/placement"
)

// An assignment is the host of each VM while batches are tried, and what the VMs take of the hosts. It
// is a [State] that costs little to change: where nothing but memory and CPUs can run out for a VM, and
// no rule asks where it is, only these are counted. Hosts and VMs are positions in the fleet.
type assignment struct {
	fleet *Fleet
	rules []placement.Filter
	bound []bool // of each VM: all that it takes is counted
	alike []int  // of each VM: those with one number are taken, or refused, alike by any host
	hosts []placement.Host
	home  []int
	on    [][]int // the VMs on each host
}

func newAssignment(f *Fleet, bound []bool) *assignment {
	b := &assignment{fleet: f, rules: f.Rules(), bound: bound, hosts: slices.Clone(f.Hosts),
		alike: make([]int, len(f.VMs)), home: make([]int, len(f.VMs)), on: make([][]int, len(f.Hosts))}
	known := map[kindKey]int{}
	for vm := range f.VMs {
		v := &f.VMs[vm].VM
		b.alike[vm] = numbered(known, kindKey{sizeOf(v), written(v), bound[vm]}, len(known))
		b.home[vm] = nowhere
		if at, ok := f.HostAt(f.VMs[vm].Home); ok {
			b.home[vm], b.on[at] = at, append(b.on[at], vm)
		}
	}
	return b
}

// A kindKey is all of a VM that hosts look at.
type kindKey struct {
	size
	constraints string
	bound       bool
}

// clone returns an assignment that changes apart from b.
func (b *assignment) clone() *assignment {
	c := *b
	c.hosts, c.home, c.on = slices.Clone(b.hosts), slices.Clone(b.home), slices.Clone(b.on)
	for h := range c.on {
		c.on[h] = slices.Clip(c.on[h])
	}
	return &c
}

// A question is which hosts take one VM now.
type question struct {
	b     *assignment
	vm    *placement.VM
	o     placement.Options
	rules []placement.Filter
	some  bool // rules are only those that may refuse some host
}

func (b *assignment) ask(vm int) question {
	v, at := &b.fleet.VMs[vm], b.home[vm]
	seen := b.hosts[at : at+1]
	if len(v.Constraints.Groups) > 0 {
		seen = b.hosts
	}
	return question{b: b, vm: &v.VM, rules: b.rules, o: placement.Options{Source: b.hosts[at].Name,
		Move: v.compare(b.hosts[at].Name, seen)}}
}

// fits reports whether a host takes the VM. Most VMs go to the first host that is asked: which rules can
// refuse any is looked up only once one has.
func (q *question) fits(host int) bool {
	if placement.FitsAll(q.rules, q.vm, &q.b.hosts[host], q.o) {
		return true
	}
	if !q.some {
		q.rules, q.some = placement.Active(q.rules, q.vm, q.o), true
	}
	return false
}

// move moves a VM; false if [placement.Host.With] or [placement.Host.Without] refuses.
func (b *assignment) move(vm, target int) bool {
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

// without returns the fleet as it is now, with some hosts down.
func (b *assignment) without(hosts []int) *Fleet {
	f := b.hostsWithout(hosts)
	f.VMs = slices.Clone(f.VMs)
	for vm, at := range b.home {
		if at >= 0 {
			f.VMs[vm].Home = f.Hosts[at].Name
		}
	}
	return f
}

// hostsWithout returns the fleet with its hosts as they are now, some of them down. Its VMs have the homes
// that they had at first.
func (b *assignment) hostsWithout(hosts []int) *Fleet {
	f := &Fleet{Filters: b.fleet.Filters, Hosts: slices.Clone(b.hosts), VMs: b.fleet.VMs}
	for _, h := range hosts {
		f.Hosts[h].Down = true
	}
	return f
}

// after returns the fleet as it is after moves, with all that the VMs take.
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
