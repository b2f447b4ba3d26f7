package drain

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/plan"
)

// An Answer is a plan for emptying hosts.
type Answer struct {
	// Waves are the moves. They empty the hosts when nothing is Left.
	Waves []plan.Wave
	// Least is how many moves any such plan has at least: one for each VM that is not
	// proven to be unable to leave.
	Least int
	// Fewest says that no plan that takes as many VMs off the hosts has fewer moves.
	Fewest bool
	// Left are the VMs that stay on the hosts, by ID.
	Left []hypervisor.VMID
	// Proof is why not all can leave; nil with Left is that nobody knows: the search
	// was given up. Further are more proofs, of others that are left.
	Proof   *plan.Certificate
	Further []plan.Certificate
}

// Plan plans how the hosts are emptied. Names that the fleet does not have are
// ignored.
func Plan(f *plan.Fleet, hosts []hypervisor.HostName) Answer {
	p := begin(f, hosts)
	best := p.best(0)
	proofs, stuck := p.stuck(best.left)
	p.hopeless = len(stuck) > 0
	remain := func(vm int) bool { return slices.Contains(stuck, vm) }
	p.leavers = slices.DeleteFunc(p.leavers, remain)
	best.left = slices.DeleteFunc(best.left, remain)
	a := Answer{Least: len(p.leavers)}
	if len(best.left) > 0 {
		if c := p.short(best.left); c != nil {
			proofs = append(proofs, *c)
		} else {
			best = p.improve(p.best(deepest), &a)
		}
	}
	a.Fewest = a.Fewest || len(best.left) == 0 && len(best.moves) == a.Least
	if a.Proof == nil && len(proofs) > 0 {
		a.Proof, a.Further = &proofs[0], proofs[1:]
	}
	for _, vm := range slices.Concat(stuck, best.left) {
		a.Left = append(a.Left, f.VMs[vm].ID)
	}
	slices.Sort(a.Left)
	a.Waves, _ = plan.Waves(p.start, best.moves)
	return a
}

// improve looks for a plan with the fewest moves, or for a proof that there is none.
func (p *planner) improve(best attempt, a *Answer) attempt {
	empty := len(best.left) == 0
	if empty && len(best.moves) == a.Least {
		return best
	}
	found, states, ended := p.exhaust(len(best.moves), empty)
	switch {
	case found != nil:
		best, a.Fewest = attempt{moves: found}, true
	case ended && empty:
		a.Fewest = true
	case ended && !p.hopeless:
		a.Proof = &plan.Certificate{Kind: plan.Exhausted, States: states}
	}
	return best
}

// A planner plans for one fleet.
type planner struct {
	fleet   *plan.Fleet
	start   *plan.State // nobody enters the hosts to be emptied
	drained []bool
	leavers []int // VMs to leave, those hardest to place first
	// hopeless: some VMs cannot leave, so that the hosts are not empty in any case.
	hopeless bool
	tries    int // how many more questions may be asked when others make room
}

func begin(f *plan.Fleet, hosts []hypervisor.HostName) *planner {
	p := &planner{fleet: f, start: plan.Begin(f), drained: make([]bool, len(f.Hosts)),
		tries: 300_000}
	for _, name := range hosts {
		at, ok := f.HostAt(name)
		if !ok || p.drained[at] {
			continue
		}
		p.drained[at] = true
		p.start.Shut(at, true)
		p.leavers = append(p.leavers, p.start.On(at)...)
	}
	slices.SortFunc(p.leavers, p.harder)
	return p
}

// harder orders VMs, hardest to place first: those with conditions, then the largest.
func (p *planner) harder(a, b int) int {
	x, y := &p.fleet.VMs[a], &p.fleet.VMs[b]
	conditions := func(v *plan.VM) int {
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
	moves []plan.Move
	left  []int
}

// better reports whether a leaves fewer VMs than b, or as many with fewer moves.
func (a attempt) better(b attempt) bool {
	return cmp.Or(cmp.Compare(len(a.left), len(b.left)),
		cmp.Compare(len(a.moves), len(b.moves))) < 0
}

// best tries ways of planning until one moves nobody twice and nobody else. Up to depth
// others make room for a VM.
func (p *planner) best(depth int) attempt {
	var best attempt
	for i, prefer := range []preference{spread, tight} {
		a := p.try(prefer, depth)
		if i == 0 || a.better(best) {
			best = a
		}
		if len(best.left) == 0 && len(best.moves) == len(p.leavers) {
			break
		}
	}
	return best
}

// try places the VMs one after another; those that find no host are asked again as
// long as others find one, and then others make room for them.
func (p *planner) try(prefer preference, deepest int) attempt {
	w := work{planner: p, s: p.start.Clone(), prefer: prefer,
		arriving: make([]hypervisor.Bytes, len(p.fleet.Hosts))}
	left := slices.Clone(p.leavers)
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
