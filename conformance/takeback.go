package conformance

import "github.com/godwit-vm/godwit/hypervisor"

// TakesBack reports whether both hosts have [hypervisor.CanTakeBack]. What a host
// without it may answer otherwise is allowed where it is false, and only there.
func (w *world) TakesBack() bool {
	both := w.Hosts[source].Abilities & w.Hosts[target].Abilities
	return both.Has(hypervisor.CanTakeBack)
}

// Granted reports whether the answer to a command says that it was done. A host
// without take-back may refuse with Conflict what its hypervisor could not do to
// a VM that moves; any other refusal fails the case.
func (w *world) Granted(err error) bool {
	w.T.Helper()
	if err != nil && !w.TakesBack() {
		w.Refused(err, hypervisor.Conflict)
		return false
	}
	w.Must(err)
	return true
}

// Ended throws away a target whose source has ended or is gone, and returns the
// proof. A host without take-back may answer Conflict until its hypervisor has
// noticed that.
func (w *world) Ended(job hypervisor.JobID) hypervisor.Evidence {
	w.T.Helper()
	w.Until("the target is discarded", func() bool {
		return w.Granted(w.HV[target].Do(w.Ctx, theVM, hypervisor.Discard{Job: job}))
	})
	return w.Says(hypervisor.TargetDiscarded, target, job)
}

// tells discards a target that still receives, where take-back is lacking: when a
// source was cancelled before it reached its target, that one was not told.
func (w *world) tells(job hypervisor.JobID) {
	w.T.Helper()
	if !w.TakesBack() && w.Domain(target, theVM).State == hypervisor.Receiving {
		w.Ended(job)
	}
}

// NotResumed is how a host refuses to resume a source that is handed over, and
// whose target runs.
func (w *world) NotResumed() hypervisor.Kind {
	if w.TakesBack() {
		return hypervisor.Conflict
	}
	return hypervisor.Unsupported
}

// StaysFound is Stays for a job that was cancelled after its source's host was reopened. A
// hypervisor with a hand-over of its own may tell for a moment only that it gave up: a host
// without take-back that missed it says Broken, never that the job went well, and lets the
// guest run once it is proven that the target never will.
func (w *world) StaysFound(job hypervisor.JobID) {
	w.T.Helper()
	var status hypervisor.JobStatus
	w.Until(string(job)+" has ended", func() bool {
		status = w.Progress(source, job).Status
		return status.Final() || status == hypervisor.JobBroken
	})
	if status == hypervisor.JobBroken && !w.TakesBack() {
		if d := w.Domain(source, theVM); !d.Unresolved {
			w.T.Fatalf("the job is broken, and its source is %+v", d)
		}
		w.Do(source, theVM, hypervisor.Resume{Job: job, NeverRan: w.Ended(job)})
		w.States(hypervisor.Running, hypervisor.Absent)
		w.Sound(source)
		return
	}
	w.Stays(job, hypervisor.JobCancelled)
}
