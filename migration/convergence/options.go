package convergence

import (
	"math"
	"time"
)

// A StallDetector holds the parameters of [Stall]: when a migration counts as stalled, and
// what then may be done about it. A field is what it says, zero included: write
// [DefaultStallDetector] for the defaults. What makes no sense (negative, or not a
// number) counts as zero, and a zero that makes no sense as the default.
// Source: KubeVirt v1.9.0 virt-handler/migration-source.go:693 (defaults).
type StallDetector struct {
	// StallMargin is by how many percent the remaining memory must fall below
	// the least seen before the window, to count as progress. Default 4; 0 to
	// 100.
	StallMargin int
	// EWMAAlpha is the weight of the newest sample in the mean of the bandwidth.
	// Default 0.4; above 0, up to 1.
	EWMAAlpha float64
	// StallProgressTimeout is the window without progress after which a
	// migration is stalled, in whole milliseconds. Default 40 s; 0 or more.
	StallProgressTimeout time.Duration
	// SwitchoverTimeout is how long a switch-over that was asked for may take,
	// in whole seconds. Default 60 s; 0 or more.
	SwitchoverTimeout time.Duration
	// PrecopyPossibleFactor is by how much the expected downtime may exceed the
	// allowed one and pre-copy is still tried. Default 1.5; 1 or more.
	PrecopyPossibleFactor float64
	// PatienceWindowDecayFactor shortens the wait for the next local minimum,
	// each time that one was waited for. Default 0.5; 0 to 1.
	PatienceWindowDecayFactor float64
	// SearchLocalMinima waits for a moment with little remaining memory before
	// it acts. Default true.
	SearchLocalMinima bool
	// CompletionTimeoutFactor stretches the completion budget when the end is
	// in sight. Default 2; 1 or more.
	CompletionTimeoutFactor float64
}

// DefaultStallDetector returns a detector with all defaults.
// Source: KubeVirt v1.9.0 virt-handler/migration-source.go:693.
func DefaultStallDetector() StallDetector {
	return StallDetector{
		StallMargin:               4,
		EWMAAlpha:                 0.4,
		StallProgressTimeout:      40 * time.Second,
		SwitchoverTimeout:         60 * time.Second,
		PrecopyPossibleFactor:     1.5,
		PatienceWindowDecayFactor: 0.5,
		SearchLocalMinima:         true,
		CompletionTimeoutFactor:   2,
	}
}

// sane returns the detector without values that make no sense.
func (d StallDetector) sane() StallDetector {
	usual := DefaultStallDetector()
	d.StallMargin = min(max(d.StallMargin, 0), 100)
	d.StallProgressTimeout = max(d.StallProgressTimeout, 0)
	d.SwitchoverTimeout = max(d.SwitchoverTimeout, 0)
	d.EWMAAlpha = min(factor(d.EWMAAlpha, usual.EWMAAlpha), 1)
	d.PrecopyPossibleFactor = factor(d.PrecopyPossibleFactor, usual.PrecopyPossibleFactor)
	d.PatienceWindowDecayFactor = factor(d.PatienceWindowDecayFactor, 0)
	d.CompletionTimeoutFactor = factor(d.CompletionTimeoutFactor, usual.CompletionTimeoutFactor)
	return d
}

// DowntimeTuning raises the allowed downtime in steps, from Initial to the
// maximum, while the transfer does not end, so that an easy migration gets a short one. No
// field may be zero: one that is has its default.
// Source: KubeVirt v1.9.0 live-migration-source.go:66 (defaults), :458 (tuneDowntime).
type DowntimeTuning struct {
	// Initial is the first limit; the maximum if that is smaller. Default
	// 150 ms; 1 ms or more.
	Initial time.Duration
	// Steps is in how many equal steps the limit reaches the maximum. Default
	// 7; 1 or more.
	Steps int
	// StartAfterIteration is the pass over memory from which on the limit is
	// raised. Default 3; 1 or more.
	StartAfterIteration int
	// Cooldown is the least time between two steps. Default 10 s; 1 s or more.
	Cooldown time.Duration
}

// DefaultDowntimeTuning returns a tuning with all defaults.
// Source: KubeVirt v1.9.0 live-migration-source.go:66.
func DefaultDowntimeTuning() DowntimeTuning {
	return DowntimeTuning{
		Initial:             150 * time.Millisecond,
		Steps:               7,
		StartAfterIteration: 3,
		Cooldown:            10 * time.Second,
	}
}

// positive returns v, or the default when v is not positive.
func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// factor returns v, or the default when v is not a positive number.
func factor(v, otherwise float64) float64 {
	if v > 0 && !math.IsInf(v, 0) {
		return v
	}
	return otherwise
}
