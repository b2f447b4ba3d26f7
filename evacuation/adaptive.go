package evacuation

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// AdaptivePolicy is the [Policy] and the [Sharer] of this package. A zero field takes the default that it names.
type AdaptivePolicy struct {
	// DirtyRate returns how fast a VM dirties memory that it did not dirty just before, as
	// measured; 0 is not known, and taken for an idle guest until it fails. Default: it was
	// not measured.
	DirtyRate func(hypervisor.VMID) hypervisor.Bandwidth
	// Peak returns how fast a VM dirties memory over one second, in which few pages are written
	// twice: a transfer that is slower does not converge. Default: DirtyRate.
	Peak func(hypervisor.VMID) hypervisor.Bandwidth
	// PerGiB is how long the transfer of a gibibyte may take before it is given up. Default: as
	// long as it needs.
	PerGiB time.Duration
	// Cap is the operator's cap on the speed of each migration. Default: none.
	Cap hypervisor.Bandwidth
	// Rest is what a move costs besides the wire. Default: 2 s.
	Rest time.Duration
}

var (
	_ Policy = AdaptivePolicy{}
	_ Sharer = AdaptivePolicy{}
)

const (
	defaultRest = 2 * time.Second
	defaultLink = 10 * hypervisor.Gbit // of a host whose link is not known
	// most is the largest number of moves at once that is thought of.
	most = 64
	// converges is the part of its speed that a guest may dirty and still converge well.
	converges = 0.5
	// worth is what one more at once must gain: every other host's moves pay for it, too.
	worth = 0.9
	// filled is the part of a link that must be used for it to count as full.
	filled = 0.75
)

// Compare implements [Policy]: a VM that needs the link alone goes first, then one that
// takes longest.
func (p AdaptivePolicy) Compare(link hypervisor.Bandwidth, a, b EvacuatingVM) int {
	w := p.wire(link)
	aloneA, aloneB := p.alone(w, a, 2), p.alone(w, b, 2)
	switch {
	case aloneA && !aloneB:
		return -1
	case aloneB && !aloneA:
		return 1
	}
	return cmp.Or(cmp.Compare(w.took(p.load(b)), w.took(p.load(a))),
		cmp.Compare(b.Memory, a.Memory))
}

// Admit implements [Policy]: one more may go while there are fewer than is best,
// and none that needs the link alone is among them.
func (p AdaptivePolicy) Admit(
	link hypervisor.Bandwidth, next EvacuatingVM, others []EvacuatingVM,
) bool {
	if len(others) == 0 {
		return true
	}
	w, n := p.wire(link), len(others)+1
	all := append(others[:len(others):len(others)], next)
	for _, l := range all {
		if p.alone(w, l, n) {
			return false
		}
	}
	return n <= p.best(link, all) || w.idle(others)
}

// idle reports whether the moves under way leave a good part of the link to one more: they
// share their targets' links with others, or those are slower. As many as would fill the
// link if each had its target alone, and one more, are enough: where targets are what lacks,
// still more would only slow each other down.
func (w wire) idle(others []EvacuatingVM) bool {
	used, alone := 0.0, 0.0
	for _, l := range others {
		if l.Target <= 0 || l.Sharing <= 0 {
			return false
		}
		used += min(w.speed, float64(l.Target)/float64(l.Sharing))
		alone += min(w.speed, float64(l.Target))
	}
	return used < filled*w.link && alone <= w.link
}

// best returns how many moves at once bring VMs like these away from a host soonest; at
// least one. One more that gains less than a tenth is not counted.
func (p AdaptivePolicy) best(link hypervisor.Bandwidth, vms []EvacuatingVM) int {
	if len(vms) == 0 {
		return 1
	}
	var sum load
	for _, l := range vms {
		one := p.load(l)
		sum.memory, sum.dirty = sum.memory+one.memory, sum.dirty+one.dirty
	}
	n := float64(len(vms))
	w, mean := p.wire(link), load{sum.memory / n, sum.dirty / n}
	best, least := 1, w.each(mean, 1)
	for k := 2; k <= most; k++ {
		if each := w.each(mean, k); each < worth*least {
			best, least = k, each
		}
	}
	return best
}

// alone reports whether a VM may not converge when n share the link.
func (p AdaptivePolicy) alone(w wire, l EvacuatingVM, n int) bool {
	return l.Failed > 0 || p.load(l).dirty > float64(converges*min(w.speed, w.link/float64(n)))
}

// A load is what one VM asks of a link: bytes, and bytes per second.
type load struct{ memory, dirty float64 }

func (p AdaptivePolicy) load(l EvacuatingVM) load {
	one := load{memory: float64(l.Memory)}
	if p.DirtyRate != nil {
		one.dirty = float64(max(0, p.DirtyRate(l.VM)))
	}
	return one
}

// A wire is a host's link, the speed at which one move uses it, in bytes per second, and
// what a move costs besides, in seconds.
type wire struct{ link, speed, rest float64 }

func (p AdaptivePolicy) wire(link hypervisor.Bandwidth) wire {
	if link <= 0 {
		link = defaultLink
	}
	speed := link
	if p.Cap > 0 {
		speed = min(speed, p.Cap)
	}
	return wire{float64(link), float64(speed), cmp.Or(max(0, p.Rest), defaultRest).Seconds()}
}

// took returns how many seconds a move takes that has the link alone.
func (w wire) took(l load) float64 { return sending(l.memory, w.speed-l.dirty) + w.rest }

// each returns the seconds after which one VM after another is away when k such go at once:
// the larger of what the link and what the moves themselves need.
func (w wire) each(l load, k int) float64 {
	n := float64(k)
	return max(sending(l.memory, w.link-float64(n*l.dirty)), w.took(l)/n)
}

// sending returns how many seconds memory takes at a speed; without end when there is none.
func sending(memory, speed float64) float64 {
	if speed <= 0 {
		return math.Inf(1)
	}
	return memory / speed
}

// AdaptiveLimits returns the limits of an operator who has set some of them: what is not set is
// lifted, because it is a default and no operator's wish. A nil limit is not set.
func AdaptiveLimits(perCluster, perSource, perTarget *int) migration.Limits {
	set := func(limit *int) int {
		if limit == nil {
			return migration.Unlimited
		}
		return *limit
	}
	return migration.Limits{PerCluster: set(perCluster), PerSource: set(perSource),
		PerTarget: set(perTarget)}
}

// AdaptiveWeighers returns preferences among targets: first the one whose link is used least by
// moves that are on their way there, then the one with the most free memory. link returns
// the speed of a host's link; 0 is not known.
func AdaptiveWeighers(link func(hypervisor.HostName) hypervisor.Bandwidth) []placement.Weigher {
	busy := func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
		return float64(h.Incoming+1) / float64(max(1, link(h.Name)))
	}
	return append([]placement.Weigher{{Name: "link", Multiplier: -busiest, Of: busy}},
		slices.DeleteFunc(placement.Spread(), func(w placement.Weigher) bool {
			return w.Name != "memory" && w.Name != "soft-affinity" &&
				w.Name != "soft-anti-affinity"
		})...)
}

// busiest is how much more a busy link counts than free memory: enough to decide unless
// links are nearly alike.
const busiest = 8
