package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/policy"
)

func TestDefault(t *testing.T) {
	want := policy.Cluster{
		ParallelMigrationsPerCluster:      5,
		ParallelOutboundMigrationsPerNode: 2,
		NodeDrainTaintKey:                 "kubevirt.io/drain",
		ProgressTimeout:                   150 * time.Second,
		CompletionTimeoutPerGiB:           150 * time.Second,
		MaxDowntime:                       900 * time.Millisecond,
		UtilityVolumesTimeout:             150 * time.Second,
		MatchSELinuxLevelOnMigration:      true,
	}
	if diff := cmp.Diff(want, policy.Default()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		name    string
		written policy.ClusterOverrides
		want    func(*policy.Cluster)
	}{
		{"nothing written is the default", policy.ClusterOverrides{}, func(*policy.Cluster) {}},
		{
			"a written zero is not the default",
			policy.ClusterOverrides{ProgressTimeout: new(time.Duration(0)),
				ParallelMigrationsPerCluster: new(0), NodeDrainTaintKey: new("")},
			func(c *policy.Cluster) {
				c.ProgressTimeout, c.ParallelMigrationsPerCluster, c.NodeDrainTaintKey = 0, 0, ""
			},
		},
		{
			"disruption follows post-copy",
			policy.ClusterOverrides{AllowPostCopy: new(true)},
			func(c *policy.Cluster) { c.AllowPostCopy, c.AllowWorkloadDisruption = true, true },
		},
		{
			"disruption that is written does not follow post-copy",
			policy.ClusterOverrides{
				AllowPostCopy: new(true), AllowWorkloadDisruption: new(false)},
			func(c *policy.Cluster) { c.AllowPostCopy = true },
		},
		{
			"post-copy does not follow disruption",
			policy.ClusterOverrides{AllowWorkloadDisruption: new(true)},
			func(c *policy.Cluster) { c.AllowWorkloadDisruption = true },
		},
		{
			"an inbound limit, which KubeVirt lacks, may be written",
			policy.ClusterOverrides{ParallelInboundMigrationsPerNode: new(3)},
			func(c *policy.Cluster) { c.ParallelInboundMigrationsPerNode = 3 },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := policy.Default()
			tt.want(&want)
			if diff := cmp.Diff(want, tt.written.Complete()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var applying = []struct {
	name      string
	overrides policy.Overrides
	want      func(*policy.Options) // what becomes of those in permissive()
}{
	{"nothing set inherits everything", policy.Overrides{}, func(*policy.Options) {}},
	{
		"a zero overrides",
		policy.Overrides{
			BandwidthPerMigration:   new(hypervisor.Bandwidth(0)),
			CompletionTimeoutPerGiB: new(time.Duration(0)),
			MaxDowntime:             new(time.Duration(0)),
			AllowAutoConverge:       new(false),
		},
		func(o *policy.Options) {
			o.Bandwidth, o.CompletionTimeoutPerGiB, o.MaxDowntime = 0, 0, 0
			o.AllowAutoConverge = false
		},
	},
	{
		"without post-copy there is no disruption either",
		policy.Overrides{AllowPostCopy: new(false)},
		func(o *policy.Options) { o.AllowPostCopy, o.AllowWorkloadDisruption = false, false },
	},
	{
		"disruption that is set does not follow post-copy",
		policy.Overrides{AllowPostCopy: new(false), AllowWorkloadDisruption: new(true)},
		func(o *policy.Options) { o.AllowPostCopy = false },
	},
	{
		"no disruption leaves post-copy as it is",
		policy.Overrides{AllowWorkloadDisruption: new(false)},
		func(o *policy.Options) { o.AllowWorkloadDisruption = false },
	},
	{
		"nothing experimental is the same as none",
		policy.Overrides{Experimental: &policy.Experimental{}},
		func(*policy.Options) {},
	},
	{
		"an empty stall detector has all defaults",
		policy.Overrides{Experimental: &policy.Experimental{
			StallDetector: &policy.StallDetectorOverrides{}}},
		func(o *policy.Options) {
			o.StallDetector = &policy.StallDetector{StallMargin: 4, EWMAAlpha: 0.4,
				StallProgressTimeout: 40 * time.Second, SwitchoverTimeout: time.Minute,
				PrecopyPossibleFactor: 1.5, PatienceWindowDecayFactor: 0.5,
				SearchLocalMinima: true, CompletionTimeoutFactor: 2}
		},
	},
	{
		"a stall detector keeps a zero that is set",
		policy.Overrides{Experimental: &policy.Experimental{
			StallDetector: &policy.StallDetectorOverrides{
				StallMargin: new(0), SearchLocalMinima: new(false)}}},
		func(o *policy.Options) {
			d := policy.DefaultStallDetector()
			d.StallMargin, d.SearchLocalMinima = 0, false
			o.StallDetector = &d
		},
	},
	{
		"downtime tuning takes what is set and defaults the rest",
		policy.Overrides{Experimental: &policy.Experimental{
			DowntimeTuning: &policy.DowntimeTuningOverrides{Steps: new(2)}}},
		func(o *policy.Options) {
			o.DowntimeTuning = &policy.DowntimeTuning{Initial: 150 * time.Millisecond,
				Steps: 2, StartAfterIteration: 3, Cooldown: 10 * time.Second}
		},
	},
	{
		"compression keeps its word",
		policy.Overrides{Experimental: &policy.Experimental{
			Compression: new(policy.CompressionZstd)}},
		func(o *policy.Options) { o.Compression = policy.CompressionZstd },
	},
}

// permissive returns options in which everything is on that a policy can set.
func permissive() policy.Options {
	o := policy.Default().Options()
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
	c := policy.Default()
	c.UnsafeMigrationOverride, c.DisableTLS, c.Network = true, true, "fast"
	c.MatchSELinuxLevelOnMigration = false
	c.ProgressTimeout, c.UtilityVolumesTimeout = time.Second, time.Minute
	want := policy.Options{
		CompletionTimeoutPerGiB: 150 * time.Second,
		ProgressTimeout:         time.Second,
		MaxDowntime:             900 * time.Millisecond,
		UtilityVolumesTimeout:   time.Minute,
		UnsafeMigrationOverride: true,
		DisableTLS:              true,
		Network:                 "fast",
	}
	got, name := policy.Resolve(c, nil, nil, nil)
	if diff := cmp.Diff(want, got); diff != "" || name != "" {
		t.Errorf("won by %q (-want +got):\n%s", name, diff)
	}
}

func TestOnlyZstdCompresses(t *testing.T) {
	for word, want := range map[policy.Compression]bool{
		"": false, policy.CompressionNone: false, policy.CompressionZstd: true, "lz4": false,
	} {
		if got := word.On(); got != want {
			t.Errorf("%q compresses: %t, want %t", word, got, want)
		}
	}
}
