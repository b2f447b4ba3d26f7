package plan

import (
	"cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Weight is weight.
func (v *VM) Weight() int { return v.weight() }

// Weigh is weigh.
func (f *Fleet) Weigh(ids []hypervisor.VMID) int { return f.weigh(ids) }

// MaintenanceUnbounded is Maintenance without the bound on batches.
func MaintenanceUnbounded(r *Request) MaintenancePlan {
	all := *r
	all.unbounded = true
	return Maintenance(&all)
}

// Emptied empties the first hosts of a request as a batch does, as far as that goes. Of each VM on the way it
// returns the host that it goes to and the one that a look at all hosts finds; and what the check of
// failures says in the end, by the assignment and by a fleet that is written anew.
func Emptied(r *Request, hosts int, again, full bool) (found, want []int, by, anew FailoverResult) {
	b, m := newAssignment(r.Fleet, binding(r.Fleet)), manner{again, full}
	p := newPlanner(r, b, 1)
	batch := p.waiting[:hosts]
	for _, h := range batch {
		b.hosts[h].Cordoned = true
	}
	takers := p.takers(b, m)
	for _, vm := range b.leavers(batch) {
		target := takers.target(vm)
		found, want = append(found, target), append(want, p.lookAtAll(b, vm, m))
		if target != nowhere && b.move(vm, target) {
			takers.sink(target)
		}
	}
	if q, w := p.question(b.hostsWithout(batch)), p.question(b.without(batch)); r.Keep > 0 && w.Validate() == nil {
		q.assignment = b
		by, anew = Failover(q), Failover(w)
	}
	return found, want, by, anew
}

// lookAtAll returns the best host for a VM that must leave.
func (p *maintenancePlanner) lookAtAll(b *assignment, vm int, m manner) int {
	v, best := &b.fleet.VMs[vm], nowhere
	if v.Pinned != "" {
		return nowhere
	}
	q := b.ask(vm)
	cost := func(h int) (rank int, free hypervisor.Bytes) {
		if b.full(h, v, p.fill) {
			rank = 2
		}
		if p.waits[h] {
			rank++
		}
		return rank, b.hosts[h].FreeMemory()
	}
	for h := range b.hosts {
		rank, free := cost(h)
		if b.hosts[h].Cordoned || p.waits[h] && !m.again || rank >= 2 && !m.full || !q.fits(h) {
			continue
		}
		if best != nowhere {
			if r, f := cost(best); cmp.Or(cmp.Compare(r, rank), cmp.Compare(free, f)) <= 0 {
				continue
			}
		}
		best = h
	}
	return best
}
