package migration

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
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

	// Convergence is the method by which a transfer is brought to its end. With a
	// StallDetector it is Stall, whatever stands here.
	Convergence convergence.Method `json:",omitempty"`
	// Encryption is what the operator wants, and Traffic what follows from it for the two hosts.
	Encryption Encryption `json:",omitempty"`
	Traffic    Traffic    `json:",omitempty"`
	// StallDetector is nil unless the policy configures one. Options share it
	// with no other Options that came from another call.
	StallDetector *StallDetector
	// DowntimeTuning is nil unless the policy configures it, and shared as
	// little as StallDetector.
	DowntimeTuning *DowntimeTuning
	// Compression is the policy's word, or "".
	Compression Compression
}

// Method returns the method by which a transfer is brought to its end.
func (o *Options) Method() convergence.Method {
	if o.StallDetector != nil {
		return convergence.Stall
	}
	return o.Convergence
}

// The options that convergence goes by are its own types: nothing is put into other words on
// the way from a policy to a running migration.
type (
	// StallDetector says when a migration counts as stalled.
	StallDetector = convergence.StallDetector
	// DowntimeTuning raises the allowed downtime in steps.
	DowntimeTuning = convergence.DowntimeTuning
)

// OptionsOverrides are the fields of [Cluster] that a policy may set. Nil inherits;
// everything else overrides, also zero and false.
type OptionsOverrides struct {
	AllowAutoConverge *bool
	AllowPostCopy     *bool
	// AllowWorkloadDisruption, when nil, follows AllowPostCopy if that is set,
	// also to false; it inherits if neither is set.
	AllowWorkloadDisruption *bool
	// BandwidthPerMigration is in bytes per second; 0 is no cap.
	BandwidthPerMigration *hypervisor.Bandwidth
	// CompletionTimeoutPerGiB of 0 is no timeout. With a stall detector it is
	// also no action ever, since the detector counts from the timeout.
	CompletionTimeoutPerGiB *time.Duration
	// MaxDowntime is 1 ms to 2000 s.
	MaxDowntime *time.Duration
	// Convergence is the method that brings transfers to their end. KubeVirt has no such field.
	Convergence *convergence.Method
	// Encryption is whether memory and disks are encrypted on their way. KubeVirt's policies have no
	// such field.
	Encryption *Encryption
	// Experimental is what only a policy can set.
	Experimental *Experimental
}

// Experimental are options that have no counterpart in [Cluster]. An empty one
// is the same as none.
type Experimental struct {
	StallDetector  *StallDetectorOverrides  // not together with DowntimeTuning
	DowntimeTuning *DowntimeTuningOverrides // not together with StallDetector
	Compression    *Compression
}

// StallDetectorOverrides configure a [StallDetector], whose fields they are. An
// empty one asks for the detector with all its defaults; none asks for none.
type StallDetectorOverrides struct {
	StallMargin               *int
	EWMAAlpha                 *float64
	StallProgressTimeout      *time.Duration
	SwitchoverTimeout         *time.Duration
	PrecopyPossibleFactor     *float64
	PatienceWindowDecayFactor *float64
	SearchLocalMinima         *bool
	CompletionTimeoutFactor   *float64
}

// DowntimeTuningOverrides configure a [DowntimeTuning], whose fields they are.
// An empty one asks for tuning with all its defaults; none asks for none.
type DowntimeTuningOverrides struct {
	Initial             *time.Duration
	Steps               *int
	StartAfterIteration *int
	Cooldown            *time.Duration
}

// Apply returns base with everything that o sets; base is not changed, and what
// it points to is copied before it is changed. It checks nothing: see
// [Policy.Validate].
// Source: KubeVirt v1.9.0 migrationpolicy.go:126 (applyMigrationPolicySpec).
func (o OptionsOverrides) Apply(base Options) Options {
	// First the older field, then the newer: an explicit permission to disrupt
	// beats the one that follows from post-copy.
	overlay(&base.AllowWorkloadDisruption, o.AllowPostCopy)
	overlay(&base.AllowWorkloadDisruption, o.AllowWorkloadDisruption)
	overlay(&base.AllowPostCopy, o.AllowPostCopy)
	overlay(&base.AllowAutoConverge, o.AllowAutoConverge)
	overlay(&base.Bandwidth, o.BandwidthPerMigration)
	overlay(&base.CompletionTimeoutPerGiB, o.CompletionTimeoutPerGiB)
	overlay(&base.MaxDowntime, o.MaxDowntime)
	overlay(&base.Convergence, o.Convergence)
	overlay(&base.Encryption, o.Encryption)
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
	d := policyOr(base, convergence.DefaultStallDetector())
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
	t := policyOr(base, convergence.DefaultDowntimeTuning())
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
