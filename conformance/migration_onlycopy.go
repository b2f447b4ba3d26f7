package conformance

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// migrationOnlyCopies are the resolutions of hosts that lack take-back: a target that has
// everything is the only copy, and nothing is undone.
var migrationOnlyCopies = []trial{
	{Name: "a held target is the only copy: it is not discarded, and starts when it is activated",
		Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job},
				hypervisor.Discard{Job: job}, hypervisor.Discard{Job: "other"})
			activates(w, job)
		}},
	{Name: "a source that is handed over has nothing to resume, whatever is said of its target",
		Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resume{Job: job})
			for _, p := range []hypervisor.Proof{hypervisor.TargetDiscarded,
				hypervisor.OperatorWord} {
				w.Refuses(hypervisor.Unsupported, source, theVM, hypervisor.Resume{Job: job,
					NeverRan: w.Says(p, target, job)})
			}
			activates(w, job)
		}},
	{Name: "a source that is handed over does not resume with evidence of something else",
		Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			for _, e := range []hypervisor.Evidence{
				w.Says(hypervisor.HostFenced, target, job),
				w.Says(hypervisor.TargetDiscarded, source, job),
				w.Says(hypervisor.TargetDiscarded, target, "other")} {
				err := w.HV[source].Do(w.Ctx, theVM, hypervisor.Resume{Job: job, NeverRan: e})
				w.Refused(err, hypervisor.Conflict, hypervisor.Unsupported)
			}
			activates(w, job)
		}},
	{Name: "a source that is handed over is abandoned when its target is dead, not by a denial",
		Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Abandon{Job: job})
			for _, e := range []hypervisor.Evidence{
				w.Says(hypervisor.TargetDiscarded, target, job),
				w.Says(hypervisor.HostFenced, source, job)} {
				w.Refuses(hypervisor.Conflict, source, theVM,
					hypervisor.Abandon{Job: job, Dead: e})
			}
			w.States(hypervisor.HandedOver, hypervisor.Received)
			w.Do(source, theVM, hypervisor.Abandon{Job: job,
				Dead: w.Says(hypervisor.OperatorWord, target, job)})
			w.UntilState(source, theVM, hypervisor.Crashed)
		}},
	{Name: "a target that was discarded before its source came is not activated any more",
		Unable: hypervisor.CanTakeBack, Run: func(w *world) {
			job, _ := w.Receives(move{Hold: true})
			w.Discards(job)
			w.Refuses(hypervisor.NotFound, target, theVM, hypervisor.Activate{Job: job,
				Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		}},
}

// activates wants nothing to have become of a held target, and starts it.
func activates(w *world, job hypervisor.JobID) {
	w.T.Helper()
	w.Rest()
	w.States(hypervisor.HandedOver, hypervisor.Received)
	w.Do(target, theVM, hypervisor.Activate{Job: job,
		Stopped: w.Says(hypervisor.SourceStopped, source, job)})
	w.States(hypervisor.HandedOver, hypervisor.Running)
	w.Sound(target)
}
