package inventory

import (
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
)

// ConfigSpec is the cluster's migration configuration, with KubeVirt's field
// names; what it leaves out has KubeVirt's default. Unlike there, speeds and
// durations have units, except where the name says it.
type ConfigSpec struct {
	ParallelMigrationsPerCluster      *int    `yaml:"parallelMigrationsPerCluster,omitempty"`
	ParallelOutboundMigrationsPerNode *int    `yaml:"parallelOutboundMigrationsPerNode,omitempty"`
	ParallelInboundMigrationsPerNode  *int    `yaml:"parallelInboundMigrationsPerNode,omitempty"`
	NodeDrainTaintKey                 *string `yaml:"nodeDrainTaintKey,omitempty"`
	ProgressTimeout                   string  `yaml:"progressTimeout,omitempty"`
	UtilityVolumesTimeout             string  `yaml:"utilityVolumesTimeout,omitempty"`
	UnsafeMigrationOverride           *bool   `yaml:"unsafeMigrationOverride,omitempty"`
	DisableTLS                        *bool   `yaml:"disableTLS,omitempty"`
	Network                           *string `yaml:"network,omitempty"`
	MatchSELinuxLevelOnMigration      *bool   `yaml:"matchSELinuxLevelOnMigration,omitempty"`
	OptionsSpec                       `yaml:",inline"`
}

// An OptionsSpec is what the cluster and a policy can both set.
type OptionsSpec struct {
	AllowAutoConverge       *bool  `yaml:"allowAutoConverge,omitempty"`
	AllowPostCopy           *bool  `yaml:"allowPostCopy,omitempty"`
	AllowWorkloadDisruption *bool  `yaml:"allowWorkloadDisruption,omitempty"`
	BandwidthPerMigration   string `yaml:"bandwidthPerMigration,omitempty"`
	CompletionTimeoutPerGiB string `yaml:"completionTimeoutPerGiB,omitempty"`
	MaxDowntimeMs           *int64 `yaml:"maxDowntimeMs,omitempty"`
	// Convergence is how transfers are brought to their end: Watermark (default), Forecast,
	// or KubeVirt's Legacy and Stall. With compatible: true the default is Legacy.
	Convergence string `yaml:"convergence,omitempty"`
	// Encryption is Auto (default: where both hosts have certificates), Required or Off.
	Encryption string `yaml:"encryption,omitempty"`
}

// A PolicySpec is a migration policy, with KubeVirt's field names.
type PolicySpec struct {
	Name         string            `yaml:"name"` // the policy's name; where two fit a VM alike, the first by name applies
	Selectors    *SelectorsSpec    `yaml:"selectors,omitempty"`
	Experimental *ExperimentalSpec `yaml:"experimental,omitempty"`
	OptionsSpec  `yaml:",inline"`
}

// SelectorsSpec say which VMs a policy is for.
type SelectorsSpec struct {
	VM        placement.Labels `yaml:"virtualMachineInstanceSelector,omitempty"` // labels that the VM has to have
	Namespace placement.Labels `yaml:"namespaceSelector,omitempty"`              // labels that its namespace has to have
}

// ExperimentalSpec is what only policies can set.
type ExperimentalSpec struct {
	Compression    *string             `yaml:"compression,omitempty"` // of memory on the wire: none (default) or zstd
	StallDetector  *StallDetectorSpec  `yaml:"stallDetector,omitempty"`
	DowntimeTuning *DowntimeTuningSpec `yaml:"downtimeTuning,omitempty"`
}

// A StallDetectorSpec says when a migration counts as stalled.
type StallDetectorSpec struct {
	StallMargin               *int     `yaml:"stallMargin,omitempty"`
	EWMAAlpha                 *float64 `yaml:"ewmaAlpha,omitempty"`
	StallProgressTimeout      string   `yaml:"stallProgressTimeout,omitempty"`
	SwitchoverTimeout         string   `yaml:"switchoverTimeout,omitempty"`
	PrecopyPossibleFactor     *float64 `yaml:"precopyPossibleFactor,omitempty"`
	PatienceWindowDecayFactor *float64 `yaml:"patienceWindowDecayFactor,omitempty"`
	SearchLocalMinima         *bool    `yaml:"searchLocalMinima,omitempty"`
	CompletionTimeoutFactor   *float64 `yaml:"completionTimeoutFactor,omitempty"`
}

// A DowntimeTuningSpec raises the downtime that is allowed in steps.
type DowntimeTuningSpec struct {
	InitialMs           *int64 `yaml:"initialMs,omitempty"`
	Steps               *int   `yaml:"steps,omitempty"`
	StartAfterIteration *int   `yaml:"startAfterIteration,omitempty"`
	CooldownSeconds     *int64 `yaml:"cooldownSeconds,omitempty"`
}

// config reads the cluster's configuration.
func (b *specBuilder) config(at path, s ConfigSpec) {
	o := b.overrides(at, s.OptionsSpec)
	b.Configure(b.line(at), at.String(), migration.ClusterOverrides{
		ParallelMigrationsPerCluster:      s.ParallelMigrationsPerCluster,
		ParallelOutboundMigrationsPerNode: s.ParallelOutboundMigrationsPerNode,
		ParallelInboundMigrationsPerNode:  s.ParallelInboundMigrationsPerNode,
		NodeDrainTaintKey:                 s.NodeDrainTaintKey,
		BandwidthPerMigration:             o.BandwidthPerMigration,
		ProgressTimeout: b.duration(
			at.dot(".progressTimeout"), s.ProgressTimeout),
		CompletionTimeoutPerGiB: o.CompletionTimeoutPerGiB,
		MaxDowntime:             o.MaxDowntime,
		UtilityVolumesTimeout: b.duration(
			at.dot(".utilityVolumesTimeout"), s.UtilityVolumesTimeout),
		UnsafeMigrationOverride:      s.UnsafeMigrationOverride,
		AllowAutoConverge:            o.AllowAutoConverge,
		AllowPostCopy:                o.AllowPostCopy,
		AllowWorkloadDisruption:      o.AllowWorkloadDisruption,
		Convergence:                  o.Convergence,
		Encryption:                   o.Encryption,
		DisableTLS:                   s.DisableTLS,
		Network:                      s.Network,
		MatchSELinuxLevelOnMigration: s.MatchSELinuxLevelOnMigration,
	})
}

// policy reads one policy.
func (b *specBuilder) policy(at path, s *PolicySpec) {
	p := migration.Policy{Name: s.Name, OptionsOverrides: b.overrides(at, s.OptionsSpec)}
	b.dns(at.dot(".name"), s.Name)
	if s.Selectors != nil {
		p.Selectors = &migration.Selectors{VM: s.Selectors.VM, Namespace: s.Selectors.Namespace}
	}
	if s.Experimental != nil {
		p.Experimental = b.experimental(at.dot(".experimental"), s.Experimental)
	}
	b.AddPolicy(b.line(at), p)
}

// overrides reads what the cluster and policies share. Here a bandwidth of 0 is
// a value: no cap.
func (b *specBuilder) overrides(at path, s OptionsSpec) migration.OptionsOverrides {
	o := migration.OptionsOverrides{
		AllowAutoConverge:       s.AllowAutoConverge,
		AllowPostCopy:           s.AllowPostCopy,
		AllowWorkloadDisruption: s.AllowWorkloadDisruption,
		CompletionTimeoutPerGiB: b.duration(
			at.dot(".completionTimeoutPerGiB"), s.CompletionTimeoutPerGiB),
		MaxDowntime: Times(s.MaxDowntimeMs, time.Millisecond),
	}
	if s.Convergence != "" {
		o.Convergence = new(convergence.Method)
		if err := o.Convergence.UnmarshalText([]byte(s.Convergence)); err != nil {
			b.wrong(at.dot(".convergence"), "unknown method %q; use %s", s.Convergence,
				strings.Join(convergence.Methods(), ", "))
		}
	}
	if s.Encryption != "" {
		e, known := migration.ParseEncryption(s.Encryption)
		if !known {
			b.wrong(at.dot(".encryption"), "unknown encryption %q; use %s", s.Encryption,
				strings.Join(migration.Encryptions(), ", "))
		}
		o.Encryption = &e
	}
	if s.BandwidthPerMigration != "" {
		cap, err := ParseBandwidth(s.BandwidthPerMigration)
		if err != nil {
			b.wrong(at.dot(".bandwidthPerMigration"), "%v", err)
		}
		o.BandwidthPerMigration = &cap
	}
	return o
}

func (b *specBuilder) experimental(at path, s *ExperimentalSpec) *migration.Experimental {
	e := &migration.Experimental{Compression: (*migration.Compression)(s.Compression)}
	if d := s.StallDetector; d != nil {
		e.StallDetector = &migration.StallDetectorOverrides{
			StallMargin: d.StallMargin,
			EWMAAlpha:   d.EWMAAlpha,
			StallProgressTimeout: b.duration(
				at.dot(".stallDetector.stallProgressTimeout"), d.StallProgressTimeout),
			SwitchoverTimeout: b.duration(
				at.dot(".stallDetector.switchoverTimeout"), d.SwitchoverTimeout),
			PrecopyPossibleFactor:     d.PrecopyPossibleFactor,
			PatienceWindowDecayFactor: d.PatienceWindowDecayFactor,
			SearchLocalMinima:         d.SearchLocalMinima,
			CompletionTimeoutFactor:   d.CompletionTimeoutFactor,
		}
	}
	if t := s.DowntimeTuning; t != nil {
		e.DowntimeTuning = &migration.DowntimeTuningOverrides{
			Initial:             Times(t.InitialMs, time.Millisecond),
			Steps:               t.Steps,
			StartAfterIteration: t.StartAfterIteration,
			Cooldown:            Times(t.CooldownSeconds, time.Second),
		}
	}
	return e
}

// Times returns n times unit, [hypervisor.Forever] or its negative when that is
// too long, and nil for nil. KubeVirt writes durations as such numbers.
func Times(n *int64, unit time.Duration) *time.Duration {
	if n == nil {
		return nil
	}
	most := int64(hypervisor.Forever / unit)
	d := time.Duration(max(-most, min(*n, most))) * unit
	return &d
}
