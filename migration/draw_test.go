package migration_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// A world is everything that a resolution depends on. Labels are drawn from so
// few that policies match often, tie often, and miss by one label often.
type world struct {
	cluster       migration.Cluster
	policies      []migration.Policy
	vm, namespace labels
}

// drawWorld draws a world in which every map may be nil.
func drawWorld(t *rapid.T) world {
	return world{
		cluster:   drawCluster(t),
		policies:  drawPolicies(t),
		vm:        drawLabels(t, "VM labels"),
		namespace: drawLabels(t, "namespace labels"),
	}
}

// drawKnownWorld draws a world in which the labels of VM and namespace are not
// nil.
func drawKnownWorld(t *rapid.T) world {
	w := drawWorld(t)
	if w.vm == nil {
		w.vm = labels{}
	}
	if w.namespace == nil {
		w.namespace = labels{}
	}
	return w
}

func drawLabels(t *rapid.T, what string) labels {
	if rapid.IntRange(0, 5).Draw(t, what+" are nil") == 0 {
		return nil
	}
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}),
		rapid.SampledFrom([]string{"1", "1", "1", "2", ""}), 0, 4).Draw(t, what)
}

// drawPolicies draws policies with different names, in any order.
func drawPolicies(t *rapid.T) []migration.Policy {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "b", "p-1", "p-10", "p-2", "P", "zeta"}), 0, 7, rapid.ID).Draw(t, "names")
	var all []migration.Policy
	for _, name := range names {
		p := migration.Policy{Name: name, OptionsOverrides: drawOverrides(t)}
		if rapid.IntRange(0, 7).Draw(t, "has no selectors") > 0 {
			p.Selectors = &migration.Selectors{
				VM: drawLabels(t, "selects VM"), Namespace: drawLabels(t, "selects namespace")}
		}
		all = append(all, p)
	}
	return all
}

var (
	durations = rapid.Map(rapid.SampledFrom([]int64{-1000, 0, 1, 900, 40_000, 150_000, 2_000_001}),
		func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
	bandwidths = rapid.Map(rapid.SampledFrom([]int64{-1, 0, 64 << 20, math.MaxInt64}),
		func(b int64) hypervisor.Bandwidth { return hypervisor.Bandwidth(b) })
	counts  = rapid.IntRange(-1, 101)
	factors = rapid.Custom(func(t *rapid.T) float64 {
		if rapid.Bool().Draw(t, "usual") {
			return float64(rapid.IntRange(0, 3000).Draw(t, "thousandths")) / 1000
		}
		return rapid.Float64().Draw(t, "odd")
	})
	compressions = rapid.SampledFrom([]migration.Compression{"", "none", "zstd", "lz4"})
)

// maybe draws a pointer to what g draws, or nil.
func maybe[T any](t *rapid.T, g *rapid.Generator[T], what string) *T {
	return rapid.Ptr(g, true).Draw(t, what)
}

func drawOverrides(t *rapid.T) migration.OptionsOverrides {
	o := migration.OptionsOverrides{
		AllowAutoConverge:       maybe(t, rapid.Bool(), "auto-converge"),
		AllowPostCopy:           maybe(t, rapid.Bool(), "post-copy"),
		AllowWorkloadDisruption: maybe(t, rapid.Bool(), "disruption"),
		BandwidthPerMigration:   maybe(t, bandwidths, "bandwidth"),
		CompletionTimeoutPerGiB: maybe(t, durations, "completion"),
		MaxDowntime:             maybe(t, durations, "downtime"),
	}
	if rapid.Bool().Draw(t, "experimental") {
		o.Experimental = &migration.Experimental{
			StallDetector:  maybe(t, rapid.Custom(drawStall), "stall detector"),
			DowntimeTuning: maybe(t, rapid.Custom(drawTuning), "tuning"),
			Compression:    maybe(t, compressions, "compression"),
		}
	}
	return o
}

func drawStall(t *rapid.T) stall {
	return stall{
		StallMargin:               maybe(t, counts, "margin"),
		EWMAAlpha:                 maybe(t, factors, "alpha"),
		StallProgressTimeout:      maybe(t, durations, "progress"),
		SwitchoverTimeout:         maybe(t, durations, "switch-over"),
		PrecopyPossibleFactor:     maybe(t, factors, "possible"),
		PatienceWindowDecayFactor: maybe(t, factors, "decay"),
		SearchLocalMinima:         maybe(t, rapid.Bool(), "minima"),
		CompletionTimeoutFactor:   maybe(t, factors, "completion factor"),
	}
}

func drawTuning(t *rapid.T) tuning {
	return tuning{
		Initial:             maybe(t, durations, "initial"),
		Steps:               maybe(t, counts, "steps"),
		StartAfterIteration: maybe(t, counts, "start"),
		Cooldown:            maybe(t, durations, "cooldown"),
	}
}

func drawCluster(t *rapid.T) migration.Cluster {
	return migration.ClusterOverrides{
		ParallelMigrationsPerCluster:      maybe(t, counts, "per cluster"),
		ParallelOutboundMigrationsPerNode: maybe(t, counts, "outbound"),
		ParallelInboundMigrationsPerNode:  maybe(t, counts, "inbound"),
		BandwidthPerMigration:             maybe(t, bandwidths, "bandwidth"),
		ProgressTimeout:                   maybe(t, durations, "progress"),
		CompletionTimeoutPerGiB:           maybe(t, durations, "completion"),
		MaxDowntime:                       maybe(t, durations, "downtime"),
		UtilityVolumesTimeout:             maybe(t, durations, "utility volumes"),
		UnsafeMigrationOverride:           maybe(t, rapid.Bool(), "unsafe"),
		AllowAutoConverge:                 maybe(t, rapid.Bool(), "auto-converge"),
		AllowPostCopy:                     maybe(t, rapid.Bool(), "post-copy"),
		AllowWorkloadDisruption:           maybe(t, rapid.Bool(), "disruption"),
		DisableTLS:                        maybe(t, rapid.Bool(), "no TLS"),
		MatchSELinuxLevelOnMigration:      maybe(t, rapid.Bool(), "SELinux"),
	}.Complete()
}
