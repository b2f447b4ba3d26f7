package convergence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
)

func names(rules []rule) []string {
	var all []string
	for _, r := range rules {
		all = append(all, r.name)
	}
	return all
}

func TestTheOrderOfTheRules(t *testing.T) {
	for _, row := range []struct {
		name  string
		rules []rule
		want  []string
	}{
		{"Legacy is KubeVirt's order, the limit last", legacyRules[:], []string{
			"in post-copy", "over budget: assist", "no progress", "over budget",
			"downtime limit"}},
		{"Watermark asks for the least harm first", watermarkRules[:], []string{
			"in post-copy", "cancel under way", "source has stopped", "no data moves",
			"stopped so that it ends", "over budget: post-copy", "over budget: stop the guest",
			"over budget",
			"needs help: use the whole downtime", "needs help: post-copy",
			"needs help: stop the guest", "stalled", "downtime limit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, names(row.rules)); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// A rule that is not asked because nothing is the matter would not have held.
func TestNoRuleHoldsOutsideOfItsPlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.IntRange(0, 3)
		span := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(-2, 9).Draw(t, "s")) * time.Second
		})
		yes := rapid.Bool()
		l := evaluation{since: span.Draw(t, "since"), left: span.Draw(t, "left")}
		l.c = Config{ProgressTimeout: span.Draw(t, "patience"), AllowPostCopy: yes.Draw(t, "p"),
			AllowWorkloadDisruption: yes.Draw(t, "disrupt"), VFIO: yes.Draw(t, "vfio")}
		l.p = sample{Status: rapid.SampledFrom([]hypervisor.JobStatus{hypervisor.JobActive,
			hypervisor.JobActive, hypervisor.JobSetup, hypervisor.JobSwitching}).Draw(t, "status"),
			Iteration: few.Draw(t, "pass"), Remaining: hypervisor.Bytes(few.Draw(t, "rest"))}
		l.s = State{Iteration: 3, Bandwidth: float64(few.Draw(t, "speed")),
			Aborting: yes.Draw(t, "aborting"), Paused: yes.Draw(t, "paused"),
			Refusals: Refusals{Pause: few.Draw(t, "no pause"), PostCopy: few.Draw(t, "no copy")}}
		l.s.Limit.Now = span.Draw(t, "limit")
		l.s.Watermark = WatermarkState{MovedAt: span.Draw(t, "moved"),
			LowAt: span.Draw(t, "low"), LowIteration: rapid.IntRange(0, 1).Draw(t, "low pass"),
			PassStart: hypervisor.Bytes(few.Draw(t, "start"))}
		l.need = l.needsHelp()
		for _, r := range watermarkRules {
			if r.when&^l.plight() != 0 && r.holds(l) {
				t.Errorf("%q holds", r.name)
			}
		}
	})
}

// What a guest with a working set has dirtied after a while, counted, is never more than what
// two passes of it lead to expect; of one without, it is exactly that.
func TestWhatIsDirtiedInAPassIsBoundedByTwoPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 4000).Draw(t, "bytes a second")
		set := rapid.Int64Range(1, 1_000_000).Draw(t, "working set")
		dirtied := func(after time.Duration) hypervisor.Bytes {
			return hypervisor.Bytes(min(set, rate*int64(after/time.Second)))
		}
		span := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(1, 900).Draw(t, "s")) * time.Second
		})
		first, last, after := span.Draw(t, "first"), span.Draw(t, "last"), span.Draw(t, "after")
		l := evaluation{c: Config{Memory: 4 * hypervisor.GiB}, s: State{Iteration: 3,
			Watermark: WatermarkState{FirstTook: first, FirstLeft: dirtied(first),
				PassTook: last, PassStart: dirtied(last)}}}
		got := l.dirtied(after)
		if real := dirtied(after); got < real-1 {
			t.Fatalf("%d were dirtied, and %d expected at most", real, got)
		}
		if even := rate*900 < set && first > 2*last; even && got > dirtied(after)+2 {
			t.Fatalf("it writes evenly: %d were dirtied, and %d expected", dirtied(after), got)
		}
	})
}
