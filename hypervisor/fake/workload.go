package fake

import (
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Workload is how a guest changes its memory: a hot set that is written all
// the time and a cold set that is written now and then. The distinct bytes
// dirtied in a time t since the last pass are
//
//	hot·(1 − e^(−t·rate/hot)) + min(cold, t·coldRate)
//
// so that a page written twice is sent once. The zero value is an idle guest.
type Workload struct {
	Rate     hypervisor.Bandwidth // writes to the hot set, before saturation
	Hot      hypervisor.Bytes     // size of the hot set
	ColdRate hypervisor.Bandwidth // writes to the cold set, linear up to its size
	Cold     hypervisor.Bytes     // size of the cold set
	// Zero is the part of the memory that has never been written, in parts per
	// thousand: its pages cost a few bytes each on the wire.
	Zero int
	// CatchUp is how long a stop may be after which the guest still makes all the
	// writes that it missed, as one does whose work comes from outside. The brake
	// of auto-convergence slows it only by longer stops. Zero makes up for nothing.
	CatchUp time.Duration
}

// Least returns what a migration of the guest sends at least if its memory is not compressed: what of it
// is not zero, and all that local disks hold.
func (w Workload) Least(vm hypervisor.VM) hypervisor.Bytes {
	return vm.Memory - vm.Memory/1000*hypervisor.Bytes(w.Zero) + vm.LocalSize()
}

// slice is how long a braked CPU runs between two stops.
// Source: QEMU 7.2 softmmu/cpu-throttle.c (CPU_THROTTLE_TIMESLICE_NS).
const slice = 10 * time.Millisecond

// share returns the percentage of its work that a guest does when throttle percent
// of the CPU time are taken away.
func (w Workload) share(throttle int) int {
	if stop := slice * time.Duration(throttle) / time.Duration(100-throttle); stop <= w.CatchUp {
		return 100
	}
	return 100 - throttle
}

// Dirtied returns how many distinct bytes the guest dirties when its CPUs run for
// t.
// Source: Nathan, Bellur, Kulkarni, "Towards a Comprehensive Performance Model of
// Virtual Machine Live Migration", SoCC 2015 (saturation of new dirty pages).
func (w Workload) Dirtied(t time.Duration) hypervisor.Bytes {
	cold := min(w.Cold, w.ColdRate.In(t))
	if w.Hot <= 0 || w.Rate <= 0 || t <= 0 {
		return cold
	}
	turns := float64(t) / float64(time.Second) * (float64(w.Rate) / float64(w.Hot))
	return cold + hypervisor.Bytes(float64(w.Hot)*(1-decay(turns)))
}

// Valid reports whether w is possible: nothing is negative, and not more than
// everything is zero.
func (w Workload) Valid() bool {
	return w.Rate >= 0 && w.Hot >= 0 && w.ColdRate >= 0 && w.Cold >= 0 &&
		w.CatchUp >= 0 && w.Zero >= 0 && w.Zero <= 1000
}

// decay returns e^-x for x ≥ 0. Unlike math.Exp it gives the same bits on every
// architecture: each conversion forbids the compiler to fuse a product with a sum.
func decay(x float64) float64 {
	if x > 700 {
		return 0
	}
	const ln2 = 0.6931471805599453
	halvings := math.Floor(x / ln2)
	rest := x - float64(halvings*ln2) // in [0, ln 2), up to rounding
	sum := 1.0
	for k := 18.0; k >= 1; k-- { // Horner: 1 - r/1·(1 - r/2·(1 - …))
		sum = 1 - float64(rest/k*sum)
	}
	return math.Ldexp(sum, -int(halvings))
}

// scale returns part/whole of b, rounded down, for 0 ≤ part ≤ whole.
func scale(b, part, whole hypervisor.Bytes) hypervisor.Bytes {
	if whole <= 0 || part >= whole {
		return b
	}
	return hypervisor.Bytes(float64(b) * (float64(part) / float64(whole)))
}
