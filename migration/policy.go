package migration

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Labels are names and values that selectors match.
type Labels = map[string]string

// A Policy gives the VMs that it selects other options than the cluster's.
// Source: KubeVirt v1.9.0 api/migrations/v1alpha1/types.go:43
// (MigrationPolicySpec).
type Policy struct {
	// Name tells policies apart; the smaller one wins a tie. Of two policies
	// with one name the first in the list wins, which [OverlappingPolicies] reports.
	Name string
	// Selectors say which VMs; nil is none.
	Selectors *Selectors
	OptionsOverrides
}

// Selectors say which VMs a policy is for: all labels must be there, with
// exactly these values. A selector without labels, nil or empty, asks nothing;
// two such selectors match every VM.
type Selectors struct {
	VM        Labels // on the VM itself
	Namespace Labels // on the namespace of the VM
}

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

// Compression says how memory is compressed on the wire, in KubeVirt's words.
type Compression string

// The compressions. The empty word is none, too.
const (
	CompressionNone Compression = "none"
	CompressionZstd Compression = "zstd"
)

// On reports whether memory is compressed. An unknown word is off.
// Source: KubeVirt v1.9.0 virtwrap/live-migration-source.go:135 (flags).
func (c Compression) On() bool { return c == CompressionZstd }
