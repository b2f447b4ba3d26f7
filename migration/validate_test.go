package migration_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

type (
	stall  = migration.StallDetectorOverrides
	tuning = migration.DowntimeTuningOverrides
)

// experimental returns overrides with one stall detector or one tuning.
func experimental[T stall | tuning](o T) migration.OptionsOverrides {
	e := &migration.Experimental{}
	switch o := any(o).(type) {
	case stall:
		e.StallDetector = &o
	case tuning:
		e.DowntimeTuning = &o
	}
	return migration.OptionsOverrides{Experimental: e}
}

var admitting = []struct {
	name      string
	overrides migration.OptionsOverrides
	want      []string
}{
	{name: "no overrides are fine"},
	{name: "an empty stall detector is fine", overrides: experimental(stall{})},
	{name: "empty tuning is fine", overrides: experimental(tuning{})},
	{
		name: "zeros are fine where they mean something",
		overrides: migration.OptionsOverrides{
			BandwidthPerMigration:   new(hypervisor.Bandwidth(0)),
			CompletionTimeoutPerGiB: new(time.Duration(0)),
		},
	},
	{
		name: "negative numbers are refused, all of them",
		overrides: migration.OptionsOverrides{
			BandwidthPerMigration:   new(hypervisor.Bandwidth(-1)),
			CompletionTimeoutPerGiB: new(-time.Second),
			MaxDowntime:             new(-time.Second),
		},
		want: []string{
			"bandwidthPerMigration: needs 0 (no cap) or more, has -1B/s",
			"completionTimeoutPerGiB: needs 0s or more, has -1s",
			"maxDowntimeMs: needs 1ms to 2000s, has -1s",
		},
	},
	{
		name:      "the longest downtime is fine",
		overrides: migration.OptionsOverrides{MaxDowntime: new(2000 * time.Second)},
	},
	{
		name:      "the shortest downtime is fine",
		overrides: migration.OptionsOverrides{MaxDowntime: new(time.Millisecond)},
	},
	{
		name:      "a longer downtime is refused",
		overrides: migration.OptionsOverrides{MaxDowntime: new(2000*time.Second + time.Millisecond)},
		want:      []string{"maxDowntimeMs: needs 1ms to 2000s, has 33m20.001s"},
	},
	{
		name:      "no downtime is refused",
		overrides: migration.OptionsOverrides{MaxDowntime: new(time.Duration(0))},
		want:      []string{"maxDowntimeMs: needs 1ms to 2000s, has 0s"},
	},
	{
		name: "a stall detector and tuning exclude each other",
		overrides: migration.OptionsOverrides{Experimental: &migration.Experimental{
			StallDetector: &stall{}, DowntimeTuning: &tuning{}}},
		want: []string{"experimental.downtimeTuning: needs no stallDetector beside it, has one"},
	},
	{
		name: "the bounds of the stall detector are inside",
		overrides: experimental(stall{StallMargin: new(100), EWMAAlpha: new(1.0),
			StallProgressTimeout: new(time.Duration(0)), SwitchoverTimeout: new(time.Duration(0)),
			PrecopyPossibleFactor: new(1.0), PatienceWindowDecayFactor: new(0.0),
			CompletionTimeoutFactor: new(1.0)}),
	},
	{
		name: "just beyond the lower bounds is refused",
		overrides: experimental(stall{StallMargin: new(-1), EWMAAlpha: new(0.0),
			StallProgressTimeout: new(time.Duration(-1)), SwitchoverTimeout: new(time.Duration(-1)),
			PrecopyPossibleFactor: new(0.999), PatienceWindowDecayFactor: new(-0.001),
			CompletionTimeoutFactor: new(0.999)}),
		want: []string{
			"experimental.stallDetector.stallMargin: needs 0 to 100 percent, has -1",
			"experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has 0",
			"experimental.stallDetector.stallProgressTimeout: needs 0s or more, has -1ns",
			"experimental.stallDetector.switchoverTimeout: needs 0s or more, has -1ns",
			"experimental.stallDetector.precopyPossibleFactor: needs 1 or more, has 0.999",
			"experimental.stallDetector.patienceWindowDecayFactor: needs 0 to 1, has -0.001",
			"experimental.stallDetector.completionTimeoutFactor: needs 1 or more, has 0.999",
		},
	},
	{
		name: "just beyond the upper bounds is refused",
		overrides: experimental(stall{StallMargin: new(101), EWMAAlpha: new(1.001),
			PatienceWindowDecayFactor: new(1.001)}),
		want: []string{
			"experimental.stallDetector.stallMargin: needs 0 to 100 percent, has 101",
			"experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has 1.001",
			"experimental.stallDetector.patienceWindowDecayFactor: needs 0 to 1, has 1.001",
		},
	},
	{
		name:      "a fourth decimal is refused, beside the range",
		overrides: experimental(stall{EWMAAlpha: new(1.0005), CompletionTimeoutFactor: new(2.125)}),
		want: []string{
			"experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has 1.0005",
			"experimental.stallDetector.ewmaAlpha: needs at most 3 decimals, has 1.0005",
		},
	},
	{
		name: "what is no number is refused once",
		overrides: experimental(stall{EWMAAlpha: new(math.NaN()),
			PrecopyPossibleFactor: new(math.Inf(1))}),
		want: []string{
			"experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has NaN",
			"experimental.stallDetector.precopyPossibleFactor: needs 1 or more, has +Inf",
		},
	},
	{
		name: "the bounds of tuning are inside",
		overrides: experimental(tuning{Initial: new(time.Millisecond), Steps: new(1),
			StartAfterIteration: new(1), Cooldown: new(time.Second)}),
	},
	{
		name: "tuning needs at least one of everything",
		overrides: experimental(tuning{Initial: new(time.Duration(0)), Steps: new(0),
			StartAfterIteration: new(0), Cooldown: new(time.Duration(0))}),
		want: []string{
			"experimental.downtimeTuning.initialMs: needs 1ms or more, has 0s",
			"experimental.downtimeTuning.steps: needs 1 or more, has 0",
			"experimental.downtimeTuning.startAfterIteration: needs 1 or more, has 0",
			"experimental.downtimeTuning.cooldownSeconds: needs 1s or more, has 0s",
		},
	},
	{
		name: "an unknown compression is refused",
		overrides: migration.OptionsOverrides{Experimental: &migration.Experimental{
			Compression: new(migration.Compression("lz4"))}},
		want: []string{`experimental.compression: needs "none" or "zstd", has "lz4"`},
	},
}

// texts returns the problems as a person reads them.
func texts(problems []migration.PolicyProblem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func TestValidatePolicy(t *testing.T) {
	for _, tt := range admitting {
		t.Run(tt.name, func(t *testing.T) {
			p := migration.Policy{Name: "p", OptionsOverrides: tt.overrides}
			if diff := cmp.Diff(tt.want, texts(p.Validate())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPolicyNeedsAName(t *testing.T) {
	want := []string{"name: needs a name, has none"}
	if diff := cmp.Diff(want, texts(migration.Policy{}.Validate())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheDefaultClusterIsValid(t *testing.T) {
	if got := migration.DefaultCluster().Validate(); got != nil {
		t.Errorf("the default has problems: %v", got)
	}
}

func TestValidateClusterReportsEverything(t *testing.T) {
	want := []string{
		"parallelMigrationsPerCluster: needs 0 or more, has -1",
		"parallelOutboundMigrationsPerNode: needs 0 or more, has -2",
		"parallelInboundMigrationsPerNode: needs 0 or more, has -3",
		"bandwidthPerMigration: needs 0 (no cap) or more, has -4B/s",
		"progressTimeout: needs 0s or more, has -5s",
		"completionTimeoutPerGiB: needs 0s or more, has -6s",
		"maxDowntimeMs: needs 1ms to 2000s, has 0s",
		"utilityVolumesTimeout: needs 0s or more, has -7s",
	}
	got := migration.Cluster{
		ParallelMigrationsPerCluster:      -1,
		ParallelOutboundMigrationsPerNode: -2,
		ParallelInboundMigrationsPerNode:  -3,
		BandwidthPerMigration:             -4,
		ProgressTimeout:                   -5 * time.Second,
		CompletionTimeoutPerGiB:           -6 * time.Second,
		UtilityVolumesTimeout:             -7 * time.Second,
	}.Validate()
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOverlaps(t *testing.T) {
	got := migration.OverlappingPolicies([]migration.Policy{
		selecting("z", labels{"b": "2", "a": "1"}, nil),
		selecting("all-2", nil, nil),
		selecting("other", labels{"a": "1"}, labels{"b": "2"}), // the same labels, on another
		selecting("y", labels{"a": "1", "b": "2"}, labels{}),
		selecting("quoted", labels{`a"="1","b`: "2"}, nil), // not those of y in one key
		{Name: "none-1"}, {Name: "none-2"},
		selecting("all-1", labels{}, nil),
		selecting("twin", labels{"a": "3"}, nil), selecting("twin", labels{"a": "3"}, nil),
	})
	want := []string{
		"selectors of all-2: needs labels that no other policy selects, " +
			"has those of all-1, which always wins",
		`name: needs a name that no other policy has, has "twin" twice`,
		"selectors of z: needs labels that no other policy selects, " +
			"has those of y, which always wins",
	}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
