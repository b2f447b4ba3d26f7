package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// moves are cases about migrations that succeed.
var moves = []trial{
	{Name: "a VM moves, with its memory, and its source is handed over", Run: func(w *world) {
		w.Running()
		job := w.Begin(move{})
		w.Arrives(job, hypervisor.Running)
		w.Sound(target)
		for _, s := range [...]side{source, target} {
			if d := w.Domain(s, theVM); d.Job != job || d.Unresolved || !d.VM.Equal(w.VM(theVM)) {
				w.T.Fatalf("on %s it is %+v", w.Hosts[s].Name, d)
			}
		}
		w.UntilStatus(target, job, hypervisor.JobSucceeded)
		p := w.Progress(source, job)
		if p.Job != job || p.Started.IsZero() || p.Iteration < 1 || p.Sent <= 0 ||
			p.Total <= 0 || p.Downtime < 0 || p.Mode != hypervisor.PreCopy {
			w.T.Fatalf("in the end %+v", p)
		}
	}},
	{Name: "a migration that is begun again changes nothing",
		Needs: needSlow, Run: func(w *world) {
			w.Running()
			job, address := w.Receives(move{})
			out := w.Outgoing(job, address)
			out.Options.Bandwidth = w.Slow
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.UntilStatus(source, job, hypervisor.JobActive)
			began := w.Progress(source, job).Started
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.States(hypervisor.HandedOver, hypervisor.Running)
			if p := w.Progress(source, job); !p.Started.Equal(began) {
				w.T.Fatalf("it was begun at %v and at %v", began, p.Started)
			}
		}},
	{Name: "while memory moves the VM runs at its source, and both sides say so",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.States(hypervisor.Running, hypervisor.Receiving)
			w.Sound(source)
			before := w.Progress(source, job)
			w.Until("more is sent", func() bool {
				return w.Progress(source, job).Sent > before.Sent
			})
			after := w.Progress(source, job)
			if after.Job != job || after.Remaining > after.Total || after.Iteration < 1 ||
				after.Downtime != 0 || w.Domain(source, theVM).Job != job {
				w.T.Fatalf("it goes like this: %+v", after)
			}
			if p := w.Progress(target, job); p.Status.Final() || p.Status == hypervisor.JobNone {
				w.T.Fatalf("at the target it is %+v", p)
			}
		}},
	{Name: "a paused VM moves and stays paused until it is unpaused", Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Pause{})
		w.UntilState(source, theVM, hypervisor.Paused)
		w.Arrives(w.Begin(move{Options: hypervisor.TransferOptions{StartPaused: true}}),
			hypervisor.Paused)
		w.Rest()
		w.States(hypervisor.HandedOver, hypervisor.Paused)
		w.Do(target, theVM, hypervisor.Unpause{})
		w.UntilState(target, theVM, hypervisor.Running)
		w.Sound(target)
	}},
	{Name: "a VM that has moved lives on: it is paused, stopped and started at its target",
		Run: func(w *world) {
			w.Running()
			w.Arrives(w.Begin(move{}), hypervisor.Running)
			w.Do(target, theVM, hypervisor.Pause{}, hypervisor.Unpause{}, hypervisor.Kill{})
			w.States(hypervisor.HandedOver, hypervisor.Shutoff)
			w.Boot(target, w.VM(theVM))
			w.Sound(target)
		}},
	{Name: "a source that is handed over takes no commands of life", Run: func(w *world) {
		w.Running()
		w.Arrives(w.Begin(move{}), hypervisor.Running)
		w.Refuses(hypervisor.Conflict, source, theVM, commandsOfLife(w)...)
		w.Sound(target)
	}},
	{Name: "a source is released with evidence, once and again", Run: func(w *world) {
		w.Running()
		job := w.Begin(move{})
		w.Arrives(job, hypervisor.Running)
		release := hypervisor.Release{Job: job, Moved: w.Says(hypervisor.RunsAtTarget, target, job)}
		w.Do(source, theVM, release, release)
		w.States(hypervisor.Absent, hypervisor.Running)
		w.Sound(target)
	}},
	{Name: "a VM moves there and back again, each time as another job", Run: func(w *world) {
		w.Running()
		from := source
		for range 4 {
			job := w.Begin(move{From: from})
			w.UntilStatus(from, job, hypervisor.JobSucceeded)
			w.UntilState(from.Other(), theVM, hypervisor.Running)
			w.Do(from, theVM, hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, from.Other(), job)})
			w.UntilState(from, theVM, hypervisor.Absent)
			from = from.Other()
			w.Sound(from)
		}
	}},
	{Name: "two VMs move at once", Run: func(w *world) {
		a, b := w.Name("suite/a"), w.Name("suite/b")
		w.Boot(source, a)
		w.Boot(source, b)
		jobs := []hypervisor.JobID{w.Begin(move{VM: a}), w.Begin(move{VM: b})}
		for i, vm := range []hypervisor.VM{a, b} {
			w.UntilStatus(source, jobs[i], hypervisor.JobSucceeded)
			w.UntilState(target, vm.ID, hypervisor.Running)
		}
	}},
	{Name: "two VMs pass each other", Run: func(w *world) {
		a, b := w.Name("suite/a"), w.Name("suite/b")
		w.Boot(source, a)
		w.Boot(target, b)
		there, back := w.Begin(move{VM: a}), w.Begin(move{VM: b, From: target})
		w.UntilStatus(source, there, hypervisor.JobSucceeded)
		w.UntilStatus(target, back, hypervisor.JobSucceeded)
		w.UntilState(target, a.ID, hypervisor.Running)
		w.UntilState(source, b.ID, hypervisor.Running)
	}},
	{Name: "a VM that is shut off moves cold, and starts at its target",
		Able: hypervisor.CanMoveCold, Run: func(w *world) {
			w.Off()
			job := w.Begin(move{})
			w.UntilStatus(source, job, hypervisor.JobSucceeded)
			w.UntilState(target, theVM, hypervisor.Shutoff)
			w.Do(source, theVM, hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
			w.UntilState(source, theVM, hypervisor.Absent)
			w.Boot(target, w.VM(theVM))
		}},
}

// refusedMoves are cases about migrations that do not begin, or fail at once.
var refusedMoves = []trial{
	{Name: "a VM that moves is not moved by another job", Needs: needSlow, Run: func(w *world) {
		job, address := w.Receives(move{})
		w.Running()
		out := w.Outgoing(job, address)
		out.Options.Bandwidth = w.Slow
		w.Must(w.HV[source].Migrate(w.Ctx, out))
		w.Refused(w.HV[source].Migrate(w.Ctx, w.Outgoing("other", address)), hypervisor.Conflict)
		if d := w.Domain(source, theVM); d.Job != job || d.State != hypervisor.Running {
			w.T.Fatalf("it is %+v", d)
		}
		w.Adjust(job, hypervisor.Cancel{})
		w.Stays(job, hypervisor.JobCancelled)
	}},
	{Name: "a VM does not move to where nothing listens", Run: func(w *world) {
		w.Running()
		job, address := w.Receives(move{})
		w.Discards(job)
		kinds := []hypervisor.Kind{hypervisor.Transient}
		if !w.TakesBack() { // its hypervisor does the talking, so it may know no more
			kinds = append(kinds, hypervisor.Invalid, hypervisor.Conflict)
		}
		endsAtSource(w, "other", w.HV[source].Migrate(w.Ctx, w.Outgoing("other", address)),
			kinds...)
	}},
	{Name: "a VM does not move to the target of another job", Run: func(w *world) {
		w.Running()
		_, address := w.Receives(move{})
		endsAtSource(w, "other", w.HV[source].Migrate(w.Ctx, w.Outgoing("other", address)),
			hypervisor.Invalid, hypervisor.Conflict, hypervisor.Transient)
	}},
	{Name: "a VM does not move to a target that expects another machine", Run: func(w *world) {
		w.Running()
		vm := w.VM(theVM)
		vm.Memory *= 2
		job, address := w.Receives(move{VM: vm})
		endsAtSource(w, job, w.HV[source].Migrate(w.Ctx, w.Outgoing(job, address)),
			hypervisor.Invalid, hypervisor.Conflict)
	}},
	{Name: "an unknown VM is not found, and its target stays", Run: func(w *world) {
		job, address := w.Receives(move{})
		w.Refused(w.HV[source].Migrate(w.Ctx, w.Outgoing(job, address)), hypervisor.NotFound)
		w.States(hypervisor.Absent, hypervisor.Receiving)
		w.Running() // an attempt in vain does not use the job up
		w.Must(w.HV[source].Migrate(w.Ctx, w.Outgoing(job, address)))
		w.Arrives(job, hypervisor.Running)
	}},
	{Name: "options that make no sense are invalid", Run: func(w *world) {
		w.Running()
		job, address := w.Receives(move{})
		for _, change := range []func(*hypervisor.Outgoing){
			func(o *hypervisor.Outgoing) { o.Job = "" },
			func(o *hypervisor.Outgoing) { o.Options.Bandwidth = -1 },
			func(o *hypervisor.Outgoing) { o.Options.Downtime = -1 },
			func(o *hypervisor.Outgoing) { o.Options.Channels = -1 },
		} {
			out := w.Outgoing(job, address)
			change(&out)
			kinds := []hypervisor.Kind{hypervisor.Invalid}
			if out.Options.Channels < 0 &&
				!w.Hosts[source].Abilities.Has(hypervisor.CanUseChannels) {
				kinds = append(kinds, hypervisor.Unsupported)
			}
			w.Refused(w.HV[source].Migrate(w.Ctx, out), kinds...)
			w.States(hypervisor.Running, hypervisor.Receiving)
		}
	}},
	{Name: "a job that has succeeded is not received again", Run: func(w *world) {
		w.Running()
		job := w.Begin(move{})
		w.Arrives(job, hypervisor.Running)
		w.Do(target, theVM, hypervisor.Kill{})
		w.UntilState(target, theVM, hypervisor.Shutoff)
		_, err := w.ReceiveAs(job)
		w.Refused(err, hypervisor.Conflict)
		w.UntilState(target, theVM, hypervisor.Shutoff)
	}},
	{Name: "a release needs evidence that the VM runs elsewhere, of this job", Run: func(w *world) {
		job := w.HandedOver()
		w.Do(target, theVM, hypervisor.Activate{Job: job,
			Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Release{Job: job})
		other := w.Says(hypervisor.RunsAtTarget, target, job)
		other.VM = "suite/other"
		for _, e := range []hypervisor.Evidence{other,
			w.Says(hypervisor.SourceStopped, target, job),
			w.Says(hypervisor.RunsAtTarget, source, job),
			w.Says(hypervisor.RunsAtTarget, target, "other")} {
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Release{Job: job, Moved: e})
		}
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Release{Job: "other",
			Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
	}},
	{Name: "a VM that runs is not released, whatever is said", Run: func(w *world) {
		w.Running()
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Release{Job: "job",
			Moved: w.Says(hypervisor.RunsAtTarget, target, "job")})
	}},
	{Name: "a VM that is not here is released already, with evidence", Run: func(w *world) {
		w.Name(theVM)
		w.Do(source, theVM, hypervisor.Release{Job: "job",
			Moved: w.Says(hypervisor.RunsAtTarget, target, "job")})
		w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Release{Job: "job"})
	}},
}

// endsAtSource wants a migration to be refused, or to begin and fail: which of the
// two depends on when a backend notices. The VM runs on at its source, and the
// target never does.
func endsAtSource(w *world, job hypervisor.JobID, err error, kinds ...hypervisor.Kind) {
	w.T.Helper()
	if err != nil {
		w.Refused(err, kinds...)
	} else {
		w.UntilStatus(source, job, hypervisor.JobFailed)
	}
	w.Rest()
	w.UntilState(source, theVM, hypervisor.Running)
	if d := w.Domain(target, theVM); d.State.HoldsState() {
		w.T.Fatalf("at the target it is %+v", d)
	}
	w.Sound(source)
}

// options are cases about how memory is moved: whatever way, it arrives.
var options = []trial{
	arriving("a bandwidth cap of 1 GiB/s", 0,
		hypervisor.TransferOptions{Bandwidth: hypervisor.Bandwidth(hypervisor.GiB)}),
	arriving("a downtime limit of a second", 0, hypervisor.TransferOptions{Downtime: time.Second}),
	arriving("auto-converge", hypervisor.CanAutoConverge,
		hypervisor.TransferOptions{AutoConverge: true}),
	arriving("post-copy allowed and not used", hypervisor.CanPostCopy,
		hypervisor.TransferOptions{PostCopy: true}),
	arriving("two channels", hypervisor.CanUseChannels, hypervisor.TransferOptions{Channels: 2}),
	arriving("two channels and compression", hypervisor.CanUseChannels|hypervisor.CanCompress,
		hypervisor.TransferOptions{Channels: 2, Compression: true}),
	arriving("compression", hypervisor.CanCompress, hypervisor.TransferOptions{Compression: true}),
	arriving("XBZRLE", hypervisor.CanXBZRLE, hypervisor.TransferOptions{XBZRLE: true}),
}

// arriving is a case of a migration with options.
func arriving(how string, able hypervisor.Abilities, o hypervisor.TransferOptions) trial {
	return trial{Name: "a VM arrives with " + how, Able: able, Run: func(w *world) {
		w.Running()
		w.Arrives(w.Begin(move{Options: o}), hypervisor.Running)
		w.Sound(target)
	}}
}
