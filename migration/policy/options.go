package policy

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Options are what one migration is done with: the cluster's configuration and
// the winning policy's overrides, resolved. A field means what the field of the
// same name in [Cluster] means.
type Options struct {
	AllowAutoConverge       bool
	AllowPostCopy           bool
	AllowWorkloadDisruption bool
	Bandwidth               hypervisor.Bandwidth // bytes per second; 0 is no cap
	CompletionTimeoutPerGiB time.Duration        // 0 is no timeout
	ProgressTimeout         time.Duration        // 0 is no timeout
	MaxDowntime             time.Duration
	UtilityVolumesTimeout   time.Duration

	UnsafeMigrationOverride      bool
	DisableTLS                   bool
	Network                      string
	MatchSELinuxLevelOnMigration bool

	// StallDetector is nil unless the policy configures one. Options share it
	// with no other Options that came from another call.
	StallDetector *StallDetector
	// DowntimeTuning is nil unless the policy configures it, and shared as
	// little as StallDetector.
	DowntimeTuning *DowntimeTuning
	// Compression is the policy's word, or "".
	Compression Compression
}

// A StallDetector says when a migration counts as stalled, and what then may be
// done about it.
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
	// migration is stalled. Default 40 s; 0 or more.
	StallProgressTimeout time.Duration
	// SwitchoverTimeout is how long a switch-over that was asked for may take.
	// Default 60 s; 0 or more.
	SwitchoverTimeout time.Duration
	// PrecopyPossibleFactor is by how much the expected blackout may exceed the
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

// DowntimeTuning raises the allowed blackout in steps, from Initial to the
// maximum, so that an easy migration gets a short one.
// Source: KubeVirt v1.9.0 virtwrap/live-migration-source.go:66 (defaults).
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
// Source: KubeVirt v1.9.0 virtwrap/live-migration-source.go:66.
func DefaultDowntimeTuning() DowntimeTuning {
	return DowntimeTuning{
		Initial:             150 * time.Millisecond,
		Steps:               7,
		StartAfterIteration: 3,
		Cooldown:            10 * time.Second,
	}
}

// Apply returns base with everything that o sets; base is not changed, and what
// it points to is copied before it is changed. It checks nothing: see
// [Policy.Validate].
// Source: KubeVirt v1.9.0 migrationpolicy.go:126 (applyMigrationPolicySpec).
func (o Overrides) Apply(base Options) Options {
	// First the older field, then the newer: an explicit permission to disrupt
	// beats the one that follows from post-copy.
	overlay(&base.AllowWorkloadDisruption, o.AllowPostCopy)
	overlay(&base.AllowWorkloadDisruption, o.AllowWorkloadDisruption)
	overlay(&base.AllowPostCopy, o.AllowPostCopy)
	overlay(&base.AllowAutoConverge, o.AllowAutoConverge)
	overlay(&base.Bandwidth, o.BandwidthPerMigration)
	overlay(&base.CompletionTimeoutPerGiB, o.CompletionTimeoutPerGiB)
	overlay(&base.MaxDowntime, o.MaxDowntime)
	if e := o.Experimental; e != nil {
		base.StallDetector = e.StallDetector.apply(base.StallDetector)
		base.DowntimeTuning = e.DowntimeTuning.apply(base.DowntimeTuning)
		overlay(&base.Compression, e.Compression)
	}
	return base
}

// apply returns a copy of base with what o sets, or base when o is nil. A field
// that neither sets has its default: KubeVirt defaults where the detector runs,
// which comes to the same.
func (o *StallDetectorOverrides) apply(base *StallDetector) *StallDetector {
	if o == nil {
		return base
	}
	d := or(base, DefaultStallDetector())
	overlay(&d.StallMargin, o.StallMargin)
	overlay(&d.EWMAAlpha, o.EWMAAlpha)
	overlay(&d.StallProgressTimeout, o.StallProgressTimeout)
	overlay(&d.SwitchoverTimeout, o.SwitchoverTimeout)
	overlay(&d.PrecopyPossibleFactor, o.PrecopyPossibleFactor)
	overlay(&d.PatienceWindowDecayFactor, o.PatienceWindowDecayFactor)
	overlay(&d.SearchLocalMinima, o.SearchLocalMinima)
	overlay(&d.CompletionTimeoutFactor, o.CompletionTimeoutFactor)
	return &d
}

// apply is as that of StallDetectorOverrides.
func (o *DowntimeTuningOverrides) apply(base *DowntimeTuning) *DowntimeTuning {
	if o == nil {
		return base
	}
	t := or(base, DefaultDowntimeTuning())
	overlay(&t.Initial, o.Initial)
	overlay(&t.Steps, o.Steps)
	overlay(&t.StartAfterIteration, o.StartAfterIteration)
	overlay(&t.Cooldown, o.Cooldown)
	return &t
}

// overlay sets field to what value points to, if anything.
func overlay[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
