package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// misses is how many hosts that stand in the way of a batch are left out of it.
const misses = 5

// trials is into how many parts the effort is divided: batches that are tried.
const trials = 20

// A planner plans batch after batch.
type maintenancePlanner struct {
	*Request
	first   int  // so many hosts at once may have VMs move that move again
	eager   bool // they may whenever that makes a larger batch
	fill    int
	b       *assignment
	waiting []int  // hosts to be serviced
	waits   []bool // of each host: it is one of waiting
	moves   []Move
	trials  []*trial
}

// A trial is a batch that is possible.
type trial struct {
	hosts []int
	moves []Move
	proof Proof
	fill  int
	after *assignment
}

func newPlanner(r *Request, b *assignment, first int) *maintenancePlanner {
	p := &maintenancePlanner{Request: r, first: first, fill: cmp.Or(r.Fill, DefaultFill), b: b,
		waits: make([]bool, len(r.Fleet.Hosts))}
	for _, name := range r.Hosts {
		at, _ := r.Fleet.HostAt(name)
		p.waiting = append(p.waiting, at)
		p.waits[at] = true
	}
	return p
}

// plan finds one batch after another, until none is left or nothing is possible.
func (p *maintenancePlanner) plan() {
	for len(p.waiting) > 0 {
		t := p.next()
		if t == nil {
			return
		}
		for _, h := range t.hosts {
			p.waits[h] = false
			t.after.hosts[h].Cordoned = p.Fleet.Hosts[h].Cordoned
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(h int) bool { return !p.waits[h] })
		p.moves = append(p.moves, t.moves...)
		p.trials, p.b = append(p.trials, t), t.after
	}
}

// A manner is how a batch may be emptied.
type manner struct {
	again bool // VMs may go to hosts that wait for service
	full  bool // hosts may become fuller than is wished
}

// next returns the next batch: where no VM needs to move again, if there is one and p is
// not eager; within the fill, if there is one; or of one host for which others make room.
func (p *maintenancePlanner) next() *trial {
	for _, full := range []bool{false, true} {
		t := p.largest(manner{full: full}, len(p.waiting))
		if t != nil && (!p.eager || len(t.hosts) == len(p.waiting)) {
			return t
		}
		if u := p.largest(manner{again: true, full: full}, p.first); t == nil ||
			u != nil && len(u.hosts) > len(t.hosts) {
			t = u
		}
		if t != nil {
			return t
		}
	}
	return p.single()
}

// largest returns the batch with the most hosts, at most so many, of those with the least
// on them. A host that cannot be emptied with the others is left for a later batch.
func (p *maintenancePlanner) largest(m manner, most int) *trial {
	if p.Together > 0 {
		most = min(most, p.Together)
	}
	candidates := slices.Clone(p.waiting)
	slices.SortFunc(candidates, func(x, y int) int {
		a, b := &p.b.hosts[x], &p.b.hosts[y]
		return cmp.Or(cmp.Compare(a.UsedMemory, b.UsedMemory), cmp.Compare(a.UsedCPUs, b.UsedCPUs),
			cmp.Compare(x, y))
	})
	var best *trial
	low, high, missed := 0, min(most, len(candidates)), 0
	for low < high {
		n := (low + high + 1) / 2
		if n > low+1 && p.lacks(candidates[:n], m) {
			high = n - 1
			continue
		}
		t, bad := p.try(candidates[:n], m)
		switch {
		case t != nil:
			best, low = t, n
		case n == low+1 && bad != nowhere && missed < misses:
			missed++
			candidates = slices.DeleteFunc(candidates, func(h int) bool { return h == bad })
			high = min(most, len(candidates))
		default:
			high = n - 1
		}
	}
	return best
}

// lacks reports whether the VMs on some hosts need more than all others have up to the fill, so that the
// hosts cannot be emptied together: to try that takes a hundred times as long.
func (p *maintenancePlanner) lacks(hosts []int, m manner) bool {
	if m.full || p.unbounded {
		return false // how full a host may be is then for its facts to say
	}
	var memory hypervisor.Bytes
	cpus := 0
	for _, h := range hosts {
		for _, vm := range p.b.on[h] {
			memory += p.Fleet.VMs[vm].Demand()
			cpus += p.Fleet.VMs[vm].DemandCPUs()
		}
	}
	memory, cpus = 100*memory, 100*cpus
	for h := range p.b.hosts {
		x := &p.b.hosts[h]
		if x.Cordoned || p.waits[h] && !m.again || slices.Contains(hosts, h) {
			continue
		}
		memory -= max(0, hypervisor.Bytes(p.fill)*x.Memory-100*x.UsedMemory)
		cpus -= max(0, p.fill*x.CPUs-100*x.UsedCPUs)
	}
	return memory > 0 || cpus > 0
}

// try empties hosts. Unless that is possible it names a host that cannot be emptied, or
// nowhere, if failures would not be survived.
func (p *maintenancePlanner) try(hosts []int, m manner) (t *trial, bad int) {
	b := p.b.clone()
	for _, h := range hosts {
		b.hosts[h].Cordoned = true
	}
	t = &trial{hosts: slices.Clone(hosts), after: b}
	takers := p.takers(b, m)
	for _, vm := range b.leavers(hosts) {
		from, target := b.home[vm], takers.target(vm)
		if target == nowhere {
			return nil, from
		}
		t.moves = append(t.moves, Move{VM: p.Fleet.VMs[vm].ID, Source: b.hosts[from].Name,
			Target: b.hosts[target].Name})
		if !b.move(vm, target) {
			return nil, from
		}
		takers.sink(target)
		t.fill = max(t.fill, b.percent(target))
	}
	var safe bool
	if t.proof, safe = p.safe(b, hosts); !safe {
		return nil, nowhere
	}
	return t, nowhere
}

// leavers returns the VMs on hosts, hardest to place first.
func (b *assignment) leavers(hosts []int) []int {
	var all []int
	for _, h := range hosts {
		all = append(all, b.on[h]...)
	}
	vms := b.fleet.VMs
	slices.SortFunc(all, func(x, y int) int {
		return cmp.Or(cmp.Compare(vms[y].Demand(), vms[x].Demand()),
			cmp.Compare(vms[y].DemandCPUs(), vms[x].DemandCPUs()), cmp.Compare(x, y))
	})
	return all
}

// full reports whether a host would be fuller with a VM more than is wished, in percent.
func (b *assignment) full(at int, v *VM, fill int) bool {
	h := &b.hosts[at]
	return 100*(h.UsedMemory+v.Demand()) > hypervisor.Bytes(fill)*h.Memory ||
		100*(h.UsedCPUs+v.DemandCPUs()) > fill*h.CPUs
}

// percent returns how full a host is.
func (b *assignment) percent(at int) int {
	h := &b.hosts[at]
	return max(share(int64(h.UsedMemory), int64(h.Memory)), share(int64(h.UsedCPUs), int64(h.CPUs)))
}

// share returns how many percent of all a part is, rounded up.
func share(part, all int64) int {
	if part <= 0 || all <= 0 {
		return 0
	}
	return int(100*float64(part)/float64(all) + 0.999999)
}

// safe reports whether the failures are survived while hosts are away, and how that was
// shown.
func (p *maintenancePlanner) safe(b *assignment, hosts []int) (Proof, bool) {
	if p.Keep == 0 {
		return "", true
	}
	q := p.question(b.hostsWithout(hosts))
	if q.Validate() != nil {
		return "", false // too few hosts are left
	}
	q.assignment = b
	q.Effort = max(1, cmp.Or(p.Effort, DefaultEffort)/trials)
	a := Failover(q)
	return a.Proof, a.Verdict == Yes
}

// single returns a batch of one host for which other VMs make room, too.
func (p *maintenancePlanner) single() *trial {
	now := after(p.Fleet, p.moves)
	for _, h := range p.waiting {
		if slices.ContainsFunc(p.b.on[h], func(vm int) bool { return now.VMs[vm].Pinned != "" }) {
			continue
		}
		t, a := p.alone(now, h)
		if len(a.Left) > 0 {
			continue
		}
		var safe bool
		if t.proof, safe = p.safe(t.after, t.hosts); safe {
			return t
		}
	}
	return nil
}

// alone empties one host as far as possible, by whatever moves that needs.
func (p *maintenancePlanner) alone(now *Fleet, h int) (*trial, DrainPlan) {
	shut := *now
	shut.Hosts = slices.Clone(now.Hosts)
	shut.Hosts[h].Cordoned = true
	a := Drain(&shut, []hypervisor.HostName{now.Hosts[h].Name})
	t := &trial{hosts: []int{h}, moves: slices.Concat(a.Waves...), after: p.b.clone()}
	for _, m := range t.moves {
		vm, _ := now.VMAt(m.VM)
		target, _ := now.HostAt(m.Target)
		t.after.move(vm, target)
		t.fill = max(t.fill, t.after.percent(target))
	}
	return t, a
}

// obstacle says why a host cannot be serviced, even alone.
func (p *maintenancePlanner) obstacle(now *Fleet, h int) Obstacle {
	t, a := p.alone(now, h)
	left := now.weigh(a.Left)
	o := Obstacle{Host: now.Hosts[h].Name, Left: append([]hypervisor.VMID{}, a.Left...),
		Cannot: a.Cannot, Proof: a.Proof, Moves: []Move{}}
	switch {
	case len(a.Left) > len(a.Cannot) && a.Proof != nil:
		o.Text = fmt.Sprintf("not all VMs can leave it, %d at least stay: %v", a.MustStay, a.Proof)
	case len(a.Left) > 0 && a.Proof != nil:
		o.Text = fmt.Sprintf("%s cannot leave it: %v", humanize.Count(left, "VM"), a.Proof)
	case len(a.Left) > 0:
		o.Text = fmt.Sprintf("for %s no room was found, and no proof that there is none",
			humanize.Count(left, "VM"))
	default:
		o.Moves = append(o.Moves, t.moves...)
		o.Text = fmt.Sprintf("without it, %s would not be survived for certain",
			humanize.Count(p.Keep, "failure"))
		if q := p.question(t.after.without(t.hosts)); q.Validate() == nil {
			b := Failover(q)
			if o.Failures = b.Counterexample; b.Verdict != No {
				o.Text += ": that was not shown, and more effort may show it"
			}
		}
	}
	return o
}
