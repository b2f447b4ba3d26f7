// Package adaptive decides by a model, instead of by habit, in which order VMs leave a
// host, how many at once, and where to.
//
// A link is a server that moves memory, and a move costs some time besides (preparing the
// target, handing over) in which it uses no link. With one move at a time the link rests
// meanwhile; with many at once each is slow, and its guest has time to dirty more that must
// be sent again. So there is a best number, and it depends on the VMs:
//
//	k moves at once take, each, at least  memory / (link − k·dirty)      of the link
//	and finish at most one in every       (memory/(speed−dirty) + rest)/k
//
// These are the asymptotic bounds of a closed system with one server. [Policy.Best] is the k
// for which the larger of the two is least, where one more must gain a tenth to be worth it.
// Source: Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978.
//
// Where targets leave a link idle, because others send to them, too, or their links are
// slower, one more goes. VMs that converge on a whole link only, or have failed before, go
// alone, and first of those that are planned together. The others go longest first: a drain
// is over when its last VM has left.
//
// Whoever asks for a move, [Policy.Shares] says of every link on its way whether all that use it
// still converge there; the others wait for their turn.
//
// A caller sets a [Policy] as evacuation.Params.Policy and [Weighers] as the preferences
// among targets. Neither ever lets go what a limit holds back: where the limits are
// KubeVirt's defaults, and nobody asked for them, the caller lifts them ([Limits]).
// A policy caps no speed: what it lets go may use all of the link that the operator's cap
// leaves it.
package adaptive

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/weigh"
	"github.com/godwit-vm/godwit/migration/slot"
)

// Policy is an [evacuation.Policy]. A zero field takes the default that it names.
type Policy struct {
	// DirtyRate returns how fast a VM dirties memory that it did not dirty just before, as
	// measured; 0 is not known, and taken for an idle guest until it fails. Default: nobody
	// has measured.
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
	_ evacuation.Policy = Policy{}
	_ evacuation.Sharer = Policy{}
)

const (
	defaultRest = 2 * time.Second
	defaultLink = 10 * hypervisor.Gbit // of a host of which nobody knows
	// most is the largest number of moves at once that is thought of.
	most = 64
	// converges is the part of its speed that a guest may dirty and still converge well.
	converges = 0.5
	// worth is what one more at once must gain: every other host's moves pay for it, too.
	worth = 0.9
	// filled is the part of a link that must be used for it to count as full.
	filled = 0.75
)

// Compare implements [evacuation.Policy]: who needs the link alone goes first, then who
// takes longest.
func (p Policy) Compare(link hypervisor.Bandwidth, a, b evacuation.Leaving) int {
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

// Open implements [evacuation.Policy]: one more may go while there are fewer than is best,
// and nobody who needs the link alone is among them.
func (p Policy) Open(
	link hypervisor.Bandwidth, next evacuation.Leaving, others []evacuation.Leaving,
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
	return n <= p.Best(link, all) || w.idle(others)
}

// idle reports whether the moves under way leave a good part of the link to one more: they
// share their targets' links with others, or those are slower. As many as would fill the
// link if each had its target alone, and one more, are enough: where targets are what lacks,
// still more would only slow each other down.
func (w wire) idle(others []evacuation.Leaving) bool {
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

// Best returns how many moves at once bring VMs like these away from a host soonest; at
// least one. One more that gains less than a tenth is not counted.
func (p Policy) Best(link hypervisor.Bandwidth, vms []evacuation.Leaving) int {
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
func (p Policy) alone(w wire, l evacuation.Leaving, n int) bool {
	return l.Failed > 0 || p.load(l).dirty > float64(converges*min(w.speed, w.link/float64(n)))
}

// A load is what one VM asks of a link: bytes, and bytes per second.
type load struct{ memory, dirty float64 }

func (p Policy) load(l evacuation.Leaving) load {
	one := load{memory: float64(l.Memory)}
	if p.DirtyRate != nil {
		one.dirty = float64(max(0, p.DirtyRate(l.VM)))
	}
	return one
}

// A wire is a host's link, the speed at which one move uses it, in bytes per second, and
// what a move costs besides, in seconds.
type wire struct{ link, speed, rest float64 }

func (p Policy) wire(link hypervisor.Bandwidth) wire {
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

// Limits returns the limits of an operator who has set some of them: what nobody has set is
// lifted, because it is a default and no wish of anybody's. A nil limit is not set.
func Limits(perCluster, perSource, perTarget *int) slot.Limits {
	set := func(limit *int) int {
		if limit == nil {
			return slot.Unlimited
		}
		return *limit
	}
	return slot.Limits{PerCluster: set(perCluster), PerSource: set(perSource),
		PerTarget: set(perTarget)}
}

// Weighers returns preferences among targets: first the one whose link is used least by
// moves that are on their way there, then the one with the most free memory. link returns
// the speed of a host's link; 0 is not known.
func Weighers(link func(hypervisor.HostName) hypervisor.Bandwidth) []weigh.Weigher {
	busy := func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
		return float64(h.Incoming+1) / float64(max(1, link(h.Name)))
	}
	return append([]weigh.Weigher{{Name: "link", Multiplier: -busiest, Of: busy}},
		slices.DeleteFunc(weigh.Spread(), func(w weigh.Weigher) bool {
			return w.Name != "memory" && w.Name != "soft-affinity" &&
				w.Name != "soft-anti-affinity"
		})...)
}

// busiest is how much more a busy link counts than free memory: enough to decide unless
// links are nearly alike.
const busiest = 8
