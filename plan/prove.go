package plan

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// mostPairs is for how many pairs of a VM and a host it is worked out whether they
// could come together at all. Beyond it proofs count the VMs to leave only.
const mostPairs = 20_000_000

// A prover looks for a proof that some VMs cannot leave.
type prover struct {
	*planner
	alone []placement.Host // with those only that cannot move
	at    [][]bool         // where a VM could be at the end, by VM; nil is not counted
	found int              // the host that none found last
}

// A likeness is all that the hosts on which a VM could be depend on, where it asks for nothing
// but room. VMs that are alike share what is found for them: there may be many of each.
type likeness struct {
	size     placement.Size
	home     int
	restarts bool
}

// stuck returns those of the VMs that can never move, with a proof each.
func (p *planner) stuck(left []int) (proofs []Certificate, stuck []int) {
	if len(left) == 0 {
		return nil, nil
	}
	x := prover{planner: p, alone: p.without(nil)}
	for _, vm := range left {
		c := Certificate{Kind: Stuck, VMs: x.names([]int{vm}),
			Pinned: p.fleet.VMs[vm].Pinned, Kept: p.fleet.VMs[vm].Kept}
		keep := []int{vm}
		if c.Pinned == "" && !x.none(keep) {
			if keep = x.circle(vm); len(keep) == 1 || !x.none(keep) {
				continue
			}
			c.VMs = x.names(keep)
		}
		if c.Pinned == "" {
			c.Refusals = x.refusals(vm, keep)
		}
		proofs, stuck = append(proofs, c), append(stuck, vm)
	}
	return proofs, stuck
}

// mostSets is of how many sets of hosts it is worked out how many VMs have to stay.
const mostSets = 100

// short returns a proof that the VMs and others need more than there is, of several one by which
// the most have to stay, and how many these are; nil is that none was found.
func (p *planner) short(left []int) (best *Certificate, least int) {
	x := prover{planner: p, alone: p.without(nil)}
	x.options()
	tried := map[*bool]bool{}
	keep := func(all []Certificate) {
		for i := range all {
			if n := x.stay(&all[i]); n > least {
				best, least = &all[i], n
			}
		}
	}
	for _, vm := range left {
		if best != nil && len(tried) >= mostSets {
			break
		}
		at := x.at[vm]
		if len(at) == 0 || tried[&at[0]] {
			continue
		}
		tried[&at[0]] = true
		keep(x.among(at, left))
	}
	everywhere := make([]bool, len(x.alone))
	for host := range everywhere {
		everywhere[host] = !x.drained[host]
	}
	keep(x.among(everywhere, left))
	return best, least
}

// stay returns how many of the VMs of a proof have to stay on the hosts to be emptied at least,
// besides those that cannot move: so many of the largest as make the others fit. Of a group each
// member counts, and makes its share of room.
func (x *prover) stay(c *Certificate) int {
	var stays []staying
	need := c.Need
	for _, vm := range x.fleet.byID(c.VMs) {
		v := &x.fleet.VMs[vm]
		amount, _ := c.Amount(&v.VM)
		switch {
		case !x.drained[x.start.Home(vm)]:
		case slices.Contains(x.leavers, vm):
			stays = append(stays, staying{amount, int64(v.weight())})
		default:
			need -= amount
		}
	}
	slices.SortFunc(stays, func(a, b staying) int { return cmp.Compare(b.amount*a.members, a.amount*b.members) })
	n := int64(0)
	for _, s := range stays {
		lacks := need - c.Have
		if lacks <= 0 {
			break
		}
		if s.amount > lacks { // a part of it is enough
			return int(n + (lacks*s.members+s.amount-1)/s.amount)
		}
		n, need = n+s.members, need-s.amount
	}
	return int(n)
}

// A staying is what a VM, or a group of so many members, makes room for when it stays.
type staying struct{ amount, members int64 }

// without returns the hosts with no VM there but those to keep and those that
// cannot move.
func (p *planner) without(keep []int) []placement.Host {
	hosts := make([]placement.Host, len(p.fleet.Hosts))
	for i := range hosts {
		hosts[i] = *p.start.Host(i)
	}
	for vm := range p.fleet.VMs {
		v, at := &p.fleet.VMs[vm], p.start.Home(vm)
		if at < 0 || v.Pinned != "" || slices.Contains(keep, vm) {
			continue
		}
		hosts[at], _ = hosts[at].Without(&v.VM, false)
	}
	return hosts
}

// kept returns the hosts with no VM there but those to keep and those that cannot
// move. Whether one VM alone is where it is does not matter to where it can go.
func (x *prover) kept(keep []int) []placement.Host {
	if len(keep) == 1 {
		return x.alone
	}
	return x.without(keep)
}

// circle returns a VM and all those that it waits for, one through the other.
func (x *prover) circle(vm int) []int {
	all := []int{vm}
	for i := 0; i < len(all); i++ {
		v := &x.fleet.VMs[all[i]].VM
		if len(v.Constraints.With)+len(v.Constraints.Groups) == 0 {
			continue
		}
		for other := range x.fleet.VMs {
			o := &x.fleet.VMs[other]
			if o.Pinned == "" && DependsOn(v, &o.VM) && !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// none reports whether none of the VMs could move if all others were gone.
func (x *prover) none(keep []int) bool {
	hosts := x.kept(keep)
	for _, vm := range keep {
		takes := x.taker(vm, hosts, keep)
		for i := range hosts { // from where the last one was found
			if host := (x.found + i) % len(hosts); takes(host) {
				x.found = host
				return false
			}
		}
	}
	return true
}

// takers returns which hosts could take a VM.
func (x *prover) takers(vm int, hosts []placement.Host, keep []int) []bool {
	takes, could := make([]bool, len(hosts)), x.taker(vm, hosts, keep)
	for host := range hosts {
		takes[host] = could(host)
	}
	return takes
}

// taker reports whether a host could take a VM, whatever the VMs do that are not kept: a wish for
// the company of one of them does not count.
func (x *prover) taker(vm int, hosts []placement.Host, keep []int) func(host int) bool {
	if x.fleet.VMs[vm].Pinned != "" {
		return func(int) bool { return false }
	}
	v := x.relaxed(vm, keep)
	o := placement.Options{Source: v.Home}
	o.Move = v.compare(o.Source, hosts)
	rules := placement.Active(x.fleet.Rules(), &v.VM, o)
	return func(host int) bool { return placement.FitsAll(rules, &v.VM, &hosts[host], o) }
}

func (x *prover) relaxed(vm int, keep []int) VM {
	v := x.fleet.VMs[vm]
	c := &v.Constraints
	if len(c.With)+len(c.Groups) == 0 {
		return v
	}
	moves := func(other int) bool {
		return x.fleet.VMs[other].Pinned == "" && !slices.Contains(keep, other)
	}
	if slices.ContainsFunc(x.fleet.byID(c.With), moves) {
		c.With = nil
	}
	c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(r placement.GroupRule) bool {
		if r.Policy != placement.Affinity {
			return false
		}
		for other := range x.fleet.VMs {
			if moves(other) && InGroup(&x.fleet.VMs[other].VM, r.Group) {
				return true
			}
		}
		return false
	})
	return v
}

// options works out where VMs could be at the end: where they are, unless that is to
// be emptied, and on hosts that could take them.
func (x *prover) options() {
	x.at = make([][]bool, len(x.fleet.VMs))
	counted := x.leavers
	if len(x.fleet.VMs)*len(x.fleet.Hosts) <= mostPairs {
		counted = nil
		for vm := range x.fleet.VMs {
			counted = append(counted, vm)
		}
	}
	known := map[likeness][]bool{}
	for _, vm := range counted {
		home := x.start.Home(vm)
		if home < 0 || x.fleet.VMs[vm].Pinned != "" {
			continue
		}
		v := &x.fleet.VMs[vm].VM
		alike, plain := likeness{placement.SizeOf(v), home, x.fleet.VMs[vm].Restarts}, !placement.Asks(&v.Constraints)
		at := known[alike]
		if at == nil || !plain {
			at = x.takers(vm, x.alone, nil)
			at[home] = !x.drained[home]
		}
		if x.at[vm] = at; plain {
			known[alike] = at
		}
	}
}

// among looks for something that the hosts have too little of for the VMs that could
// be on no others.
func (x *prover) among(hosts []bool, left []int) (proofs []Certificate) {
	var confined []int
	within := map[*bool]bool{} // of those who share where they could be
	for vm, at := range x.at {
		if len(at) == 0 {
			continue
		}
		is, known := within[&at[0]]
		if !known {
			is = isWithin(at, hosts)
			within[&at[0]] = is
		}
		if is {
			confined = append(confined, vm)
		}
	}
	for _, c := range x.measures(left) {
		if c.Kind = Short; x.exceeds(&c, confined, hosts) {
			for host := range hosts {
				if hosts[host] {
					c.Hosts = append(c.Hosts, x.alone[host].Name)
				}
			}
			proofs = append(proofs, c)
		}
	}
	return proofs
}

// isWithin reports whether each of the one is among the others.
func isWithin(these, others []bool) bool {
	for i := range these {
		if these[i] && !others[i] {
			return false
		}
	}
	return true
}

// measures returns what may be short for the VMs that are left.
func (x *prover) measures(left []int) []Certificate {
	all := []Certificate{{Resource: Memory}, {Resource: CPUs}}
	for _, vm := range left {
		v := &x.fleet.VMs[vm].VM
		all = append(all, Certificate{Resource: Memory, Unit: int64(v.Demand())},
			Certificate{Resource: CPUs, Unit: int64(v.DemandCPUs())})
		for _, group := range v.Constraints.Apart {
			all = append(all, Certificate{Resource: Places, Group: group})
		}
		for _, r := range v.Constraints.Groups {
			all = append(all, Certificate{Resource: Places, Group: r.Group})
		}
	}
	type measure struct {
		resource Resource
		unit     int64
		group    string
	}
	taken := map[measure]bool{}
	return slices.DeleteFunc(all, func(c Certificate) bool {
		m := measure{c.Resource, c.Unit, c.Group}
		again := taken[m]
		taken[m] = true
		return again
	})
}

// exceeds adds up what the VMs need and what the hosts have.
func (x *prover) exceeds(c *Certificate, confined []int, hosts []bool) bool {
	now := make([]int64, len(hosts))
	for _, vm := range confined {
		v := &x.fleet.VMs[vm]
		if amount, counts := c.Amount(&v.VM); counts {
			c.VMs = append(c.VMs, v.ID)
			c.Need += amount
			now[x.start.Home(vm)] += amount
		}
	}
	for host, counts := range hosts {
		if counts {
			c.Have += max(now[host], c.Room(&x.alone[host], x.fleet))
		}
	}
	return c.Need > c.Have
}

func (x *prover) names(vms []int) []hypervisor.VMID {
	var all []hypervisor.VMID
	for _, vm := range vms {
		all = append(all, x.fleet.VMs[vm].ID)
	}
	return all
}

// refusals says why no other host takes a VM.
func (x *prover) refusals(vm int, keep []int) []Refusal {
	v, hosts := x.relaxed(vm, keep), x.kept(keep)
	o := placement.Options{Source: v.Home}
	o.Move = v.compare(o.Source, hosts)
	var all []Refusal
	for host := range hosts {
		if hosts[host].Name == o.Source {
			continue
		}
		if why := placement.CheckAll(x.fleet.Rules(), &v.VM, &hosts[host], o); len(why) > 0 {
			all = append(all, Refusal{Host: hosts[host].Name, Why: why})
		}
	}
	return all
}
