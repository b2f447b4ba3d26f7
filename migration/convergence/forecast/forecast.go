// Package forecast brings transfers to an end by looking ahead: it is godwit's fastest
// [convergence.Policy].
//
// convergence.Watermark raises the blackout limit by the clock, and waits for a stall before
// it helps. But two passes tell already: what a guest dirties during a pass depends on how
// long the pass was, so when a pass leaves about as much as the one before, so will the
// next. Then more passes cost time and bytes and buy nothing, and [Converge]
//
//   - allows the blackout that the rest takes now, if that is allowed at all,
//   - else begins post-copy, if that is allowed,
//   - else allows the whole blackout, so that the first quiet moment ends the transfer, and
//     leaves patience, budgets and giving up to Watermark.
//
// While passes still shrink the limit stays low: another short pass costs less than a
// longer blackout.
package forecast

import (
	"cmp"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

const (
	// first is the limit until more is known.
	first = 100 * time.Millisecond
	// usual is the longest blackout that a transfer gets that is not in trouble: the
	// hypervisor's own default, which is what everybody has got used to.
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

// Choose is the [convergence.Policy] that knows every [convergence.Method]: it decides by the one
// that the configuration names.
func Choose(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Verdict) {
	if c.Method == convergence.Forecast {
		return Converge(c, s, p, now)
	}
	return convergence.Converge(c, s, p, now)
}

// Converge implements [convergence.Policy].
func Converge(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Verdict) {
	c.Method = convergence.Watermark
	c.DowntimeTuning = &convergence.DowntimeTuning{Initial: first,
		StartAfterIteration: math.MaxInt} // we say when
	next, v := convergence.Converge(c, s, p, now)
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
	if v.Action != convergence.Continue {
		return next, v
	}
	return next, look(c, next, p)
}

// look decides about a transfer whose passes shrink no more.
func look(c convergence.Config, s convergence.State, p hypervisor.Progress) convergence.Verdict {
	most := c.MaxDowntime
	if most <= 0 {
		most = 900 * time.Millisecond // as convergence.Config says
	}
	needed := p.Remaining.At(hypervisor.Bandwidth(s.Bandwidth))
	needed += needed / 100 * spare
	switch flat := s.Clock - time.Duration(s.Own[since])*time.Millisecond; {
	case needed <= min(usual, most):
		return raise(s, needed)
	case c.AllowPostCopy && !c.VFIO && s.Refusals.PostCopy == 0:
		return convergence.Verdict{Action: convergence.StartPostCopy, Why: convergence.Stalled}
	case flat < trouble:
		return raise(s, min(usual, most))
	}
	return raise(s, most)
}

// raise asks for a limit unless a longer one holds already.
func raise(s convergence.State, limit time.Duration) convergence.Verdict {
	limit = max(limit.Truncate(time.Millisecond), time.Millisecond)
	if limit <= s.Limit.Now || s.Refusals.Downtime > 0 {
		return convergence.Verdict{}
	}
	return convergence.Verdict{Action: convergence.SetDowntime, Limit: limit,
		Why: convergence.Tuning}
}
