package plan

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Why is how a counterexample proves that there is no room.
type Why string

// The proofs that there is no room, after the hosts have failed and before any VM is
// restarted.
const (
	// NoHost: no host that is left takes the VM. Counts says how many refuse it, by check.
	NoHost Why = "no host takes it"
	// TooLittleFree: the VMs need more of a resource than is free on all hosts that could take
	// them; with a unit, there are more of them than pieces of this size.
	TooLittleFree Why = "too little is free"
	// allTried: every placement of the VMs that were on these hosts was tried. VMs are
	// those that one of the best leaves over.
	allTried Why = "every placement was tried"
	// Sequence: each of the failures leaves room alone and together, but after one of them
	// every placement was tried, and some later failure leaves no room.
	Sequence Why = "every placement was tried, for each order"
)

// A Counterexample is failures that leave no room for some VMs.
type Counterexample struct {
	Why    Why                   `json:"why"`
	Failed []hypervisor.HostName `json:"failed"` // none for a Sequence
	VMs    []hypervisor.VMID     `json:"vms"`    // that find no room
	// Resource is what is short, memory or cpus.
	Resource string         `json:"resource,omitempty"`
	Unit     int64          `json:"unit,omitempty"` // what each VM needs at least; 0: see Need
	Need     int64          `json:"need,omitempty"` // bytes or CPUs; with a unit, VMs
	Have     int64          `json:"have,omitempty"`
	Counts   []OutcomeCount `json:"refused"`
}

// A Count is how many hosts a check refuses.
type OutcomeCount struct {
	Check string `json:"check"`
	Hosts int    `json:"hosts"`
}

// resources names what a size is of.
var resources = []struct {
	name string
	of   func(size) int64
}{
	{"memory", func(s size) int64 { return s.memory }},
	{"cpus", func(s size) int64 { return s.cpus }},
}

// short returns a proof that VMs that were on failed units have no room, if a simple one
// exists.
func (t *failoverTrial) short(units, out []int) *Counterexample {
	count := make([]int64, len(t.kinds))
	for _, vm := range out {
		n := t.kindOf[vm]
		if count[n]++; count[n] == 1 && !t.kinds[n].social && !t.anyRoom(&t.kinds[n]) {
			return t.noHost(units, vm)
		}
	}
	for row := range t.rows {
		for r := range resources {
			if unit, need, have := t.lack(units, count, row, r); need > have {
				return &Counterexample{Why: TooLittleFree, Failed: t.names(units), Counts: []OutcomeCount{},
					Resource: resources[r].name, Unit: unit, Need: need, Have: have,
					VMs: t.ids(slices.DeleteFunc(slices.Clone(out), func(vm int) bool {
						k := &t.kinds[t.kindOf[vm]]
						return k.row != row || resources[r].of(k.size) < unit
					}))}
			}
		}
	}
	return nil
}

func (t *failoverTrial) anyRoom(k *kind) bool {
	var o placement.Options
	if k.bound {
		o = surviveRestart(k.vm, t.upHosts())
	}
	for _, h := range slices.Backward(k.hosts) { // the one with the most room first
		t.probes++
		if !t.failed[h] && t.room(k, h, o) {
			return true
		}
	}
	return false
}

// lack adds up what VMs of one row, so many of each kind, need of one resource; then it
// counts the VMs that need at least a unit. It stops at what there is too little of.
func (t *failoverTrial) lack(units []int, count []int64, row, r int) (unit, need, have int64) {
	of := resources[r].of
	for n, vms := range count {
		if t.kinds[n].row == row {
			need += vms * of(t.kinds[n].size)
		}
	}
	if have = t.supplied(units, demand{row, r, 0}); need > have {
		return 0, need, have
	}
	for n, vms := range count {
		if unit = of(t.kinds[n].size); vms == 0 || unit <= 0 || t.kinds[n].row != row {
			continue
		}
		need = 0
		for other, vms := range count {
			if t.kinds[other].row == row && of(t.kinds[other].size) >= unit {
				need += vms
			}
		}
		if have = t.supplied(units, demand{row, r, unit}); need > have {
			return unit, need, have
		}
	}
	return 0, 0, 0
}

// A demand is for pieces of a resource on the hosts of a row.
type demand struct {
	row, resource int
	unit          int64 // 0: its sum
}

// supplied returns what there is of a demand without the units.
func (t *failoverTrial) supplied(units []int, d demand) int64 {
	all, known := t.supply[d]
	if !known {
		for h := range t.hosts {
			all += t.pieces(h, d)
		}
		t.supply[d] = all
	}
	for _, u := range units {
		for _, h := range t.units[u] {
			all -= t.pieces(h, d)
		}
	}
	return all
}

func (t *failoverTrial) pieces(h int, d demand) int64 {
	if !t.rows[d.row][h] || t.unitOf[h] < 0 {
		return 0
	}
	return max(0, resources[d.resource].of(t.free[h])) / max(1, d.unit)
}

func (t *failoverTrial) noHost(units []int, vm int) *Counterexample {
	standing, k := t.upHosts(), t.kinds[t.kindOf[vm]].vm
	c := &Counterexample{Why: NoHost, Failed: t.names(units), VMs: t.ids([]int{vm}),
		Counts: []OutcomeCount{}}
	for _, n := range placement.CountRefusals(t.rules, k, standing, surviveRestart(k, standing)) {
		c.Counts = append(c.Counts, OutcomeCount(n))
	}
	return c
}

// exhausted says that a search has tried everything.
func (t *failoverTrial) exhausted(units []int, out []int) *Counterexample {
	c := &Counterexample{Why: allTried, Failed: t.names(units), Counts: []OutcomeCount{}}
	type seat struct {
		vm, host int
		before   placement.Host
	}
	var seats []seat
	var left []int
	for _, vm := range out {
		k := &t.kinds[t.kindOf[vm]]
		o := surviveRestart(k.vm, t.upHosts())
		at := slices.IndexFunc(k.hosts, func(h int) bool { return !t.failed[h] && t.room(k, h, o) })
		if at < 0 {
			left = append(left, vm)
			continue
		}
		seats = append(seats, seat{vm, k.hosts[at], t.put(vm, k.hosts[at])})
	}
	for _, s := range slices.Backward(seats) {
		t.take(s.vm, s.host, s.before)
	}
	c.VMs = t.ids(left)
	return c
}

func (t *failoverTrial) names(units []int) []hypervisor.HostName {
	names := []hypervisor.HostName{}
	for _, u := range units {
		for _, h := range t.units[u] {
			names = append(names, t.hosts[h].Name)
		}
	}
	return names
}

func (t *failoverTrial) ids(vms []int) []hypervisor.VMID {
	ids := make([]hypervisor.VMID, len(vms))
	for i, vm := range vms {
		ids[i] = t.fleet.VMs[vm].ID
	}
	return ids
}

// Verify checks a counterexample with nothing but the fleet and placement's conditions,
// and returns what is wrong with it. What only says that a search was [allTried] it
// checks as far as the names go.
func (c *Counterexample) Verify(f *Fleet) error {
	var left []placement.Host
	for i := range f.Hosts {
		if h := &f.Hosts[i]; !slices.Contains(c.Failed, h.Name) && !h.Down {
			left = append(left, *h)
		}
	}
	need, have := int64(0), int64(0)
	takers := map[hypervisor.HostName]*placement.Host{}
	for _, id := range c.VMs {
		at, ok := f.VMAt(id)
		if !ok || !slices.Contains(c.Failed, f.VMs[at].Home) {
			return fmt.Errorf("%s is not on a host that fails", id)
		}
		vm := &f.VMs[at].VM
		amount, err := c.amount(vm)
		if err != nil {
			return err
		}
		need += amount
		c.takers(f, vm, left, takers)
	}
	if c.Why == NoHost && len(takers) > 0 {
		return fmt.Errorf("%s would take %s", humanize.Count(len(takers), "host"), c.VMs[0])
	}
	if c.Why != TooLittleFree {
		return nil
	}
	for _, h := range takers {
		free := map[string]int64{"memory": int64(h.FreeMemory()), "cpus": int64(h.FreeCPUs())}
		piece := max(1, c.Unit)
		have += max(0, free[c.Resource]) / piece
	}
	if need <= have {
		return fmt.Errorf("the VMs need %d of %s, and there are %d", need, c.Resource, have)
	}
	return nil
}

// amount returns what vm counts for.
func (c *Counterexample) amount(vm *placement.VM) (int64, error) {
	n := map[string]int64{"memory": int64(vm.Demand()), "cpus": int64(vm.DemandCPUs())}[c.Resource]
	switch {
	case c.Unit == 0:
		return n, nil
	case n < c.Unit:
		return 0, fmt.Errorf("%s needs %d of %s, less than %d", vm.ID, n, c.Resource, c.Unit)
	}
	return 1, nil
}

// takers adds the hosts that take vm.
func (c *Counterexample) takers(f *Fleet, vm *placement.VM, left []placement.Host,
	into map[hypervisor.HostName]*placement.Host) {
	o := surviveRestart(vm, left)
	for i := range left {
		if placement.FitsAll(f.Rules(), vm, &left[i], o) {
			into[left[i].Name] = &left[i]
		}
	}
}
