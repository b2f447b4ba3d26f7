package plan

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A size is what a VM takes of a host, or what is free there.
type size struct{ memory, cpus int64 }

// takes reports whether there is room for d, as placement's conditions on memory and
// CPUs do: a VM that needs nothing is not refused.
func (s size) takes(d size) bool {
	return (d.memory <= 0 || d.memory <= s.memory) && (d.cpus <= 0 || d.cpus <= s.cpus)
}

func (s size) plus(d size, sign int64) size {
	return size{s.memory + sign*d.memory, s.cpus + sign*d.cpus}
}

func sizeOf(vm *placement.VM) size { return size{int64(vm.Demand()), int64(vm.DemandCPUs())} }

// A kind is VMs that any host takes, or refuses, alike.
type kind struct {
	size
	vm *placement.VM // one of them
	// bound: what refuses them depends on more than room for memory and CPUs.
	bound bool
	// hosts could take them as far as room goes, those with the least room first.
	hosts []int
	row   int // the hosts that would take them if they were empty, and large enough
	class int // see proof
	// social VMs ask to be with others. They are placed last; before, the hardest first.
	social bool
	rank   int
}

// A trial is a fleet some of whose hosts have failed. Everything that is done to it is
// undone in reverse order.
type failoverTrial struct {
	fleet  *Fleet
	rules  []placement.Filter
	effort int

	kinds   []kind
	kindOf  []int // of each VM
	classes []class
	covers  [][]int64 // slots of the second class that a VM of the first covers
	rows    [][]bool  // of each row: which hosts take its kinds if they are empty
	units   [][]int   // hosts that fail together
	unitOf  []int     // of each host; negative: it is down

	hosts  []placement.Host // with their reservations
	free   []size
	failed []bool
	on     [][]int // the protected VMs on each host
	twin   []int   // hosts with the same number are alike as long as no VM came
	may    []int   // hosts with the same number are in the same rows
	came   []int   // how many VMs came to each host
	bound  bool    // some kind is bound

	supply map[demand]int64 // what there is before anything fails

	probes, limit int
	searched      int
}

func newTrial(q *FailoverQuestion) *failoverTrial {
	f := q.Fleet
	t := &failoverTrial{fleet: f, rules: f.Rules(), effort: q.Effort, hosts: slices.Clone(f.Hosts),
		free: make([]size, len(f.Hosts)), failed: make([]bool, len(f.Hosts)),
		on: make([][]int, len(f.Hosts)), came: make([]int, len(f.Hosts)),
		supply: map[demand]int64{}}
	if t.effort <= 0 {
		t.effort = DefaultEffort
	}
	t.units = unitsOf(f, q.Domain)
	t.unitOf = slices.Repeat([]int{-1}, len(f.Hosts))
	for u, hosts := range t.units {
		for _, h := range hosts {
			t.unitOf[h] = u
		}
	}
	for h := range t.hosts {
		t.free[h] = size{int64(t.hosts[h].FreeMemory()), int64(t.hosts[h].FreeCPUs())}
		t.failed[h] = t.hosts[h].Down
	}
	t.sortOut(q)
	t.classify()
	t.findTwins()
	return t
}

// unitsOf returns the hosts that fail together, in the order of the hosts.
func unitsOf(f *Fleet, label string) [][]int {
	var units [][]int
	byValue := map[string]int{}
	for h := range f.Hosts {
		if f.Hosts[h].Down {
			continue
		}
		value, labelled := f.Hosts[h].Labels[label]
		at, known := byValue[value]
		if label == "" || !labelled || !known {
			at = len(units)
			units = append(units, nil)
		}
		if label != "" && labelled {
			byValue[value] = at
		}
		units[at] = append(units[at], h)
	}
	return units
}

// sortOut finds the kinds, and puts the protected VMs where they are.
func (t *failoverTrial) sortOut(q *FailoverQuestion) {
	b := q.assignment
	if b == nil {
		b = newAssignment(t.fleet, binding(t.fleet))
	}
	kinds := map[int]int{} // by what is alike
	t.kindOf = make([]int, len(t.fleet.VMs))
	for i := range t.fleet.VMs {
		v, at := &t.fleet.VMs[i], b.home[i]
		if at == nowhere || t.hosts[at].Down || q.Protected != nil && !q.Protected[v.ID] {
			continue
		}
		t.on[at] = append(t.on[at], i)
		n := numbered(kinds, b.alike[i], len(t.kinds))
		if n == len(t.kinds) {
			t.kinds = append(t.kinds, kind{size: sizeOf(&v.VM), vm: &v.VM, bound: b.bound[i],
				social: isSocial(&v.VM)})
			t.bound = t.bound || b.bound[i]
		}
		t.kindOf[i] = n
	}
	t.findHosts()
	t.rank()
}

// written tells constraints that differ apart, as far as they are those of a start.
func written(vm *placement.VM) string {
	asked := vm.Constraints
	c := &asked
	c.Platform.HostModel, c.Platform.HostFeatures = "", nil // of live moves
	if len(c.Selector)+len(c.Affinity)+len(c.Tolerations)+len(c.Zones)+len(c.Specs)+
		len(c.Networks)+len(c.Tenant)+len(c.Platform.CPUFeatures) == 0 && !isBound(vm) &&
		c.Platform.Arch+c.Platform.Machine+c.Platform.CPUModel+c.Platform.Hypervisor == "" &&
		c.Platform.MinVersion == 0 {
		return ""
	}
	text, err := json.Marshal(struct {
		C    *placement.Constraints
		Disk hypervisor.Bytes
	}{c, vm.Disk})
	if err != nil {
		return string(vm.ID) // a kind of its own
	}
	return string(text)
}

// isSocial reports whether vm asks to be with others.
func isSocial(vm *placement.VM) bool {
	return len(vm.Constraints.With) > 0 || slices.ContainsFunc(vm.Constraints.Groups,
		func(r placement.GroupRule) bool { return r.Policy == placement.Affinity })
}

// binding returns for which VMs of a fleet more than memory and CPUs can run out, or whose
// whereabouts others look at. What becomes of the other VMs shows in these two alone.
func binding(f *Fleet) []bool {
	counted := slices.ContainsFunc(f.Hosts, func(h placement.Host) bool {
		return h.Facts != nil && h.Facts.MaxVMs > 0
	})
	named := map[hypervisor.VMID]bool{} // by others that ask to be with them, or without
	for i := range f.VMs {
		c := &f.VMs[i].Constraints
		for _, id := range slices.Concat(c.With, c.Without) {
			named[id] = true
		}
	}
	bound := make([]bool, len(f.VMs))
	for i := range f.VMs {
		bound[i] = counted || isBound(&f.VMs[i].VM) || named[f.VMs[i].ID]
	}
	return bound
}

func isBound(vm *placement.VM) bool {
	c := &vm.Constraints
	return Rules(vm) || vm.Disk > 0 || c.Topology != nil || len(c.Devices) > 0
}

// findHosts asks, for each kind, which hosts would take it if they were empty. Company
// that a VM asks for is not asked for yet.
func (t *failoverTrial) findHosts() {
	order := make([]int, len(t.hosts))
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(t.free[a].memory, t.free[b].memory)
	})
	empty := make([]placement.Host, len(t.hosts))
	for i := range t.hosts {
		h := &t.hosts[i]
		empty[i] = placement.Host{Name: h.Name, Memory: h.Memory, CPUs: h.CPUs, Down: h.Down,
			Labels: h.Labels, Taints: h.Taints, Cordoned: h.Cordoned, Facts: h.Facts,
			Load: &placement.Load{}}
	}
	known := map[string]int{}
	for n := range t.kinds {
		k := &t.kinds[n]
		vm := *k.vm
		vm.Constraints.With = nil
		o := surviveRestart(&vm, nil)
		active := placement.Active(t.rules, &vm, o)
		row, takers := make([]bool, len(t.hosts)), []int(nil)
		for _, h := range order {
			if !placement.FitsAll(active, &vm, &empty[h], o) {
				continue
			}
			row[h], takers = true, append(takers, h)
			if t.free[h].takes(k.size) {
				k.hosts = append(k.hosts, h)
			}
		}
		if k.row = numbered(known, textOf(takers), len(t.rows)); k.row == len(t.rows) {
			t.rows = append(t.rows, row)
		}
	}
}

// rank orders the kinds as they are placed.
func (t *failoverTrial) rank() {
	order := make([]*kind, len(t.kinds))
	for n := range t.kinds {
		order[n] = &t.kinds[n]
	}
	slices.SortStableFunc(order, func(x, y *kind) int {
		return cmp.Or(cmp.Compare(late(x), late(y)), cmp.Compare(len(x.hosts), len(y.hosts)),
			cmp.Compare(y.memory, x.memory), cmp.Compare(y.cpus, x.cpus))
	})
	for n, k := range order {
		k.rank = n
	}
}

func late(k *kind) int {
	if k.social {
		return 1
	}
	return 0
}

// surviveRestart returns the options of a VM that is started anew among some hosts.
func surviveRestart(vm *placement.VM, hosts []placement.Host) placement.Options {
	m := placement.CompareHosts(vm, "", hosts)
	m.Rebuild = true
	return placement.Options{Move: m}
}

// findTwins numbers the hosts that are alike: the same kinds of VMs are on them, the same
// kinds may come, and the same is free. Where rules look further, no two are.
func (t *failoverTrial) findTwins() {
	t.twin, t.may = make([]int, len(t.hosts)), make([]int, len(t.hosts))
	in := make([][]int, len(t.hosts))
	for row, takes := range t.rows {
		for h := range takes {
			if takes[h] {
				in[h] = append(in[h], row)
			}
		}
	}
	rows, alike := map[string]int{}, map[string]int{}
	for h := range t.hosts {
		t.may[h] = numbered(rows, textOf(in[h]), len(rows))
		t.twin[h] = h
		if t.bound || t.unitOf[h] < 0 || len(t.units[t.unitOf[h]]) > 1 {
			continue
		}
		kinds := make([]int, len(t.on[h]), len(t.on[h])+3)
		for i, vm := range t.on[h] {
			kinds[i] = t.kindOf[vm]
		}
		slices.Sort(kinds)
		kinds = append(kinds, t.may[h], int(t.free[h].memory), int(t.free[h].cpus))
		t.twin[h] = numbered(alike, textOf(kinds), h)
	}
}

// textOf tells lists of numbers apart.
func textOf(numbers []int) string {
	text := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		for range 8 {
			text = append(text, byte(n))
			n >>= 8
		}
	}
	return string(text)
}

// numbered returns the number of something, or gives it the next one.
func numbered[K comparable](known map[K]int, what K, next int) int {
	if n, ok := known[what]; ok {
		return n
	}
	known[what] = next
	return next
}
