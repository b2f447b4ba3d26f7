package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// reopenings are cases about a process of ours that dies without warning: another
// one finds everything as it was, and VMs do not notice.
var reopenings = []trial{
	{Name: "a VM that runs is found again", Needs: needReopen, Run: func(w *world) {
		w.Running()
		finds(w, source)
		w.Sound(source)
		w.Do(source, theVM, hypervisor.Pause{}, hypervisor.Unpause{}, hypervisor.Kill{})
		w.UntilState(source, theVM, hypervisor.Shutoff)
	}},
	{Name: "a VM that starts is found again, and comes to run",
		Needs: needReopen, Run: func(w *world) {
			w.Do(source, theVM, hypervisor.Start{VM: w.Name(theVM)})
			w.Reopens(source)
			w.UntilState(source, theVM, hypervisor.Running)
			w.Sound(source)
		}},
	{Name: "a paused VM is found again, and paused", Needs: needReopen, Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Pause{})
		w.UntilState(source, theVM, hypervisor.Paused)
		finds(w, source)
		w.Do(source, theVM, hypervisor.Unpause{})
		w.UntilState(source, theVM, hypervisor.Running)
	}},
	{Name: "a VM that is shut off is found again, and a forgotten one is not",
		Needs: needReopen, Run: func(w *world) {
			w.Off()
			finds(w, source)
			w.Do(source, theVM, hypervisor.Forget{})
			finds(w, source)
		}},
	{Name: "a VM that died while its host was closed has crashed",
		Needs: needReopen | needKill, Run: func(w *world) {
			w.Running()
			w.Kills(source)
			w.Reopens(source)
			w.UntilState(source, theVM, hypervisor.Crashed)
			finds(w, source)
		}},
	{Name: "a stop goes on", Needs: needReopen, Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Stop{Grace: 50 * time.Millisecond})
		w.Reopens(source)
		w.UntilState(source, theVM, hypervisor.Shutoff)
	}},
	{Name: "a target that listens is found again, at its address",
		Needs: needReopen, Run: func(w *world) {
			w.Running()
			job, address := w.Receives(move{})
			finds(w, target)
			again, err := w.ReceiveAs(job)
			w.Must(err)
			if again != address {
				w.T.Fatalf("it listens at %q, and did at %q", again, address)
			}
			w.Must(w.HV[source].Migrate(w.Ctx, w.Outgoing(job, address)))
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a discarded job does not come back", Needs: needReopen, Run: func(w *world) {
		job, _ := w.Receives(move{})
		w.Discards(job)
		w.Discards("early")
		w.Reopens(target)
		for _, j := range []hypervisor.JobID{job, "early"} {
			_, err := w.ReceiveAs(j)
			w.Refused(err, hypervisor.Conflict)
		}
	}},
	{Name: "a migration goes on when its source is reopened",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			finds(w, source)
			w.UntilStatus(source, job, hypervisor.JobActive)
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a migration goes on when both hosts are reopened",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			finds(w, source, target)
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a migration that ends while its host is closed has ended well",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Uncap(job)
			w.Reopens(source, target)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a held target is still held when its host is reopened on the way",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{Hold: true})
			w.Reopens(target)
			w.Uncap(job)
			w.Arrives(job, hypervisor.Received)
			w.Rest()
			w.States(hypervisor.HandedOver, hypervisor.Received)
		}},
	{Name: "a guest that was paused to let it go runs on after a reopening and a cancel",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.PauseGuest{})
			w.UntilState(source, theVM, hypervisor.Paused)
			finds(w, source)
			w.Adjust(job, hypervisor.Cancel{})
			w.StaysFound(job)
		}},
	{Name: "a cancelled migration is remembered",
		Needs: needReopen | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
			finds(w, source)
			w.Stays(job, hypervisor.JobCancelled)
		}},
	{Name: "a VM that waits to be activated is found again on both sides",
		Needs: needReopen, Run: func(w *world) {
			job := w.HandedOver()
			finds(w, source, target)
			w.Do(target, theVM, hypervisor.Activate{Job: job,
				Stopped: w.Says(hypervisor.SourceStopped, source, job)})
			w.States(hypervisor.HandedOver, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a source that is handed over resumes after a reopening",
		Needs: needReopen, Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			finds(w, source, target)
			w.Do(source, theVM, hypervisor.Resume{Job: job, NeverRan: w.Discards(job)})
			w.UntilState(source, theVM, hypervisor.Running)
			finds(w, source)
			w.Sound(source)
		}},
	{Name: "a VM that has moved is found again, and its source is released",
		Needs: needReopen, Run: func(w *world) {
			w.Running()
			job := w.Begin(move{})
			w.Arrives(job, hypervisor.Running)
			finds(w, source, target)
			w.Do(source, theVM, hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
			finds(w, source, target)
			w.States(hypervisor.Absent, hypervisor.Running)
			w.Sound(target)
		}},
}

// finds reopens hosts, which then say of theVM and its jobs what they said before.
func finds(w *world, sides ...side) {
	w.T.Helper()
	for _, s := range sides {
		before := w.Domain(s, theVM)
		progress := map[hypervisor.JobID]hypervisor.Progress{}
		for _, job := range w.Jobs {
			progress[job] = w.Progress(s, job)
		}
		w.Reopens(s)
		after := w.Domain(s, theVM)
		if after.State != before.State || after.Job != before.Job ||
			after.Unresolved != before.Unresolved || !after.VM.Equal(before.VM) {
			w.T.Fatalf("on %s it was %+v and is %+v", w.Hosts[s].Name, before, after)
		}
		if listed := after.State != hypervisor.Absent; w.Listed(s, theVM) != listed {
			w.T.Fatalf("on %s it is %v, listed: %v", w.Hosts[s].Name, after.State, !listed)
		}
		for _, job := range w.Jobs {
			was, is := progress[job], w.Progress(s, job)
			if is.Status != was.Status || is.Sent < was.Sent || is.Mode != was.Mode ||
				!is.Started.Equal(was.Started) {
				w.T.Fatalf("on %s %s was %+v and is %+v", w.Hosts[s].Name, job, was, is)
			}
		}
	}
}
