package migration_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

func TestDefault(t *testing.T) {
	want := migration.Cluster{
		ParallelMigrationsPerCluster:      5,
		ParallelOutboundMigrationsPerNode: 2,
		NodeDrainTaintKey:                 "kubevirt.io/drain",
		ProgressTimeout:                   150 * time.Second,
		CompletionTimeoutPerGiB:           150 * time.Second,
		MaxDowntime:                       900 * time.Millisecond,
		UtilityVolumesTimeout:             150 * time.Second,
		MatchSELinuxLevelOnMigration:      true,
	}
	if diff := cmp.Diff(want, migration.DefaultCluster()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		name    string
		written migration.ClusterOverrides
		want    func(*migration.Cluster)
	}{
		{"nothing written is the default", migration.ClusterOverrides{}, func(*migration.Cluster) {}},
		{
			"a written zero is not the default",
			migration.ClusterOverrides{ProgressTimeout: new(time.Duration(0)),
				ParallelMigrationsPerCluster: new(0), NodeDrainTaintKey: new("")},
			func(c *migration.Cluster) {
				c.ProgressTimeout, c.ParallelMigrationsPerCluster, c.NodeDrainTaintKey = 0, 0, ""
			},
		},
		{
			"disruption follows post-copy",
			migration.ClusterOverrides{AllowPostCopy: new(true)},
			func(c *migration.Cluster) { c.AllowPostCopy, c.AllowWorkloadDisruption = true, true },
		},
		{
			"disruption that is written does not follow post-copy",
			migration.ClusterOverrides{
				AllowPostCopy: new(true), AllowWorkloadDisruption: new(false)},
			func(c *migration.Cluster) { c.AllowPostCopy = true },
		},
		{
			"post-copy does not follow disruption",
			migration.ClusterOverrides{AllowWorkloadDisruption: new(true)},
			func(c *migration.Cluster) { c.AllowWorkloadDisruption = true },
		},
		{
			"an inbound limit, which KubeVirt lacks, may be written",
			migration.ClusterOverrides{ParallelInboundMigrationsPerNode: new(3)},
			func(c *migration.Cluster) { c.ParallelInboundMigrationsPerNode = 3 },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := migration.DefaultCluster()
			tt.want(&want)
			if diff := cmp.Diff(want, tt.written.Complete()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var applying = []struct {
	name      string
	overrides migration.OptionsOverrides
	want      func(*migration.Options) // what becomes of those in permissive()
}{
	{"nothing set inherits everything", migration.OptionsOverrides{}, func(*migration.Options) {}},
	{
		"a zero overrides",
		migration.OptionsOverrides{
			BandwidthPerMigration:   new(hypervisor.Bandwidth(0)),
			CompletionTimeoutPerGiB: new(time.Duration(0)),
			MaxDowntime:             new(time.Duration(0)),
			AllowAutoConverge:       new(false),
		},
		func(o *migration.Options) {
			o.Bandwidth, o.CompletionTimeoutPerGiB, o.MaxDowntime = 0, 0, 0
			o.AllowAutoConverge = false
		},
	},
	{
		"without post-copy there is no disruption either",
		migration.OptionsOverrides{AllowPostCopy: new(false)},
		func(o *migration.Options) { o.AllowPostCopy, o.AllowWorkloadDisruption = false, false },
	},
	{
		"disruption that is set does not follow post-copy",
		migration.OptionsOverrides{AllowPostCopy: new(false), AllowWorkloadDisruption: new(true)},
		func(o *migration.Options) { o.AllowPostCopy = false },
	},
	{
		"no disruption leaves post-copy as it is",
		migration.OptionsOverrides{AllowWorkloadDisruption: new(false)},
		func(o *migration.Options) { o.AllowWorkloadDisruption = false },
	},
	{
		"nothing experimental is the same as none",
		migration.OptionsOverrides{Experimental: &migration.Experimental{}},
		func(*migration.Options) {},
	},
	{
		"an empty stall detector has all defaults",
		migration.OptionsOverrides{Experimental: &migration.Experimental{
			StallDetector: &migration.StallDetectorOverrides{}}},
		func(o *migration.Options) {
			o.StallDetector = &migration.StallDetector{StallMargin: 4, EWMAAlpha: 0.4,
				StallProgressTimeout: 40 * time.Second, SwitchoverTimeout: time.Minute,
				PrecopyPossibleFactor: 1.5, PatienceWindowDecayFactor: 0.5,
				SearchLocalMinima: true, CompletionTimeoutFactor: 2}
		},
	},
	{
		"a stall detector keeps a zero that is set",
		migration.OptionsOverrides{Experimental: &migration.Experimental{
			StallDetector: &migration.StallDetectorOverrides{
				StallMargin: new(0), SearchLocalMinima: new(false)}}},
		func(o *migration.Options) {
			d := convergence.DefaultStallDetector()
			d.StallMargin, d.SearchLocalMinima = 0, false
			o.StallDetector = &d
		},
	},
	{
		"downtime tuning takes what is set and defaults the rest",
		migration.OptionsOverrides{Experimental: &migration.Experimental{
			DowntimeTuning: &migration.DowntimeTuningOverrides{Steps: new(2)}}},
		func(o *migration.Options) {
			o.DowntimeTuning = &migration.DowntimeTuning{Initial: 150 * time.Millisecond,
				Steps: 2, StartAfterIteration: 3, Cooldown: 10 * time.Second}
		},
	},
	{
		"compression keeps its word",
		migration.OptionsOverrides{Experimental: &migration.Experimental{
			Compression: new(migration.CompressionZstd)}},
		func(o *migration.Options) { o.Compression = migration.CompressionZstd },
	},
}

// permissive returns options in which everything is on that a policy can set.
func permissive() migration.Options {
	o := migration.DefaultCluster().Options()
	o.AllowAutoConverge, o.AllowPostCopy, o.AllowWorkloadDisruption = true, true, true
	o.Bandwidth = hypervisor.Gbit
	return o
}

func TestApply(t *testing.T) {
	for _, tt := range applying {
		t.Run(tt.name, func(t *testing.T) {
			want := permissive()
			tt.want(&want)
			if diff := cmp.Diff(want, tt.overrides.Apply(permissive())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveCarriesWhatNoPolicyCanSet(t *testing.T) {
	c := migration.DefaultCluster()
	c.UnsafeMigrationOverride, c.DisableTLS, c.Network = true, true, "fast"
	c.MatchSELinuxLevelOnMigration = false
	c.ProgressTimeout, c.UtilityVolumesTimeout = time.Second, time.Minute
	want := migration.Options{
		CompletionTimeoutPerGiB: 150 * time.Second,
		ProgressTimeout:         time.Second,
		MaxDowntime:             900 * time.Millisecond,
		UtilityVolumesTimeout:   time.Minute,
		UnsafeMigrationOverride: true,
		DisableTLS:              true,
		Encryption:              migration.EncryptionOff,
		Network:                 "fast",
	}
	got, name := migration.ResolveOptions(c, nil, nil, nil)
	if diff := cmp.Diff(want, got); diff != "" || name != "" {
		t.Errorf("won by %q (-want +got):\n%s", name, diff)
	}
}

func TestOnlyZstdCompresses(t *testing.T) {
	for word, want := range map[migration.Compression]bool{
		"": false, migration.CompressionNone: false, migration.CompressionZstd: true, "lz4": false,
	} {
		if got := word.On(); got != want {
			t.Errorf("%q compresses: %t, want %t", word, got, want)
		}
	}
}
