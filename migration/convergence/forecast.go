package convergence

import (
	"cmp"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

const (
	// first is the limit until more is known.
	first = 100 * time.Millisecond
	// usual is the longest downtime that a transfer gets that is not in trouble: the
	// hypervisor's own default, which is what guests are used to.
	// Source: QEMU 7.2 migration/migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
	usual = 300 * time.Millisecond
	// trouble is how long passes shrink no more before more than the usual is allowed.
	trouble = 60 * time.Second
	// flat is the part of the last backlog that a new one must undercut to count as
	// progress, in percent.
	flat = 60
	// spare is what is allowed beyond the forecast, in percent: the last pass meets a guest
	// that is not always alike.
	spare = 20
	// decisive is the first pass of which something is known: before it everything was
	// sent, after it what a whole pass over everything had left.
	decisive = 3
)

// What Converge remembers, in State.Own.
const (
	pass    = iota // the pass that was last seen
	backlog        // what was left when it began, in bytes
	since          // when passes began to be alike, in milliseconds since the start; 0: they shrink
	size
)

// ChooseByForecast is the [Policy] that knows every [Method]: it decides by the one
// that the configuration names.
func ChooseByForecast(c Config, s State, p hypervisor.Progress, now time.Time) (
	State, Decision) {
	if c.Method == Forecast {
		return ConvergeByForecast(c, s, p, now)
	}
	return Converge(c, s, p, now)
}

// ConvergeByForecast implements [Policy].
func ConvergeByForecast(c Config, s State, p hypervisor.Progress, now time.Time) (
	State, Decision) {
	c.Method = Watermark
	c.DowntimeTuning = &DowntimeTuning{Initial: first,
		StartAfterIteration: math.MaxInt} // we say when
	next, v := Converge(c, s, p, now)
	if p.Status != hypervisor.JobActive || next.Aborting || next.PostCopy || next.Paused {
		return next, v
	}
	before := next.Own
	if len(before) != size {
		before = make([]int64, size)
	}
	if int64(p.Iteration) == before[pass] {
		return next, v
	}
	next.Own = []int64{int64(p.Iteration), int64(p.Remaining), 0}
	if p.Iteration < decisive || int64(p.Remaining) <= before[backlog]/100*flat {
		return next, v
	}
	next.Own[since] = cmp.Or(before[since], max(1, next.Clock.Milliseconds()))
	if v.Action != Continue {
		return next, v
	}
	return next, forecastLook(c, next, p)
}

// forecastLook decides about a transfer whose passes shrink no more.
func forecastLook(c Config, s State, p hypervisor.Progress) Decision {
	most := c.MaxDowntime
	if most <= 0 {
		most = 900 * time.Millisecond // as Config says
	}
	known := s.Bandwidth >= 1 // else it is not known what fits, and in post-copy the guest would wait for data
	needed := p.Remaining.At(hypervisor.Bandwidth(s.Bandwidth))
	if more := needed / 100 * spare; more <= hypervisor.Forever-needed {
		needed += more
	}
	switch flat := s.Clock - time.Duration(s.Own[since])*time.Millisecond; {
	case known && needed <= min(usual, most):
		return raise(s, needed)
	case known && c.AllowPostCopy && !c.VFIO && s.Refusals.PostCopy == 0:
		return Decision{Action: StartPostCopy, Why: Stalled}
	case flat < trouble:
		return raise(s, min(usual, most))
	}
	return raise(s, most)
}

// raise asks for a limit unless a longer one holds already.
func raise(s State, limit time.Duration) Decision {
	limit = max(limit.Truncate(time.Millisecond), time.Millisecond)
	if limit <= s.Limit.Now || s.Refusals.Downtime > 0 {
		return Decision{}
	}
	return Decision{Action: SetDowntime, Limit: limit,
		Why: Tuning}
}
