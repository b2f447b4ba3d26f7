package evacuation

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// intime is the part of its time that a transfer may plan with.
const intime = 0.8

// Shares implements [Sharer]: one more may use a link if all of them still converge
// there, each with its share, or lose nothing because another link on their way is slower. A VM
// that failed before, for whatever it dirties, has the link alone.
func (p AdaptivePolicy) Shares(link hypervisor.Bandwidth, next EvacuatingVM,
	others []EvacuatingVM) bool {
	if link <= 0 || len(others) == 0 {
		return true
	}
	all := append(others[:len(others):len(others)], next)
	most := make([]float64, len(all))
	for i, l := range all {
		most[i] = p.most(link, l)
	}
	for i, share := range fair(float64(link), most) {
		if share < most[i] && !p.keepsUp(all[i], share) {
			return false
		}
	}
	return true
}

// most returns how fast a VM can be sent if it has a link alone.
func (p AdaptivePolicy) most(link hypervisor.Bandwidth, l EvacuatingVM) float64 {
	speed := link
	if l.Most > 0 {
		speed = min(speed, l.Most)
	}
	if p.Cap > 0 {
		speed = min(speed, p.Cap)
	}
	return float64(speed)
}

// keepsUp reports whether a transfer with a share of a link converges well, and in time.
func (p AdaptivePolicy) keepsUp(l EvacuatingVM, share float64) bool {
	one := p.load(l)
	peak := one.dirty
	if p.Peak != nil {
		peak = float64(max(0, p.Peak(l.VM)))
	}
	if l.Failed > 0 || peak > float64(converges*share) {
		return false
	}
	gib := float64(hypervisor.GiB)
	return p.PerGiB <= 0 || gib <= float64(intime*p.PerGiB.Seconds())*(share-one.dirty)
}

// fair shares a link among transfers, each of which can use so much at most: who can use less
// than an equal share leaves the rest to the others. What each gets is no more than the network
// gives it if this is the slowest link on its way.
// Source: Bertsekas and Gallager, "Data Networks", 1992, 6.5.2 (max-min fairness).
func fair(link float64, most []float64) []float64 {
	order := make([]int, len(most))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(most[a], most[b]) })
	shares := make([]float64, len(most))
	for at, i := range order {
		shares[i] = min(most[i], link/float64(len(order)-at))
		link -= shares[i]
	}
	return shares
}
