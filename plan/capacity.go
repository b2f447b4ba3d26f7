package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Flavor is a size of VMs without rules.
type Flavor struct {
	Memory hypervisor.Bytes `json:"memoryBytes"` // with its hypervisor's overhead
	CPUs   int              `json:"cpus"`
	VMs    int              `json:"vms"` // how many in the fleet are of this shape
}

// Flavors returns the most frequent shapes of a fleet, at most n of them.
func Flavors(f *Fleet, n int) []Flavor {
	count := map[Flavor]int{}
	for i := range f.VMs {
		count[Flavor{Memory: f.VMs[i].Demand(), CPUs: f.VMs[i].DemandCPUs()}]++
	}
	var all []Flavor
	for s, vms := range count {
		s.VMs = vms
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Flavor) int {
		return cmp.Or(cmp.Compare(b.VMs, a.VMs), cmp.Compare(a.Memory, b.Memory),
			cmp.Compare(a.CPUs, b.CPUs))
	})
	return all[:min(n, len(all))]
}

func (s Flavor) size() size { return size{int64(s.Memory), int64(s.CPUs)} }

// newcomer returns the n-th new VM of the shape.
func (s Flavor) newcomer(n int) placement.VM {
	return placement.VM{ID: hypervisor.VMID("new/" + strconv.Itoa(n)), Memory: s.Memory,
		CPUs: s.CPUs}
}

// Stranded is the free room of a fleet that VMs of one shape cannot use: what is left when
// each host that takes VMs has been filled with them.
type Stranded struct {
	Flavor
	Fit        int              `json:"fit"` // so many more fit, if nothing fails
	FreeMemory hypervisor.Bytes `json:"freeMemoryBytes"`
	FreeCPUs   int              `json:"freeCpus"`
	Memory     hypervisor.Bytes `json:"strandedMemoryBytes"`
	CPUs       int              `json:"strandedCpus"`
	// ByMemory counts the hosts that are full because memory runs out, ByCPUs those where
	// only CPUs do; Refusing those with room that rules keep from this shape.
	ByMemory int `json:"fullByMemory"`
	ByCPUs   int `json:"fullByCpus"`
	Refusing int `json:"refusing"`
}

// Strand returns what is stranded for a shape.
func Strand(f *Fleet, s Flavor) Stranded {
	out := Stranded{Flavor: s}
	vm, d := s.newcomer(0), s.size()
	for i := range f.Hosts {
		h := &f.Hosts[i]
		free := size{max(0, int64(h.FreeMemory())), max(0, int64(h.FreeCPUs()))}
		if h.Down || h.Cordoned {
			continue
		}
		n := int64(0)
		o := surviveRestart(&vm, nil)
		switch fits := placement.FitsAll(f.Rules(), &vm, h, o); {
		case fits:
			n = min(free.slots(d), openings(h))
		case free.slots(d) > 0:
			out.Refusing++
		}
		left := free.plus(size{n * d.memory, n * d.cpus}, -1)
		switch {
		case left.memory < d.memory:
			out.ByMemory++
		case left.cpus < d.cpus:
			out.ByCPUs++
		}
		out.Fit += int(n)
		out.FreeMemory += hypervisor.Bytes(free.memory)
		out.FreeCPUs += int(free.cpus)
		out.Memory += hypervisor.Bytes(left.memory)
		out.CPUs += int(left.cpus)
	}
	return out
}

// openings returns how many VMs more may be on a host.
func openings(h *placement.Host) int64 {
	if h.Facts == nil || h.Facts.MaxVMs <= 0 || h.Load == nil {
		return plenty
	}
	return max(0, int64(h.Facts.MaxVMs-h.Load.VMs))
}

// An Admission is how many more VMs of one shape there is room for, while so many failures
// are survived as before.
type Admission struct {
	Flavor
	// AtLeast so many can come: it was shown for one way to place them, which is
	// production's, to the host with the most free memory each.
	AtLeast int `json:"atLeast"`
	// AtMost so many can, wherever they are placed: by what is left of memory, CPUs and
	// slots when the largest units have failed.
	AtMost int `json:"atMost"`
}

// mostAdmitted is how many newcomers are placed at most: with many more there would be no end.
const mostAdmitted = 200_000

// Admit returns how many more VMs of a shape can be admitted, all of them protected. The
// question must be valid, and the shape have a size. It is none when the answer to the
// question is no as it is. Each of the checks has a tenth of the effort.
func Admit(q FailoverQuestion, s Flavor) Admission {
	q.Effort = max(1, cmp.Or(q.Effort, DefaultEffort)/surviveShare)
	a := Admission{Flavor: s, AtMost: atMost(&q, s)}
	switch with(q, s, 0) {
	case No:
		a.AtMost = 0
		return a
	case Open:
		return a
	}
	most := min(a.AtMost, mostAdmitted)
	low, high := 0, most+1
	for next := most; high-low > 1; next = (low + high) / 2 { // the bound is often met
		if with(q, s, next) == Yes {
			low = next
		} else {
			high = next
		}
	}
	a.AtLeast = low
	return a
}

// with answers for the fleet with n more VMs; No when they find no room to begin with.
func with(q FailoverQuestion, s Flavor, n int) FailoverOutcome {
	f := &Fleet{Filters: q.Fleet.Filters}
	index := placement.NewIndex(0, q.Fleet.Hosts...)
	index.Use(q.Fleet.Rules()...)
	protected := q.Protected
	if protected != nil {
		protected = map[hypervisor.VMID]bool{}
		for id, is := range q.Protected {
			protected[id] = is
		}
	}
	guests := make([]VM, 0, n)
	for i := range n {
		vm := s.newcomer(i)
		target, ok := index.Best(&vm, surviveRestart(&vm, nil))
		if !ok || !index.Reserve(&vm, target) || !index.Arrive(target) {
			return No
		}
		guests = append(guests, VM{VM: vm, Home: target})
		if protected != nil {
			protected[vm.ID] = true
		}
	}
	f.Hosts = slices.Clone(index.Hosts())
	slices.SortFunc(f.Hosts, func(a, b placement.Host) int { return cmp.Compare(a.Name, b.Name) })
	f.VMs = merged(q.Fleet.VMs, guests)
	q.Fleet, q.Protected = f, protected
	return Failover(q).Verdict
}

// merged returns the VMs of a fleet, which are in order, and newcomers, which are not, in order.
func merged(known, guests []VM) []VM {
	slices.SortFunc(guests, func(a, b VM) int { return cmp.Compare(a.ID, b.ID) })
	all := make([]VM, 0, len(known)+len(guests))
	for _, g := range guests {
		before, _ := slices.BinarySearchFunc(known, g.ID,
			func(v VM, id hypervisor.VMID) int { return cmp.Compare(v.ID, id) })
		all = append(append(all, known[:before]...), g)
		known = known[before:]
	}
	return append(all, known...)
}

// atMost returns a bound on how many VMs of a shape fit together with the protected VMs
// when the units with the most room, or with the most in use, have failed.
func atMost(q *FailoverQuestion, s Flavor) int {
	t, d := newTrial(q), s.size()
	var all [3]int64 // slots, memory and CPUs
	lost := [3][]int64{make([]int64, len(t.units)), make([]int64, len(t.units)),
		make([]int64, len(t.units))} // with each unit
	for h, u := range t.unitOf {
		if u < 0 {
			continue
		}
		if !t.hosts[h].Cordoned {
			free := t.free[h]
			for n, has := range []int64{free.slots(d), max(0, free.memory), max(0, free.cpus)} {
				all[n] += has
				lost[n][u] += has
			}
		}
		for _, vm := range t.on[h] {
			k := &t.kinds[t.kindOf[vm]]
			lost[1][u] += k.memory
			lost[2][u] += k.cpus
		}
	}
	most := left(all[0], lost[0], q.Failures)
	for n, each := range []int64{1: d.memory, 2: d.cpus} {
		if each > 0 {
			most = min(most, left(all[n], lost[n], q.Failures)/each)
		}
	}
	return int(max(0, most))
}

// left returns what is left of all when the k largest are lost.
func left(all int64, lost []int64, k int) int64 {
	slices.Sort(lost)
	for _, n := range lost[len(lost)-k:] {
		all -= n
	}
	return all
}
