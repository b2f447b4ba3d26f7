package convergence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A pass is what is left when a pass begins, and when that is.
type forecastPass struct {
	at   time.Duration
	left hypervisor.Bytes
}

// asks lets Converge look at the beginning of each pass, at 1 GB/s; it accepts everything.
func asks(c convergence.Config, passes []forecastPass) []string {
	var s convergence.State
	var list []string
	for i, p := range passes {
		now := epoch.Add(p.at)
		next, v := convergence.ConvergeByForecast(c, s, hypervisor.Progress{Status: hypervisor.JobActive,
			Started: epoch, Iteration: i + 1, Total: 8e9, Sent: hypervisor.Bytes(p.at),
			Remaining: p.left, Bandwidth: 1e9}, now)
		list = append(list, v.String())
		s = next.Accepted(v, now)
	}
	return list
}

const second = time.Second

func TestTheLimitFollowsTheForecast(t *testing.T) {
	most := convergence.Config{MaxDowntime: 500 * time.Millisecond}
	post := most
	post.AllowPostCopy = true
	const first, wait = "SetDowntime 100ms (tuning)", "Continue"
	for _, row := range []struct {
		name   string
		config convergence.Config
		passes []forecastPass
		want   []string
	}{
		{"passes that shrink are left alone", most, []forecastPass{{0, 8e9}, {8 * second, 4e9},
			{12 * second, 2e9}, {14 * second, 1e9}}, []string{first, wait, wait, wait}},
		{"what stays the same and fits, is let through", most, []forecastPass{{0, 8e9},
			{8 * second, 200e6}, {9 * second, 200e6}}, []string{first, wait,
			"SetDowntime 240ms (tuning)"}},
		{"what stays the same and does not fit gets the usual, and later all", most,
			[]forecastPass{{0, 8e9}, {8 * second, 2e9}, {10 * second, 2e9}, {12 * second, 2e9},
				{71 * second, 2e9}}, []string{first, wait, "SetDowntime 300ms (tuning)", wait,
				"SetDowntime 500ms (tuning)"}},
		{"a pass that shrank is hope", most, []forecastPass{{0, 8e9}, {8 * second, 2e9},
			{10 * second, 2e9}, {70 * second, 1e9}, {71 * second, 1e9}}, []string{first, wait,
			"SetDowntime 300ms (tuning)", wait, wait}},
		{"post-copy ends what does not fit", post, []forecastPass{{0, 8e9}, {8 * second, 2e9},
			{10 * second, 2e9}, {12 * second, 2e9}}, []string{first, wait,
			"StartPostCopy (stalled)", wait}},
		{"never more than is allowed", convergence.Config{MaxDowntime: 150 * time.Millisecond},
			[]forecastPass{{0, 8e9}, {8 * second, 140e6}, {9 * second, 140e6}}, []string{first, wait,
				"SetDowntime 150ms (tuning)"}},
	} {
		if diff := cmp.Diff(row.want, asks(row.config, row.passes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestWatermarkStillGivesUp(t *testing.T) {
	c := convergence.Config{ProgressTimeout: 30 * second, MaxDowntime: 100 * time.Millisecond}
	passes := []forecastPass{{0, 8e9}}
	for at := 8 * second; at < 60*second; at += 2 * second {
		passes = append(passes, forecastPass{at, 2e9})
	}
	if all := asks(c, passes); !slices.Contains(all, "Abort (stalled)") {
		t.Errorf("a transfer that cannot end is not given up: %s", all)
	}
}

// forecastSpan draws up to most units of time.
func forecastSpan(t *rapid.T, what string, most int, unit time.Duration) time.Duration {
	return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * unit
}

func TestNothingIsAskedForThatIsForbidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := convergence.Config{
			MaxDowntime:             forecastSpan(t, "downtime", 900, time.Millisecond),
			ProgressTimeout:         forecastSpan(t, "patience", 60, second),
			CompletionTimeoutPerGiB: forecastSpan(t, "budget", 60, second),
			AllowPostCopy:           rapid.Bool().Draw(t, "post-copy"),
			AllowWorkloadDisruption: rapid.Bool().Draw(t, "disruption"),
			VFIO:                    rapid.Bool().Draw(t, "VFIO")}
		var s convergence.State
		at, longest := epoch, max(c.MaxDowntime, time.Millisecond)
		if c.MaxDowntime == 0 {
			longest = 900 * time.Millisecond
		}
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.IntRange(-1, 20).Draw(t, "later")) * second)
			p := hypervisor.Progress{Started: epoch, Total: 8e9,
				Status:    hypervisor.JobStatus(rapid.IntRange(0, 7).Draw(t, "status")),
				Mode:      hypervisor.Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
				Iteration: rapid.IntRange(-1, 9).Draw(t, "pass"),
				Remaining: hypervisor.Bytes(rapid.Int64Range(-1, 8e9).Draw(t, "remaining")),
				Sent:      hypervisor.Bytes(rapid.Int64Range(0, 8e9).Draw(t, "sent")),
				Bandwidth: hypervisor.Bandwidth(rapid.Int64Range(-1, 2e9).Draw(t, "speed"))}
			next, v := convergence.ConvergeByForecast(c, s, p, at)
			switch {
			case v.Action == convergence.StartPostCopy && (!c.AllowPostCopy || c.VFIO),
				v.Action == convergence.Pause && !c.AllowWorkloadDisruption,
				v.Why == convergence.Tuning && (v.Limit > longest || v.Limit <= 0),
				v.Why == convergence.Tuning && v.Limit <= s.Limit.Now:
				t.Fatalf("%v of %+v in %+v under %+v", v, p, s, c)
			}
			if s = next.Accepted(v, at); rapid.Bool().Draw(t, "refused") {
				s = next.Refused(v)
			}
		}
	})
}
