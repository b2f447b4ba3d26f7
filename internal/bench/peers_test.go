package bench_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/bench"
	"github.com/godwit-vm/godwit/migration/convergence"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// An asked is a verdict and when it was given.
type asked struct {
	At   time.Duration
	What string
}

// watch lets a policy look every second at what remains, accepts all that it asks for, and
// returns that.
func watch(policy convergence.Policy, c convergence.Config, until time.Duration,
	remaining func(time.Duration) hypervisor.Bytes) []asked {
	var s convergence.State
	var list []asked
	for at := time.Duration(0); at <= until; at += time.Second {
		p := hypervisor.Progress{Status: hypervisor.JobActive, Started: epoch, Total: c.Memory,
			Remaining: remaining(at)}
		now := epoch.Add(at)
		next, v := policy(c, s, p, now)
		s = next
		if v != (convergence.Decision{}) {
			list = append(list, asked{at, v.String()})
			s = next.Accepted(v, now)
		}
	}
	return list
}

func flat(time.Duration) hypervisor.Bytes { return hypervisor.GiB }

// The defaults for 2 GiB: 50, 95, … 500 ms, one step every 150 s, and 1600 s in all.
func TestNovaRaisesTheLimitByTheClockAndEndsInTime(t *testing.T) {
	got := watch(bench.Nova, convergence.Config{Memory: 2 * hypervisor.GiB}, 1700*time.Second,
		flat)
	want := []asked{{time.Second, "SetDowntime 50ms (tuning)"}}
	for i, limit := range []string{"95", "140", "185", "230", "275", "320", "365", "410", "455",
		"500"} {
		want = append(want, asked{time.Duration(150*(i+1)+1) * time.Second,
			"SetDowntime " + limit + "ms (tuning)"})
	}
	want = append(want, asked{1601 * time.Second, "Abort (over-budget)"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what Nova asks for (-want +got):\n%s", diff)
	}
}

func TestNovaEndsAsItMay(t *testing.T) {
	for _, row := range []struct {
		name   string
		config convergence.Config
		want   string
	}{
		{"by post-copy", convergence.Config{AllowPostCopy: true, AllowWorkloadDisruption: true},
			"StartPostCopy (over-budget)"},
		{"by a pause", convergence.Config{AllowWorkloadDisruption: true}, "Pause (over-budget)"},
		{"not at all with devices", convergence.Config{AllowPostCopy: true, VFIO: true},
			"Abort (over-budget)"},
	} {
		row.config.Memory = hypervisor.GiB // counts as two
		all := watch(bench.Nova, row.config, 1602*time.Second, flat)
		if got := all[len(all)-1].What; got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// saw falls within each pass of so many seconds, and starts each from the same height.
func saw(pass time.Duration) func(time.Duration) hypervisor.Bytes {
	return func(at time.Duration) hypervisor.Bytes {
		return hypervisor.Bytes(pass-at%pass) * hypervisor.MiB
	}
}

// Each pass of 25 s is noticed at the first look, ten seconds after the last, that finds
// more left than before.
func TestOVirtTakesAStepForEachPassItNotices(t *testing.T) {
	for _, row := range []struct {
		name   string
		config convergence.Config
		want   []asked
	}{
		{"minimal downtime", convergence.Config{}, []asked{
			{0, "SetDowntime 100ms (tuning)"}, {50 * time.Second, "SetDowntime 150ms (tuning)"},
			{80 * time.Second, "SetDowntime 200ms (tuning)"},
			{100 * time.Second, "SetDowntime 300ms (tuning)"},
			{130 * time.Second, "SetDowntime 400ms (tuning)"},
			{180 * time.Second, "SetDowntime 500ms (tuning)"}, {200 * time.Second,
				"Abort (stalled)"}}},
		{"post-copy", convergence.Config{AllowPostCopy: true}, []asked{
			{0, "SetDowntime 100ms (tuning)"}, {50 * time.Second, "SetDowntime 150ms (tuning)"},
			{80 * time.Second, "SetDowntime 200ms (tuning)"},
			{100 * time.Second, "StartPostCopy (stalled)"}}},
		{"within the operator's ceiling", convergence.Config{MaxDowntime: 180 * time.Millisecond,
			AllowPostCopy: true}, []asked{
			{0, "SetDowntime 100ms (tuning)"}, {50 * time.Second, "SetDowntime 150ms (tuning)"},
			{80 * time.Second, "SetDowntime 180ms (tuning)"},
			{100 * time.Second, "StartPostCopy (stalled)"}}},
	} {
		got := watch(bench.OVirt, row.config, 5*time.Minute, saw(25*time.Second))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestOVirtTakesNoStepWhilePassesCannotBeTold(t *testing.T) {
	got := watch(bench.OVirt, convergence.Config{}, 5*time.Minute, saw(10*time.Second))
	want := []asked{{0, "SetDowntime 100ms (tuning)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("passes as long as the pulse look like none (-want +got):\n%s", diff)
	}
}

func TestPeersAskForNothingThatIsForbidden(t *testing.T) {
	policies := map[string]convergence.Policy{"Nova": bench.Nova, "oVirt": bench.OVirt}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Nova", "oVirt"}).Draw(t, "policy")
		c := convergence.Config{Memory: 2 * hypervisor.GiB,
			AllowPostCopy:           rapid.Bool().Draw(t, "post-copy"),
			AllowWorkloadDisruption: rapid.Bool().Draw(t, "disruption"),
			VFIO:                    rapid.Bool().Draw(t, "VFIO")}
		var s convergence.State
		at := epoch
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.IntRange(-1, 60).Draw(t, "later")) * time.Second)
			p := hypervisor.Progress{Started: epoch,
				Status:    hypervisor.JobStatus(rapid.IntRange(0, 7).Draw(t, "status")),
				Mode:      hypervisor.Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
				Remaining: hypervisor.Bytes(rapid.IntRange(-1, 9).Draw(t, "remaining"))}
			next, v := policies[name](c, s, p, at)
			over := p.Status != hypervisor.JobActive || p.Mode == hypervisor.PostCopy
			switch {
			case v.Action == convergence.StartPostCopy && (!c.AllowPostCopy || c.VFIO),
				v.Action == convergence.Pause && !c.AllowWorkloadDisruption,
				v.Action != convergence.Continue && over:
				t.Fatalf("%s asks for %v of %+v under %+v", name, v, p, c)
			}
			if s = next.Accepted(v, at); rapid.Bool().Draw(t, "refused") {
				s = next.Refused(v)
			}
		}
	})
}
