package plan

import (
	"cmp"
	"maps"
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
// question is no as it is. The first check has a tenth of the effort, all others together another.
func Admit(q FailoverQuestion, s Flavor) Admission {
	q.Effort = max(1, cmp.Or(q.Effort, DefaultEffort)/surviveShare)
	a := Admission{Flavor: s, AtMost: atMost(&q, s)}
	most := min(a.AtMost, mostAdmitted)
	d := admit(&q, s, most)
	switch d.answer(0) {
	case No:
		a.AtMost = 0
		return a
	case Open:
		return a
	}
	most = min(most, len(d.targets))
	low, high := 0, most+1
	for high-low > 1 { // counting alone takes next to no time
		if next := (low + high) / 2; d.counted(next) {
			low = next
		} else {
			high = next
		}
	}
	if low < most && d.answer(most) == Yes { // the bound is often met
		low = most
	}
	step := 1
	for ; low+step <= most && d.answer(low+step) == Yes; step *= 2 {
		low += step
	}
	for high = min(low+step, most+1); high-low > 1; {
		if next := (low + high) / 2; d.answer(next) == Yes {
			low = next
		} else {
			high = next
		}
	}
	a.AtLeast = low
	return a
}

// setting is how many probes a VM or a host costs before anything is searched.
const setting = 60

// An admitter answers for a fleet with more and more newcomers. They are placed once: the first n of
// them are where they would be if no more came. What counting decides takes no further look at the
// VMs; only the rest is searched.
type admitter struct {
	q       *FailoverQuestion
	shape   Flavor
	targets []int          // the hosts of the newcomers, one after the other
	trial   *failoverTrial // with the newcomers' kind, and none of them; nil: none found room
	kind    int            // theirs
	rows    []int          // of each class
	per     [][]int64      // of unit and class: VMs
	came    []int64        // to each host
	spent   int            // probes of searches
}

// admit places newcomers, at most so many.
func admit(q *FailoverQuestion, s Flavor, most int) *admitter {
	d := &admitter{q: q, shape: s}
	index := placement.NewIndex(0, q.Fleet.Hosts...)
	index.Use(q.Fleet.Rules()...)
	vm := s.newcomer(0)
	o := surviveRestart(&vm, nil)
	for range most {
		target, ok := index.Best(&vm, o)
		if !ok || !index.Reserve(&vm, target) || !index.Arrive(target) {
			break
		}
		at, _ := q.Fleet.HostAt(target)
		d.targets = append(d.targets, at)
	}
	if len(d.targets) > 0 {
		d.begin(vm)
	}
	return d
}

// begin counts the fleet without newcomers, knowing their kind.
func (d *admitter) begin(vm placement.VM) {
	q, home := *d.q, d.targets[0]
	f := &Fleet{Filters: q.Fleet.Filters, Hosts: q.Fleet.Hosts,
		VMs: merged(q.Fleet.VMs, []VM{{VM: vm, Home: q.Fleet.Hosts[home].Name}})}
	q.Fleet, q.Protected = f, guarded(q.Protected, vm.ID)
	t := newTrial(&q)
	at, _ := f.VMAt(vm.ID)
	d.trial, d.kind = t, t.kindOf[at]
	d.rows, d.came = make([]int, len(t.classes)), make([]int64, len(t.hosts))
	for n := range t.kinds {
		d.rows[t.kinds[n].class] = t.kinds[n].row
	}
	t.on[home] = slices.DeleteFunc(slices.Clone(t.on[home]), func(i int) bool { return i == at })
	d.per = make([][]int64, len(t.units))
	for u := range t.units {
		d.per[u] = make([]int64, len(t.classes))
		for _, h := range t.units[u] {
			for _, i := range t.on[h] {
				d.per[u][t.kinds[t.kindOf[i]].class]++
			}
		}
	}
}

// guarded returns the protected VMs with one more; nil is all.
func guarded(protected map[hypervisor.VMID]bool, id hypervisor.VMID) map[hypervisor.VMID]bool {
	if protected == nil {
		return nil
	}
	all := maps.Clone(protected)
	all[id] = true
	return all
}

// counted reports whether counting shows that n newcomers are survived with.
func (d *admitter) counted(n int) bool {
	return d.trial != nil && len(d.trial.classes) <= mostClasses &&
		d.count(n).safe(nil, d.q.Failures)
}

// answer answers for n newcomers. Of more than none only Yes is looked for.
func (d *admitter) answer(n int) FailoverOutcome {
	switch {
	case n > len(d.targets):
		return No
	case d.counted(n):
		return Yes
	case n > 0 && (d.spent > d.q.Effort || d.hopeless(n)):
		return Open
	}
	t := newTrial(with(*d.q, d.shape, n))
	if n == 0 {
		return t.answer(d.q.Failures).Verdict
	}
	t.limit = t.effort / 3 * 2
	v := t.orders(d.q.Failures)
	d.spent += t.probes + setting*(len(t.fleet.VMs)+len(t.hosts))
	return v
}

// count counts as a trial of the fleet with n newcomers would.
func (d *admitter) count(n int) *count {
	t := d.trial
	clear(d.came)
	for _, h := range d.targets[:n] {
		d.came[h]++
	}
	k := &t.kinds[d.kind]
	c := &count{classes: len(t.classes), lost: make([][]int64, len(t.units)),
		has: make([][]bool, len(t.units)), most: make([]int64, len(t.classes)),
		slots: make([]int64, len(t.classes))}
	for u := range t.units {
		c.lost[u], c.has[u] = make([]int64, c.classes), make([]bool, c.classes)
		for from, vms := range d.per[u] {
			if from == k.class {
				for _, h := range t.units[u] {
					vms += d.came[h]
				}
			}
			if vms > 0 {
				c.has[u][from] = true
				t.covered(c.lost[u], from, vms)
			}
		}
	}
	free := make([]size, len(t.hosts))
	for h := range free {
		free[h] = t.free[h].plus(size{k.memory * d.came[h], k.cpus * d.came[h]}, -1)
	}
	for n := range t.classes {
		t.slotsOf(c, n, free, d.rows[n])
	}
	return c
}

// slotsOf counts the slots of a class on the hosts of its row.
func (t *failoverTrial) slotsOf(c *count, n int, free []size, row int) {
	k, widest := &t.classes[n], int64(0)
	for h, takes := range t.rows[row] {
		if !takes || t.failed[h] {
			continue
		}
		slots := free[h].slots(k.size)
		c.slots[n] += slots
		c.lost[t.unitOf[h]][n] += slots
		widest = max(widest, slots)
	}
	c.finish(t, n, widest)
}

// hopeless reports whether a search would be given up: so many hosts that are not alike would have
// to fail first, and each asks anew about all the others.
func (d *admitter) hopeless(n int) bool {
	t := d.trial
	if d.q.Failures < 2 || t == nil || len(t.classes) > mostClasses {
		return false
	}
	c := d.count(n)
	tried := map[[2]int64]bool{}
	for u := range t.units {
		if h := t.units[u][0]; !c.safe([]int{u}, d.q.Failures-1) {
			tried[[2]int64{int64(t.twin[h]), d.came[h]}] = true
		}
	}
	return len(tried)*counting*len(t.hosts) > d.q.Effort/3*2
}

// with asks about the fleet with n more VMs, which find room.
func with(q FailoverQuestion, s Flavor, n int) *FailoverQuestion {
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
		target, _ := index.Best(&vm, surviveRestart(&vm, nil))
		index.Reserve(&vm, target)
		index.Arrive(target)
		guests = append(guests, VM{VM: vm, Home: target})
		if protected != nil {
			protected[vm.ID] = true
		}
	}
	f.Hosts = slices.Clone(index.Hosts())
	slices.SortFunc(f.Hosts, func(a, b placement.Host) int { return cmp.Compare(a.Name, b.Name) })
	f.VMs = merged(q.Fleet.VMs, guests)
	q.Fleet, q.Protected = f, protected
	return &q
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
