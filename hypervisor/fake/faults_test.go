package fake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

func TestInjectedFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault fake.Fault
		kind  hypervisor.Kind
		now   hypervisor.DomainState // after the call
		later hypervisor.DomainState // a minute later
		busy  time.Duration
	}{
		{"without a fault it is paused", fake.Fault{Host: "n2", How: fake.Hang}, okay,
			hypervisor.Paused, hypervisor.Paused, 0},
		{"a failure before has no effect", fake.Fault{How: fake.FailBefore},
			hypervisor.Transient, hypervisor.Running, hypervisor.Running, 0},
		{"a failure after has its effect", fake.Fault{How: fake.FailAfter},
			hypervisor.Unknown, hypervisor.Paused, hypervisor.Paused, 0},
		{"a call that hangs has no effect and costs time",
			fake.Fault{How: fake.Hang, Delay: time.Second}, hypervisor.Unknown,
			hypervisor.Running, hypervisor.Running, time.Second},
		{"a late answer is a good one", fake.Fault{How: fake.LateAnswer, Delay: time.Second},
			okay, hypervisor.Paused, hypervisor.Paused, time.Second},
		{"a late effect comes later", fake.Fault{How: fake.LateEffect, Delay: time.Second},
			hypervisor.Unknown, hypervisor.Running, hypervisor.Paused, 0},
		{"a fault may be meant for a method", fake.Fault{Op: "Do", How: fake.FailBefore},
			hypervisor.Transient, hypervisor.Running, hypervisor.Running, 0},
		{"a fault may be meant for a command", fake.Fault{Op: "Pause", How: fake.FailBefore},
			hypervisor.Transient, hypervisor.Running, hypervisor.Running, 0},
		{"another command does not meet it", fake.Fault{Op: "Unpause", How: fake.FailBefore},
			okay, hypervisor.Paused, hypervisor.Paused, 0},
		{"another VM does not meet it", fake.Fault{VM: "other", How: fake.FailBefore},
			okay, hypervisor.Paused, hypervisor.Paused, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, sure())
			w.boot("n1", "vm", mild)
			if test.fault.Host == "" {
				test.fault.Host = "n1"
			}
			w.ok(w.Inject(test.fault))
			err := w.Host("n1").Do(ctx, "vm", hypervisor.Pause{})
			if kindOf(err) != test.kind {
				t.Errorf("error %v, want %v", err, test.kind)
			}
			if hang := errors.Is(err, context.DeadlineExceeded); hang != (test.fault.How ==
				fake.Hang && test.kind != okay) {
				t.Errorf("error %v, a deadline exceeded: %v", err, hang)
			}
			if got := w.Host("n1").Busy(); got != test.busy || w.Host("n1").Busy() != 0 {
				t.Errorf("busy for %v, want %v and then nothing", got, test.busy)
			}
			w.ClearFaults() // what a test meant for others must not meet the looks below
			now := w.state("n1", "vm")
			w.pass(time.Minute)
			if later := w.state("n1", "vm"); now != test.now || later != test.later {
				t.Errorf("%v and later %v, want %v and %v", now, later, test.now, test.later)
			}
		})
	}
}

func TestAFaultIsMetAsOftenAsItSays(t *testing.T) {
	w := newWorld(t, sure())
	w.ok(w.Inject(fake.Fault{Host: "n1", Op: "Host", How: fake.FailBefore, Times: 2}))
	var got []hypervisor.Kind
	for range 3 {
		_, err := w.Host("n1").Host(ctx)
		got = append(got, kindOf(err))
	}
	want := []hypervisor.Kind{hypervisor.Transient, hypervisor.Transient, okay}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestALateEffectDoesNotOutliveItsHost(t *testing.T) {
	w := newWorld(t, sure())
	w.ok(w.Inject(fake.Fault{Host: "n1", How: fake.LateEffect, Delay: time.Minute}))
	wantKind(t, w.Host("n1").Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}), hypervisor.Unknown)
	w.ok(w.CrashHost("n1"))
	w.ok(w.RestartHost("n1"))
	w.pass(time.Hour)
	if got := w.state("n1", "vm"); got != hypervisor.Absent {
		t.Errorf("it is %v", got)
	}
}

// Calls about one VM take effect in their order, as libvirt's and QEMU's do.
func TestALateEffectIsOvertaken(t *testing.T) {
	w := newWorld(t, sure())
	w.ok(w.Inject(fake.Fault{Host: "n1", Op: "Start", How: fake.LateEffect, Delay: time.Minute}))
	wantKind(t, w.Host("n1").Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}), hypervisor.Unknown)
	w.ok(w.Inject(fake.Fault{Host: "n1", Op: "Start", How: fake.LateEffect, Delay: time.Minute}))
	wantKind(t, w.Host("n1").Do(ctx, "other", hypervisor.Start{VM: aVM("other")}),
		hypervisor.Unknown)
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}))
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Kill{}))
	w.pass(time.Hour)
	if got := w.state("n1", "vm"); got != hypervisor.Shutoff {
		t.Errorf("it is %v: the first start came after the second", got)
	}
	if got := w.state("n1", "other"); got != hypervisor.Running {
		t.Errorf("the other is %v: it was not asked again", got)
	}
}

func TestADiscardedJobDoesNotComeBackLate(t *testing.T) {
	w := newWorld(t, sure())
	w.ok(w.Inject(fake.Fault{Host: "n1", Op: "Receive", How: fake.LateEffect, Delay: time.Minute}))
	in := hypervisor.Incoming{Job: "j", VM: aVM("vm")}
	_, err := w.Host("n1").Receive(ctx, in)
	wantKind(t, err, hypervisor.Unknown)
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Discard{Job: "j"}))
	w.pass(time.Hour)
	if got := w.state("n1", "vm"); got != hypervisor.Absent {
		t.Errorf("it is %v after the Discard had answered", got)
	}
	_, err = w.Host("n1").Receive(ctx, in)
	wantKind(t, err, hypervisor.Conflict)
}

func TestADiscardedJobIsNotReceivedAgain(t *testing.T) {
	w := newWorld(t, sure())
	in := hypervisor.Incoming{Job: "j", VM: aVM("vm")}
	_, err := w.Host("n1").Receive(ctx, in)
	w.ok(err)
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Discard{Job: "j"}))
	for _, when := range []string{"at once", "after a crash"} {
		if _, err := w.Host("n1").Receive(ctx, in); kindOf(err) != hypervisor.Conflict {
			t.Errorf("%s: error %v, want a conflict", when, err)
		}
		w.ok(w.CrashHost("n1"))
		w.ok(w.RestartHost("n1"))
	}
	in.Job = "j2"
	_, err = w.Host("n1").Receive(ctx, in)
	w.ok(err)
}

func TestACrashTouchesEveryVMOfItsHost(t *testing.T) {
	w := newWorld(t, sure())
	w.boot("n1", "b", mild)
	w.boot("n1", "a", mild)
	w.boot("n2", "c", mild)
	w.Touched()
	w.ok(w.CrashHost("n1"))
	if diff := cmp.Diff([]vmid{"a", "b"}, w.Touched()); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
}

// A side is what one host says of the VM and of the job.
type side struct {
	State      hypervisor.DomainState
	Unresolved bool
	Status     hypervisor.JobStatus
}

func (w *world) side(on name, job hypervisor.JobID) side {
	w.t.Helper()
	d, err := w.Host(on).Domain(ctx, "vm")
	if kindOf(err) == hypervisor.Transient {
		return side{} // the host is down
	}
	w.ok(err)
	return side{d.State, d.Unresolved, w.progress(on, job).Status}
}

// at brings a migration to a moment.
var at = map[string]func(w *world, job hypervisor.JobID){
	"set-up": func(*world, hypervisor.JobID) {},
	"pre-copy": func(w *world, job hypervisor.JobID) {
		w.untilStatus("n1", job, hypervisor.JobActive)
		w.pass(time.Second)
	},
	"switch-over": func(w *world, job hypervisor.JobID) {
		w.untilStatus("n1", job, hypervisor.JobSwitching)
	},
	"loading": func(w *world, job hypervisor.JobID) { // everything has arrived
		w.untilStatus("n1", job, hypervisor.JobSwitching)
		w.until("all sent", func() bool { return w.progress("n1", job).Bandwidth == 0 })
	},
	"confirming": func(w *world, job hypervisor.JobID) {
		w.untilStatus("n2", job, hypervisor.JobSucceeded)
	},
	"post-copy": func(w *world, job hypervisor.JobID) {
		w.pass(time.Second)
		w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
		w.until("the target runs", func() bool { return w.state("n2", "vm").Executes() })
	},
	"loading for post-copy": func(w *world, job hypervisor.JobID) {
		w.pass(time.Second)
		w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
		w.untilStatus("n1", job, hypervisor.JobSwitching)
		w.until("all sent", func() bool { return w.progress("n1", job).Bandwidth == 0 })
	},
	"the end": func(w *world, job hypervisor.JobID) {
		w.untilStatus("n1", job, hypervisor.JobSucceeded)
	},
}

var strikes = map[string]func(*world) error{
	"cut":          func(w *world) error { return w.CutLink("n1", "n2") },
	"reset":        func(w *world) error { return w.ResetLink("n2", "n1") },
	"kill source":  func(w *world) error { return w.KillDomain("n1", "vm") },
	"kill target":  func(w *world) error { return w.KillDomain("n2", "vm") },
	"crash source": func(w *world) error { return w.CrashHost("n1") },
	"crash target": func(w *world) error { return w.CrashHost("n2") },
}

func TestFaultsAtEveryMoment(t *testing.T) {
	const (
		gone, running, receiving, giving, given, crashed = hypervisor.Absent, hypervisor.Running,
			hypervisor.Receiving, hypervisor.HandingOver, hypervisor.HandedOver, hypervisor.Crashed
		setUp, active, succeeded, failed, broken = hypervisor.JobSetup, hypervisor.JobActive,
			hypervisor.JobSucceeded, hypervisor.JobFailed, hypervisor.JobBroken
		switching = hypervisor.JobSwitching
	)
	stuck := side{giving, true, broken}
	down := side{}
	tests := []struct {
		when, what     string
		source, target side // after another minute
	}{
		{"set-up", "cut", side{running, false, active}, side{receiving, false, active}},
		{"set-up", "reset", side{running, false, failed}, side{receiving, false, setUp}},
		{"set-up", "kill source", side{crashed, false, failed}, side{gone, false, failed}},
		{"set-up", "kill target", side{running, false, failed}, side{gone, false, failed}},
		{"pre-copy", "cut", side{running, false, active}, side{receiving, false, active}},
		{"pre-copy", "reset", side{running, false, failed}, side{receiving, false, active}},
		{"pre-copy", "kill source", side{crashed, false, failed}, side{gone, false, failed}},
		{"pre-copy", "kill target", side{running, false, failed}, side{gone, false, failed}},
		{"pre-copy", "crash source", down, side{receiving, false, active}},
		{"pre-copy", "crash target", side{running, false, active}, down},
		{"switch-over", "cut", side{giving, false, switching}, side{receiving, false, switching}},
		{"switch-over", "reset", stuck, side{receiving, false, broken}},
		{"switch-over", "kill source", side{crashed, false, broken}, side{gone, false, broken}},
		{"switch-over", "kill target", stuck, side{gone, false, broken}},
		{"switch-over", "crash source", down, side{receiving, false, broken}},
		{"switch-over", "crash target", stuck, down},
		{"loading", "cut", stuck, side{running, false, succeeded}},
		{"loading", "reset", stuck, side{running, false, succeeded}},
		{"loading", "kill source", side{crashed, false, broken}, side{running, false, succeeded}},
		{"loading", "kill target", stuck, side{gone, false, broken}},
		{"loading", "crash source", down, side{running, false, succeeded}},
		{"loading", "crash target", stuck, down},
		{"confirming", "cut", stuck, side{running, false, succeeded}},
		{"confirming", "reset", stuck, side{running, false, succeeded}},
		{"confirming", "kill source", side{crashed, false, broken},
			side{running, false, succeeded}},
		{"confirming", "kill target", stuck, side{crashed, false, succeeded}},
		{"confirming", "crash target", stuck, down},
		{"post-copy", "cut", side{giving, false, active}, side{running, false, active}},
		{"post-copy", "reset", side{crashed, false, broken}, side{crashed, false, broken}},
		{"post-copy", "kill source", side{crashed, false, broken}, side{crashed, false, broken}},
		{"post-copy", "kill target", side{crashed, false, broken}, side{crashed, false, broken}},
		{"post-copy", "crash source", down, side{crashed, false, broken}},
		{"post-copy", "crash target", side{crashed, false, broken}, down},
		{"the end", "cut", side{given, false, succeeded}, side{running, false, succeeded}},
		{"the end", "kill source", side{crashed, false, succeeded},
			side{running, false, succeeded}},
		{"the end", "crash target", side{given, false, succeeded}, down},
	}
	for _, test := range tests {
		t.Run(test.what+" at "+test.when, func(t *testing.T) {
			load := mild
			if test.when == "post-copy" {
				load = wild
			}
			w, job := begun(t, load, hypervisor.TransferOptions{PostCopy: true})
			at[test.when](w, job)
			w.ok(strikes[test.what](w))
			w.pass(time.Minute)
			got := [2]side{w.side("n1", job), w.side("n2", job)}
			if diff := cmp.Diff([2]side{test.source, test.target}, got); diff != "" {
				t.Errorf("source and target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStalledTransferGoesOnWhenTheLinkHeals(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.pass(time.Second)
	w.ok(w.CutLink("n2", "n1"))
	before := w.progress("n1", job)
	w.pass(24 * time.Hour)
	after := w.progress("n1", job)
	if after.Sent != before.Sent || after.Bandwidth != 0 || after.Iteration != before.Iteration {
		t.Errorf("over a cut link %+v became %+v", before, after)
	}
	w.ok(w.HealLink("n1", "n2"))
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
}

// stalls are the moments after the source has stopped at which a link that is cut lets a transfer
// stand still.
var stalls = []string{"switch-over", "post-copy", "loading for post-copy"}

func stalling(t *testing.T, when string) (*world, hypervisor.JobID) {
	t.Helper()
	load := wild
	if when == "switch-over" {
		load = mild
	}
	w, job := begun(t, load, hypervisor.TransferOptions{PostCopy: true})
	at[when](w, job)
	return w, job
}

func TestAfterTheSourceHasStoppedACutLinkThatHealsBreaksNothing(t *testing.T) {
	for _, when := range stalls {
		t.Run(when, func(t *testing.T) {
			w, job := stalling(t, when)
			for range 3 {
				w.ok(w.CutLink("n1", "n2"))
				w.pass(10 * time.Minute)
				w.ok(w.CutLink("n1", "n2"))
				before := w.progress("n1", job)
				w.pass(5 * time.Minute)
				if after := w.progress("n1", job); after.Sent != before.Sent || after.Status != before.Status {
					t.Fatalf("over a cut link %+v became %+v", before, after)
				}
				w.ok(w.HealLink("n1", "n2"))
				w.pass(time.Millisecond)
			}
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			w.wantStates(t, hypervisor.HandedOver, hypervisor.Running)
		})
	}
}

func TestAfterTheSourceHasStoppedACutLinkBreaksTheConnectionInTheEnd(t *testing.T) {
	const giving, crashed = hypervisor.HandingOver, hypervisor.Crashed
	for i, want := range [][2]hypervisor.DomainState{{giving, hypervisor.Receiving}, {crashed, crashed},
		{crashed, crashed}} {
		t.Run(stalls[i], func(t *testing.T) {
			w, job := stalling(t, stalls[i])
			w.ok(w.CutLink("n1", "n2"))
			w.pass(15 * time.Minute)
			w.ok(w.CutLink("n1", "n2")) // it was
			if got := w.progress("n1", job).Status; got == hypervisor.JobBroken {
				t.Errorf("after a quarter of an hour the job is %v", got)
			}
			w.pass(time.Minute)
			if got := w.progress("n1", job).Status; got != hypervisor.JobBroken {
				t.Errorf("a minute later the job is %v", got)
			}
			w.wantStates(t, want[0], want[1])
			w.ok(w.HealLink("n1", "n2"))
			w.pass(time.Minute)
			w.wantStates(t, want[0], want[1])
		})
	}
}

func TestWhatDiedBehindACutIsNoticedWhenTheLinkHeals(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.pass(time.Second)
	w.ok(w.CutLink("n1", "n2"))
	w.ok(w.KillDomain("n2", "vm"))
	w.pass(time.Hour)
	if got := w.progress("n1", job).Status; got != hypervisor.JobActive {
		t.Errorf("behind the cut the job is %v", got)
	}
	w.ok(w.HealLink("n1", "n2"))
	if got := w.progress("n1", job).Status; got != hypervisor.JobFailed {
		t.Errorf("healed, the job is %v", got)
	}
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)
}

func TestAHostComesBackWithoutMemory(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.boot("n2", "own", mild)
	w.pass(time.Second)
	w.ok(w.CrashHost("n2"))
	_, err := w.Host("n2").Domains(ctx)
	wantKind(t, err, hypervisor.Transient)
	wantKind(t, w.Host("n2").Boot(aVM("x"), mild), hypervisor.Transient)
	if got := w.Copies("own"); len(got) != 1 || got[0].State != hypervisor.Crashed {
		t.Errorf("on the dead host: %v", got)
	}
	w.ok(w.RestartHost("n2"))
	if got := w.state("n2", "own"); got != hypervisor.Shutoff {
		t.Errorf("its own VM is %v", got)
	}
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)
	if s, n := w.progress("n1", job), w.progress("n2", job); s.Status != hypervisor.JobFailed ||
		n.Status != hypervisor.JobNone {
		t.Errorf("the job is %v at the source and %v at the target", s.Status, n.Status)
	}
}

// When the target may have run, its changes are on the VM's disks: the memory at
// the source is given up, with proof that the target is dead.
func TestAnAbandonedSourceStartsAnew(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	at["switch-over"](w, job)
	h := w.Host("n1")
	alive := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n3"}
	wantKind(t, h.Do(ctx, "vm", hypervisor.Abandon{Job: job, Dead: alive}), hypervisor.Conflict)
	wantKind(t, h.Do(ctx, "vm", hypervisor.Abandon{Job: job}), hypervisor.Invalid)
	w.ok(w.CrashHost("n2"))
	fenced := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n2"}
	for range 2 {
		w.ok(h.Do(ctx, "vm", hypervisor.Abandon{Job: job, Dead: fenced}))
		if got := w.state("n1", "vm"); got != hypervisor.Crashed {
			t.Fatalf("the source is %v", got)
		}
	}
	w.ok(h.Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}))
	w.until("it runs anew", func() bool { return w.state("n1", "vm") == hypervisor.Running })
}

func TestAResumeNeedsProofThatTheTargetNeverRan(t *testing.T) {
	dead := func(p hypervisor.Proof, vm vmid, host name) hypervisor.Evidence {
		return hypervisor.Evidence{Proof: p, VM: vm, Host: host}
	}
	tests := []struct {
		name     string
		evidence hypervisor.Evidence
		want     hypervisor.Kind
	}{
		{"nothing proves nothing", hypervisor.Evidence{}, hypervisor.Invalid},
		{"that the source stopped does not matter", dead(hypervisor.SourceStopped, "vm", "n2"),
			hypervisor.Conflict},
		{"another host may be dead", dead(hypervisor.HostFenced, "", "n3"), hypervisor.Conflict},
		{"another VM may be dead", dead(hypervisor.ProcessReaped, "x", "n2"), hypervisor.Conflict},
		{"a discarded target is dead", dead(hypervisor.TargetDiscarded, "vm", "n2"), okay},
		{"on a fenced host it may have run", dead(hypervisor.HostFenced, "", "n2"),
			hypervisor.Conflict},
		{"an operator's word counts", dead(hypervisor.OperatorWord, "vm", "n2"), okay},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, job := begun(t, mild, hypervisor.TransferOptions{})
			at["switch-over"](w, job)
			w.ok(w.KillDomain("n2", "vm"))
			if test.evidence.Proof != hypervisor.NoProof {
				test.evidence.Job = job
			}
			resume := hypervisor.Resume{Job: job, NeverRan: test.evidence}
			err := w.Host("n1").Do(ctx, "vm", resume)
			if kindOf(err) != test.want {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if test.want != okay {
				w.wantStates(t, hypervisor.HandingOver, hypervisor.Absent)
				return
			}
			w.ok(w.Host("n1").Do(ctx, "vm", resume))
			w.wantStates(t, hypervisor.Running, hypervisor.Absent)
			want := side{hypervisor.Running, false, hypervisor.JobFailed}
			if got := w.side("n1", job); got != want {
				t.Errorf("the source is %+v", got)
			}
		})
	}
}

// The link is lost in the switch-over, and then the source's process dies: its memory is gone,
// and its host does not know whether the target runs. It is told, with proof that it is dead.
func TestACrashedSourceIsToldThatItsTargetIsDead(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	at["switch-over"](w, job)
	w.ok(w.ResetLink("n1", "n2"))
	w.ok(w.KillDomain("n1", "vm"))
	if d := w.domain("n1", "vm"); d.State != hypervisor.Crashed || !d.Unresolved {
		t.Fatalf("it is %+v", d)
	}
	h := w.Host("n1")
	alive := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n3"}
	wantKind(t, h.Do(ctx, "vm", hypervisor.Abandon{Job: job, Dead: alive}), hypervisor.Conflict)
	dead := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n2"}
	for range 2 {
		w.ok(h.Do(ctx, "vm", hypervisor.Abandon{Job: job, Dead: dead}))
		if d := w.domain("n1", "vm"); d.State != hypervisor.Crashed || d.Unresolved {
			t.Fatalf("it is %+v", d)
		}
	}
}

// That a VM is not here any more does not prove that it never ran here.
func TestWhatRanHereAndIsGoneIsNotDiscarded(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.untilStatus("n2", job, hypervisor.JobSucceeded)
	n2 := w.Host("n2")
	w.ok(n2.Do(ctx, "vm", hypervisor.Kill{}))
	w.ok(n2.Do(ctx, "vm", hypervisor.Forget{}))
	wantKind(t, n2.Do(ctx, "vm", hypervisor.Discard{Job: job}), hypervisor.Conflict)
	w.ok(n2.Do(ctx, "vm", hypervisor.Discard{Job: "other"}))
}

// A job whose ends can tell each other nothing is under way until the link is back, and a host that has
// crashed meanwhile has forgotten it all the same.
func TestACrashForgetsAJobThatIsUnderWay(t *testing.T) {
	w, job := begun(t, wild, hypervisor.TransferOptions{})
	w.pass(time.Second)
	w.ok(w.CutLink("n1", "n2"))
	w.ok(w.CrashHost("n1"))
	w.ok(w.RestartHost("n1"))
	if p, err := w.Host("n1").Progress(ctx, job); err != nil || p.Status != hypervisor.JobNone {
		t.Errorf("the source says of its job %v, %v", p.Status, err)
	}
	if p, err := w.Host("n2").Progress(ctx, job); err != nil || p.Status == hypervisor.JobNone {
		t.Errorf("the target says of its job %v, %v", p.Status, err)
	}
}
