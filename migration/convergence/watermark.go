package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

const (
	// fresh is how recently data must have moved for post-copy to be safe: once
	// it runs, a network that fails takes the VM with it.
	fresh = 5 * time.Second
	// weight is the weight of a new sample of the bandwidth.
	weight = 0.4
	// settle is how many passes a new blackout limit gets to do its work.
	settle = 2
	// unheard is how long after a pass should have ended its end counts as not heard of.
	unheard = time.Second
)

// watermarkRules is godwit's own way.
var watermarkRules = [...]rule{
	{"in post-copy", anyhow, inPostCopy, keep},
	{"cancel under way", anyhow, aborting, keep},
	{"source has stopped", anyhow, switching, keep},
	{"no data moves", anyhow, stuck, abort(Stuck)},
	{"over budget: post-copy", late, overdueToPostCopy, startPostCopy(OverBudget)},
	{"over budget", late, overdue, abort(OverBudget)},
	{"stopped so that it ends", anyhow, stopped, keep},
	{"needs help: use the whole blackout", needy, limitUnused, useLimit},
	{"needs help: post-copy", needy, helpByPostCopy, helpPostCopy},
	{"needs help: stop the guest", needy, helpByStop, stopGuest},
	{"stalled", needy, beyondHelp, abort(Stalled)},
	{"blackout limit", anyhow, untuned, tuned},
}

// watermark decides in godwit's own way.
func watermark(l *look) Verdict {
	if l.p.Status == hypervisor.JobActive {
		l.s.Bandwidth = smooth(l.s.Bandwidth, l.p.Bandwidth, weight)
		l.mark()
	}
	l.left = hypervisor.Forever
	if budget := l.budget(); budget > 0 {
		l.left = budget - l.since
	}
	l.need = l.needsHelp()
	v := decide(watermarkRules[:], *l)
	l.s.Calm = l.calm(v)
	return v
}

// calm returns until when nothing will be asked for, unless a pass ends, after v: in the first
// pass, and while disks are copied before it, only a deadline may come, or the end of the pass
// without being heard of.
func (l *look) calm(v Verdict) time.Duration {
	early := l.s.Iteration == 1 || l.s.Iteration == 0 && l.disks() > 0
	if v.Action != Continue || l.p.Status != hypervisor.JobActive || !early || l.s.Aborting {
		return 0
	}
	calm := min(l.left, later(l.p.Remaining.At(l.p.Bandwidth), unheard))
	if l.c.ProgressTimeout > 0 {
		calm = min(calm, l.c.ProgressTimeout-(l.since-l.s.Watermark.MovedAt))
	}
	return later(l.since, max(0, calm))
}

// mark keeps the books on progress: does data move, and does the backlog fall?
// Within a pass what remains always falls, so only the backlogs at the starts of
// passes are compared with each other.
func (l *look) mark() {
	w := &l.s.Watermark
	if l.boundary || l.p.Sent > w.Sent || l.p.Remaining < w.PassLow {
		w.MovedAt = l.since
	}
	w.Sent = max(w.Sent, l.p.Sent)
	w.PassLow = min(w.PassLow, l.p.Remaining)
	if l.boundary || w.PassStart == 0 {
		w.PassStart, w.PassLow = l.p.Remaining, l.p.Remaining
	}
	if l.boundary && l.s.Iteration > 1 && w.Data == 0 {
		w.Data, w.FirstPass = l.data(), l.since
	}
	first := w.LowIteration == 0 || l.p.Remaining < w.Low
	if l.boundary && l.s.Iteration > 1 && first {
		w.Low, w.LowAt, w.LowIteration = l.p.Remaining, l.since, l.s.Iteration
	}
	if l.p.Throttle > w.Throttle && w.LowIteration > 0 { // the hypervisor still tries harder
		w.LowAt, w.LowIteration = l.since, l.s.Iteration
	}
	w.Throttle = max(w.Throttle, l.p.Throttle)
}

// data returns what the first pass has sent. Where disks came before it that is not known:
// nobody says what of them there was to be sent. Then it is all of the memory at most.
func (l *look) data() hypervisor.Bytes {
	if l.disks() > 0 {
		return min(l.p.Sent, l.memory())
	}
	return l.p.Sent
}

// aborting: a cancel was accepted and has not failed.
// Source: godwit.
func aborting(l look) bool { return l.s.Aborting }

// switching: the source has stopped, and it is too late for anything.
// Source: godwit.
func switching(l look) bool { return l.p.Status == hypervisor.JobSwitching }

// stopped: the guest does not run, or will stop at the next opportunity.
// Source: godwit.
func stopped(l look) bool { return l.s.Paused || l.s.Forced }

// stuck: no data has moved for longer than ProgressTimeout. To stop the guest
// would not help: its writes are not what is in the way.
// Source: godwit.
func stuck(l look) bool {
	return l.c.ProgressTimeout > 0 && l.since-l.s.Watermark.MovedAt > l.c.ProgressTimeout
}

// overdue: the budget is used up. A pause does not extend it.
// Source: godwit.
func overdue(l look) bool { return l.left < 0 }

// overdueToPostCopy: the budget is used up, and post-copy ends it all the same.
// Source: godwit.
func overdueToPostCopy(l look) bool { return l.left < 0 && l.mayPostCopy() && l.moves() }

// mayPostCopy: post-copy is allowed, possible, and was not refused for good. Without its
// disks a VM does not run at the target.
func (l *look) mayPostCopy() bool {
	possible := !l.c.VFIO && (l.s.Iteration > 0 || l.disks() <= 0)
	return l.c.AllowPostCopy && possible && l.s.Refusals.PostCopy < tries
}

// moves: data moves now, at a known speed.
func (l *look) moves() bool {
	active := l.p.Status == hypervisor.JobActive
	return active && l.speed() > 0 && l.since-l.s.Watermark.MovedAt <= fresh
}

// stalled: the backlog has not reached a new low for longer than ProgressTimeout
// and for two passes; one long pass is no stall.
func (l *look) stalled() bool {
	w := &l.s.Watermark
	return l.c.ProgressTimeout > 0 && w.LowIteration > 0 &&
		l.s.Iteration-w.LowIteration >= settle && l.since-w.LowAt > l.c.ProgressTimeout
}

// rest returns how long the guest would stand still if it were stopped now. What
// it dirtied in this pass is not counted yet, so the backlog at the start of the
// pass stands for it.
func (l *look) rest() time.Duration {
	backlog := max(l.s.Watermark.PassStart, l.p.Remaining)
	return backlog.At(l.speed())
}

// speed returns the smoothed bandwidth, rounded down; 0 is not known.
func (l *look) speed() hypervisor.Bandwidth { return hypervisor.Bandwidth(floor(l.s.Bandwidth)) }

// lastMoment: soon the rest will no longer fit into the budget, half of it again
// allowed for, and the transfer is not about to end by itself.
func (l *look) lastMoment() bool {
	if l.s.Iteration < 2 || l.left == hypervisor.Forever {
		return false
	}
	rest := l.rest()
	return later(rest, rest/2) >= l.left && !l.onCourse()
}

// onCourse: at the present rates the transfer ends within the budget.
func (l *look) onCourse() bool {
	e := Predict(l.p.Remaining, l.p.DirtyRate, l.speed(), l.c.maxDowntime())
	return l.p.DirtyRate > 0 && e.Converges && e.Left <= l.left
}

// needsHelp returns why the transfer will not end by itself, if it will not.
func (l *look) needsHelp() Reason {
	switch {
	case l.p.Status != hypervisor.JobActive:
	case l.stalled():
		return Stalled
	case l.lastMoment():
		return LastMoment
	}
	return NoReason
}

// limitUnused: the transfer needs help, and a longer blackout is still allowed,
// or was allowed so recently that it may yet help.
// Source: godwit.
func limitUnused(l look) bool {
	if l.need == NoReason || l.s.Refusals.Downtime >= tries {
		return false
	}
	settling := l.s.Iteration-l.s.Limit.Iteration < settle
	return l.s.Limit.Now < l.c.maxDowntime() || (settling && l.need == Stalled)
}

// useLimit allows the whole blackout, once.
func useLimit(l look) Verdict {
	if l.s.Limit.Now < l.c.maxDowntime() {
		return limit(l.c.maxDowntime())
	}
	return Verdict{}
}

// helpByPostCopy: the transfer needs help and post-copy may give it.
// Source: godwit.
func helpByPostCopy(l look) bool {
	return l.need != NoReason && l.mayPostCopy()
}

// helpPostCopy starts post-copy, or waits for data to move again.
func helpPostCopy(l look) Verdict {
	if l.moves() {
		return startPostCopy(l.need)(l)
	}
	return Verdict{}
}

// startPostCopy returns the verdict to let the target run because of why.
func startPostCopy(why Reason) func(look) Verdict {
	return func(look) Verdict { return Verdict{Action: StartPostCopy, Why: why} }
}

// helpByStop: the transfer needs help, the guest may be stopped, and what is
// left fits into the budget.
// Source: godwit.
func helpByStop(l look) bool {
	allowed := l.c.AllowWorkloadDisruption && l.s.Refusals.Pause < tries
	rest := l.rest()
	return l.need != NoReason && allowed && rest < hypervisor.Forever && rest <= l.left
}

// stopGuest pauses the guest. Passed-through devices do not heed a pause: for
// them the hypervisor may take what is left of the budget as its blackout.
// Source: KubeVirt v1.9.0 live-migration-source.go:800 (handleLegacyConvergence).
func stopGuest(l look) Verdict {
	if !l.c.VFIO {
		return Verdict{Action: Pause, Why: l.need}
	}
	blackout := min(l.left, qemuMaxDowntime).Truncate(time.Millisecond)
	return Verdict{SetDowntime, max(blackout, time.Millisecond), l.need}
}

// beyondHelp: stalled, and nothing that is allowed helps.
// Source: godwit.
func beyondHelp(l look) bool { return l.p.Status == hypervisor.JobActive && l.stalled() }
