package life_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/life"
)

// now is the only moment there is.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A situation is all that package life is told.
type situation struct {
	d *journal.Domain
	j *journal.Job
	l life.Look
}

func (s situation) state() hypervisor.DomainState { return life.State(s.d, s.j, s.l) }

func (s situation) status() hypervisor.JobStatus { return life.Status(s.j, s.l) }

func (s situation) due() life.Step { return life.Due(s.d, s.j, s.l, now) }

func (s situation) String() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%+v", *s.j)
	}
	return fmt.Sprintf("%+v\n%s\n%+v, %v\nis %v, %v, due %v", *s.d, job, s.l, s.l.Run, s.state(),
		s.status(), s.due())
}

// has reports whether the job is there and in the stage.
func (s situation) has(role journal.Role, stage journal.Stage) bool {
	return s.j != nil && s.j.Role == role && s.j.Stage == stage
}

func (s situation) sends() bool { return s.has(journal.Source, journal.Sending) }

func (s situation) receives() bool { return s.has(journal.Target, journal.Listening) }

var (
	executing = []life.Run{life.Runs, life.RunsCancelled, life.RunsMigrated, life.RunsPostCopy,
		life.RunsPostCopyFailed, life.ShuttingDown}
	resting = []life.Run{life.ShutoffUnknown, life.ShutoffClean, life.ShutoffCrashed,
		life.ShutoffFailed, life.ShutoffMigrated}
	standing = []life.Run{life.PausedUser, life.PausedMigration, life.PausedPostCopy,
		life.PausedPostCopyFailed, life.PausedStarting, life.PausedUnknown, life.PausedTrouble}
	calls = []life.Call{life.NoCall, life.Calling, life.Succeeded, life.Refused, life.Broken}
)

// ended are the stages of jobs in which nothing is under way, and what is said of them.
var ended = []journal.Job{
	{Role: journal.Source, Stage: journal.Stranded, Last: last(hypervisor.JobBroken)},
	{Role: journal.Source, Stage: journal.Kept, Last: last(hypervisor.JobFailed)},
	{Role: journal.Source, Stage: journal.Kept, Last: last(hypervisor.JobCancelled)},
	{Role: journal.Source, Stage: journal.Moved, Last: last(hypervisor.JobSucceeded)},
	{Role: journal.Source, Stage: journal.Resumed, Last: last(hypervisor.JobFailed)},
	{Role: journal.Source, Stage: journal.Abandoned, Last: last(hypervisor.JobFailed)},
	{Role: journal.Source, Stage: journal.Left, Last: last(hypervisor.JobSucceeded)},
	{Role: journal.Target, Stage: journal.Arrived, Last: last(hypervisor.JobSucceeded)},
	{Role: journal.Target, Stage: journal.Arrived, Last: last(hypervisor.JobNone)},
	{Role: journal.Target, Stage: journal.Discarded, Last: last(hypervisor.JobFailed)},
	{Role: journal.NoRole, Stage: journal.Discarded},
}

func last(s hypervisor.JobStatus) hypervisor.Progress { return hypervisor.Progress{Status: s} }

// bits spreads the lowest bits of n over flags.
func bits(n int, flags ...*bool) {
	for i, f := range flags {
		*f = n>>i&1 == 1
	}
}

// everyJob calls do with every job that makes a difference, and with none.
func everyJob(do func(*journal.Job)) {
	do(nil)
	for _, j := range ended {
		for n := range 1 << 3 {
			bits(n, &j.Cold, &j.Resting, &j.Hold)
			next := j
			do(&next)
		}
	}
	for n := range 1 << 7 {
		for _, status := range []hypervisor.JobStatus{hypervisor.JobNone, hypervisor.JobSetup} {
			j := &journal.Job{ID: "job", Role: journal.Source, Stage: journal.Sending}
			j.Last.Status = status
			bits(n, &j.Cold, &j.GuestPaused, &j.Cancelled, &j.Stopped, &j.Aborted, &j.Again,
				&j.PostCopied)
			do(j)
		}
	}
	for n := range 1 << 4 {
		j := &journal.Job{ID: "job", Role: journal.Target, Stage: journal.Listening}
		bits(n, &j.Cold, &j.Hold, &j.Seen, &j.Refused)
		do(j)
	}
}

// everyLook calls do with every look at a domain with the job. How libvirt stands to
// the migration is looked at where one may be under way.
func everyLook(j *journal.Job, do func(life.Look)) {
	for run := life.Gone; run <= life.ShuttingDown; run++ {
		for n := range 1 << 2 {
			l := life.Look{Run: run}
			mine := false
			if bits(n, &l.Defined, &mine); mine {
				l.Job = "job"
			}
			if run == life.Gone && n != 0 && !j.Sends() || j.Sends() && n != 3 {
				continue // nothing has a mark; whose it is matters at a target
			}
			if !j.Sends() {
				do(l)
				continue
			}
			for _, l.Call = range calls {
				for n := range 1 << 5 {
					bits(n, &l.Sends, &l.Aborted, &l.Moving, &l.Early, &l.Stood)
					if matters(j, l) {
						do(l)
					}
				}
			}
		}
	}
}

// matters reports whether a look can be, and what is kept of the job makes a difference.
func matters(j *journal.Job, l life.Look) bool {
	switch {
	case !l.Sends && (l.Aborted || l.Moving), l.Sends && !l.Run.Alive():
		return false
	case j.Again && l.Run != life.RunsCancelled, l.Stood && l.Run > life.ShutoffMigrated &&
		!l.Run.Executes(), l.Stood && !l.Run.Alive():
		return false
	}
	return l.Sends || !j.PostCopied
}

// everyDomain calls do with what may be kept of a domain.
func everyDomain(j *journal.Job, do func(*journal.Domain)) {
	for _, doing := range []hypervisor.DomainState{hypervisor.Absent, hypervisor.Starting,
		hypervisor.Stopping, hypervisor.Rebooting} {
		for n := range 1 << 3 {
			d := &journal.Domain{Doing: doing, Job: "job"}
			late := false
			bits(n, &d.Ran, &d.Crashed, &late)
			if late {
				d.By = now.Add(-time.Second)
			}
			if late && doing < hypervisor.Stopping ||
				j.Sends() && (late || d.Crashed || doing > hypervisor.Starting) {
				continue // nothing can be late; a VM that moves is none that crashed or stops
			}
			do(d)
		}
	}
}

// TestLaws goes through every combination of what is kept and what is seen.
func TestLaws(t *testing.T) {
	count := 0
	everyJob(func(j *journal.Job) {
		everyLook(j, func(l life.Look) {
			everyDomain(j, func(d *journal.Domain) {
				count++
				if s := (situation{d, j, l}); !s.lawful(t) {
					t.FailNow()
				}
			})
		})
	})
	t.Logf("%d situations", count)
	if count < 400_000 {
		t.Errorf("only %d situations", count)
	}
}

// TestNothingIsKept: of a domain of which nothing is kept, what libvirt says is said,
// and nothing is due.
func TestNothingIsKept(t *testing.T) {
	everyLook(nil, func(l life.Look) {
		if due := life.Due(nil, nil, l, now); due != life.Rest {
			t.Errorf("%v: due %v", l.Run, due)
		}
		plain := situation{&journal.Domain{}, nil, l}
		if is := life.State(nil, nil, l); is != plain.state() {
			t.Errorf("%v is %v, want %v", l.Run, is, plain.state())
		}
		if status := life.Status(nil, l); status != hypervisor.JobNone {
			t.Errorf("no job is %v", status)
		}
	})
}

// TestNonsense: what no libvirt says and no journal keeps is answered, too.
func TestNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := situation{
			d: &journal.Domain{Doing: hypervisor.DomainState(rapid.Byte().Draw(t, "doing"))},
			j: &journal.Job{Role: journal.Role(rapid.String().Draw(t, "role")),
				Stage: journal.Stage(rapid.String().Draw(t, "stage")),
				Last:  last(hypervisor.JobStatus(rapid.Byte().Draw(t, "status")))},
			l: life.Look{Run: life.Run(rapid.Byte().Draw(t, "run")),
				Call: life.Call(rapid.Byte().Draw(t, "call"))}}
		if rapid.Bool().Draw(t, "source") {
			s.j.Role, s.j.Stage = journal.Source, journal.Sending
		}
		step := s.due()
		if text := s.String(); step > life.Recovered || text == "" {
			t.Fatalf("due %d in %s", step, text)
		}
		if s.l.Run > life.ShuttingDown && (step == life.Keep || step == life.Move) &&
			s.l.Call == life.Broken {
			t.Fatalf("a word that means nothing is no proof:\n%v", s)
		}
	})
}

// TestFinalStatus: what was noted as the end stays the end, whatever is seen.
func TestFinalStatus(t *testing.T) {
	for _, role := range []journal.Role{journal.Source, journal.Target} {
		for _, stage := range []journal.Stage{journal.Listening, journal.Sending, journal.Arrived,
			journal.Stranded, journal.Kept, journal.Moved, journal.Resumed, journal.Abandoned,
			journal.Left, journal.Discarded} {
			for _, final := range []hypervisor.JobStatus{hypervisor.JobSucceeded,
				hypervisor.JobFailed, hypervisor.JobCancelled} {
				j := &journal.Job{ID: "job", Role: role, Stage: stage, Last: last(final)}
				everyLook(j, func(l life.Look) {
					if is := life.Status(j, l); is != final {
						t.Fatalf("%s %s: %v became %v: %+v", role, stage, final, is, l)
					}
				})
			}
		}
	}
}

// TestPatience: a guest is forced when its time is over, and not before; what was asked
// is settled when it is so.
func TestPatience(t *testing.T) {
	for _, row := range []struct {
		name     string
		doing    hypervisor.DomainState
		in       time.Duration
		rebooted bool
		want     life.Step
	}{
		{"it may take its time to shut down", hypervisor.Stopping, time.Second, false, life.Rest},
		{"its time to shut down is over", hypervisor.Stopping, 0, false, life.Force},
		{"it may take its time to reboot", hypervisor.Rebooting, time.Second, false, life.Rest},
		{"its time to reboot is over", hypervisor.Rebooting, 0, false, life.Reset},
		{"it has rebooted", hypervisor.Rebooting, time.Second, true, life.Settled},
		{"it has rebooted before it was asked to stop", hypervisor.Stopping, time.Second, true,
			life.Rest},
		{"it has started", hypervisor.Starting, time.Second, false, life.Settled},
		{"nothing was asked", hypervisor.Absent, 0, true, life.Rest},
	} {
		d := &journal.Domain{Doing: row.doing, By: now.Add(row.in)}
		if due := life.Due(d, nil, life.Look{Run: life.Runs, Rebooted: row.rebooted}, now); due !=
			row.want {
			t.Errorf("%s: due %v, want %v", row.name, due, row.want)
		}
	}
}

// TestMode: post-copy is said once it was asked for, and that a guest is paused while it is.
func TestMode(t *testing.T) {
	for run := life.Gone; run <= life.ShuttingDown; run++ {
		postcopy := run == life.PausedPostCopy || run == life.PausedPostCopyFailed ||
			run == life.RunsPostCopy || run == life.RunsPostCopyFailed
		for n := range 1 << 3 {
			j, was := &journal.Job{Role: journal.Source}, false
			bits(n, &j.PostCopied, &j.GuestPaused, &was)
			if was {
				j.Last.Mode = hypervisor.PostCopy
			}
			want := hypervisor.PreCopy
			switch {
			case postcopy || was || j.PostCopied:
				want = hypervisor.PostCopy
			case j.GuestPaused && !slices.Contains(executing, run):
				want = hypervisor.PausedCopy
			}
			if is := life.Mode(j, life.Look{Run: run}); is != want {
				t.Errorf("%v, %+v: %v, want %v", run, j, is, want)
			}
		}
	}
}

// TestNames: every step and every run has a name of its own, and nothing else has.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := life.Rest; s <= life.Recovered; s++ {
		if name := s.String(); name == "invalid" || seen[name] {
			t.Errorf("step %d is called %q", s, name)
		}
		seen[s.String()] = true
	}
	for r := life.Gone; r <= life.ShuttingDown; r++ {
		if name := r.String(); name == "invalid" || seen[name] {
			t.Errorf("run %d is called %q", r, name)
		}
		seen[r.String()] = true
	}
	if a, b := (life.Recovered + 1).String(), (life.ShuttingDown + 1).String(); a != "invalid" ||
		b != "invalid" {
		t.Errorf("what is none is called %q and %q", a, b)
	}
}
