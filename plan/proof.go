package plan

import (
	"math/bits"

	"github.com/godwit-vm/godwit/migration/placement"
)

// Counting shows that there is room without looking for it. A class is kinds of VMs of
// about one size that the same hosts take; its size is at least that of each. A host has
// so many slots of a class as VMs of its size fit. A VM that comes to a host takes away
// at most the slots that it covers. While slots of its class are left, a VM finds room;
// so all do, wherever each is put, and in whatever order hosts fail, if the slots on
// hosts that do not fail are at least those that all VMs on hosts that fail can cover.
//
// A VM that may not be with others finds room while there are slots on one more host than
// those others can be on.

const (
	mostClasses = 64
	// plenty is more slots, or VMs, than there are.
	plenty = 1 << 40
)

// A class is kinds of VMs that are counted together.
type class struct {
	size
	hosts    []int
	blockers int  // hosts that may refuse it because of the VMs there
	unproven bool // its rules are not only about room and blockers
}

// classify sorts kinds into classes.
func (t *failoverTrial) classify() {
	type key struct {
		row, magnitude, cpus, blockers int
		unproven                       bool
	}
	known := map[key]int{}
	members := membersOf(t.fleet)
	for n := range t.kinds {
		k := &t.kinds[n]
		blockers, unproven := t.blockers(k, members)
		at := key{k.row, bits.Len64(uint64(k.memory)), bits.Len64(uint64(k.cpus)), blockers,
			unproven}
		c, ok := known[at]
		if !ok {
			c = len(t.classes)
			known[at] = c
			t.classes = append(t.classes, class{hosts: k.hosts, blockers: blockers,
				unproven: unproven})
		}
		k.class = c
		into := &t.classes[c].size
		into.memory, into.cpus = max(into.memory, k.memory), max(into.cpus, k.cpus)
	}
}

// blockers returns how many hosts may refuse VMs of a kind because of the VMs there, and
// whether something else may, too.
func (t *failoverTrial) blockers(k *kind, members map[string]int) (n int, unproven bool) {
	c := &k.vm.Constraints
	for h := range t.hosts {
		if f := t.hosts[h].Facts; f != nil && f.MaxVMs > 0 {
			return 0, true
		}
	}
	for _, g := range c.Apart {
		n += members[g]
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		switch {
		case g.Policy == placement.AntiAffinity && g.Domain == "":
			n += members[g.Group]
		case g.Policy == placement.AntiAffinity || g.Policy == placement.Affinity:
			unproven = true
		}
	}
	unproven = unproven || len(c.With) > 0 || k.vm.Disk > 0 || c.Topology != nil ||
		len(c.Devices) > 0
	return n + len(c.Without), unproven
}

// membersOf counts the VMs of each group.
func membersOf(f *Fleet) map[string]int {
	members := map[string]int{}
	for i := range f.VMs {
		c := &f.VMs[i].Constraints
		for _, g := range c.Apart {
			members[g]++
		}
		for _, g := range c.Groups {
			members[g.Group]++
		}
	}
	return members
}

// slots returns how many VMs of size d fit into s, whatever else they ask for.
func (s size) slots(d size) int64 {
	n := int64(plenty)
	if d.memory > 0 {
		n = min(n, s.memory/d.memory)
	}
	if d.cpus > 0 {
		n = min(n, s.cpus/d.cpus)
	}
	return max(0, n)
}

// covers returns how many slots of size d a VM of size s takes away at most.
func (s size) covers(d size) int64 {
	n := int64(0)
	if d.memory > 0 {
		n = (s.memory + d.memory - 1) / d.memory
	}
	if d.cpus > 0 {
		n = max(n, (s.cpus+d.cpus-1)/d.cpus)
	}
	return n
}

// A count is what counting says about a state of the trial.
type count struct {
	classes int
	lost    [][]int64 // of unit and class: slots that are lost when it fails
	has     [][]bool  // VMs of the class are on it
	most    []int64   // the largest of lost, by class
	slots   []int64   // by class
}

// count counts the slots of all hosts that have not failed; nil when there are too many
// classes.
func (t *failoverTrial) count() *count {
	if len(t.classes) > mostClasses {
		return nil
	}
	c := &count{classes: len(t.classes), lost: make([][]int64, len(t.units)),
		has: make([][]bool, len(t.units)), most: make([]int64, len(t.classes)),
		slots: make([]int64, len(t.classes))}
	for u := range t.units {
		c.lost[u], c.has[u] = make([]int64, c.classes), make([]bool, c.classes)
		t.countVMs(u, c)
	}
	for n := range t.classes {
		k, widest := &t.classes[n], int64(0)
		for _, h := range k.hosts {
			if t.failed[h] {
				continue
			}
			slots := t.free[h].slots(k.size)
			c.slots[n] += slots
			c.lost[t.unitOf[h]][n] += slots
			widest = max(widest, slots)
		}
		c.finish(t, n, widest)
	}
	return c
}

// finish takes in what else is known of a class, of which no host has more slots than widest.
func (c *count) finish(t *failoverTrial, n int, widest int64) {
	k := &t.classes[n]
	c.slots[n] -= int64(k.blockers) * widest
	for u := range t.units {
		if k.unproven && c.has[u][n] {
			c.lost[u][n] = plenty
		}
		c.most[n] = max(c.most[n], c.lost[u][n])
	}
}

// countVMs counts the slots that the VMs on a unit can cover.
func (t *failoverTrial) countVMs(u int, c *count) {
	per := make([]int64, c.classes)
	for _, h := range t.units[u] {
		if t.failed[h] {
			continue
		}
		for _, vm := range t.on[h] {
			per[t.kinds[t.kindOf[vm]].class]++
		}
	}
	for n, vms := range per {
		if vms == 0 {
			continue
		}
		c.has[u][n] = true
		t.covered(c.lost[u], n, vms)
	}
}

// covered adds the slots of each class that so many VMs of one cover.
func (t *failoverTrial) covered(lost []int64, from int, vms int64) {
	if t.covers == nil {
		t.covers = make([][]int64, len(t.classes))
		for from := range t.classes {
			for to := range t.classes {
				t.covers[from] = append(t.covers[from], t.classes[from].covers(t.classes[to].size))
			}
		}
	}
	for to, slots := range t.covers[from] {
		lost[to] += vms * slots
	}
}

// safe reports whether some failures, and then any more, leave room for certain.
func (c *count) safe(units []int, more int) bool {
	if c == nil {
		return false
	}
	for n := range c.classes {
		lost, concerned := int64(more)*c.most[n], more > 0
		for _, u := range units {
			lost += c.lost[u][n]
			concerned = concerned || c.has[u][n]
		}
		if concerned && lost > c.slots[n] {
			return false
		}
	}
	return true
}
