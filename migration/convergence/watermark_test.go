package convergence_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// steady is a transfer that does not converge: every pass takes ten seconds, and
// 2 GB are left when it begins. The first pass shows that there are 2 GiB of data,
// which with 150 s each makes a budget of 10 s + 300 s.
func steady(seconds int) hypervisor.Progress {
	p := sample(1+seconds/10, hypervisor.Bytes(20-2*(seconds%10))*1e8)
	p.Sent, p.Bandwidth = hypervisor.Bytes(seconds)*2e8, gb/5
	return p
}

// An event is a verdict other than to carry on.
type event struct {
	Second int
	convergence.Decision
}

// observe looks once a second until the transfer ends, and obeys. It returns
// what happened, but for the routine of tuning before the given second.
func (x *transfer) observe(from, until int, show func(int) hypervisor.Progress) []event {
	var seen []event
	for s := range until {
		v := x.obey(float64(s), show(s))
		if v != goOn && s >= from {
			seen = append(seen, event{s, v})
		}
	}
	return seen
}

func verdict(a convergence.Action, why convergence.Reason) convergence.Decision {
	return convergence.Decision{Action: a, Why: why}
}

func TestWatermarkStall(t *testing.T) {
	raise := event{71, tune(900 * ms)}
	for _, row := range []struct {
		name   string
		change func(*convergence.Config)
		want   []event
	}{
		{"nothing is allowed: the whole downtime for two passes, then the end", nil,
			[]event{raise, {90, verdict(convergence.Abort, convergence.Stalled)}}},
		{"post-copy alone is leave enough", func(c *convergence.Config) {
			c.AllowPostCopy = true
		}, []event{raise, {90, verdict(convergence.StartPostCopy, convergence.Stalled)}}},
		{"disruption pauses", func(c *convergence.Config) {
			c.AllowWorkloadDisruption = true
		}, []event{raise, {90, verdict(convergence.Pause, convergence.Stalled)}}},
		{"post-copy goes before a pause", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption = true, true
		}, []event{raise, {90, verdict(convergence.StartPostCopy, convergence.Stalled)}}},
		{"passed-through devices may take the rest of the budget, and have twice that", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption, c.VFIO = true, true, true
		}, []event{raise, {90, set(220*time.Second, convergence.Stalled)}, {621, tooLate}}},
		{"without a progress timeout only the budget counts", func(c *convergence.Config) {
			c.ProgressTimeout = 0
		}, []event{{80, tune(899 * ms)}, {90, tune(900 * ms)}, {311, tooLate}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: convergence.Config{Memory: 4 * gib,
				CompletionTimeoutPerGiB: 150 * time.Second, ProgressTimeout: time.Minute}}
			if row.change != nil {
				row.change(&x.config)
			}
			same(t, "events", row.want, x.observe(71, 700, steady))
		})
	}
}

func TestWatermarkProgress(t *testing.T) {
	type step struct {
		seconds   float64
		iteration int
		sent      hypervisor.Bytes
		remaining hypervisor.Bytes
		want      convergence.Decision
	}
	for _, row := range []struct {
		name  string
		steps []step
	}{
		{"no data for longer than the timeout is the end", []step{
			{1, 1, 0, 100, goOn}, {11, 1, 0, 100, goOn}, {11.001, 1, 0, 100, stuck}}},
		{"swinging is no progress", []step{
			{1, 1, 0, 100, goOn}, {5, 1, 0, 200, goOn}, {9, 1, 0, 100, goOn},
			{12, 1, 0, 150, stuck}}},
		{"a new low in the pass is", []step{
			{1, 1, 0, 100, goOn}, {9, 1, 0, 99, goOn}, {19, 1, 0, 99, goOn},
			{19.1, 1, 0, 99, stuck}}},
		{"more on the wire is", []step{
			{1, 1, 0, 100, goOn}, {9, 1, 1, 100, goOn}, {19, 1, 1, 100, goOn},
			{19.1, 1, 1, 100, stuck}}},
		{"a new pass is", []step{
			{1, 1, 0, 100, goOn}, {9, 2, 0, 500, goOn}, {19, 2, 0, 500, goOn},
			{19.1, 2, 0, 500, stuck}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: convergence.Config{ProgressTimeout: 10 * time.Second}}
			x.obey(0, hypervisor.Progress{Status: hypervisor.JobSetup})
			for _, s := range row.steps {
				p := sample(s.iteration, s.remaining)
				p.Sent = s.sent
				same(t, "verdict", s.want, x.look(s.seconds, p))
			}
		})
	}
}

func TestWatermarkALongFirstPassIsNoStall(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: 10 * time.Second}}
	same(t, "events", []event(nil), x.observe(1, 1000, func(s int) hypervisor.Progress {
		return sample(1, 2000-hypervisor.Bytes(s))
	}))
}

func TestWatermarkWaitsWhileThrottlingRises(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: time.Minute}}
	got := x.observe(91, 700, func(s int) hypervisor.Progress {
		p := steady(s)
		p.Throttle = min(20+10*(s/50), 99)
		return p
	})
	want := []event{{461, verdict(convergence.Abort, convergence.Stalled)}}
	same(t, "the last rise is at 400 s", want, got)
}

func TestWatermarkLastMoment(t *testing.T) {
	config := convergence.Config{Memory: 4 * gib, AllowWorkloadDisruption: true,
		CompletionTimeoutPerGiB: 150 * time.Second}
	t.Run("a pause comes with the last pass after which half again the rest fits",
		func(t *testing.T) {
			x := transfer{config: config}
			want := []event{{290, verdict(convergence.Pause, convergence.LastMoment)}}
			same(t, "events", want, x.observe(91, 700, steady))
		})
	t.Run("a transfer on course is left alone", func(t *testing.T) {
		x := transfer{config: config}
		same(t, "events", []event(nil), x.observe(91, 300, func(s int) hypervisor.Progress {
			p := steady(s)
			p.DirtyRate = gb / 100
			return p
		}))
	})
	t.Run("post-copy saves it even after the budget", func(t *testing.T) {
		x := transfer{config: config}
		x.config.AllowPostCopy, x.config.AllowWorkloadDisruption = true, false
		x.observe(0, 290, steady)
		same(t, "verdict", post, x.look(700, steady(700)))
	})
}

func TestWatermarkBudgetFollowsTheData(t *testing.T) {
	for _, row := range []struct {
		name   string
		memory hypervisor.Bytes
		sent   hypervisor.Bytes // by the end of the first pass, at 100 s
		last   float64          // the last second of the budget
	}{
		{"an idle giant is worth its data, from the end of the first pass", 512 * gib, gib, 250},
		{"a byte more is a GiB more", 512 * gib, gib + 1, 400},
		{"a full VM is worth its size", 4 * gib, 4 * gib, 600},
		{"a hypervisor that does not count leaves the size", 4 * gib, 0, 600},
		{"a VM of one GiB is worth one", gib, gib, 150},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: convergence.Config{Memory: row.memory,
				CompletionTimeoutPerGiB: 150 * time.Second, MaxDowntime: 150 * ms}}
			x.obey(0, sample(1, row.memory))
			p := sample(2, mib)
			p.Sent = row.sent
			x.look(100, p)
			same(t, "last", goOn, x.look(row.last, p))
			same(t, "beyond", tooLate, x.look(row.last+0.001, p))
		})
	}
}

func TestWatermarkDoesWithoutWhatIsRefused(t *testing.T) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, ProgressTimeout: time.Minute,
		CompletionTimeoutPerGiB: 150 * time.Second,
		AllowPostCopy:           true, AllowWorkloadDisruption: true}}
	x.observe(0, 90, steady)
	var got []convergence.Action
	for s := range 8 {
		v := x.look(90+float64(s)/5, steady(90))
		x.state = x.state.Refused(v)
		got = append(got, v.Action)
	}
	p, q, a := convergence.StartPostCopy, convergence.Pause, convergence.Abort
	same(t, "actions", []convergence.Action{p, p, p, q, q, q, a, a}, got)
}

func TestWatermarkStartsPostCopyOnlyWhileDataMoves(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: time.Minute}}
	x.observe(0, 80, steady)
	x.config.AllowPostCopy = true
	x.config.MaxDowntime = 500 * ms // reached before, so that nothing is left to tune
	still := steady(90)
	x.look(90, still)
	same(t, "nothing has moved for 6 s", goOn, x.look(96, still))
	still.Sent++
	same(t, "it moves again, in the middle of a pass", goOn, x.look(97, still))
	v := verdict(convergence.StartPostCopy, convergence.Stalled)
	same(t, "it moves, and a pass begins", v, x.look(100, steady(100)))
}

func TestWatermarkLeavesAStoppedSourceAlone(t *testing.T) {
	x := transfer{config: convergence.Config{Memory: gib, ProgressTimeout: time.Second,
		CompletionTimeoutPerGiB: time.Second}}
	p := sample(2, gib)
	p.Status = hypervisor.JobSwitching
	same(t, "verdict", goOn, x.look(1e6, p))
}

func TestWatermarkOneLongBadPassIsNoStall(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: 10 * time.Second,
		MaxDowntime: 150 * ms}}
	x.obey(0, sample(1, gib))
	for i, want := range []convergence.Decision{goOn, goOn,
		verdict(convergence.Abort, convergence.Stalled)} {
		p := sample(2+i, gib)
		for s := range 15 { // data moves all the time
			p.Sent = hypervisor.Bytes(15*i+s+1) * mib
			v := x.look(float64(15*i+s+1), p)
			if s == 0 {
				same(t, "at the start of a pass", want, v)
			}
		}
	}
}

func TestWatermarkThrottlingInTheFirstPassIsForgotten(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: 20 * time.Second,
		MaxDowntime: 150 * ms}}
	got := x.observe(1, 200, func(s int) hypervisor.Progress {
		p := steady(s)
		p.Throttle, p.Remaining = 20, p.Remaining/hypervisor.Bytes(1+s/10)
		return p
	})
	same(t, "a converging transfer is left alone", []event(nil), got)
}

func TestWatermarkHelpsWithoutALimitThatIsRefused(t *testing.T) {
	x := transfer{config: convergence.Config{ProgressTimeout: time.Minute, AllowPostCopy: true}}
	var last convergence.Decision
	for s := range 100 {
		if last = x.look(float64(s), steady(s)); last != goOn {
			x.state = x.state.Refused(last)
		}
		if last.Action == convergence.StartPostCopy {
			break
		}
	}
	same(t, "verdict", verdict(convergence.StartPostCopy, convergence.Stalled), last)
}

func TestWatermarkDoesNotPauseWhatDoesNotFit(t *testing.T) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, AllowWorkloadDisruption: true,
		CompletionTimeoutPerGiB: 20 * time.Second, MaxDowntime: 150 * ms}}
	p := sample(1, 4*gib)
	p.Bandwidth = gb / 50
	x.obey(0, p)
	p.Iteration, p.Remaining, p.Sent = 2, 2e9, 4*gib
	for s := 61; s <= 80; s++ { // 100 s are needed, and fewer are left of twice the budget
		p.Sent++
		same(t, "verdict", goOn, x.look(float64(s), p))
	}
	same(t, "after the budget", tooLate, x.look(80.1, p))
}

func TestAClockThatGoesBackStandsStill(t *testing.T) {
	var x transfer
	x.obey(0, sample(1, gib))
	x.look(100, sample(1, gib))
	x.look(50, sample(1, gib))
	same(t, "clock", 100*time.Second, x.state.Clock)
}

// A disk of 60 GiB moves first, with 8 GiB every 10 s, and 150 s are allowed for each GiB:
// by memory alone it would have to be over after 600 s.
func TestDisksAreWorthTime(t *testing.T) {
	for _, method := range []convergence.Method{convergence.Watermark, convergence.Legacy,
		convergence.Stall} {
		for _, configured := range []bool{true, false} { // or the transfer says it
			x := transfer{config: convergence.Config{Method: method, Memory: 4 * gib,
				CompletionTimeoutPerGiB: 150 * time.Second}}
			show := func(int) hypervisor.Progress {
				p := sample(0, 64*gib)
				p.Disks = 60 * gib
				return p
			}
			if configured {
				x.config.Disks = 60 * gib
			}
			end := map[convergence.Method]int{convergence.Watermark: 64 * 150,
				convergence.Legacy: 69 * 150, convergence.Stall: 69 * 150}[method]
			same(t, method.String(), []event{{end + 1, tooLate}},
				x.observe(10, end+2, show))
		}
	}
}

// When the disks are there the rest is worth what memory is, whatever was sent before it.
func TestDisksThatHaveMovedAreWorthNoMoreTime(t *testing.T) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, Disks: 60 * gib,
		CompletionTimeoutPerGiB: 10 * time.Second}}
	got := x.observe(0, 300, func(s int) hypervisor.Progress {
		switch {
		case s < 75:
			p := sample(0, 64*gib)
			p.Sent = hypervisor.Bytes(s) * gib * 8 / 10
			return p
		case s < 80:
			p := sample(1, 4*gib)
			p.Sent = 60 * gib
			return p
		}
		p := sample(2, 4*gib)
		p.Sent = 64 * gib
		return p
	})
	if last := got[len(got)-1]; last != (event{80 + 4*10 + 1, tooLate}) {
		t.Errorf("it ends with %+v", last)
	}
}

// A VM does not run at the target without its disks: it may be given up, but not moved over.
func TestPostCopyIsNotAskedForWhileDisksMove(t *testing.T) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, Disks: 60 * gib,
		AllowPostCopy: true, CompletionTimeoutPerGiB: time.Second}}
	sent := func(iteration int) func(int) hypervisor.Progress {
		return func(s int) hypervisor.Progress {
			p := sample(iteration, 64*gib)
			p.Sent = hypervisor.Bytes(s)
			return p
		}
	}
	same(t, "with disks on their way", []event{{65, tooLate}}, x.observe(1, 66, sent(0)))
	x.state = convergence.State{}
	same(t, "with memory on its way", []event{{65, post}}, x.observe(1, 66, sent(1)))
}

// paused is a transfer in its second pass, with 2 GB left of 4 GiB and 1 GB/s, whose guest is
// stopped, after the budget of 80 s.
func paused(seconds float64) (transfer, hypervisor.Progress) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, AllowWorkloadDisruption: true,
		CompletionTimeoutPerGiB: 20 * time.Second, MaxDowntime: 150 * ms}}
	p := sample(1, 4*gib)
	x.obey(0, p)
	p.Iteration, p.Remaining, p.Sent = 2, 2e9, 4*gib
	x.look(40, p)
	x.state = x.state.Accepted(pause, at(41))
	p.Sent++
	x.look(seconds, p)
	return x, p
}

func TestAPausedGuestIsNotGivenUpWhileDataMoves(t *testing.T) {
	x, p := paused(79)
	for s := 80; s < 2000; s++ {
		p.Sent++
		same(t, "verdict", goOn, x.look(float64(s), p))
	}
	same(t, "nothing has moved for a minute", goOn, x.look(2059, p))
	same(t, "nor for a second longer", stuck, x.look(2060, p))
}

func TestAPausedGuestWaitsForDataAsLongAsProgressMayTake(t *testing.T) {
	x, p := paused(79)
	x.config.ProgressTimeout = 10 * time.Minute
	same(t, "verdict", goOn, x.look(79+600, p))
	same(t, "beyond the timeout", stuck, x.look(79+600.1, p))
}

// What the pass still has to send is one thing, what was dirtied since its start another.
// After 20 s of a pass of 40 s half of 4 GB is left, and a guest with a working set of 4 GB
// has dirtied it all again: 6 GB, for which 60 s are needed, not 40.
func TestTheRestAtAPauseIsWhatThePassHasToSendAndWhatWasDirtied(t *testing.T) {
	for _, row := range []struct {
		name   string
		budget time.Duration // for each of 4 GiB
		want   convergence.Decision
	}{
		{"it fits into twice the budget", 31 * time.Second, pause},
		{"it would do for the larger of the two alone", 18 * time.Second, tooLate},
	} {
		x := transfer{config: convergence.Config{Memory: 4 * gib, MaxDowntime: 150 * ms,
			CompletionTimeoutPerGiB: row.budget}}
		begin := 4*row.budget.Seconds() - 20
		p := sample(1, 4*gib)
		p.Bandwidth = gb / 10
		x.obey(0, p)
		p.Iteration, p.Remaining, p.Sent = 2, 4e9, 4*gib
		x.look(begin-40, p)
		p.Iteration++
		x.look(begin, p)
		p.Sent, p.Remaining = p.Sent+1, 2e9
		x.look(begin+19, p)
		x.config.AllowWorkloadDisruption = true
		if row.want == tooLate { // 80 s are more than is left for a pause, 40 s are not
			p.Remaining = 4e9
		}
		p.Sent++
		same(t, row.name, row.want, x.look(begin+21, p))
	}
}
