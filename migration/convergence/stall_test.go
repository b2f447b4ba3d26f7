package convergence_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// stallConfig has a budget of 1,500 s and KubeVirt's defaults.
func stallConfig() convergence.Config {
	return convergence.Config{Method: convergence.Stall, Memory: 10e9,
		CompletionTimeoutPerGiB: 150 * time.Second}
}

// begin makes the two looks after which the limit is set and the speed is known.
func (x *transfer) begin() {
	x.obey(0, sample(1, gib))
	x.obey(0.4, sample(1, gib))
}

// A pass is a look at a pass boundary, with so many megabytes left.
type pass struct {
	seconds   float64
	megabytes hypervisor.Bytes
	want      convergence.Decision
}

// run looks at the passes, the second pass first.
func (x *transfer) run(t *testing.T, passes []pass) {
	t.Helper()
	for i, p := range passes {
		got := x.obey(p.seconds, sample(i+2, p.megabytes*1e6))
		same(t, "verdict", p.want, got)
	}
}

// early is a stall at 60 s, at the smallest backlog so far: the backlog of 20 s
// has just left the window of 40 s and 1,950 is more than 96 % of it.
func early(want convergence.Decision) []pass {
	return []pass{{10, 3000, goOn}, {20, 2000, goOn}, {30, 2500, goOn}, {50, 2100, goOn},
		{60, 1950, want}}
}

func TestStallAtAMinimum(t *testing.T) {
	hard := set(2000*time.Second, convergence.Stalled)
	downtime := convergence.Decision{Action: convergence.Abort, Why: convergence.Downtime}
	for _, row := range []struct {
		name   string
		change func(*convergence.Config)
		want   convergence.Decision
	}{
		{"1,950 ms are more than half again the allowed 900 ms", nil, downtime},
		{"1,299 ms and a half are not enough", func(c *convergence.Config) {
			c.MaxDowntime = 1299 * ms
		}, downtime},
		{"1,300 ms and a half are just enough", func(c *convergence.Config) {
			c.MaxDowntime = 1300 * ms
		}, set(1300*ms, convergence.Stalled)},
		{"post-copy alone changes nothing", func(c *convergence.Config) {
			c.AllowPostCopy = true
		}, downtime},
		{"disruption forces the switch-over", func(c *convergence.Config) {
			c.AllowWorkloadDisruption = true
		}, hard},
		{"both start post-copy", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption = true, true
		}, convergence.Decision{Action: convergence.StartPostCopy, Why: convergence.Stalled}},
		{"both force the switch-over of passed-through devices", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption, c.VFIO = true, true, true
		}, hard},
		{"without a budget the detector is inert", func(c *convergence.Config) {
			c.CompletionTimeoutPerGiB, c.AllowWorkloadDisruption = 0, true
		}, goOn},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: stallConfig()}
			if row.change != nil {
				row.change(&x.config)
			}
			x.begin()
			x.run(t, early(row.want))
		})
	}
}

func TestStallWaitsForAMinimum(t *testing.T) {
	hard := set(2000*time.Second, convergence.Stalled)
	for _, row := range []struct {
		name   string
		change func(*convergence.StallDetector)
		passes []pass
	}{
		{"it settles for the next best after 40 s, within 4 %", nil, []pass{
			{10, 3000, goOn}, {20, 2000, goOn}, {60, 5000, goOn}, {70, 4000, goOn},
			{80, 3000, goOn}, {99.999, 3100, goOn}, {100, 3120, hard}}},
		{"more than 4 % above the best is too much", nil, []pass{
			{10, 3000, goOn}, {20, 2000, goOn}, {60, 2081, goOn}, {70, 2080, hard}}},
		{"the wait is halved each time", nil, []pass{
			{10, 3000, goOn}, {20, 2000, goOn}, {60, 9000, goOn}, {70, 3000, goOn},
			{80, 4000, goOn}, {100, 9000, goOn}, {119.999, 4100, goOn}, {120, 4160, hard}}},
		{"no better than 96 % of an old minimum is a stall", nil, []pass{
			{10, 3000, goOn}, {49.999, 2880, goOn}, {50, 2880, hard}}},
		{"better than 96 % is none", nil, []pass{
			{10, 3000, goOn}, {49.999, 2880, goOn}, {50, 2879, goOn}}},
		{"the best is the smallest backlog of all, not only of the old ones", nil, []pass{
			{10, 2000, goOn}, {20, 1000, goOn}, {50, 1990, goOn}, {55, 1041, goOn},
			{58, 1040, hard}}},
		{"it need not wait", func(d *convergence.StallDetector) {
			d.SearchLocalMinima = false
		}, []pass{
			{10, 3000, goOn}, {20, 2000, goOn}, {60, 5000, hard}}},
		{"with a margin of 0 any progress is progress", func(d *convergence.StallDetector) {
			d.StallMargin = 0
		}, []pass{{10, 3000, goOn}, {50, 2999, goOn}, {90, 2998, goOn}, {130, 2998, hard}}},
		{"a wait that decays to 0 is over with the next pass", func(d *convergence.StallDetector) {
			d.PatienceWindowDecayFactor = 0
		}, []pass{{10, 3000, goOn}, {20, 2000, goOn}, {60, 9000, goOn}, {70, 3000, goOn},
			{80, 4000, goOn}, {100, 9000, goOn}, {101, 4000, hard}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: stallConfig()}
			x.config.AllowWorkloadDisruption = true
			d := convergence.DefaultStallDetector()
			x.config.StallDetector = &d
			if row.change != nil {
				row.change(x.config.StallDetector)
			}
			x.begin()
			x.run(t, row.passes)
		})
	}
}

func TestStallFirstLimit(t *testing.T) {
	for most, want := range map[time.Duration]time.Duration{
		0: 300 * ms, 299 * ms: 299 * ms, 300 * ms: 300 * ms, 5 * time.Second: 300 * ms,
	} {
		x := transfer{config: stallConfig()}
		x.config.MaxDowntime = most
		same(t, "unanswered", tune(want), x.look(0, sample(1, gib)))
		same(t, "asked again", tune(want), x.obey(0.4, sample(1, gib)))
		same(t, "once accepted", goOn, x.look(0.8, sample(1, gib)))
	}
}

func TestStallSmoothsTheBandwidth(t *testing.T) {
	x := transfer{config: stallConfig()}
	p := sample(1, gib)
	x.look(0, p)
	same(t, "a pass boundary is no sample", 0.0, x.state.Bandwidth)
	x.look(0.4, p)
	same(t, "the first sample", 1e9, x.state.Bandwidth)
	p.Bandwidth = 2e9
	x.look(0.8, p)
	same(t, "0.4 of the second", 1.4e9, x.state.Bandwidth)
	p.Mode = hypervisor.PausedCopy
	x.look(1.2, p)
	same(t, "none while paused", 1.4e9, x.state.Bandwidth)
}

func TestStallCompletionTimeout(t *testing.T) {
	hard := set(2000*time.Second, convergence.OverBudget)
	for _, row := range []struct {
		name     string
		post     bool
		disrupt  bool
		left     hypervisor.Bytes // at the last pass boundary
		at1500   convergence.Decision
		at1501   convergence.Decision
		thenAt   float64
		thenLast convergence.Decision
	}{
		{"nothing is allowed", false, false, gib, goOn, tooLate, 1502, goOn},
		{"post-copy needs no disruption here", true, false, gib, goOn, post, 1e5, goOn},
		{"a forced switch-over has 60 s", false, true, gib, goOn, hard, 1561, goOn},
		{"and no more", false, true, gib, goOn, hard, 1562, tooLate},
		{"what cannot end in twice the budget is aborted", true, true, 1500e9, goOn, tooLate,
			1502, goOn},
		{"what just can is not", true, true, 1499e9, goOn, post, 1502, goOn},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: stallConfig()}
			x.config.AllowPostCopy, x.config.AllowWorkloadDisruption = row.post, row.disrupt
			x.begin()
			x.look(10, sample(2, row.left))
			same(t, "at 1500.9 s", row.at1500, x.obey(1500.9, sample(2, 1)))
			same(t, "at 1501 s", row.at1501, x.obey(1501, sample(2, 1)))
			same(t, "later", row.thenLast, x.look(row.thenAt, sample(2, 1)))
		})
	}
}

func TestStallPausedTransferHasTheStretchedBudget(t *testing.T) {
	x := transfer{config: stallConfig()}
	x.config.AllowWorkloadDisruption = true
	x.begin()
	x.obey(1501, sample(1, gib))
	p := sample(1, mib)
	p.Status = hypervisor.JobSwitching
	same(t, "after the time to switch over", goOn, x.look(2000, p))
	same(t, "at twice the budget", goOn, x.look(3000.9, p))
	same(t, "after twice the budget", tooLate, x.look(3001, p))
}

func TestStallWithoutBandwidthAborts(t *testing.T) {
	x := transfer{config: stallConfig()}
	x.config.AllowPostCopy = true
	want := convergence.Decision{Action: convergence.Abort, Why: convergence.NoBandwidth}
	same(t, "verdict", want, x.look(1501, sample(1, gib)))
}

func TestStallRefusedSwitchOverIsTriedAtTheNextPass(t *testing.T) {
	x := transfer{config: stallConfig()}
	x.config.AllowWorkloadDisruption = true
	x.begin()
	for i, p := range early(goOn) {
		x.look(p.seconds, sample(i+2, p.megabytes*1e6))
	}
	same(t, "within the pass", goOn, x.look(60.4, sample(6, 1e9)))
	same(t, "next pass", set(2000*time.Second, convergence.Stalled), x.look(70, sample(7, 1e9)))
}

func TestStallGivesUpOnce(t *testing.T) {
	x := transfer{config: stallConfig()}
	x.begin()
	downtime := convergence.Decision{Action: convergence.Abort, Why: convergence.Downtime}
	x.run(t, early(downtime))
	x.state = x.state.Refused(downtime) // the cancel failed later
	same(t, "at the next pass", goOn, x.look(70, sample(7, 1e9)))
	same(t, "after the budget", tooLate, x.look(1501, sample(7, 1e9)))
}

func TestStallRemembersABoundedPast(t *testing.T) {
	x := transfer{config: stallConfig()}
	x.begin()
	for i := range 200 { // ever smaller within the window
		x.look(1+float64(i)*0.1, sample(2+i, hypervisor.Bytes(4000-i)*1e6))
	}
	same(t, "candidates", 64, len(x.state.Stall.Candidates))
	same(t, "the newest", hypervisor.Bytes(3801e6), x.state.Stall.Candidates[63].Remaining)
	for i := range 200 { // stalled, and never again as small
		x.look(70+float64(i)*0.1, sample(300+i, hypervisor.Bytes(9000-i)*1e6))
	}
	same(t, "backlogs seen", 64, len(x.state.Stall.Seen))
	same(t, "the smallest", hypervisor.Bytes(8801e6), x.state.Stall.Seen[0])
}
