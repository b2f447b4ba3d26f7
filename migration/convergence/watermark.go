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
	// settle is how many passes a new downtime limit gets to do its work.
	settle = 2
	// unheard is how long after a pass should have ended its end counts as not heard of.
	unheard = time.Second
	// opening is how long at least a pass counts as just begun: a few looks.
	opening = 2 * time.Second
	// pausedTimeout is how long a paused guest waits for data beyond its budget where no
	// progress timeout says so: longer than a network takes to find another way.
	pausedTimeout = time.Minute
)

// watermarkRules is godwit's own way.
var watermarkRules = [...]rule{
	{"in post-copy", anyhow, inPostCopy, keep},
	{"cancel under way", anyhow, aborting, keep},
	{"source has stopped", anyhow, switching, keep},
	{"no data moves", anyhow, stuck, abort(Stuck)},
	{"stopped so that it ends", anyhow, stopped, keep},
	{"over budget: post-copy", late, overdueToPostCopy, startPostCopy(OverBudget)},
	{"over budget: stop the guest", late, overdueToStop, stopOverdue},
	{"over budget", late, overdue, abort(OverBudget)},
	{"needs help: use the whole downtime", needy, limitUnused, useLimit},
	{"needs help: post-copy", needy, helpByPostCopy, helpPostCopy},
	{"needs help: stop the guest", needy, helpByStop, stopGuest},
	{"stalled", needy, beyondHelp, abort(Stalled)},
	{"downtime limit", anyhow, untuned, tuned},
}

// watermark decides in godwit's own way.
func watermark(l *evaluation) Decision {
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
func (l *evaluation) calm(v Decision) time.Duration {
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

// mark tracks progress: does data move, and does the backlog fall?
// Within a pass what remains always falls, so only the backlogs at the starts of
// passes are compared with each other.
func (l *evaluation) mark() {
	w := &l.s.Watermark
	if l.boundary || l.p.Sent > w.Sent || l.p.Remaining < w.PassLow {
		w.MovedAt = l.since
	}
	w.Sent = max(w.Sent, l.p.Sent)
	w.PassLow = min(w.PassLow, l.p.Remaining)
	if l.boundary || w.PassStart == 0 {
		w.PassStart, w.PassLow = l.p.Remaining, l.p.Remaining
		w.PassTook, w.PassAt = l.since-w.PassAt, l.since
		if l.s.Iteration == 2 {
			w.FirstTook, w.FirstLeft = w.PassTook, w.PassStart
		}
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
// what of them was to be sent is not reported. Then it is all of the memory at most.
func (l *evaluation) data() hypervisor.Bytes {
	if l.disks() > 0 {
		return min(l.p.Sent, l.memory())
	}
	return l.p.Sent
}

// aborting: a cancel was accepted and has not failed.
// Source: godwit.
func aborting(l evaluation) bool { return l.s.Aborting }

// switching: the source has stopped, and it is too late for anything.
// Source: godwit.
func switching(l evaluation) bool { return l.p.Status == hypervisor.JobSwitching }

// stopped: the guest does not run, or will stop at the next opportunity. What is paused is
// carried to its end, whatever that takes: to give up would throw the outage away. A
// hypervisor that may stop the guest has not done so yet, and has as long as a pause.
// Source: godwit.
func stopped(l evaluation) bool { return l.s.Paused || l.s.Forced && l.pauseLeft() >= 0 }

// stuck: no data has moved for longer than ProgressTimeout. To stop the guest
// would not help: its writes are not what is in the way. A guest that is paused beyond the
// budget does not wait for ever, even without a timeout.
// Source: godwit.
func stuck(l evaluation) bool {
	timeout := l.c.ProgressTimeout
	if timeout <= 0 && l.s.Paused && l.left < 0 {
		timeout = pausedTimeout
	}
	return timeout > 0 && l.since-l.s.Watermark.MovedAt > timeout
}

// overdue: the budget is used up.
// Source: godwit.
func overdue(l evaluation) bool { return l.left < 0 }

// overdueToPostCopy: the budget is used up, and post-copy ends it all the same.
// Source: godwit.
func overdueToPostCopy(l evaluation) bool { return l.left < 0 && l.mayPostCopy() && l.moves() }

// mayPostCopy: post-copy is allowed, possible, and was not refused for good. Without its
// disks a VM does not run at the target.
func (l *evaluation) mayPostCopy() bool {
	possible := !l.c.VFIO && (l.s.Iteration > 0 || l.disks() <= 0)
	return l.c.AllowPostCopy && possible && l.s.Refusals.PostCopy < tries
}

// moves: data moves now, at a known speed.
func (l *evaluation) moves() bool {
	active := l.p.Status == hypervisor.JobActive
	return active && l.speed() > 0 && l.since-l.s.Watermark.MovedAt <= fresh
}

// stalled: the backlog has not reached a new low for longer than ProgressTimeout
// and for two passes; one long pass is no stall.
func (l *evaluation) stalled() bool {
	w := &l.s.Watermark
	return l.c.ProgressTimeout > 0 && w.LowIteration > 0 &&
		l.s.Iteration-w.LowIteration >= settle && l.since-w.LowAt > l.c.ProgressTimeout
}

// rest returns how long the guest would stand still if it were stopped now: what the pass
// still has to send, and after it what was dirtied since the pass began. The hypervisor looks
// for dirtied pages at the end of a pass, so a page may have to be sent twice.
// Source: QEMU 7.2 migration/ram.c (ram_save_complete, migration_bitmap_sync).
func (l *evaluation) rest() time.Duration {
	if l.passBegins() {
		return max(l.s.Watermark.PassStart, l.p.Remaining).At(l.speed())
	}
	return plus(l.p.Remaining, l.dirtied(l.since-l.s.Watermark.PassAt)).At(l.speed())
}

// dirtied returns what the guest has dirtied at most, so long after a pass began. A guest
// that writes the same pages again and again dirties fewer and fewer new ones: the longer the
// span, the lower the rate. So two passes of different lengths bound what a shorter span
// gives from above, by the straight line through both. Where two are not known, all that the
// last pass gave may have been dirtied in its first moments.
func (l *evaluation) dirtied(after time.Duration) hypervisor.Bytes {
	w, most := &l.s.Watermark, l.memory()
	if l.s.Iteration < 2 || w.PassTook <= 0 {
		return most
	}
	last, slope := float64(w.PassStart), 0.0 // bytes a nanosecond
	switch between := w.FirstTook - w.PassTook; {
	case after >= w.PassTook: // no more than at the same rate
		slope = last / float64(w.PassTook)
	case between > w.PassTook/4:
		slope = max(0, float64(w.FirstLeft-w.PassStart)/float64(between))
	}
	bound := last + slope*float64(after-w.PassTook)
	return min(most, hypervisor.Bytes(floor(max(0, bound))))
}

// passBegins: the pass has only just begun, so that next to nothing was dirtied in it.
func (l *evaluation) passBegins() bool {
	w, within := &l.s.Watermark, opening
	if speed := l.speed(); speed > 0 {
		within = max(within, w.PassStart.At(speed)/20)
	}
	return l.s.Iteration > 1 && l.since-w.PassAt <= within
}

// hasToBegin: a guest should be stopped, or sent to the target, when a pass begins. In the
// middle of one it has dirtied most of what was left at its start already, and the end comes
// no earlier.
func (l *evaluation) hasToBegin() bool {
	w := &l.s.Watermark
	half := plus(w.PassStart/2, l.dirtied(w.PassTook/2))
	return half > plus(w.PassStart, w.PassStart/10)
}

// opportune: to wait for the next pass would not make the rest smaller.
func (l *evaluation) opportune() bool { return l.passBegins() || !l.hasToBegin() }

// pauseLeft returns how long a guest may stand still from now on: what is left of the budget
// and as much again, as KubeVirt extends it for a pause.
// Source: KubeVirt v1.9.0 live-migration-source.go:821 (acceptableCompletionTime *= 2).
func (l *evaluation) pauseLeft() time.Duration {
	if l.left == hypervisor.Forever {
		return l.left
	}
	return l.left + min(l.budget(), hypervisor.Forever-max(l.left, 0))
}

// speed returns the smoothed bandwidth, rounded down; 0 is not known.
func (l *evaluation) speed() hypervisor.Bandwidth { return hypervisor.Bandwidth(floor(l.s.Bandwidth)) }

// lastMoment: soon what a pass leaves will no longer fit into the budget, half of it again
// allowed for, and the transfer is not about to end by itself. Where help has to begin with a
// pass, the next one would be too late.
func (l *evaluation) lastMoment() bool {
	if l.s.Iteration < 2 || l.left == hypervisor.Forever {
		return false
	}
	backlog := max(l.s.Watermark.PassStart, l.p.Remaining).At(l.speed())
	needed := later(backlog, backlog/2)
	if helpful := l.c.AllowWorkloadDisruption || l.mayPostCopy(); helpful && l.hasToBegin() {
		if !l.passBegins() {
			return false
		}
		needed = later(needed, backlog)
	}
	return needed >= l.left && !l.onCourse()
}

// onCourse: at the present rates the transfer ends within the budget.
func (l *evaluation) onCourse() bool {
	e := Predict(l.p.Remaining, l.p.DirtyRate, l.speed(), l.c.maxDowntime())
	return l.p.DirtyRate > 0 && e.Converges && e.Left <= l.left
}

// needsHelp returns why the transfer will not end by itself, if it will not.
func (l *evaluation) needsHelp() Reason {
	switch {
	case l.p.Status != hypervisor.JobActive:
	case l.lastMoment():
		return LastMoment
	case l.stalled():
		return Stalled
	}
	return NoReason
}

// limitUnused: the transfer needs help, and a longer downtime is still allowed,
// or was allowed so recently that it may yet help.
// Source: godwit.
func limitUnused(l evaluation) bool {
	if l.need == NoReason || l.s.Refusals.Downtime >= tries {
		return false
	}
	settling := l.s.Iteration-l.s.Limit.Iteration < settle
	return l.s.Limit.Now < l.c.maxDowntime() || (settling && l.need == Stalled)
}

// useLimit allows the whole downtime, once.
func useLimit(l evaluation) Decision {
	if l.s.Limit.Now < l.c.maxDowntime() {
		return limit(l.c.maxDowntime())
	}
	return Decision{}
}

// helpByPostCopy: the transfer needs help and post-copy may give it.
// Source: godwit.
func helpByPostCopy(l evaluation) bool {
	return l.need != NoReason && l.mayPostCopy()
}

// helpPostCopy starts post-copy, or waits for data to move again, or for the next pass.
func helpPostCopy(l evaluation) Decision {
	if l.moves() && l.opportune() {
		return startPostCopy(l.need)(l)
	}
	return Decision{}
}

// startPostCopy returns the verdict to let the target run because of why.
func startPostCopy(why Reason) func(evaluation) Decision {
	return func(evaluation) Decision { return Decision{Action: StartPostCopy, Why: why} }
}

// mayStop: the guest may be stopped, and what is then left can be sent in the time that
// there is for a pause.
func (l *evaluation) mayStop() bool {
	allowed := l.c.AllowWorkloadDisruption && l.s.Refusals.Pause < tries
	return allowed && l.speed() > 0 && l.rest() <= l.pauseLeft()
}

// overdueToStop: the budget is used up, and to stop the guest ends it all the same.
// Source: KubeVirt v1.9.0 live-migration-source.go:800 (handleLegacyConvergence).
func overdueToStop(l evaluation) bool { return l.left < 0 && l.moves() && l.mayStop() }

// stopOverdue stops the guest at once.
func stopOverdue(l evaluation) Decision { return l.stop(OverBudget) }

// helpByStop: the transfer needs help, and to stop the guest now, or when the pass has
// ended, gives it.
// Source: godwit.
func helpByStop(l evaluation) bool { return l.need != NoReason && l.mayStop() }

// stopGuest stops the guest, or waits for the next pass.
func stopGuest(l evaluation) Decision {
	if l.opportune() {
		return l.stop(l.need)
	}
	return Decision{}
}

// stop pauses the guest. Passed-through devices do not heed a pause: for
// them the hypervisor may take as its downtime what is left of the budget, or for a pause.
// Source: KubeVirt v1.9.0 live-migration-source.go:800 (handleLegacyConvergence).
func (l *evaluation) stop(why Reason) Decision {
	if !l.c.VFIO {
		return Decision{Action: Pause, Why: why}
	}
	downtime := l.left
	if downtime < l.rest() {
		downtime = l.pauseLeft()
	}
	downtime = min(downtime, qemuMaxDowntime).Truncate(time.Millisecond)
	return Decision{SetDowntime, max(downtime, time.Millisecond), why}
}

// beyondHelp: stalled, and nothing that is allowed helps.
// Source: godwit.
func beyondHelp(l evaluation) bool { return l.p.Status == hypervisor.JobActive && l.stalled() }
