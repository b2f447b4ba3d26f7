package importer

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

// cluster reads the configuration. KubeVirt itself fails on a second one.
func (o *object) cluster(kv *kubeobject.KubeVirt) {
	if o.clusters++; o.clusters > 1 {
		o.errorf("", "there is already a KubeVirt object; a cluster has one")
		return
	}
	c := &kv.Spec.Configuration
	if d := c.DeveloperConfiguration; d != nil && d.CPUAllocationRatio != 0 {
		if d.CPUAllocationRatio < 0 || d.CPUAllocationRatio > 1000 {
			o.errorf("spec.configuration.developerConfiguration.cpuAllocationRatio",
				"needs 1 to 1000, has %d", d.CPUAllocationRatio)
		} else {
			o.cpuRatio = d.CPUAllocationRatio
		}
	}
	o.overcommit(c)
	if c.EvictionStrategy != nil {
		o.EvictBy(o.strategy("spec.configuration.evictionStrategy", *c.EvictionStrategy))
	}
	if m := c.MigrationConfiguration; m != nil {
		o.configure(m)
	}
}

func (o *object) configure(m *kubeobject.MigrationConfiguration) {
	const at = "spec.configuration.migrations"
	bandwidth := o.speed(at+".bandwidthPerMigration", m.BandwidthPerMigration)
	written := migration.ClusterOverrides{
		ParallelMigrationsPerCluster:      count(m.ParallelMigrationsPerCluster),
		ParallelOutboundMigrationsPerNode: count(m.ParallelOutboundMigrationsPerNode),
		NodeDrainTaintKey:                 m.NodeDrainTaintKey,
		BandwidthPerMigration:             bandwidth,
		ProgressTimeout:                   inventory.Times(m.ProgressTimeout, time.Second),
		CompletionTimeoutPerGiB:           inventory.Times(m.CompletionTimeoutPerGiB, time.Second),
		UtilityVolumesTimeout:             inventory.Times(m.UtilityVolumesTimeout, time.Second),
		MaxDowntime:                       inventory.Times(m.MaxDowntimeMs, time.Millisecond),
		UnsafeMigrationOverride:           m.UnsafeMigrationOverride,
		AllowAutoConverge:                 m.AllowAutoConverge,
		AllowPostCopy:                     m.AllowPostCopy,
		AllowWorkloadDisruption:           m.AllowWorkloadDisruption,
		DisableTLS:                        m.DisableTLS,
		Network:                           m.Network,
		MatchSELinuxLevelOnMigration:      m.MatchSELinuxLevelOnMigration,
	}
	o.Configure(o.lineOf(at), o.field(at), written)
}

// policy reads a migration policy.
func (o *object) policy(p *kubeobject.MigrationPolicy) {
	s := &p.Spec
	read := migration.Policy{
		Name: p.Name,
		OptionsOverrides: migration.OptionsOverrides{
			AllowAutoConverge:       s.AllowAutoConverge,
			AllowPostCopy:           s.AllowPostCopy,
			AllowWorkloadDisruption: s.AllowWorkloadDisruption,
			BandwidthPerMigration:   o.speed("spec.bandwidthPerMigration", s.BandwidthPerMigration),
			CompletionTimeoutPerGiB: inventory.Times(s.CompletionTimeoutPerGiB, time.Second),
			MaxDowntime:             inventory.Times(s.MaxDowntimeMs, time.Millisecond),
			Experimental:            overrides(s.Experimental),
		},
	}
	if s.Selectors != nil {
		read.Selectors = &migration.Selectors{
			VM:        migration.Labels(s.Selectors.VirtualMachineInstanceSelector),
			Namespace: migration.Labels(s.Selectors.NamespaceSelector),
		}
	}
	o.AddPolicy(o.lineOf("spec"), read)
}

func overrides(e *kubeobject.Experimental) *migration.Experimental {
	if e == nil {
		return nil
	}
	all := &migration.Experimental{Compression: (*migration.Compression)(e.Compression)}
	if d := e.StallDetector; d != nil {
		all.StallDetector = &migration.StallDetectorOverrides{
			StallMargin:               d.StallMargin,
			EWMAAlpha:                 factor(d.EWMAAlpha),
			StallProgressTimeout:      inventory.Times(d.StallProgressTimeout, time.Second),
			SwitchoverTimeout:         inventory.Times(d.SwitchoverTimeout, time.Second),
			PrecopyPossibleFactor:     factor(d.PrecopyPossibleFactor),
			PatienceWindowDecayFactor: factor(d.PatienceWindowDecayFactor),
			SearchLocalMinima:         d.SearchLocalMinima,
			CompletionTimeoutFactor:   factor(d.CompletionTimeoutFactor),
		}
	}
	if t := e.DowntimeTuning; t != nil {
		all.DowntimeTuning = &migration.DowntimeTuningOverrides{
			Initial:             inventory.Times(t.InitialMs, time.Millisecond),
			Steps:               t.Steps,
			StartAfterIteration: t.StartAfterIteration,
			Cooldown:            inventory.Times(t.CooldownSeconds, time.Second),
		}
	}
	return all
}

// speed returns a quantity as bytes per second; nil stays nil.
func (o *object) speed(field string, q *kubeobject.Quantity) *hypervisor.Bandwidth {
	if q == nil {
		return nil
	}
	speed := hypervisor.Bandwidth(o.bytes(field, q))
	return &speed
}

func factor(q *kubeobject.Quantity) *float64 {
	if q == nil {
		return nil
	}
	f := q.AsApproximateFloat64()
	return &f
}

func count(n *uint32) *int {
	if n == nil {
		return nil
	}
	c := int(*n)
	return &c
}
