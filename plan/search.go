package plan

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

const (
	// surviveShare is which part of the effort one set of failures may use up.
	surviveShare = 10
	// counting the slots of a host costs as much as so many probes.
	counting = 3
)

// answer answers for k failures, at least one.
func (t *failoverTrial) answer(k int) FailoverResult {
	a := FailoverResult{Failures: k, Units: len(t.units), Verdict: Yes, Proof: AnyPlacement}
	for h := range t.on {
		a.VMs += len(t.on[h])
	}
	t.probes, t.searched = 0, 0
	if c := t.count(); !c.safe(nil, k) {
		a.Verdict, a.Counterexample = t.play(k, c)
		if t.searched > 0 {
			a.Proof = SomePlacement
		}
	}
	if a.Verdict != Yes {
		a.Proof = ""
	}
	a.Searched, a.Probes = t.searched, t.probes
	return a
}

// play looks for a simple proof that some failures are too many, then for placements, then
// for failures that are too many together.
func (t *failoverTrial) play(k int, c *count) (FailoverOutcome, *Counterexample) {
	if v, why := t.sets(nil, k, c, t.refute); v == No {
		return No, why
	}
	t.limit = t.probes + (t.effort-t.probes)/3*2
	verdict := t.orders(k)
	if verdict == Yes {
		return Yes, nil
	}
	if v, why := t.sets(nil, k, c, t.exhaust); v == No {
		return No, why
	}
	if verdict == No {
		return No, &Counterexample{Why: Sequence, Failed: []hypervisor.HostName{},
			VMs: []hypervisor.VMID{}, Counts: []OutcomeCount{}}
	}
	return Open, nil
}

// A trier decides whether there is room after the failure of some units together.
type trier func(units, out []int) (FailoverOutcome, *Counterexample)

// sets asks about each set of failures that has the given units and so many more, with
// later numbers. Where all VMs have no room together, no order helps.
func (t *failoverTrial) sets(set []int, more int, c *count, try trier) (FailoverOutcome, *Counterexample) {
	if c.safe(set, more) {
		return Yes, nil
	}
	if more == 0 {
		return t.set(set, try)
	}
	if t.probes += len(t.units); t.probes > t.effort {
		return Open, nil
	}
	verdict, tried, next := Yes, map[int]bool{}, 0
	if len(set) > 0 {
		next = set[len(set)-1] + 1
	}
	for u := next; u <= len(t.units)-more; u++ {
		if len(set) == 0 && more == 1 && t.known(u, tried) {
			continue
		}
		v, why := t.sets(append(set, u), more-1, c, try)
		if v == No {
			return No, why
		}
		if v == Open {
			verdict = Open
		}
	}
	return verdict, nil
}

// set asks about one set.
func (t *failoverTrial) set(units []int, try trier) (FailoverOutcome, *Counterexample) {
	var out []int
	for _, u := range units {
		out = append(out, t.fail(u)...)
	}
	v, why := try(units, out)
	for _, u := range units {
		t.recover(u)
	}
	return v, why
}

// refute knows simple proofs that there is no room.
func (t *failoverTrial) refute(units, out []int) (FailoverOutcome, *Counterexample) {
	if why := t.short(units, out); why != nil {
		return No, why
	}
	return Open, nil
}

// exhaust tries every placement.
func (t *failoverTrial) exhaust(units, out []int) (FailoverOutcome, *Counterexample) {
	t.searched++
	t.limit = min(t.effort, t.probes+t.effort/surviveShare)
	t.inOrder(out)
	v := t.place(out, 0, 0, 0)
	if v == No {
		return No, t.exhausted(units, out)
	}
	return v, nil
}

// known reports whether a twin of a unit was tried, and notes that the unit is.
func (t *failoverTrial) known(u int, tried map[int]bool) bool {
	h := t.units[u][0]
	was := tried[t.twin[h]] && t.came[h] == 0
	if t.came[h] == 0 {
		tried[t.twin[h]] = true
	}
	return was
}

// orders plays the game: whichever unit fails, is there a placement after which so many
// failures less are survived?
func (t *failoverTrial) orders(left int) FailoverOutcome {
	if left == 0 {
		return Yes
	}
	if t.probes += counting * len(t.hosts); t.probes > t.limit {
		return Open
	}
	c := t.count()
	verdict, tried := Yes, map[int]bool{}
	for u := range t.units {
		if t.failed[t.units[u][0]] || c.safe([]int{u}, left-1) || t.known(u, tried) {
			continue
		}
		t.searched++
		out := t.fail(u)
		t.inOrder(out)
		v := t.place(out, 0, left-1, 0)
		t.recover(u)
		if v == No {
			return No
		}
		if v == Open {
			verdict = Open
		}
	}
	return verdict
}

// fail lets a unit fail, and returns the VMs that must be restarted.
func (t *failoverTrial) fail(u int) []int {
	var out []int
	for _, h := range t.units[u] {
		t.failed[h] = true
		out = append(out, t.on[h]...)
	}
	return out
}

func (t *failoverTrial) recover(u int) {
	for _, h := range t.units[u] {
		t.failed[h] = false
	}
}

// inOrder sorts VMs as they are placed.
func (t *failoverTrial) inOrder(vms []int) {
	slices.SortFunc(vms, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.kinds[t.kindOf[a]].rank, t.kinds[t.kindOf[b]].rank),
			cmp.Compare(a, b))
	})
}

// place finds room for the VMs of a list from i on, such that so many failures more are
// survived. Equal VMs go to hosts in the order of their kind: the first may go to any, the
// next ones from that host on.
func (t *failoverTrial) place(list []int, i, left, from int) FailoverOutcome {
	if i == len(list) {
		return t.orders(left)
	}
	if t.kinds[t.kindOf[list[i]]].social {
		return t.invite(list, i, left)
	}
	if i == 0 || t.kindOf[list[i-1]] != t.kindOf[list[i]] {
		from = 0
	}
	return t.seat(list, i, left, from)
}

// invite lets each of the VMs that ask for company be the next.
func (t *failoverTrial) invite(list []int, i, left int) FailoverOutcome {
	verdict, tried := No, map[int]bool{}
	for j := i; j < len(list) && verdict != Yes; j++ {
		if tried[t.kindOf[list[j]]] {
			continue
		}
		tried[t.kindOf[list[j]]] = true
		list[i], list[j] = list[j], list[i]
		if v := t.seat(list, i, left, 0); v != No {
			verdict = v // Open gives way to Yes only: the loop ends there
		}
		list[i], list[j] = list[j], list[i]
	}
	return verdict
}

// seat tries each host for the i-th VM.
func (t *failoverTrial) seat(list []int, i, left, from int) FailoverOutcome {
	k := &t.kinds[t.kindOf[list[i]]]
	var o placement.Options
	if k.bound {
		o = surviveRestart(k.vm, t.upHosts())
	}
	verdict := No
	var vain map[look]bool // what hosts looked like that led nowhere
	for n := range len(k.hosts) - from {
		at, h := k.choice(n, from, i, left)
		if t.probes++; t.probes > t.limit {
			return Open
		}
		if t.failed[h] || !t.room(k, h, o) || vain[t.look(h, left)] {
			continue
		}
		before := t.put(list[i], h)
		v := t.place(list, i+1, left, at)
		t.take(list[i], h, before)
		if v == Yes {
			return Yes
		}
		if v == Open {
			verdict = Open
		}
		if vain == nil {
			vain = map[look]bool{}
		}
		vain[t.look(h, left)] = true
	}
	return verdict
}

// choice returns the n-th host to try, and its position in an order in which those before
// from are left out. When nothing else will fail, the tightest hosts come first; otherwise
// the roomiest do, and equal VMs, here the i-th, are spread: from comes last.
func (k *kind) choice(n, from, i, left int) (at, host int) {
	all := len(k.hosts)
	if left == 0 {
		return from + n, k.hosts[from+n]
	}
	if first := 1; from == 0 {
		first += i % max(1, all/2)
		at = (n + first) % all
	} else {
		at = from + (n+first)%(all-from)
	}
	return at, k.hosts[all-1-at]
}

// A look is what matters of a host: of two that look alike, one is enough to be tried.
type look struct {
	host, may int
	free      size
}

// look returns what matters of a host. When more will fail, or rules look further, only
// twins are alike, as long as no VM came.
func (t *failoverTrial) look(h, left int) look {
	switch {
	case left == 0 && !t.bound:
		return look{-1, t.may[h], t.free[h]}
	case t.came[h] == 0:
		return look{host: t.twin[h]}
	}
	return look{host: len(t.hosts) + h}
}

// room reports whether a host takes a VM of a kind.
func (t *failoverTrial) room(k *kind, h int, o placement.Options) bool {
	if !t.free[h].takes(k.size) {
		return false
	}
	return !k.bound || placement.FitsAll(t.rules, k.vm, &t.hosts[h], o)
}

// upHosts returns the hosts that have not failed.
func (t *failoverTrial) upHosts() []placement.Host {
	var up []placement.Host
	for h := range t.hosts {
		if !t.failed[h] {
			up = append(up, t.hosts[h])
		}
	}
	return up
}

// put places a VM, and returns its host as it was before.
func (t *failoverTrial) put(vm, h int) placement.Host {
	k, before := &t.kinds[t.kindOf[vm]], t.hosts[h]
	t.free[h] = t.free[h].plus(k.size, -1)
	t.on[h] = append(t.on[h], vm)
	t.came[h]++
	switch {
	case k.bound:
		if after, ok := before.With(&t.fleet.VMs[vm].VM); ok {
			after.Incoming = before.Incoming // it is started there, and does not move
			t.hosts[h] = after
		}
	case t.bound:
		t.hosts[h].UsedMemory += k.vm.Demand()
		t.hosts[h].UsedCPUs += k.vm.DemandCPUs()
	}
	return before
}

// take takes back the VM that was put last.
func (t *failoverTrial) take(vm, h int, before placement.Host) {
	t.free[h] = t.free[h].plus(t.kinds[t.kindOf[vm]].size, +1)
	t.on[h] = t.on[h][:len(t.on[h])-1]
	t.came[h]--
	if t.bound {
		t.hosts[h] = before
	}
}
