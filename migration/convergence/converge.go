package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Converge looks at a transfer once and says what to do about it. It is total
// and deterministic. A transfer that has ended, in whatever way, is left alone.
//
// now is the wall clock; only spans since the start matter. A State belongs to
// one job: begin a new job with the zero State.
func Converge(
	c Config, s State, p hypervisor.Progress, now time.Time,
) (State, Decision) {
	if p.Status.Final() || p.Status == hypervisor.JobBroken {
		return s, Decision{}
	}
	l := evaluation{c: c, s: s, p: sane(&p)}
	l.take(&p, now)
	var v Decision
	switch c.Method {
	case Legacy:
		v = legacy(&l)
	case Stall:
		v = stall(&l)
	default:
		l.c.Method = Watermark
		v = watermark(&l)
	}
	return l.s, v
}

// A evaluation is one observation with all that a rule may ask about. Rules are given it by value, so
// that none can change what the next one sees.
type evaluation struct {
	c        Config
	s        State
	p        sample
	since    time.Duration // from the start of the transfer
	boundary bool          // the first look at a new pass

	// What godwit's own rules ask about again and again.
	left time.Duration // of the budget
	need Reason        // why the transfer will not end by itself; NoReason is that it may
}

// A sample is the figures of a [hypervisor.Progress]. No amount is below zero.
type sample struct {
	Status               hypervisor.JobStatus
	Iteration, Throttle  int
	Total, Disks         hypervisor.Bytes
	Sent, Remaining      hypervisor.Bytes
	DirtyRate, Bandwidth hypervisor.Bandwidth
}

// take takes in what the transfer shows about itself.
func (l *evaluation) take(p *hypervisor.Progress, now time.Time) {
	s := &l.s
	if s.Started.IsZero() {
		s.Started = start(p.Started, now)
	}
	l.since = s.since(now)
	if l.c.Method != Legacy {
		l.since = max(l.since, s.Clock)
	}
	s.Clock = l.since
	s.PostCopy = s.PostCopy || p.Mode == hypervisor.PostCopy
	s.Paused = s.Paused || p.Mode == hypervisor.PausedCopy
	if sampled(p.Status) && l.p.Iteration > s.Iteration {
		s.Iteration, l.boundary = l.p.Iteration, true
	}
}

// start returns when a transfer began that is seen for the first time: what the
// hypervisor says, unless that is nothing or in the future.
func start(told, now time.Time) time.Time {
	if told.IsZero() || told.After(now) {
		told = now
	}
	return told.UTC().Round(0)
}

// sane returns the figures of p without amounts that cannot be.
func sane(p *hypervisor.Progress) sample {
	return sample{Status: p.Status, Iteration: max(p.Iteration, 0),
		Throttle: min(max(p.Throttle, 0), 100), Total: max(p.Total, 0), Disks: p.Disks,
		Sent: max(p.Sent, 0), Remaining: max(p.Remaining, 0),
		DirtyRate: max(p.DirtyRate, 0), Bandwidth: max(p.Bandwidth, 0)}
}

// sampled reports whether a job in this status has figures worth keeping.
func sampled(s hypervisor.JobStatus) bool {
	return s == hypervisor.JobActive || s == hypervisor.JobSwitching
}

// seconds returns the span since the start in whole seconds, as KubeVirt counts.
func (l *evaluation) seconds() int64 { return int64(l.since / time.Second) }

// A rule gives a verdict when it holds.
type rule struct {
	name    string
	when    plight // it cannot hold in another, and is not given a copy of the look to say so
	holds   func(evaluation) bool
	verdict func(evaluation) Decision
}

// A plight is what has to be the matter before a rule can hold; anyhow is nothing.
type plight uint8

const (
	late  plight = 1 << iota // the budget is used up
	needy                    // the transfer will not end by itself

	anyhow plight = 0
)

// plight returns all that is the matter.
func (l *evaluation) plight() plight {
	in := anyhow
	if l.left < 0 {
		in |= late
	}
	if l.need != NoReason {
		in |= needy
	}
	return in
}

// decide returns the verdict of the first rule that holds: the order is the
// specification.
func decide(rules []rule, l evaluation) Decision {
	in := l.plight()
	for i := range rules {
		if r := &rules[i]; r.when&^in == 0 && r.holds(l) {
			return r.verdict(l)
		}
	}
	return Decision{}
}

// keep leaves the transfer alone.
func keep(evaluation) Decision { return Decision{} }

// abort returns the verdict to give up because of why.
func abort(why Reason) func(evaluation) Decision {
	return func(evaluation) Decision { return Decision{Action: Abort, Why: why} }
}

// inPostCopy: the target runs. There is no deadline: the source can no longer
// take the VM back.
// Source: KubeVirt v1.9.0 live-migration-source.go:766 (handleLegacyConvergence).
func inPostCopy(l evaluation) bool { return l.s.PostCopy }

// smooth returns the exponentially weighted average after one more sample. The
// first sample counts in full, as does one after the average has come down to 0.
// Source: KubeVirt v1.9.0 stall-detector.go (updateBandwidthEstimate).
func smooth(average float64, sample hypervisor.Bandwidth, alpha float64) float64 {
	if average == 0 {
		return float64(sample)
	}
	return float64(alpha*float64(sample)) + float64((1-alpha)*average)
}
