package migration

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Cluster is the migration configuration of a whole cluster, with every default
// applied. Its zero value is not the default: see [DefaultCluster].
// Source: KubeVirt v1.9.0 api/core/v1/types.go:3593 (MigrationConfiguration),
// virt-config.go:39 and configuration.go:219 (defaults).
type Cluster struct {
	// ParallelMigrationsPerCluster is how many migrations may run at once.
	// DefaultCluster 5; 0 or more; 0 lets none start.
	// Source: KubeVirt v1.9.0 migration.go:1369.
	ParallelMigrationsPerCluster int
	// ParallelOutboundMigrationsPerNode is how many migrations may leave one
	// host at once. Default 2; 0 or more; 0 lets none start.
	// Source: KubeVirt v1.9.0 migration.go:1380.
	ParallelOutboundMigrationsPerNode int
	// ParallelInboundMigrationsPerNode is how many migrations may arrive at one
	// host at once. Default 0, which is no limit; 0 or more. KubeVirt has no
	// such limit.
	ParallelInboundMigrationsPerNode int
	// NodeDrainTaintKey is the key of the taint that drains a host. Default
	// "kubevirt.io/drain"; "" lets no taint drain.
	// Source: KubeVirt v1.9.0 evacuation.go:360.
	NodeDrainTaintKey string

	// BandwidthPerMigration caps each migration, in bytes per second, in post-copy, too. Default
	// 0, which is no cap; 0 or more.
	BandwidthPerMigration hypervisor.Bandwidth
	// ProgressTimeout is how long a migration may make no progress before it is
	// cancelled. Default 150 s; 0 or more; 0 is no timeout. KubeVirt counts
	// whole seconds.
	ProgressTimeout time.Duration
	// CompletionTimeoutPerGiB is how long a migration may take for each GiB of
	// memory. Default 150 s; 0 or more; 0 is no timeout. KubeVirt counts whole
	// seconds, and multiplies by decimal gigabytes.
	CompletionTimeoutPerGiB time.Duration
	// MaxDowntime is the downtime that a migration may cause at its switch-over.
	// DefaultCluster 900 ms; 1 ms to 2000 s.
	MaxDowntime time.Duration
	// UtilityVolumesTimeout is how long a migration waits for utility volumes
	// to be detached. Default 150 s; 0 or more.
	// Source: KubeVirt v1.9.0 migration.go:1648.
	UtilityVolumesTimeout time.Duration
	// UnsafeMigrationOverride moves VMs although the hypervisor calls it
	// unsafe. Default false.
	UnsafeMigrationOverride bool

	// AllowAutoConverge lets the hypervisor slow down a guest that changes its
	// memory faster than the wire carries it. Default false.
	AllowAutoConverge bool
	// AllowPostCopy lets a migration that does not end run the VM at the target
	// before all memory is there. Default false.
	AllowPostCopy bool
	// AllowWorkloadDisruption lets a migration that has used up its time go on
	// by post-copy or by pausing the guest, instead of being cancelled. Default:
	// the same as AllowPostCopy.
	// Source: KubeVirt v1.9.0 virt-config.go:138.
	AllowWorkloadDisruption bool

	// Convergence is the method that brings transfers to their end. Default Watermark, godwit's
	// own. KubeVirt has no such field: its own are Legacy, and Stall with a stall detector.
	Convergence convergence.Method

	// Encryption is whether memory and disks are encrypted on their way. Default EncryptionAuto, which
	// is EncryptionOff with DisableTLS.
	Encryption Encryption
	// DisableTLS sends memory in the clear. Default false.
	// Source: KubeVirt v1.9.0 virt-handler/migration-proxy.go:173.
	DisableTLS bool
	// Network names the network on which memory moves. Default "", which is the
	// network that hosts use for everything else.
	Network string
	// MatchSELinuxLevelOnMigration gives the target the SELinux level of the
	// source. Default true. The comment in KubeVirt's API says the opposite of
	// what its code does; this is what the code does.
	// Source: KubeVirt v1.9.0 migration.go:1007.
	MatchSELinuxLevelOnMigration bool
}

// The defaults of the cluster's configuration.
// Source: KubeVirt v1.9.0 virt-config.go:39.
const (
	defaultPerCluster        = 5
	defaultOutboundPerNode   = 2
	defaultDrainTaintKey     = "kubevirt.io/drain"
	defaultProgressTimeout   = 150 * time.Second
	defaultCompletionPerGiB  = 150 * time.Second
	defaultMaxDowntime       = 900 * time.Millisecond
	defaultUtilityVolumes    = 150 * time.Second
	defaultMatchSELinuxLevel = true
)

// DefaultCluster returns the configuration of a cluster whose operator wrote nothing.
func DefaultCluster() Cluster { return ClusterOverrides{}.Complete() }

// ClusterOverrides is the cluster's configuration as an operator wrote it: nil
// is what was not written, which is not the same as a written zero. The fields
// are those of [Cluster].
type ClusterOverrides struct {
	ParallelMigrationsPerCluster      *int
	ParallelOutboundMigrationsPerNode *int
	ParallelInboundMigrationsPerNode  *int
	NodeDrainTaintKey                 *string
	BandwidthPerMigration             *hypervisor.Bandwidth
	ProgressTimeout                   *time.Duration
	CompletionTimeoutPerGiB           *time.Duration
	MaxDowntime                       *time.Duration
	UtilityVolumesTimeout             *time.Duration
	UnsafeMigrationOverride           *bool
	AllowAutoConverge                 *bool
	AllowPostCopy                     *bool
	AllowWorkloadDisruption           *bool // nil follows AllowPostCopy
	Convergence                       *convergence.Method
	Encryption                        *Encryption
	DisableTLS                        *bool
	Network                           *string
	MatchSELinuxLevelOnMigration      *bool
}

// Complete returns o with the default for everything that was not written. It
// checks nothing: see [Cluster.Validate].
// Source: KubeVirt v1.9.0 configuration.go:219 (defaults), virt-config.go:138
// (AllowWorkloadDisruption).
func (o ClusterOverrides) Complete() Cluster {
	postCopy := policyOr(o.AllowPostCopy, false)
	return Cluster{
		ParallelMigrationsPerCluster: policyOr(o.ParallelMigrationsPerCluster, defaultPerCluster),
		ParallelOutboundMigrationsPerNode: policyOr(
			o.ParallelOutboundMigrationsPerNode, defaultOutboundPerNode),
		ParallelInboundMigrationsPerNode: policyOr(o.ParallelInboundMigrationsPerNode, 0),
		NodeDrainTaintKey:                policyOr(o.NodeDrainTaintKey, defaultDrainTaintKey),
		BandwidthPerMigration:            policyOr(o.BandwidthPerMigration, 0),
		ProgressTimeout:                  policyOr(o.ProgressTimeout, defaultProgressTimeout),
		CompletionTimeoutPerGiB:          policyOr(o.CompletionTimeoutPerGiB, defaultCompletionPerGiB),
		MaxDowntime:                      policyOr(o.MaxDowntime, defaultMaxDowntime),
		UtilityVolumesTimeout:            policyOr(o.UtilityVolumesTimeout, defaultUtilityVolumes),
		UnsafeMigrationOverride:          policyOr(o.UnsafeMigrationOverride, false),
		AllowAutoConverge:                policyOr(o.AllowAutoConverge, false),
		AllowPostCopy:                    postCopy,
		AllowWorkloadDisruption:          policyOr(o.AllowWorkloadDisruption, postCopy),
		Convergence:                      policyOr(o.Convergence, convergence.Watermark),
		Encryption:                       policyOr(o.Encryption, EncryptionAuto),
		DisableTLS:                       policyOr(o.DisableTLS, false),
		Network:                          policyOr(o.Network, ""),
		MatchSELinuxLevelOnMigration: policyOr(
			o.MatchSELinuxLevelOnMigration, defaultMatchSELinuxLevel),
	}
}

// Options returns the options of a migration that no policy matches.
// Source: KubeVirt v1.9.0 pkg/util/migrations/migrations.go:171
// (ToVMIMConfigurationOptions).
func (c Cluster) Options() Options {
	if c.Encryption == EncryptionAuto && c.DisableTLS {
		c.Encryption = EncryptionOff
	}
	return Options{
		AllowAutoConverge:            c.AllowAutoConverge,
		AllowPostCopy:                c.AllowPostCopy,
		AllowWorkloadDisruption:      c.AllowWorkloadDisruption,
		Convergence:                  c.Convergence,
		Bandwidth:                    c.BandwidthPerMigration,
		CompletionTimeoutPerGiB:      c.CompletionTimeoutPerGiB,
		ProgressTimeout:              c.ProgressTimeout,
		MaxDowntime:                  c.MaxDowntime,
		UtilityVolumesTimeout:        c.UtilityVolumesTimeout,
		UnsafeMigrationOverride:      c.UnsafeMigrationOverride,
		Encryption:                   c.Encryption,
		DisableTLS:                   c.DisableTLS,
		Network:                      c.Network,
		MatchSELinuxLevelOnMigration: c.MatchSELinuxLevelOnMigration,
	}
}

// policyOr returns what value points to, or fallback when it points to nothing.
func policyOr[T any](value *T, fallback T) T {
	if value == nil {
		return fallback
	}
	return *value
}
