package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Progress answers how a job goes, as a host at one of its ends sees it. The
// source's downtime ends when the target holds the complete state, a held
// target's when it is activated.
func (t *transfer) Progress(h *transferHost, job hypervisor.JobID) hypervisor.Progress {
	sums := t.account()
	p := hypervisor.Progress{
		Job: job, Status: t.Status(h), Mode: t.mode, Iteration: sums.Passes,
		Total: t.VM.Memory, Disks: t.VM.LocalSize(), Sent: sums.Sent, Remaining: sums.Left,
		DirtyRate: sums.DirtyRate, Throttle: sums.Throttle,
	}
	if t.failure != nil {
		p.Error = *t.failure
	}
	if t.From == nil {
		p.Remaining = p.Total + p.Disks
		return p
	}
	p.Started = t.world().Start.Add(t.begun)
	if t.underWay != nil {
		p.Bandwidth = t.rate()
	}
	switch {
	case h == t.To && t.wakes >= 0:
		p.Downtime = t.wakes - t.stopped
	case h == t.To || p.Status == hypervisor.JobBroken: // not over, or not known
		p.Downtime = t.downtime(-1)
	default:
		p.Downtime = t.downtime(t.dark)
	}
	return p
}

// account returns how much was sent, and is left. In post-copy all that the target lacks is left
// until it runs.
func (t *transfer) account() account {
	if t.underWay == nil {
		s := &t.sums
		return account{Passes: int(s.passes), Sent: s.sent, Left: s.left,
			DirtyRate: s.dirty, Throttle: int(s.throttle)}
	}
	sums := t.stream.account(t.world().Now)
	if t.mode == hypervisor.PostCopy && t.wakes < 0 {
		sums.Left = t.rest
	}
	switch m := t.mirror; {
	case m != nil:
		sent := m.by(t.world().Now)
		sums.Sent, sums.Left = sums.Sent+sent, sums.Left+m.total-sent
	case t.stage <= connecting:
		sums.Left += t.VM.LocalSize()
	}
	return sums
}

// Status returns the job's status as a host at one of its ends sees it.
func (t *transfer) Status(h *transferHost) hypervisor.JobStatus {
	if h == t.To {
		return t.status[atTarget]
	}
	return t.status[atSource]
}

// downtime returns how long the guest stood: over, or until now when that is
// negative.
func (t *transfer) downtime(over time.Duration) time.Duration {
	switch {
	case t.stopped < 0:
		return 0
	case over >= 0:
		return over
	}
	return t.world().Now - t.stopped
}
