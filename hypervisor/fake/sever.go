package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// connectionTimeout is how long what was sent may stay without an answer before the connection
// breaks. QEMU sets no time-out of its own.
// Source: Linux Documentation/networking/ip-sysctl.rst (tcp_retries2: 924.6 seconds by default).
const connectionTimeout = 924600 * time.Millisecond

// A parting is how the ends of a transfer lose each other.
type parting uint8

const (
	cut   parting = iota // nothing arrives until the link heals, and that is not reported
	reset                // the connection is closed
	death                // a process died, and the other end is told
)

// connected reports whether the two hosts reach each other.
func (t *transfer) connected() bool {
	return !t.From.Off && !t.To.Off && !t.world().cut[between(t.From, t.To)]
}

// sever is what the ends of a transfer that are left do when they lose each
// other. Before the source has stopped it keeps the VM. Afterwards what is on its way waits for a
// link that was cut, until the connection times out; the source cannot know then whether the
// target runs, and a target that has everything goes on.
func (t *transfer) sever(how parting, why string) {
	if t.source == nil && t.target == nil {
		t.close()
		return
	}
	if how == cut && t.waits() {
		t.stall()
		return
	}
	switch t.stage {
	case connecting, mirroring, copying:
		t.severCopy(how, why)
	case finishing:
		t.abandonSource(why)
		t.abandonTarget(how)
		t.close()
	case loading:
		t.abandonSource(why)
		if t.mode == hypervisor.PostCopy { // it lacks memory and did not run
			t.abandonTarget(how)
		}
		if t.target == nil || t.mode == hypervisor.PostCopy {
			t.close()
		}
	case confirming:
		t.abandonSource(why)
		t.close()
	case fetching:
		t.severFetch(why)
	}
}

// waits reports whether what the ends have for each other, after the source has stopped, waits for a
// link that was cut.
func (t *transfer) waits() bool {
	if t.source == nil || t.target == nil {
		return false
	}
	switch t.stage {
	case finishing, fetching:
		return true
	case loading:
		return t.mode == hypervisor.PostCopy // memory is still to come
	}
	return false
}

// stall lets nothing through until the link heals, or the connection times out.
func (t *transfer) stall() {
	if w := t.world(); !t.silence.Armed() {
		w.Agenda.Arm(&t.silence, laterOf(w.Now, connectionTimeout))
	}
	t.tune()
}

// resume ends a stall: the link has healed.
func (t *transfer) resume() {
	if t.underWay != nil {
		t.world().Agenda.Disarm(&t.silence)
	}
	t.tune()
}

// fail remembers what went wrong.
func (t *transfer) fail(why string) { t.failure = t.world().failures.Keep(why) }

// severCopy: a cut only stalls, and a closed connection leaves the target waiting
// for ever; the target notices the end of the source's process.
// Source: measured on QEMU 7.2.
func (t *transfer) severCopy(how parting, why string) {
	if how == cut {
		if t.source == nil || t.target == nil {
			t.world().Agenda.Disarm(&t.timer)
		}
		t.tune()
		return
	}
	if t.source != nil {
		t.keepSource(hypervisor.JobFailed, why)
	}
	if how == death {
		t.dropTarget(hypervisor.JobFailed)
	}
	t.close()
}

// severFetch: each end has a part of the memory, none has all of it.
func (t *transfer) severFetch(why string) {
	t.fail(why)
	for _, e := range [...]end{t.source, t.target} {
		if e != nil && e.Doing() != hypervisor.Shutoff {
			e.Become(hypervisor.Crashed)
		}
	}
	t.report(hypervisor.JobBroken, hypervisor.JobBroken)
	t.close()
}

// keep ends the job before the source has stopped: it keeps the VM, and the
// target goes if it can be told.
func (t *transfer) keep(status hypervisor.JobStatus, why string) {
	t.keepSource(status, why)
	if t.connected() {
		t.dropTarget(status)
	}
	t.close()
}

func (t *transfer) keepSource(status hypervisor.JobStatus, why string) {
	if t.paused && t.source.Doing() == hypervisor.Paused {
		t.source.Become(hypervisor.Running)
		t.dark = t.world().Now - t.stopped
	}
	t.fail(why)
	t.report(status, t.status[atTarget])
}

// dropTarget ends an incoming domain.
func (t *transfer) dropTarget(status hypervisor.JobStatus) {
	if t.target != nil {
		t.report(t.status[atSource], status)
		t.target.Vanish()
	}
}

// abandonSource leaves the source stopped: it is not known whether the target
// runs, and the source never resumes on its own.
func (t *transfer) abandonSource(why string) {
	if t.source == nil {
		return
	}
	t.fail(why)
	t.source.Leave(true)
	t.report(hypervisor.JobBroken, t.status[atTarget])
	t.source = nil
}

// abandonTarget leaves an incomplete target to wait for ever, unless it is told.
func (t *transfer) abandonTarget(how parting) {
	if how == death {
		t.dropTarget(hypervisor.JobBroken)
		return
	}
	t.report(t.status[atSource], hypervisor.JobBroken)
}

// Lose takes an end out of the transfer: its process is gone, or its guest.
func (t *transfer) Lose(e end, why string) {
	status := hypervisor.JobFailed
	if t.stage >= finishing {
		status = hypervisor.JobBroken
	}
	if e == t.source {
		t.report(status, t.status[atTarget])
		t.source = nil
	} else {
		if t.stage != confirming {
			t.report(t.status[atSource], status)
		}
		t.target = nil
	}
	e.Leave(false)
	t.fail(why)
	how := death
	if t.From != nil && !t.connected() {
		how = cut
	}
	t.sever(how, why)
}
