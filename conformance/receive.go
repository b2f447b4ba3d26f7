package conformance

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// targets are cases about a target that waits for its source.
var targets = []trial{
	{Name: "a target listens and is visible as Receiving for its job", Run: func(w *world) {
		job, address := w.Receives(move{})
		d, p := w.Domain(target, theVM), w.Progress(target, job)
		if address == "" || d.State != hypervisor.Receiving || d.Job != job ||
			!d.VM.Equal(w.VM(theVM)) {
			w.T.Fatalf("at %q it is %+v", address, d)
		}
		if p.Status == hypervisor.JobNone || p.Status.Final() || !w.Listed(target, theVM) {
			w.T.Fatalf("its job is %+v, listed: %v", p, w.Listed(target, theVM))
		}
	}},
	{Name: "receiving again answers the same address", Run: func(w *world) {
		job, address := w.Receives(move{Hold: true})
		again, err := w.ReceiveAs(job, func(in *hypervisor.Incoming) { in.Hold = true })
		w.Must(err)
		if again != address {
			w.T.Fatalf("first %q, then %q", address, again)
		}
	}},
	{Name: "two targets listen at different addresses", Run: func(w *world) {
		_, one := w.Receives(move{VM: w.Name("suite/a")})
		_, other := w.Receives(move{VM: w.Name("suite/b")})
		if one == other {
			w.T.Fatalf("both listen at %q", one)
		}
	}},
	{Name: "a target that is discarded is gone; that may be repeated", Run: func(w *world) {
		job, _ := w.Receives(move{})
		w.Discards(job)
		w.UntilState(target, theVM, hypervisor.Absent)
		w.Discards(job)
		if w.Listed(target, theVM) {
			w.T.Fatalf("it is listed all the same")
		}
	}},
	{Name: "a discarded job does not come back, another one does", Run: func(w *world) {
		job, _ := w.Receives(move{})
		w.Discards(job)
		_, err := w.ReceiveAs(job)
		w.Refused(err, hypervisor.Conflict)
		w.Receives(move{})
		w.UntilState(target, theVM, hypervisor.Receiving)
	}},
	{Name: "a job that is discarded before it came does not come", Run: func(w *world) {
		w.Name(theVM)
		w.Discards("early")
		_, err := w.ReceiveAs("early")
		w.Refused(err, hypervisor.Conflict)
		w.UntilState(target, theVM, hypervisor.Absent)
	}},
	{Name: "a discard of another job touches nothing", Run: func(w *world) {
		w.Receives(move{})
		w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: "other"})
	}},
	{Name: "a discard never touches what runs", Run: func(w *world) {
		w.Running()
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Discard{Job: "job-1"})
		w.Sound(source)
	}},
	{Name: "a target takes room until it is discarded", Run: func(w *world) {
		hog := hog(w, target)
		job, _ := w.Receives(move{VM: hog})
		w.Refuses(hypervisor.NoRoom, target, theVM, hypervisor.Start{VM: w.Name(theVM)})
		w.Do(target, hog.ID, hypervisor.Discard{Job: job})
		w.Boot(target, w.VM(theVM))
	}},
	{Name: "an incoming VM takes no commands but to be discarded", Run: func(w *world) {
		job, _ := w.Receives(move{})
		w.Refuses(hypervisor.Conflict, target, theVM, commandsOfLife(w)...)
		w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Activate{Job: job,
			Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Release{Job: job,
			Moved: w.Says(hypervisor.RunsAtTarget, source, job)})
	}},
	{Name: "a target that is discarded while it receives fails the job, and the source runs on",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			ends := hypervisor.JobFailed
			if !w.Granted(w.HV[target].Do(w.Ctx, theVM, hypervisor.Discard{Job: job})) {
				w.Rest()
				w.States(hypervisor.Running, hypervisor.Receiving)
				w.UntilStatus(source, job, hypervisor.JobActive)
				ends = hypervisor.JobCancelled
				w.Adjust(job, hypervisor.Cancel{})
			}
			w.Stays(job, ends)
			w.Ended(job)
		}},
}

// A backend may refuse to receive a VM that rests here; if it does receive it, and
// is told to discard it, the VM rests as before.
var restingTargets = []trial{
	{Name: "a VM that rests here is not lost by receiving it", Run: func(w *world) {
		w.Boot(target, w.Name(theVM))
		w.Do(target, theVM, hypervisor.Kill{})
		w.UntilState(target, theVM, hypervisor.Shutoff)
		if _, err := w.ReceiveAs("job"); err != nil {
			w.Refused(err, hypervisor.Conflict)
		} else {
			w.UntilState(target, theVM, hypervisor.Receiving)
			w.Discards("job")
		}
		w.UntilState(target, theVM, hypervisor.Shutoff)
		w.Boot(target, w.VM(theVM))
	}},
}

// refusedTargets are cases about what is not received.
var refusedTargets = []trial{
	{Name: "a VM that runs here is not received", Run: func(w *world) {
		w.Boot(target, w.Name(theVM))
		_, err := w.ReceiveAs("job")
		w.Refused(err, hypervisor.Conflict)
		w.UntilState(target, theVM, hypervisor.Running)
	}},
	{Name: "a VM that is received is not received for another job", Run: func(w *world) {
		w.Receives(move{})
		_, err := w.ReceiveAs("other")
		w.Refused(err, hypervisor.Conflict)
	}},
	{Name: "a job is one VM, one description and one way to start", Run: func(w *world) {
		job, _ := w.Receives(move{})
		for _, change := range []func(*hypervisor.Incoming){
			func(in *hypervisor.Incoming) { in.VM = w.Name("suite/other") },
			func(in *hypervisor.Incoming) { in.VM.Memory *= 2 },
			func(in *hypervisor.Incoming) { in.Hold = true },
		} {
			_, err := w.ReceiveAs(job, change)
			w.Refused(err, hypervisor.Conflict)
		}
		w.UntilState(target, theVM, hypervisor.Receiving)
		w.UntilState(target, "suite/other", hypervisor.Absent)
	}},
	{Name: "a VM that does not fit is not received", Run: func(w *world) {
		for _, change := range []func(*hypervisor.Incoming){
			func(in *hypervisor.Incoming) {
				in.VM.Memory = w.Hosts[target].Memory + hypervisor.MiB
			},
			func(in *hypervisor.Incoming) { in.VM.CPUs = w.Hosts[target].CPUs + 1 },
		} {
			_, err := w.ReceiveAs("job", change)
			w.Refused(err, hypervisor.NoRoom)
			w.UntilState(target, theVM, hypervisor.Absent)
		}
		_, err := w.ReceiveAs("job")
		w.Must(err) // that it did not fit once does not end the job
	}},
	{Name: "what is no VM or has no job is invalid", Run: func(w *world) {
		changes := []func(*hypervisor.Incoming){
			func(in *hypervisor.Incoming) { in.Job = "" },
			func(in *hypervisor.Incoming) { in.VM.ID = "" },
		}
		for _, change := range impossible {
			changes = append(changes, func(in *hypervisor.Incoming) { change(&in.VM) })
		}
		for _, change := range changes {
			_, err := w.ReceiveAs("job", change)
			w.Refused(err, hypervisor.Invalid)
		}
		w.UntilState(target, theVM, hypervisor.Absent)
	}},
}
