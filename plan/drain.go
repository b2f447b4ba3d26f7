package plan

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Answer is a plan for emptying hosts. What it counts are VMs: each member of a group that one
// stands for.
type DrainPlan struct {
	// Waves are the moves. They empty the hosts when nothing is Left.
	Waves []Wave
	// Least is how many moves any plan has at least that takes as many VMs off the hosts as
	// may be possible: one for each that is not proven to have to stay.
	Least int
	// Fewest says that no plan that takes as many VMs off the hosts has fewer moves.
	Fewest bool
	// Left are the VMs that stay on the hosts, by ID.
	Left []hypervisor.VMID
	// Cannot are those of Left that no plan takes off the hosts, by ID: for each there is a proof,
	// or no other can leave either. The others of Left are left behind: some plan takes them
	// off, and leaves others.
	Cannot []hypervisor.VMID
	// FewestLeft says that no plan leaves fewer. Without it the search was given up, and
	// MustStay is how many of them have to stay at least.
	FewestLeft bool
	MustStay   int
	// Proof is why not all can leave; nil with Left is that it is not known: the search
	// was given up. Further are more proofs, of others that are left.
	Proof   *Certificate
	Further []Certificate
}

// Drain plans how the hosts are emptied, or how as few VMs as possible are left there: exactly
// where all arrangements can be looked at, or where a bound says that no fewer can be; else with
// the best that was found. Names that the fleet does not have are ignored.
func Drain(f *Fleet, hosts []hypervisor.HostName) DrainPlan {
	p := begin(f, hosts)
	best := p.best(0)
	proofs, stuck := p.stuck(best.left)
	p.hopeless = len(stuck) > 0
	remain := func(vm int) bool { return slices.Contains(stuck, vm) }
	p.leavers = slices.DeleteFunc(p.leavers, remain)
	best.left = slices.DeleteFunc(best.left, remain)
	a := DrainPlan{}
	if len(best.left) > 0 {
		c, least := p.short(best.left)
		if c != nil {
			proofs = append(proofs, *c)
		}
		best = p.improve(p.exchange(p.best(deepest), least), least, &a)
		if len(best.left) > 0 && c == nil && a.FewestLeft && !p.hopeless && p.states > 0 {
			proofs = append(proofs, Certificate{Kind: Exhausted, States: p.states})
		}
	} else {
		a.FewestLeft = true
	}
	if a.FewestLeft {
		a.MustStay = p.weight(best.left)
	}
	a.Least = p.weight(p.leavers) - a.MustStay
	a.Fewest = a.Fewest || p.cost(best.moves) == p.weight(p.leavers)-p.weight(best.left)
	if len(proofs) > 0 {
		a.Proof, a.Further = &proofs[0], proofs[1:]
	}
	a.MustStay += p.weight(stuck)
	cannot := slices.Clone(stuck)
	for _, vm := range best.left {
		if p.never[vm] || a.FewestLeft && len(best.left) == len(p.leavers) {
			cannot = append(cannot, vm)
		}
	}
	a.Cannot, a.Left = p.ids(cannot), p.ids(slices.Concat(stuck, best.left))
	a.Waves, _ = Waves(p.start, best.moves)
	return a
}

// ids returns the names of VMs, in order.
func (p *planner) ids(vms []int) (all []hypervisor.VMID) {
	for _, vm := range vms {
		all = append(all, p.fleet.VMs[vm].ID)
	}
	slices.Sort(all)
	return all
}

// improve looks for a plan that leaves fewer, and among those for one with the fewest moves, or
// for a proof that there is none. So many have to stay at least.
func (p *planner) improve(best attempt, least int, a *DrainPlan) attempt {
	a.MustStay = least
	if a.FewestLeft = p.weight(best.left) == least; a.FewestLeft &&
		p.cost(best.moves) == p.weight(p.leavers)-least {
		return best
	}
	empty := len(best.left) == 0
	found, ended := p.exhaust(p.cost(best.moves), empty)
	switch {
	case !ended: // what was found on the way may be better all the same
		if found != nil && p.better(*found, best) {
			best = *found
			a.FewestLeft = p.weight(best.left) == least
		}
	case found == nil: // no plan has fewer moves
		a.Fewest = true
	default:
		best, a.Fewest, a.FewestLeft = *found, true, true
	}
	return best
}

// A planner plans for one fleet.
type planner struct {
	fleet   *Fleet
	start   *State // no VM enters the hosts to be emptied
	drained []bool
	leavers []int // VMs to leave, those hardest to place first
	// hopeless: some VMs cannot leave, so that the hosts are not empty in any case.
	hopeless bool
	tries    int          // how many more questions may be asked when others make room
	states   int          // how many arrangements there are, when all were looked at in vain
	never    map[int]bool // VMs that are on the hosts in all of them
}

func begin(f *Fleet, hosts []hypervisor.HostName) *planner {
	p := &planner{fleet: f, start: Begin(f), drained: make([]bool, len(f.Hosts)),
		tries: 300_000}
	for _, name := range hosts {
		at, ok := f.HostAt(name)
		if !ok || p.drained[at] {
			continue
		}
		p.drained[at] = true
		p.start.Cordon(at, true)
		p.leavers = append(p.leavers, p.start.on(at)...)
	}
	slices.SortFunc(p.leavers, p.harder)
	return p
}

// harder orders VMs, hardest to place first: those with conditions, then the largest.
func (p *planner) harder(a, b int) int {
	x, y := &p.fleet.VMs[a], &p.fleet.VMs[b]
	conditions := func(v *VM) int {
		c := &v.Constraints
		return len(c.Selector) + len(c.Affinity) + len(c.Apart) + len(c.Groups) + len(c.Zones) +
			len(c.With) + len(c.Without) + len(c.Devices) + len(c.Networks)
	}
	return cmp.Or(
		cmp.Compare(min(1, conditions(y)), min(1, conditions(x))),
		cmp.Compare(y.Demand(), x.Demand()),
		cmp.Compare(y.DemandCPUs(), x.DemandCPUs()),
		cmp.Compare(a, b),
	)
}

// An attempt is what one way of planning came to.
type attempt struct {
	moves []Move
	left  []int
}

// better reports whether a leaves fewer VMs than b, or as many with fewer moves.
func (p *planner) better(a, b attempt) bool {
	return cmp.Or(cmp.Compare(p.weight(a.left), p.weight(b.left)),
		cmp.Compare(p.cost(a.moves), p.cost(b.moves))) < 0
}

// weight returns how many VMs some are, with all members of groups.
func (p *planner) weight(vms []int) (n int) {
	for _, vm := range vms {
		n += p.fleet.VMs[vm].weight()
	}
	return n
}

// cost returns how many moves some are, when each member of a group moves.
func (p *planner) cost(moves []Move) (n int) {
	for i := range moves {
		vm, _ := p.fleet.VMAt(moves[i].VM)
		n += p.fleet.VMs[vm].weight()
	}
	return n
}

// best tries ways of planning until one moves no VM twice and no other VM. Up to depth
// others make room for a VM.
func (p *planner) best(depth int) attempt {
	orders := [][]int{p.leavers}
	if depth > 0 {
		orders = append(orders, p.easiest(memory), p.easiest(processors))
	}
	var best attempt
	for i, order := range orders {
		for j, prefer := range []preference{spread, tight} {
			a := p.try(order, prefer, depth)
			if i+j == 0 || p.better(a, best) {
				best = a
			}
			if len(best.left) == 0 && len(best.moves) == len(p.leavers) {
				return best
			}
		}
	}
	return best
}

// memory and processors are what a VM may have little of: of a group each member.
func memory(v *VM) int64     { return int64(v.Demand()) / int64(v.weight()) }
func processors(v *VM) int64 { return int64(v.DemandCPUs()) / int64(v.weight()) }

// easiest returns the VMs to leave, first those that need least of something: of small ones more
// find room.
func (p *planner) easiest(of func(*VM) int64) []int {
	return slices.SortedStableFunc(slices.Values(p.leavers), func(a, b int) int {
		return cmp.Compare(of(&p.fleet.VMs[a]), of(&p.fleet.VMs[b]))
	})
}

// Bounds of the search by exchange.
const (
	mostExchanges = 60
	exchangeTries = 200_000 // questions, together
)

// exchange lets one after another of those that leave come last, so that others take its place,
// as long as that leaves fewer and more than least are left.
func (p *planner) exchange(best attempt, least int) attempt {
	p.tries = exchangeTries
	for n := 0; n < mostExchanges && n < len(p.leavers); n++ {
		if p.weight(best.left) <= least || p.tries <= 0 {
			break
		}
		last := p.leavers[n]
		order := slices.DeleteFunc(p.easiest(memory), func(vm int) bool { return vm == last })
		if a := p.try(append(order, last), tight, deepest); p.better(a, best) {
			best = a
		}
	}
	return best
}

// try places the VMs one after another, in an order; those that find no host are asked again as
// long as others find one, and then others make room for them.
func (p *planner) try(order []int, prefer preference, deepest int) attempt {
	w := work{planner: p, s: p.start.Clone(), prefer: prefer,
		arriving: make([]hypervisor.Bytes, len(p.fleet.Hosts))}
	left := slices.Clone(order)
	for depth := 0; depth <= deepest && len(left) > 0; {
		before := len(left)
		left = slices.DeleteFunc(left, func(vm int) bool { return w.place(vm, depth, nowhere) })
		if len(left) == before {
			depth++
		} else {
			depth = 0
		}
	}
	return attempt{p.shorten(w.moves), left}
}
