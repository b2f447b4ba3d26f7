package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// cancels are cases about ending a migration.
var cancels = []trial{
	{Name: "a migration that is cancelled leaves the VM at its source; that may be repeated",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.Cancel{}, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
			w.Adjust(job, hypervisor.Cancel{})
			if d := w.Domain(source, theVM); d.Job != job || d.Unresolved {
				w.T.Fatalf("it is %+v", d)
			}
		}},
	{Name: "a migration is cancelled at once", Needs: needSlow, Run: func(w *world) {
		w.Running()
		job := w.Begin(move{Options: hypervisor.TransferOptions{Bandwidth: w.Slow}})
		w.Adjust(job, hypervisor.Cancel{})
		w.Stays(job, hypervisor.JobCancelled)
	}},
	{Name: "a cancelled job is over, and another one moves the VM",
		Needs: needSlow, Run: func(w *world) {
			w.Running()
			job, address := w.Receives(move{})
			out := w.Outgoing(job, address)
			out.Options.Bandwidth = w.Slow
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			_, err := w.ReceiveAs(job)
			w.Refused(err, hypervisor.Conflict)
			w.Rest()
			w.Stays(job, hypervisor.JobCancelled)
			w.Arrives(w.Begin(move{}), hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a migration that has succeeded is not cancelled", Run: func(w *world) {
		w.Running()
		job := w.Begin(move{})
		w.Arrives(job, hypervisor.Running)
		w.Refused(w.HV[source].Adjust(w.Ctx, job, hypervisor.Cancel{}), hypervisor.Conflict)
		w.States(hypervisor.HandedOver, hypervisor.Running)
	}},
	{Name: "a guest that was paused to let it go runs on after a cancel",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.PauseGuest{})
			w.UntilState(source, theVM, hypervisor.Paused)
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
		}},
	{Name: "a guest that its operator paused stays paused after a cancel",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.PauseGuest{})
			w.UntilState(source, theVM, hypervisor.Paused)
			if !operates(w, job, hypervisor.Pause{}) {
				return
			}
			w.Adjust(job, hypervisor.Cancel{})
			w.UntilStatus(source, job, hypervisor.JobCancelled)
			w.Rest()
			w.UntilState(source, theVM, hypervisor.Paused)
			w.Do(source, theVM, hypervisor.Unpause{})
			w.Stays(job, hypervisor.JobCancelled)
		}},
	{Name: "a VM that is killed while it moves ends the job, and never runs at the target",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Do(source, theVM, hypervisor.Kill{})
			w.UntilStatus(source, job, hypervisor.JobFailed)
			w.UntilState(source, theVM, hypervisor.Shutoff)
			w.NeverRuns(target)
		}},
}

// operates gives a VM on its way a command of its operator, and reports whether it
// was done. A refusal, which only hosts without take-back may give, changes nothing;
// the job is then cancelled, and the VM runs on.
func operates(w *world, job hypervisor.JobID, c hypervisor.Command) bool {
	w.T.Helper()
	before := w.Domain(source, theVM).State
	if w.Granted(w.HV[source].Do(w.Ctx, theVM, c)) {
		return true
	}
	w.Rest()
	w.States(before, hypervisor.Receiving)
	w.UntilStatus(source, job, hypervisor.JobActive)
	w.Adjust(job, hypervisor.Cancel{})
	w.Stays(job, hypervisor.JobCancelled)
	return false
}

// adjustments are cases about changing a migration on its way.
var adjustments = []trial{
	{Name: "a slow migration ends when its cap is lifted", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{})
		w.Adjust(job, hypervisor.SetDowntime{Limit: time.Second},
			hypervisor.SetBandwidth{Limit: 2 * w.Slow}, hypervisor.SetBandwidth{})
		w.Arrives(job, hypervisor.Running)
		w.Sound(target)
	}},
	{Name: "limits that make no sense are invalid, and the job goes on",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			for _, a := range []hypervisor.Adjustment{hypervisor.SetDowntime{},
				hypervisor.SetDowntime{Limit: -1}, hypervisor.SetBandwidth{Limit: -1}} {
				w.Refused(w.HV[source].Adjust(w.Ctx, job, a), hypervisor.Invalid)
			}
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
		}},
	{Name: "no adjustment is none", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{})
		w.Refused(w.HV[source].Adjust(w.Ctx, job, nil), hypervisor.Invalid,
			hypervisor.Unsupported)
		w.States(hypervisor.Running, hypervisor.Receiving)
	}},
	{Name: "a guest that is paused to let it go runs at its target",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.PauseGuest{}, hypervisor.PauseGuest{})
			w.UntilState(source, theVM, hypervisor.Paused)
			if m := w.Progress(source, job).Mode; m != hypervisor.PausedCopy {
				w.T.Fatalf("the mode is %v", m)
			}
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "an operator may let a guest run that was paused to let it go",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.PauseGuest{})
			w.UntilState(source, theVM, hypervisor.Paused)
			if !operates(w, job, hypervisor.Unpause{}) {
				return
			}
			w.UntilState(source, theVM, hypervisor.Running)
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a guest that its operator pauses on the way rests at its target",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			if !operates(w, job, hypervisor.Pause{}) {
				return
			}
			w.UntilState(source, theVM, hypervisor.Paused)
			w.Uncap(job)
			w.Arrives(job, hypervisor.Paused)
			w.Do(target, theVM, hypervisor.Unpause{})
			w.UntilState(target, theVM, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a guest that writes too fast arrives when it is paused",
		Needs: needSlow | needBusy, Run: func(w *world) {
			w.Name(theVM)
			vm := w.BusyVM(theVM)
			w.Boot(source, vm)
			job := w.Begin(move{VM: vm,
				Options: hypervisor.TransferOptions{Bandwidth: w.Slow}})
			w.UntilStatus(source, job, hypervisor.JobActive)
			w.Adjust(job, hypervisor.PauseGuest{})
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "post-copy lets the target run at once; starting it may be repeated",
		Needs: needSlow, Able: hypervisor.CanPostCopy, Run: func(w *world) {
			job := w.Slowly(move{Options: hypervisor.TransferOptions{PostCopy: true}})
			w.Until("the target runs", func() bool {
				for range 20 { // there is no moment at which it is refused
					w.Adjust(job, hypervisor.StartPostCopy{})
				}
				return w.Domain(target, theVM).State == hypervisor.Running
			})
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
			if m := w.Progress(source, job).Mode; m != hypervisor.PostCopy {
				w.T.Fatalf("the mode is %v", m)
			}
			w.Refuses(w.NotResumed(), source, theVM, hypervisor.Resume{Job: job,
				NeverRan: w.Says(hypervisor.OperatorWord, target, job)})
		}},
	{Name: "a busy guest arrives by post-copy",
		Needs: needSlow | needBusy, Able: hypervisor.CanPostCopy, Run: func(w *world) {
			w.Name(theVM)
			vm := w.BusyVM(theVM)
			w.Boot(source, vm)
			job := w.Begin(move{VM: vm, Options: hypervisor.TransferOptions{Bandwidth: w.Slow,
				PostCopy: true}})
			w.UntilStatus(source, job, hypervisor.JobActive)
			w.Adjust(job, hypervisor.StartPostCopy{})
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "post-copy that was not allowed does not start", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{})
		want := hypervisor.Invalid
		if !w.Hosts[source].Abilities.Has(hypervisor.CanPostCopy) {
			want = hypervisor.Unsupported
		}
		w.Refused(w.HV[source].Adjust(w.Ctx, job, hypervisor.StartPostCopy{}), want)
		w.States(hypervisor.Running, hypervisor.Receiving)
		w.Uncap(job)
		w.Arrives(job, hypervisor.Running)
	}},
	{Name: "a job that never was is not found", Run: func(w *world) {
		w.Running()
		for _, a := range changes() {
			w.Refused(w.HV[source].Adjust(w.Ctx, "no-job", a), unknown(w, source, a)...)
		}
	}},
	{Name: "a job is adjusted at its source only", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{})
		for _, a := range changes() {
			w.Refused(w.HV[target].Adjust(w.Ctx, job, a), unknown(w, target, a)...)
		}
		w.States(hypervisor.Running, hypervisor.Receiving)
	}},
	{Name: "a job that has ended is adjusted no more",
		Able: hypervisor.CanPostCopy, Run: func(w *world) {
			w.Running()
			job := w.Begin(move{Options: hypervisor.TransferOptions{PostCopy: true}})
			w.Arrives(job, hypervisor.Running)
			for _, a := range changes() {
				w.Refused(w.HV[source].Adjust(w.Ctx, job, a), hypervisor.Conflict)
			}
			w.States(hypervisor.HandedOver, hypervisor.Running)
		}},
}

// unknown is how a host refuses to adjust a job that it does not send. What it has no ability for
// it may refuse whatever the job.
func unknown(w *world, on side, a hypervisor.Adjustment) []hypervisor.Kind {
	kinds := []hypervisor.Kind{hypervisor.NotFound}
	_, postCopy := a.(hypervisor.StartPostCopy)
	if postCopy && !w.Hosts[on].Abilities.Has(hypervisor.CanPostCopy) {
		kinds = append(kinds, hypervisor.Unsupported)
	}
	return kinds
}
