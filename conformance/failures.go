package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// deaths are cases about processes and hosts that die. A VM that was lost stays
// visible on its host: what is absent counts as what never ran.
var deaths = []trial{
	{Name: "a VM whose process dies has crashed, stays visible and starts anew",
		Needs: needKill, Run: func(w *world) {
			w.Running()
			w.Kills(source)
			w.UntilState(source, theVM, hypervisor.Crashed)
			if d := w.Domain(source, theVM); !d.VM.Equal(w.VM(theVM)) || !w.Listed(source, theVM) {
				w.T.Fatalf("it is %+v", d)
			}
			w.Do(source, theVM, hypervisor.Stop{}, hypervisor.Kill{})
			w.UntilState(source, theVM, hypervisor.Crashed)
			w.Running()
			w.Sound(source)
		}},
	{Name: "a crashed VM is forgotten", Needs: needKill, Run: func(w *world) {
		w.Running()
		w.Kills(source)
		w.UntilState(source, theVM, hypervisor.Crashed)
		w.Do(source, theVM, hypervisor.Forget{}, hypervisor.Forget{})
		w.UntilState(source, theVM, hypervisor.Absent)
	}},
	{Name: "when the target's process dies on the way the source runs on",
		Needs: needKill | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Kills(target)
			w.Stays(job, hypervisor.JobFailed)
			w.Arrives(w.Begin(move{}), hypervisor.Running)
		}},
	{Name: "when a target that eight connections lead to dies the source runs on",
		Needs: needKill | needSlow,
		Able:  hypervisor.CanUseChannels | hypervisor.CanLoseChannels, Run: func(w *world) {
			job := w.Slowly(move{Options: hypervisor.TransferOptions{Channels: 8}})
			w.Kills(target)
			w.Stays(job, hypervisor.JobFailed)
			w.Arrives(w.Begin(move{}), hypervisor.Running)
		}},
	{Name: "when the source's process dies on the way the target never runs",
		Needs: needKill | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Kills(source)
			w.UntilState(source, theVM, hypervisor.Crashed, hypervisor.Shutoff)
			w.Until("the job has failed", func() bool {
				s := w.Progress(source, job).Status
				return s == hypervisor.JobFailed || s == hypervisor.JobBroken
			})
			w.NeverRuns(target)
			if d := w.Domain(source, theVM); d.Job != job || !w.Listed(source, theVM) {
				w.T.Fatalf("at the source it is %+v", d)
			}
			w.Ended(job)
			w.Running()
		}},
	{Name: "a held target that dies is discarded, and the source resumes",
		Needs: needKill, Able: hypervisor.CanTakeBack, Run: func(w *world) {
			job := w.HandedOver()
			w.Kills(target)
			w.Until("the target is dead", func() bool {
				return !w.Domain(target, theVM).State.HoldsState()
			})
			w.Do(source, theVM, hypervisor.Resume{Job: job, NeverRan: w.Discards(job)})
			w.UntilState(source, theVM, hypervisor.Running)
			w.Sound(source)
		}},
	{Name: "a VM that dies after it has moved stays visible at its target, and the source waits",
		Needs: needKill, Run: func(w *world) {
			w.Running()
			job := w.Begin(move{})
			w.Arrives(job, hypervisor.Running)
			w.Kills(target)
			w.States(hypervisor.HandedOver, hypervisor.Crashed)
			if d := w.Domain(target, theVM); d.Job != job {
				w.T.Fatalf("at the target it is %+v", d)
			}
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
			w.Rest()
			w.States(hypervisor.HandedOver, hypervisor.Crashed)
		}},
	{Name: "a source that dies after its VM has moved does not harm it",
		Needs: needKill, Able: hypervisor.CanTakeBack, Run: func(w *world) {
			w.Running()
			job := w.Begin(move{})
			w.Arrives(job, hypervisor.Running)
			w.Kills(source)
			w.UntilState(source, theVM, hypervisor.Crashed)
			w.Sound(target)
			w.Do(source, theVM, hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
			w.States(hypervisor.Absent, hypervisor.Running)
		}},
	{Name: "a target whose process hangs does not keep the job from being cancelled",
		Needs: needHang | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			thaw, err := w.Hang(w.Hosts[target].Name, theVM)
			w.Must(err)
			w.Rest()
			w.Adjust(job, hypervisor.Cancel{})
			w.UntilStatus(source, job, hypervisor.JobCancelled)
			w.UntilState(source, theVM, hypervisor.Running)
			w.Ended(job)
			w.UntilState(target, theVM, hypervisor.Absent)
			_ = thaw() // there may be no process left to thaw
			w.NeverRuns(target)
		}},
	{Name: "after its host had no power a VM is visible and starts anew",
		Needs: needRestart, Run: func(w *world) {
			w.Running()
			restarts(w, source)
			w.UntilState(source, theVM, hypervisor.Shutoff, hypervisor.Crashed)
			w.Running()
		}},
	{Name: "a discarded job does not come back after its host had no power",
		Needs: needRestart, Run: func(w *world) {
			job, _ := w.Receives(move{})
			w.Discards(job)
			restarts(w, target)
			_, err := w.ReceiveAs(job)
			w.Refused(err, hypervisor.Conflict)
		}},
	{Name: "when the target's host had no power on the way the source runs on",
		Needs: needRestart | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			restarts(w, target)
			w.Stays(job, hypervisor.JobFailed)
		}},
}

// restarts takes a host's power for a moment.
func restarts(w *world, s side) {
	w.T.Helper()
	hv, err := w.Restart(w.Hosts[s].Name)
	w.Must(err)
	w.Connect(s, hv)
}

// cuts are cases about a lost link.
var cuts = []trial{
	{Name: "a migration over a lost link is cancelled, and the source runs on",
		Needs: needLink | needSlow, Run: func(w *world) {
			job, began := w.Slowly(move{}), time.Now()
			w.Cuts()
			w.Rest()
			ended := cancelsCut(w, job, began)
			w.UntilState(source, theVM, hypervisor.Running)
			w.Ended(job)
			w.Must(w.MendLink())
			w.NeverRuns(target)
			w.Stays(job, ended)
		}},
	{Name: "a migration goes on when the link is back",
		Needs: needLink | needSlow, Run: func(w *world) {
			job, began := w.Slowly(move{}), time.Now()
			w.Cuts()
			w.Rest()
			w.Until("the VM runs, and its target receives, or the peer is given up", func() bool {
				return outlasted(w, began) || w.Domain(source, theVM).State == hypervisor.Running &&
					w.Domain(target, theVM).State == hypervisor.Receiving
			})
			w.Must(w.MendLink())
			if outlasted(w, began) {
				w.Skip(fmt.Sprintf("the link was cut for %v, because the machine is busy, and the "+
					"hypervisors give a peer up after %v", time.Since(began), w.PeerTimeout))
			}
			w.Uncap(job)
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "a link that is lost around the switch-over leaves one VM, or one that is resolved",
		Needs: needLink | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Uncap(job)
			w.Until("the source stops", func() bool {
				return !w.Domain(source, theVM).State.Executes()
			})
			w.Cuts()
			w.Rest()
			resolve(w, job)
		}},
	{Name: "a link that is lost in the last round leaves one VM, or one that is resolved",
		Needs: needLink | needSlow, Run: func(w *world) {
			job, began := w.Slowly(move{}), time.Now()
			w.Adjust(job, hypervisor.PauseGuest{})
			w.Cuts()
			w.Uncap(job)
			w.Rest()
			w.Until("the job is active, or given up", func() bool {
				return w.Progress(source, job).Status == hypervisor.JobActive || outlasted(w, began)
			})
			if cancelsCut(w, job, began) == hypervisor.JobBroken {
				resolve(w, job)
				return
			}
			w.UntilState(source, theVM, hypervisor.Running)
			w.NeverRuns(target)
			w.Sound(source)
		}},
	{Name: "a connection that is closed on the way fails the job, and the source runs on",
		Needs: needReset | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			w.Must(w.ResetLink())
			w.UntilStatus(source, job, hypervisor.JobFailed)
			w.Ended(job) // the target was not told
			w.Stays(job, hypervisor.JobFailed)
			w.Arrives(w.Begin(move{}), hypervisor.Running)
		}},
	{Name: "post-copy over a closed connection recovers",
		Needs: needReset | needSlow,
		Able:  hypervisor.CanPostCopy | hypervisor.CanRecover,
		Run: func(w *world) {
			job := breaksInPostCopy(w)
			address, err := w.ReceiveAs(job)
			if w.Must(err); address != w.At[job] {
				w.T.Fatalf("it listens at %q, and its source knows %q", address, w.At[job])
			}
			w.Adjust(job, hypervisor.Recover{Address: address})
			w.Until("it goes on", func() bool { return w.Progress(source, job).Status != hypervisor.JobBroken })
			w.Arrives(job, hypervisor.Running)
			w.Sound(target)
		}},
	{Name: "post-copy over a closed connection never lets the source run again",
		Needs: needReset | needSlow, Able: hypervisor.CanPostCopy, Run: func(w *world) {
			job := breaksInPostCopy(w)
			for _, p := range []hypervisor.Proof{hypervisor.TargetDiscarded,
				hypervisor.OperatorWord} {
				w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Resume{Job: job,
					NeverRan: w.Says(p, target, job)})
			}
			w.Refuses(hypervisor.Conflict, target, theVM, hypervisor.Discard{Job: job})
			neverExecutes(w, source)
			for _, s := range [...]side{source, target} {
				if d := w.Domain(s, theVM); d.State == hypervisor.Absent {
					w.T.Fatalf("it is not visible on %s", w.Hosts[s].Name)
				}
			}
		}},
	{Name: "what a broken post-copy lacks is not released, but abandoned with its dead target",
		Needs: needReset | needSlow | needKill, Able: hypervisor.CanPostCopy,
		Run: func(w *world) {
			job := breaksInPostCopy(w)
			if s := w.Domain(source, theVM).State; s != hypervisor.HandingOver {
				w.Skip("a broken post-copy leaves nothing: the source is " + s.String())
			}
			release := hypervisor.Release{Job: job,
				Moved: w.Says(hypervisor.RunsAtTarget, target, job)}
			lacks := w.Progress(source, job).Remaining > 0
			if err := w.HV[source].Do(w.Ctx, theVM, release); err != nil || lacks {
				w.Refused(err, hypervisor.Conflict)
			} else {
				w.Skip("nothing was missing when the connection was closed")
			}
			w.Kills(target)
			w.UntilState(target, theVM, hypervisor.Crashed)
			w.Do(source, theVM, hypervisor.Abandon{Job: job,
				Dead: w.Says(hypervisor.ProcessReaped, target, job)}, release)
			w.States(hypervisor.Absent, hypervisor.Crashed)
			w.Boot(target, w.VM(theVM))
		}},
}

// cancelsCut cancels a job whose link was cut since it began, and returns how it has ended: it failed
// before it was cancelled where the hypervisors had given each other up.
func cancelsCut(w *world, job hypervisor.JobID, began time.Time) hypervisor.JobStatus {
	w.T.Helper()
	if givenUp(w, job, began) {
		return hypervisor.JobFailed
	}
	err := w.HV[source].Adjust(w.Ctx, job, hypervisor.Cancel{})
	var s hypervisor.JobStatus
	w.Until(fmt.Sprintf("%s has ended", job), func() bool {
		s = w.Progress(source, job).Status
		return s.Final() || s == hypervisor.JobBroken && outlasted(w, began)
	})
	switch {
	case givenUp(w, job, began):
		return hypervisor.JobFailed
	case s == hypervisor.JobBroken:
		return s
	}
	w.Must(err)
	w.UntilStatus(source, job, hypervisor.JobCancelled)
	return hypervisor.JobCancelled
}

// givenUp reports whether a job has failed because its link was cut for longer than the hypervisors wait
// for an answer: the machine is busy.
func givenUp(w *world, job hypervisor.JobID, began time.Time) bool {
	w.T.Helper()
	return outlasted(w, began) && w.Progress(source, job).Status == hypervisor.JobFailed
}

// outlasted reports whether a link that was cut since began has been cut for longer than the hypervisors
// wait for an answer.
func outlasted(w *world, began time.Time) bool {
	return w.PeerTimeout > 0 && time.Since(began) >= w.PeerTimeout
}

// breaksInPostCopy brings a migration to where its connection breaks in post-copy.
// Nothing in the port slows post-copy down: where it is too fast to be broken, the
// case is skipped. So it is where the connection was closed after the source's last page
// and before its target's thanks: QEMU's source then waits for ever and calls it active.
// Source: QEMU 7.2 migration/migration.c (await_return_path_close_on_source joins a thread
// that waits in postcopy_pause_return_path_thread).
func breaksInPostCopy(w *world) hypervisor.JobID {
	w.T.Helper()
	job := w.Slowly(move{Options: hypervisor.TransferOptions{PostCopy: true}})
	w.Adjust(job, hypervisor.StartPostCopy{})
	w.UntilState(target, theVM, hypervisor.Running)
	w.Must(w.ResetLink())
	waits := 0 * tick
	w.Until("the loss is noticed", func() bool {
		s, there := w.Progress(source, job).Status, w.Progress(target, job).Status
		if waits += tick; s == hypervisor.JobSucceeded || s != hypervisor.JobBroken &&
			there == hypervisor.JobSucceeded {
			w.Skip("post-copy was over before its connection was closed")
		}
		if s == hypervisor.JobActive && there == hypervisor.JobBroken && waits > min(w.Within/2, 10*time.Second) {
			w.Skip("post-copy's last page was on its way when its connection was closed")
		}
		return s == hypervisor.JobBroken
	})
	return job
}

func neverExecutes(w *world, s side) {
	w.T.Helper()
	for range 20 {
		if d := w.Domain(s, theVM); d.State.Executes() {
			w.T.Fatalf("on %s it is %v", w.Hosts[s].Name, d.State)
		}
		w.Pass(tick)
	}
}

// resolve ends a migration whose link was lost about when the source stopped. The
// target runs and the source is released, or the target is discarded, for good,
// and the source resumes.
func resolve(w *world, job hypervisor.JobID) {
	w.T.Helper()
	if !w.TakesBack() {
		settles(w, job)
		return
	}
	if w.Domain(source, theVM).State.Executes() {
		runsOn(w, job)
		return
	}
	brokenIsUnresolved(w, job)
	err := w.HV[target].Do(w.Ctx, theVM, hypervisor.Discard{Job: job})
	if err == nil {
		w.Do(source, theVM, hypervisor.Resume{Job: job,
			NeverRan: w.Says(hypervisor.TargetDiscarded, target, job)})
		w.Must(w.MendLink())
		w.UntilState(source, theVM, hypervisor.Running)
		w.NeverRuns(target)
		w.Sound(source)
		return
	}
	w.Refused(err, hypervisor.Conflict)
	w.UntilState(target, theVM, hypervisor.Running)
	w.Do(source, theVM, hypervisor.Release{Job: job,
		Moved: w.Says(hypervisor.RunsAtTarget, target, job)})
	w.Must(w.MendLink())
	w.States(hypervisor.Absent, hypervisor.Running)
	w.Sound(target)
}

// runsOn ends a migration whose source runs while its link is cut. Its hypervisor knows then that
// it has not sent the end of the VM: the link was cut just before the switch-over, or what was
// left did not go through and the transfer was given up. The job is not done, and has no doubt.
func runsOn(w *world, job hypervisor.JobID) {
	w.T.Helper()
	d, s := w.Domain(source, theVM), w.Progress(source, job).Status
	switch {
	case d.Unresolved || s == hypervisor.JobSucceeded || s == hypervisor.JobBroken:
		w.T.Fatalf("the source went on by itself, and its job is %v; %s", s, w)
	case !s.Final():
		w.Adjust(job, hypervisor.Cancel{})
		w.Until("the job ends", func() bool { return w.Progress(source, job).Status.Final() })
	}
	end := w.Progress(source, job).Status
	w.UntilState(source, theVM, hypervisor.Running)
	w.Must(w.MendLink())
	w.NeverRuns(target)
	w.Stays(job, end)
	w.Sound(source)
}

// brokenIsUnresolved wants the source to be unresolved if its job is broken, and
// only then.
func brokenIsUnresolved(w *world, job hypervisor.JobID) {
	w.T.Helper()
	w.Until("a broken job is unresolved, and no other", func() bool {
		broken := w.Progress(source, job).Status == hypervisor.JobBroken
		return broken == w.Domain(source, theVM).Unresolved
	})
}

// contexts are cases about callers who do not wait any more.
var contexts = []trial{
	{Name: "a call whose caller has gone has no effect", Run: func(w *world) {
		ctx, cancel := context.WithCancel(w.Ctx)
		cancel()
		hv, vm := w.HV[source], w.Name(theVM)
		calls := []func() error{
			func() error { _, err := hv.Host(ctx); return err },
			func() error { _, err := hv.Domains(ctx); return err },
			func() error { _, err := hv.Domain(ctx, theVM); return err },
			func() error { _, err := hv.Progress(ctx, "job"); return err },
			func() error { return hv.Do(ctx, theVM, hypervisor.Start{VM: vm}) },
			func() error {
				_, err := hv.Receive(ctx, hypervisor.Incoming{Job: "job", VM: vm})
				return err
			},
		}
		for i, call := range calls {
			err := call()
			w.Refused(err, hypervisor.Transient)
			if !errors.Is(err, context.Canceled) {
				w.T.Fatalf("call %d does not say that it was cancelled: %v", i, err)
			}
		}
		w.UntilState(source, theVM, hypervisor.Absent)
	}},
	{Name: "a migration whose caller has gone does not begin, or change",
		Needs: needSlow, Run: func(w *world) {
			ctx, cancel := context.WithCancel(w.Ctx)
			cancel()
			w.Running()
			job, address := w.Receives(move{})
			out := w.Outgoing(job, address)
			out.Options.Bandwidth = w.Slow
			w.Refused(w.HV[source].Migrate(ctx, out), hypervisor.Transient)
			if p := w.Progress(source, job); p.Status != hypervisor.JobNone &&
				!p.Started.IsZero() {
				w.T.Fatalf("it has begun: %+v", p)
			}
			w.Must(w.HV[source].Migrate(w.Ctx, out))
			w.Refused(w.HV[source].Adjust(ctx, job, hypervisor.Cancel{}), hypervisor.Transient)
			w.UntilStatus(source, job, hypervisor.JobActive)
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
		}},
}

// crowds are cases about many callers at once.
var crowds = []trial{
	{Name: "many may look while a VM moves", Needs: needSlow, Run: func(w *world) {
		job := w.Slowly(move{})
		atOnce(w, 12, func(i int) error {
			hv := w.HV[i%2]
			for range 10 {
				_, errDomain := hv.Domain(w.Ctx, theVM)
				_, errDomains := hv.Domains(w.Ctx)
				_, errProgress := hv.Progress(w.Ctx, job)
				if err := errors.Join(errDomain, errDomains, errProgress); err != nil {
					return err
				}
			}
			return nil
		})
		w.Uncap(job)
		w.Arrives(job, hypervisor.Running)
		w.Sound(target)
	}},
	{Name: "many may start, receive and send the same VM: it happens once", Run: func(w *world) {
		vm := w.Name(theVM)
		atOnce(w, 6, func(int) error {
			return w.HV[source].Do(w.Ctx, theVM, hypervisor.Start{VM: vm})
		})
		w.UntilState(source, theVM, hypervisor.Running)
		addresses := make([]hypervisor.Address, 6)
		atOnce(w, 6, func(i int) (err error) {
			addresses[i], err = w.ReceiveAs("job-0")
			return err
		})
		for _, a := range addresses {
			if a != addresses[0] {
				w.T.Fatalf("the target listens at %q", addresses)
			}
		}
		atOnce(w, 6, func(int) error {
			return w.HV[source].Migrate(w.Ctx, w.Outgoing("job-0", addresses[0]))
		})
		w.Arrives("job-0", hypervisor.Running)
		w.Sound(target)
	}},
	{Name: "of many migrations of one VM at once one is begun", Run: func(w *world) {
		w.Running()
		job, address := w.Receives(move{})
		var mu sync.Mutex
		refused := 0
		atOnce(w, 6, func(i int) error {
			as := job
			if i > 0 {
				as = "other"
			}
			err := w.HV[source].Migrate(w.Ctx, w.Outgoing(as, address))
			if i > 0 && err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused++
				return nil
			}
			return err
		})
		if refused != 5 {
			w.T.Fatalf("%d of 5 other jobs were refused", refused)
		}
		w.Arrives(job, hypervisor.Running)
	}},
}

// atOnce calls do from n goroutines, and fails when one of them does.
func atOnce(w *world, n int, do func(i int) error) {
	w.T.Helper()
	errs, broke := make([]error, n), make([]any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer func() { broke[i] = recover() }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	for _, v := range broke {
		if v != nil {
			panic(v) // where the case is played
		}
	}
	w.Must(errors.Join(errs...))
}
