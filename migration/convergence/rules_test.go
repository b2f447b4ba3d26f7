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
			"blackout limit"}},
		{"Watermark asks for the least harm first", watermarkRules[:], []string{
			"in post-copy", "cancel under way", "source has stopped", "no data moves",
			"over budget: post-copy", "over budget", "stopped so that it ends",
			"needs help: use the whole blackout", "needs help: post-copy",
			"needs help: stop the guest", "stalled", "blackout limit"}},
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
		l := look{since: span.Draw(t, "since"), left: span.Draw(t, "left")}
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
