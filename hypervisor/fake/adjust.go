package fake

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// Adjust changes a transfer as its source was asked to. It answers Conflict when
// it is too late, and Invalid for what makes no sense.
func (t *transfer) Adjust(a hypervisor.Adjustment) error {
	switch a := a.(type) {
	case hypervisor.Cancel:
		return t.cancel()
	case hypervisor.StartPostCopy:
		return t.startPostCopy()
	case hypervisor.PauseGuest:
		return t.pauseGuest()
	case hypervisor.SetDowntime:
		return t.retune(a.Limit > 0, func() { t.stream.Options.Downtime = a.Limit })
	case hypervisor.SetBandwidth:
		return t.retune(a.Limit >= 0, func() { t.options.Bandwidth = a.Limit })
	}
	return refused(hypervisor.Unsupported, "%T", a)
}

// retune changes a limit of a running transfer.
func (t *transfer) retune(valid bool, change func()) error {
	switch {
	case !valid:
		return refused(hypervisor.Invalid, "the limit makes no sense")
	case !t.sends():
		return refused(hypervisor.Conflict, "the job is %v", t.status[atSource])
	}
	change()
	t.tune()
	return nil
}

// sends reports whether the source takes part.
func (t *transfer) sends() bool { return t.underWay != nil && t.source != nil }

// tooLate refuses what can only be done before the source stops.
func (t *transfer) tooLate() error {
	if !t.sends() || t.stage > copying {
		return refused(hypervisor.Conflict, "the job is %v", t.status[atSource])
	}
	return nil
}

func (t *transfer) cancel() error {
	if s := t.status[atSource]; s == hypervisor.JobCancelled || s == hypervisor.JobFailed {
		return nil // the source kept the VM, as was asked
	}
	if err := t.tooLate(); err != nil {
		return err
	}
	t.keep(hypervisor.JobCancelled, "cancelled")
	return nil
}

func (t *transfer) startPostCopy() error {
	if !t.postCopy {
		return refused(hypervisor.Invalid, "the job does not allow post-copy")
	}
	if t.mode == hypervisor.PostCopy {
		return nil
	}
	if err := t.tooLate(); err != nil {
		return err
	}
	if t.stage != copying || t.source.Doing() == hypervisor.Stopping {
		return refused(hypervisor.Conflict, "the job is %v, the VM %v", t.status[atSource],
			t.source.Doing())
	}
	if t.world().costs.Memory.Window == 0 {
		t.finishWithout()
		return nil
	}
	t.switching = true
	t.stream.Hurry(t.world().Now)
	t.await()
	return nil
}

func (t *transfer) pauseGuest() error {
	if t.mode == hypervisor.PausedCopy {
		return nil
	}
	if err := t.tooLate(); err != nil {
		return err
	}
	switch s := t.source.Doing(); s {
	case hypervisor.Running:
		t.paused, t.stopped = true, t.world().Now
		t.source.Become(hypervisor.Paused)
	case hypervisor.Paused: // by its operator, and stays so
	default:
		return refused(hypervisor.Conflict, "the VM is %v", s)
	}
	t.mode = hypervisor.PausedCopy
	t.tune()
	return nil
}

// Paused tells the transfer that the source's operator paused the guest. One that
// PauseGuest had paused then stays so.
func (t *transfer) Paused() {
	if t.paused {
		t.paused, t.stopped = false, -1
	}
	t.tune()
}

// Unpaused tells the transfer that the source's operator lets the guest run, also
// against PauseGuest.
func (t *transfer) Unpaused() {
	if t.mode == hypervisor.PausedCopy {
		t.mode = hypervisor.PreCopy
	}
	t.paused, t.stopped = false, -1
	t.tune()
}

// SetWorkload changes how the guest dirties memory from now on.
func (t *transfer) SetWorkload(w Workload) { t.stream.SetWorkload(t.world().Now, w) }

// Activate starts a target that holds the complete state.
func (t *transfer) Activate(target end) { t.wake(target) }

// Stopped reports whether e, if it is about the job, proves that the source has stopped.
func (t *transfer) Stopped(e hypervisor.Evidence) bool {
	if e.Proof == hypervisor.SourceStopped {
		return e.VM == t.VM.ID && e.Host == t.From.Name
	}
	return e.Dead(t.VM.ID, t.From.Name)
}

// Rests reports whether the guest was paused by its operator when it moved.
func (t *transfer) Rests() bool { return t.rests }

// Confirming reports whether the target is complete and the source does not know.
func (t *transfer) Confirming() bool { return t.stage == confirming }

// Confirm lets the source know.
func (t *transfer) Confirm() { t.succeed() }

// Ran reports whether the target has been let run.
func (t *transfer) Ran() bool { return t.wakes >= 0 }

// NoReturn reports whether the target ran before it had all of the memory.
func (t *transfer) NoReturn() bool { return t.mode == hypervisor.PostCopy && t.wakes >= 0 }

// GiveBack lets a stopped source run again, or rest if its operator had paused it.
// What is still under way to the target is lost.
func (t *transfer) GiveBack(source end) {
	if t.sends() {
		t.sever(reset, "the source resumed")
	}
	t.dark = t.world().Now - t.stopped
	if t.status[atSource] == hypervisor.JobBroken {
		t.status[atSource] = hypervisor.JobFailed
		source.JobChanged()
	}
	if t.rests {
		source.Become(hypervisor.Paused)
		return
	}
	source.Become(hypervisor.Running)
}
