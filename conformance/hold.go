package conformance

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// holds are cases about a target that waits to be activated.
var holds = []trial{
	{Name: "a held target waits with the complete state, and executes nowhere", Run: func(w *world) {
		job := w.HandedOver()
		w.Rest()
		w.States(hypervisor.HandedOver, hypervisor.Received)
		for _, s := range [...]side{source, target} {
			if d := w.Domain(s, theVM); d.Job != job || d.Unresolved {
				w.T.Fatalf("on %s it is %+v", w.Hosts[s].Name, d)
			}
		}
	}},
	{Name: "a held target starts with evidence that its source stopped, once and again",
		Run: func(w *world) {
			job := w.HandedOver()
			activate := hypervisor.Activate{Job: job,
				Stopped: w.Says(hypervisor.SourceStopped, source, job)}
			w.Do(target, theVM, activate)
			w.States(hypervisor.HandedOver, hypervisor.Running)
			w.Do(target, theVM, activate)
			w.Sound(target)
		}},
	{Name: "a held target starts when the source's host is dead", Run: func(w *world) {
		job := w.HandedOver()
		w.Do(target, theVM, hypervisor.Activate{Job: job, Stopped: hypervisor.Evidence{
			Proof: hypervisor.HostFenced, Host: w.Hosts[source].Name, By: "fence"}})
		w.UntilState(target, theVM, hypervisor.Running)
	}},
	{Name: "a held target of a paused VM rests after it is activated", Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Pause{})
		w.UntilState(source, theVM, hypervisor.Paused)
		job := w.Begin(move{Hold: true,
			Options: hypervisor.TransferOptions{StartPaused: true}})
		w.Arrives(job, hypervisor.Received)
		w.Do(target, theVM, hypervisor.Activate{Job: job,
			Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		w.UntilState(target, theVM, hypervisor.Paused)
	}},
	{Name: "a held target does not start without evidence, or with evidence of something else",
		Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Invalid, target, theVM, hypervisor.Activate{Job: job})
			other := w.Says(hypervisor.SourceStopped, source, job)
			other.VM = "suite/other"
			for _, e := range []hypervisor.Evidence{other,
				w.Says(hypervisor.SourceStopped, target, job),
				w.Says(hypervisor.SourceStopped, source, "other"),
				w.Says(hypervisor.RunsAtTarget, source, job),
				{Proof: hypervisor.HostFenced, Host: w.Hosts[target].Name}} {
				w.Refuses(hypervisor.Conflict, target, theVM,
					hypervisor.Activate{Job: job, Stopped: e})
			}
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Activate{Job: "other",
				Stopped: w.Says(hypervisor.SourceStopped, source, "other")})
		}},
	{Name: "a held target starts on no other command", Run: func(w *world) {
		w.HandedOver()
		w.Refuses(hypervisor.Conflict, target, theVM, commandsOfLife(w)...)
	}},
	{Name: "a target that still receives is not activated", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{Hold: true})
		w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Activate{Job: job,
			Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		w.Sound(source)
	}},
	{Name: "receiving again does not start a held target", Run: func(w *world) {
		job := w.HandedOver()
		_, err := w.ReceiveAs(job, func(in *hypervisor.Incoming) { in.Hold = true })
		if err != nil {
			w.Refused(err, hypervisor.Conflict)
		}
		w.Rest()
		w.States(hypervisor.HandedOver, hypervisor.Received)
	}},
}

// resolutions are cases about a source that stopped and is not needed to be.
var resolutions = []trial{
	{Name: "when the target is discarded the source resumes with its word, once and again",
		Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			resume := hypervisor.Resume{Job: job, NeverRan: w.Discards(job)}
			w.Do(source, theVM, resume, resume)
			w.States(hypervisor.Running, hypervisor.Absent)
			w.Sound(source)
			if d := w.Domain(source, theVM); d.Unresolved {
				w.T.Fatalf("it is %+v", d)
			}
		}},
	{Name: "a VM that resumed moves later, as another job",
		Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Do(source, theVM, hypervisor.Resume{Job: job, NeverRan: w.Discards(job)})
			w.UntilState(source, theVM, hypervisor.Running)
			w.Arrives(w.Begin(move{}), hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a VM that rested resumes its rest", Able: hypervisor.CanTakeBack, Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Pause{})
		w.UntilState(source, theVM, hypervisor.Paused)
		job := w.Begin(move{Hold: true,
			Options: hypervisor.TransferOptions{StartPaused: true}})
		w.Arrives(job, hypervisor.Received)
		w.Do(source, theVM, hypervisor.Resume{Job: job, NeverRan: w.Discards(job)})
		w.UntilState(source, theVM, hypervisor.Paused)
	}},
	{Name: "a source does not resume without evidence that the target never ran",
		Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resume{Job: job})
			other := w.Says(hypervisor.TargetDiscarded, target, job)
			other.VM = "suite/other"
			for _, e := range []hypervisor.Evidence{other,
				w.Says(hypervisor.HostFenced, target, job),
				w.Says(hypervisor.ProcessReaped, target, job),
				w.Says(hypervisor.SourceStopped, source, job),
				w.Says(hypervisor.TargetDiscarded, source, job),
				w.Says(hypervisor.TargetDiscarded, target, "other")} {
				w.Refuses(hypervisor.Conflict, source, theVM,
					hypervisor.Resume{Job: job, NeverRan: e})
			}
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Resume{Job: "other",
				NeverRan: w.Says(hypervisor.TargetDiscarded, target, "other")})
			w.Rest()
			w.States(hypervisor.HandedOver, hypervisor.Received)
		}},
	{Name: "a target that was activated is not discarded", Run: func(w *world) {
		job := w.HandedOver()
		w.Do(target, theVM, hypervisor.Activate{Job: job,
			Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		w.UntilState(target, theVM, hypervisor.Running)
		w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
		w.Sound(target)
	}},
	{Name: "a discarded target is not activated any more",
		Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Discards(job)
			w.Refuses(hypervisor.NotFound, target, theVM, hypervisor.Activate{Job: job,
				Stopped: w.Says(hypervisor.SourceStopped, source, job)})
		}},
	{Name: "a source is abandoned when the target is dead, and starts anew",
		Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Abandon{Job: job})
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Abandon{Job: job,
				Dead: w.Says(hypervisor.HostFenced, source, job)})
			abandon := hypervisor.Abandon{Job: job, Dead: w.Discards(job)}
			w.Do(source, theVM, abandon, abandon)
			w.UntilState(source, theVM, hypervisor.Crashed)
			w.Running()
			w.Sound(source)
		}},
	{Name: "a VM that runs is neither resumed nor abandoned for a job that never was",
		Run: func(w *world) {
			w.Running()
			e := w.Says(hypervisor.TargetDiscarded, target, "job")
			w.Refuses(hypervisor.Conflict, source, theVM,
				hypervisor.Resume{Job: "job", NeverRan: e}, hypervisor.Abandon{Job: "job", Dead: e},
				hypervisor.Activate{Job: "job",
					Stopped: w.Says(hypervisor.SourceStopped, target, "job")})
		}},
}

// held waits until a job that was asked to holds before its switch-over.
func held(w *world) hypervisor.JobID {
	w.T.Helper()
	w.Running()
	job := w.Begin(move{Options: hypervisor.TransferOptions{HoldSwitchOver: true}})
	w.Until("the source has stopped", func() bool {
		s := w.Domain(source, theVM).State
		return s != hypervisor.Running && w.Progress(source, job).Status != hypervisor.JobSetup
	})
	w.Rest()
	if w.Domain(source, theVM).State.Executes() || w.Domain(target, theVM).State.HoldsState() ||
		w.Progress(source, job).Status.Final() {
		w.T.Fatalf("it does not hold; %s", w)
	}
	return job
}

// switchOvers are cases about HoldSwitchOver.
var switchOvers = []trial{
	{Name: "a job that holds before its switch-over waits, and goes on when it is told",
		Able: hypervisor.CanHoldSwitchOver, Run: func(w *world) {
			job := held(w)
			w.Adjust(job, hypervisor.SwitchOver{})
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a job that holds before its switch-over is cancelled, and the source runs on",
		Able: hypervisor.CanHoldSwitchOver, Run: func(w *world) {
			job := held(w)
			w.Adjust(job, hypervisor.Cancel{}, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
		}},
	{Name: "a host that cannot hold or recover a job says so",
		Needs: needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			for ability, a := range map[hypervisor.Abilities]hypervisor.Adjustment{
				hypervisor.CanHoldSwitchOver: hypervisor.SwitchOver{},
				hypervisor.CanRecover:        hypervisor.Recover{Address: "nowhere"},
			} {
				wanted := []hypervisor.Kind{hypervisor.Unsupported}
				if w.Hosts[source].Abilities.Has(ability) {
					wanted = []hypervisor.Kind{hypervisor.Conflict, hypervisor.Invalid}
				}
				w.Refused(w.HV[source].Adjust(w.Ctx, job, a), wanted...)
			}
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
		}},
}
