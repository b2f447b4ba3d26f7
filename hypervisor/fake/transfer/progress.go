package transfer

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake/memory"
)

// Progress answers how a job goes, as a host at one of its ends sees it. The
// source's downtime ends when the target holds the complete state, a held
// target's when it is activated.
func (t *Transfer) Progress(h *Host, job hypervisor.JobID) hypervisor.Progress {
	sums := t.account()
	p := hypervisor.Progress{
		Job: job, Status: t.Status(h), Mode: t.mode, Iteration: sums.Passes,
		Total: t.VM.Memory, Sent: sums.Sent, Remaining: t.VM.Memory,
		DirtyRate: sums.DirtyRate, Throttle: sums.Throttle, Error: t.failure,
	}
	if t.From == nil {
		return p
	}
	p.Started, p.Remaining = t.world().Start.Add(t.begun), sums.Left
	if t.underWay != nil {
		p.Bandwidth = t.stream.Rate()
	}
	switch {
	case h == t.To && t.wakes >= 0:
		p.Downtime = t.wakes - t.stopped
	case h == t.To || p.Status == hypervisor.JobBroken: // not over, or not known
		p.Downtime = t.blackout(-1)
	default:
		p.Downtime = t.blackout(t.dark)
	}
	return p
}

// account returns how much was sent, and is left. In post-copy all that the target lacks is left
// until it runs.
func (t *Transfer) account() memory.Account {
	if t.underWay == nil {
		return t.sums
	}
	sums := t.stream.Account(t.world().Now)
	if t.mode == hypervisor.PostCopy && t.wakes < 0 {
		sums.Left = t.rest
	}
	return sums
}

// Status returns the job's status as a host at one of its ends sees it.
func (t *Transfer) Status(h *Host) hypervisor.JobStatus {
	if h == t.To {
		return t.status[atTarget]
	}
	return t.status[atSource]
}

// blackout returns how long the guest stood: over, or until now when that is
// negative.
func (t *Transfer) blackout(over time.Duration) time.Duration {
	switch {
	case t.stopped < 0:
		return 0
	case over >= 0:
		return over
	}
	return t.world().Now - t.stopped
}
