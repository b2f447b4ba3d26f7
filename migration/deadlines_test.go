package migration_test

import (
	"testing"
	"time"
)

// Every phase that is not final has its own bound, from when it is entered.
func TestDeadlines(t *testing.T) {
	own := 40 * time.Minute
	huge := time.Duration(1<<63 - 1)
	for _, c := range []struct {
		name, facts string
		change      func(*situation)
		want        time.Duration // after entering; 0 is none
	}{
		{"Pending begins in line", "phase=", nil, 0},
		{"which lasts as long as it is", "", func(s *situation) {
			s.state.Deadline, s.seen.Queued = time.Time{}, true
		}, 0},
		{"Pending waits a day for a host, or for what else is in the way", "",
			func(s *situation) { s.state.Deadline = time.Time{} }, 24 * time.Hour},
		{"of which nothing is given back", "", func(s *situation) { s.seen.Queued = true },
			time.Minute},
		{"Scheduling waits for the target", "target=starting", nil, 15 * time.Minute},
		{"Scheduling waits as long as this migration says", "target=starting",
			func(s *situation) { s.spec.Timeouts.Target = &own }, own},
		{"Scheduled waits for the hand-over", "phase=Scheduling target=ready", nil, time.Minute},
		{"PreparingTarget waits for the target to listen", placed + "claim=self named", nil,
			5 * time.Minute},
		{"TargetReady waits for the source to begin", handed + "address", nil, 2 * time.Minute},
		{"Running waits for the budget and the answer to an abort",
			"phase=TargetReady claim=self named address target=ready began started", nil,
			3 * time.Minute},
		{"without a budget it waits a day",
			"phase=TargetReady claim=self named address target=ready began started",
			func(s *situation) { s.state.Budget = 0 }, 24 * time.Hour},
		{"no budget is too large",
			"phase=TargetReady claim=self named address target=ready began started",
			func(s *situation) { s.state.Budget = huge }, huge},
		{"an end has none", moving + "completed arrived", nil, 0},
		{"a migration that KubeVirt's rules left without one gets one", placed + "target=starting",
			nil, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSituation(false)
			if err := s.learn(c.facts); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(&s)
			}
			got := s.step().State.Deadline
			if c.want == 0 && !got.IsZero() || c.want != 0 && got.Sub(now) != c.want {
				t.Errorf("the deadline is %s from now, not %s", got.Sub(now), c.want)
			}
		})
	}
}
