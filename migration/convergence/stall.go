package convergence

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// StallState is what [Stall] remembers.
type StallState struct {
	// Candidates are the minima younger than the window, oldest and largest
	// first; each may become the minimum outside of it.
	Candidates []Backlog `json:",omitempty"`
	// Outside is the smallest backlog older than the window, once there is one.
	Outside    hypervisor.Bytes `json:",omitempty"`
	HasOutside bool             `json:",omitempty"`
	// Last is what the completion timeouts go by: the backlog at the last pass
	// boundary, or of the last sample while the guest does not run here.
	Last hypervisor.Bytes `json:",omitempty"`
	// Stalled: the transfer has stalled; the rest is about where to switch over.
	Stalled bool `json:",omitempty"`
	// Best is the backlog to wait for, Seen the others since the stall, smallest
	// first.
	Best hypervisor.Bytes   `json:",omitempty"`
	Seen []hypervisor.Bytes `json:",omitempty"`
	// RelaxAt is when the next of Seen becomes Best, Patience how long the wait
	// for it was; both in milliseconds.
	RelaxAt  int64 `json:",omitempty"`
	Patience int64 `json:",omitempty"`
}

// A Backlog is what was left to send at the start of a pass.
type Backlog struct {
	At        int64 // milliseconds since the start
	Remaining hypervisor.Bytes
}

// history is how many candidates and how many backlogs are remembered.
const history = 64

// stall decides as KubeVirt's stall detector does: it looks for a stall at each
// pass boundary, and at the completion timeouts always.
// Source: KubeVirt v1.9.0 live-migration-source.go:705 (handleStallDetection).
func stall(l *evaluation) Decision {
	if l.p.Status == hypervisor.JobSwitching && !l.s.PostCopy {
		l.s.Paused = true // the hypervisor switches over by itself (reconcilePauseState)
	}
	if l.s.Aborting {
		return Decision{}
	}
	d := l.c.detector()
	var v Decision
	switch {
	case !sampled(l.p.Status):
	case l.boundary:
		l.s.Stall.Last = l.p.Remaining
		if l.s.Bandwidth > 0 && !l.switchedOver() {
			l.s.Stall = l.s.Stall.iterate(d, Backlog{milliseconds(l.since), l.p.Remaining})
			v = l.converge(d)
		}
	case l.s.Paused || l.s.PostCopy:
		l.s.Stall.Last = l.p.Remaining
	default:
		l.s.Bandwidth = smooth(l.s.Bandwidth, l.p.Bandwidth, d.EWMAAlpha)
	}
	if v.Action == Continue {
		v = l.timeouts(d)
	}
	if v.Action == Continue && !l.s.Limit.Set && !l.s.PostCopy {
		v = limit(min(l.c.maxDowntime(), qemuDowntime))
	}
	return v
}

// switchedOver: a switch-over was initiated, or given up.
func (l *evaluation) switchedOver() bool { return l.s.Forced || l.s.PostCopy || l.s.GaveUp }

// iterate takes in the backlog at a pass boundary.
// Source: KubeVirt v1.9.0 stall-detector.go (processStallDetectionIteration).
func (s StallState) iterate(d StallDetector, r Backlog) StallState {
	s = s.collect(milliseconds(d.StallProgressTimeout), r)
	switch {
	case s.Stalled:
		return s.relax(d, r)
	case s.HasOutside && r.Remaining >= scale(s.Outside, 1-float64(d.StallMargin)/100):
		s.Stalled, s.Best = true, s.Outside
		for _, c := range s.Candidates {
			s.Best = min(s.Best, c.Remaining)
		}
		s.Patience = milliseconds(d.StallProgressTimeout)
		s.RelaxAt = r.At + s.Patience
	}
	return s
}

// collect keeps the minima: what is as old as the window leaves it, and a new
// backlog enters it when it is smaller than all before it.
// Source: KubeVirt v1.9.0 stall-detector.go (updateCandidates).
func (s StallState) collect(window int64, r Backlog) StallState {
	for len(s.Candidates) > 0 && r.At-s.Candidates[0].At >= window {
		out := s.Candidates[0].Remaining
		if !s.HasOutside || out < s.Outside {
			s.Outside, s.HasOutside = out, true
		}
		s.Candidates = s.Candidates[1:]
	}
	n := len(s.Candidates)
	switch {
	case s.HasOutside && r.Remaining > s.Outside:
	case n > 0 && r.Remaining >= s.Candidates[n-1].Remaining:
	case n == history: // the newest gives way: a stall is found later, not earlier
		s.Candidates = append(slices.Clone(s.Candidates[:n-1]), r)
	default:
		s.Candidates = append(slices.Clip(s.Candidates), r)
	}
	return s
}

// relax settles for the next best backlog when the wait for the best was vain,
// and waits less for it.
// Source: KubeVirt v1.9.0 stall-detector.go (relaxBestRemainingBytes).
func (s StallState) relax(d StallDetector, r Backlog) StallState {
	at, _ := slices.BinarySearch(s.Seen, r.Remaining)
	s.Seen = slices.Insert(slices.Clone(s.Seen), at, r.Remaining)
	s.Seen = s.Seen[:min(len(s.Seen), history)]
	if r.At < s.RelaxAt {
		return s
	}
	s.Best, s.Seen = s.Seen[0], s.Seen[1:]
	s.Patience = floor(float64(s.Patience) * d.PatienceWindowDecayFactor)
	s.RelaxAt = r.At + min(s.Patience, math.MaxInt64-r.At)
	return s
}

// converge decides at a pass boundary how to end a transfer that has stalled.
// Source: KubeVirt v1.9.0 stall-detector.go (decideAction),
// live-migration-source.go (triggerConvergenceAction).
func (l *evaluation) converge(d StallDetector) Decision {
	estimate := l.downtime()
	allowed := float64(l.c.maxDowntime() / time.Millisecond)
	atMinimum := l.p.Remaining <= scale(l.s.Stall.Best, 1+float64(d.StallMargin)/100)
	switch {
	case !l.s.Stall.Stalled || (!atMinimum && d.SearchLocalMinima):
		return Decision{}
	case !l.fits(d, estimate):
		return Decision{}
	case l.c.AllowWorkloadDisruption && l.c.AllowPostCopy && !l.c.VFIO:
		return Decision{Action: StartPostCopy, Why: Stalled}
	case l.c.AllowWorkloadDisruption:
		return Decision{SetDowntime, qemuMaxDowntime, Stalled}
	case float64(estimate) <= max(allowed, allowed*d.PrecopyPossibleFactor):
		return Decision{SetDowntime, l.c.maxDowntime(), Stalled}
	}
	return Decision{Action: Abort, Why: Downtime}
}

// timeouts ends what has used up its time, if it may by force, and otherwise
// aborts it. Post-copy has no deadline.
// Source: KubeVirt v1.9.0 live-migration-source.go (processCompletionTimeouts).
func (l *evaluation) timeouts(d StallDetector) Decision {
	if l.s.PostCopy || !l.stallLate(d) {
		return Decision{}
	}
	if l.s.Bandwidth == 0 {
		return Decision{Action: Abort, Why: NoBandwidth}
	}
	completable := !l.switchedOver() && l.fits(d, l.downtime())
	switch {
	case completable && l.c.AllowPostCopy && !l.c.VFIO:
		return Decision{Action: StartPostCopy, Why: OverBudget}
	case completable && l.c.AllowWorkloadDisruption:
		return Decision{SetDowntime, qemuMaxDowntime, OverBudget}
	}
	return Decision{Action: Abort, Why: OverBudget}
}

// stallLate: the acceptable time is over, or the time to switch over where one
// was initiated and the guest still runs. Without a budget nothing is ever late.
// Source: KubeVirt v1.9.0 live-migration-source.go (shouldTriggerTimeout).
func (l *evaluation) stallLate(d StallDetector) bool {
	deadline := l.stretched(d)
	if deadline == 0 {
		return false
	}
	if l.s.Forced && !l.s.Paused {
		deadline = int64(l.s.ForcedAt/time.Second) + int64(d.SwitchoverTimeout/time.Second)
	}
	return l.seconds() > deadline
}

// stretched returns the acceptable time in seconds, as a forced switch-over
// after the budget has extended it.
func (l *evaluation) stretched(d StallDetector) int64 {
	if l.s.Stretched {
		return extended(l.acceptable(), d)
	}
	return l.acceptable()
}

// extended returns seconds times CompletionTimeoutFactor.
// Source: KubeVirt v1.9.0 live-migration-source.go (scaledCompletionDeadlineSeconds).
func extended(seconds int64, d StallDetector) int64 {
	return floor(float64(seconds) * d.CompletionTimeoutFactor)
}

// fits: what takes estimate milliseconds ends before the extended budget does.
// Source: KubeVirt v1.9.0 stall-detector.go (canFinishByDeadline).
func (l *evaluation) fits(d StallDetector, estimate int64) bool {
	left := extended(l.stretched(d), d) - l.seconds()
	return l.s.Bandwidth != 0 && (left > math.MaxUint32 || estimate <= left*1000)
}

// downtime estimates how long the backlog takes, in milliseconds.
// Source: KubeVirt v1.9.0 stall-detector.go (estimateDowntimeMs).
func (l *evaluation) downtime() int64 {
	if l.s.Bandwidth == 0 {
		return 0
	}
	return min(floor(float64(l.s.Stall.Last)/(l.s.Bandwidth/1000)), math.MaxUint32)
}

// milliseconds returns d in whole milliseconds, not below zero.
func milliseconds(d time.Duration) int64 { return max(int64(d/time.Millisecond), 0) }

// scale returns b times f, rounded down.
func scale(b hypervisor.Bytes, f float64) hypervisor.Bytes {
	return hypervisor.Bytes(floor(float64(b) * f))
}

// floor returns f rounded down, at most the largest number. f is not negative.
func floor(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}
