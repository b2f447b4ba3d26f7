package conformance

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// onlyCopies are what becomes of a VM that hosts without take-back have moved.
var onlyCopies = []trial{
	{Name: "a held target that dies has crashed, stays visible and starts anew there",
		Needs: needKill, Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Kills(target)
			w.States(hypervisor.HandedOver, hypervisor.Crashed)
			if d := w.Domain(target, theVM); d.Job != job || !w.Listed(target, theVM) {
				w.T.Fatalf("at the target it is %+v", d)
			}
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
			w.Refuses(hypervisor.Unsupported, source, theVM, hypervisor.Resume{Job: job,
				NeverRan: w.Says(hypervisor.OperatorWord, target, job)})
			w.Rest()
			w.States(hypervisor.HandedOver, hypervisor.Crashed)
			w.Boot(target, w.VM(theVM))
			w.Sound(target)
			w.Do(source, theVM, hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
			w.States(hypervisor.Absent, hypervisor.Running)
		}},
	{Name: "a held target whose host had no power stays visible, and starts anew there",
		Needs: needRestart, Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			restarts(w, target)
			w.UntilState(target, theVM, hypervisor.Shutoff, hypervisor.Crashed)
			if d := w.Domain(target, theVM); d.Job != job || !w.Listed(target, theVM) {
				w.T.Fatalf("at the target it is %+v", d)
			}
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
			w.UntilState(source, theVM, hypervisor.HandedOver)
			w.Boot(target, w.VM(theVM))
			w.Sound(target)
		}},
}

// reopenedCopies are the same after a reopening.
var reopenedCopies = []trial{
	{Name: "a held target is still the only copy after a reopening",
		Needs: needReopen, Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			finds(w, source, target)
			never := w.Says(hypervisor.OperatorWord, target, job)
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
			w.Refuses(hypervisor.Unsupported, source, theVM,
				hypervisor.Resume{Job: job, NeverRan: never})
			w.Refuses(hypervisor.Conflict, source, theVM,
				hypervisor.Abandon{Job: job,
					Dead: w.Says(hypervisor.TargetDiscarded, target, job)})
			finds(w, source, target)
			w.Do(target, theVM, hypervisor.Activate{Job: job,
				Stopped: w.Says(hypervisor.SourceStopped, source, job)})
			w.States(hypervisor.HandedOver, hypervisor.Running)
			w.Sound(target)
		}},
}

// settles is [resolve] on hosts without take-back. There is a third way for it to
// end well: the hypervisor itself lets the source run on, because it knows that
// the target did not and will not run. A backend that keeps a connection alive must have
// noticed its end first.
func settles(w *world, job hypervisor.JobID) {
	w.T.Helper()
	arrived := false
	w.Until("the target runs, or is discarded", func() bool {
		arrived = w.Domain(target, theVM).State.Executes()
		return arrived ||
			w.Granted(w.HV[target].Do(w.Ctx, theVM, hypervisor.Discard{Job: job}))
	})
	if arrived {
		staysAtTarget(w, job)
		return
	}
	w.Must(w.MendLink()) // a process that sends into nothing may hang until then
	resume := hypervisor.Resume{Job: job,
		NeverRan: w.Says(hypervisor.TargetDiscarded, target, job)}
	w.Until("the source runs, and its job has failed", func() bool {
		d := w.Domain(source, theVM)
		if d.State != hypervisor.Running || d.Unresolved {
			// A Conflict is that it runs by itself, or soon will, or will have to be asked.
			_ = w.Granted(w.HV[source].Do(w.Ctx, theVM, resume))
		}
		return d.State == hypervisor.Running && !d.Unresolved &&
			w.Progress(source, job).Status == hypervisor.JobFailed
	})
	w.NeverRuns(target)
	w.Stays(job, hypervisor.JobFailed)
}

// staysAtTarget wants a VM that came to run at its target over a link that was lost
// to be the only one, and its source to be released when that is known to be over.
func staysAtTarget(w *world, job hypervisor.JobID) {
	w.T.Helper()
	w.UntilState(target, theVM, hypervisor.Running)
	w.Until("the source has noticed, and does not claim the VM", func() bool {
		s := w.Progress(source, job).Status
		return s == hypervisor.JobSucceeded || s == hypervisor.JobBroken
	})
	neverExecutes(w, source)
	brokenIsUnresolved(w, job)
	w.Until("the source is released", func() bool {
		return w.Granted(w.HV[source].Do(w.Ctx, theVM, hypervisor.Release{Job: job,
			Moved: w.Says(hypervisor.RunsAtTarget, target, job)}))
	})
	w.Must(w.MendLink())
	w.States(hypervisor.Absent, hypervisor.Running)
	w.Sound(target)
}
