package libvirt_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// now is the only moment there is.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A situation is all that this package is told.
type situation struct {
	d *libvirt.DomainRecord
	j *libvirt.Job
	l libvirt.Look
}

func (s situation) state() hypervisor.DomainState { return libvirt.State(s.d, s.j, s.l) }

func (s situation) status() hypervisor.JobStatus { return libvirt.Status(s.j, s.l) }

func (s situation) due() libvirt.NextStep { return libvirt.Due(s.d, s.j, s.l, now) }

func (s situation) String() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%+v", *s.j)
	}
	return fmt.Sprintf("%+v\n%s\n%+v, %v\nis %v, %v, due %v", *s.d, job, s.l, s.l.Run, s.state(),
		s.status(), s.due())
}

// has reports whether the job is there and in the stage.
func (s situation) has(role libvirt.Role, stage libvirt.Stage) bool {
	return s.j != nil && s.j.Role == role && s.j.Stage == stage
}

func (s situation) sends() bool { return s.has(libvirt.Source, libvirt.Sending) }

func (s situation) receives() bool { return s.has(libvirt.JobTarget, libvirt.Listening) }

var (
	executing = []libvirt.Run{libvirt.Runs, libvirt.RunsCancelled, libvirt.RunsMigrated, libvirt.RunsPostCopy,
		libvirt.RunsPostCopyFailed, libvirt.ShuttingDown}
	resting = []libvirt.Run{libvirt.ShutoffUnknown, libvirt.ShutoffClean, libvirt.ShutoffCrashed,
		libvirt.ShutoffFailed, libvirt.ShutoffMigrated}
	standing = []libvirt.Run{libvirt.PausedUser, libvirt.PausedMigration, libvirt.PausedPostCopy,
		libvirt.PausedPostCopyFailed, libvirt.PausedStarting, libvirt.PausedUnknown, libvirt.PausedTrouble}
	calls = []libvirt.LibvirtCall{libvirt.NoCall, libvirt.Calling, libvirt.Succeeded, libvirt.Refused, libvirt.Broken}
)

// ended are the stages of jobs in which nothing is under way, and what is said of them.
var ended = []libvirt.Job{
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Stranded,
		Last: last(hypervisor.JobBroken)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Kept,
		Last: last(hypervisor.JobFailed)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Kept,
		Last: last(hypervisor.JobCancelled)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Moved,
		Last: last(hypervisor.JobSucceeded)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Resumed,
		Last: last(hypervisor.JobFailed)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Abandoned,
		Last: last(hypervisor.JobFailed)}},
	{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Left,
		Last: last(hypervisor.JobSucceeded)}},
	{Job: libvirt.BaseJob{Role: libvirt.JobTarget, Stage: libvirt.Arrived,
		Last: last(hypervisor.JobSucceeded)}},
	{Job: libvirt.BaseJob{Role: libvirt.JobTarget, Stage: libvirt.Arrived,
		Last: last(hypervisor.JobNone)}},
	{Job: libvirt.BaseJob{Role: libvirt.JobTarget, Stage: libvirt.Discarded,
		Last: last(hypervisor.JobFailed)}},
	{Job: libvirt.BaseJob{Role: libvirt.NoRole, Stage: libvirt.Discarded}},
}

func last(s hypervisor.JobStatus) hypervisor.Progress { return hypervisor.Progress{Status: s} }

// bits spreads the lowest bits of n over flags.
func bits(n int, flags ...*bool) {
	for i, f := range flags {
		*f = n>>i&1 == 1
	}
}

// everyJob calls do with every job that makes a difference, and with none.
func everyJob(do func(*libvirt.Job)) {
	do(nil)
	for _, j := range ended {
		for n := range 1 << 3 {
			bits(n, &j.Cold, &j.Resting, &j.Hold)
			next := j
			do(&next)
		}
	}
	for n := range 1 << 7 {
		for _, status := range []hypervisor.JobStatus{hypervisor.JobNone, hypervisor.JobSetup, hypervisor.JobBroken} {
			j := &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.Source,
				Stage: libvirt.Sending}}
			j.Last.Status = status
			bits(n, &j.Cold, &j.GuestPaused, &j.Cancelled, &j.Stopped, &j.Aborted, &j.Again,
				&j.PostCopied)
			if status == hypervisor.JobBroken && (j.Cold || j.Cancelled || !j.PostCopied) {
				continue // it is being recovered
			}
			do(j)
		}
	}
	for n := range 1 << 4 {
		j := &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.JobTarget,
			Stage: libvirt.Listening}}
		bits(n, &j.Cold, &j.Hold, &j.Seen, &j.Refused)
		do(j)
	}
}

// everyLook calls do with every look at a domain with the job. How libvirt stands to
// the migration is looked at where one may be under way.
func everyLook(j *libvirt.Job, do func(libvirt.Look)) {
	for run := libvirt.Gone; run <= libvirt.ShuttingDown; run++ {
		for n := range 1 << 2 {
			l := libvirt.Look{Run: run}
			mine := false
			if bits(n, &l.Defined, &mine); mine {
				l.Job = "job"
			}
			if run == libvirt.Gone && n != 0 && !j.Sends() || j.Sends() && n != 3 {
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
					if l.Moving && l.Run == libvirt.PausedPostCopyFailed {
						l.Flows = true
						do(l)
						l.Flows = false
					}
				}
			}
		}
	}
}

// matters reports whether a look can be, and what is kept of the job makes a difference.
func matters(j *libvirt.Job, l libvirt.Look) bool {
	switch {
	case !l.Sends && (l.Aborted || l.Moving), l.Sends && !l.Run.Alive():
		return false
	case j.Again && l.Run != libvirt.RunsCancelled, l.Stood && l.Run > libvirt.ShutoffMigrated &&
		!l.Run.Executes(), l.Stood && !l.Run.Alive():
		return false
	}
	return l.Sends || !j.PostCopied || !l.Run.Alive()
}

// everyDomain calls do with what may be kept of a domain.
func everyDomain(j *libvirt.Job, do func(*libvirt.DomainRecord)) {
	for _, doing := range []hypervisor.DomainState{hypervisor.Absent, hypervisor.Starting,
		hypervisor.Stopping, hypervisor.Rebooting} {
		for n := range 1 << 3 {
			d := &libvirt.DomainRecord{Domain: backend.Domain{Doing: doing, Job: "job"}}
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
	testutil.Unraced(t)
	count := 0
	everyJob(func(j *libvirt.Job) {
		everyLook(j, func(l libvirt.Look) {
			everyDomain(j, func(d *libvirt.DomainRecord) {
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
// and there is no next step.
func TestNothingIsKept(t *testing.T) {
	everyLook(nil, func(l libvirt.Look) {
		if due := libvirt.Due(nil, nil, l, now); due != libvirt.NoStep {
			t.Errorf("%v: due %v", l.Run, due)
		}
		plain := situation{&libvirt.DomainRecord{}, nil, l}
		if is := libvirt.State(nil, nil, l); is != plain.state() {
			t.Errorf("%v is %v, want %v", l.Run, is, plain.state())
		}
		if status := libvirt.Status(nil, l); status != hypervisor.JobNone {
			t.Errorf("no job is %v", status)
		}
	})
}

// TestNonsense: what no libvirt says and no journal keeps is answered, too.
func TestNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := situation{
			d: &libvirt.DomainRecord{Domain: backend.Domain{
				Doing: hypervisor.DomainState(rapid.Byte().Draw(t, "doing"))}},
			j: &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Role(rapid.String().Draw(t, "role")),
				Stage: libvirt.Stage(rapid.String().Draw(t, "stage")),
				Last:  last(hypervisor.JobStatus(rapid.Byte().Draw(t, "status")))}},
			l: libvirt.Look{Run: libvirt.Run(rapid.Byte().Draw(t, "run")),
				Call: libvirt.LibvirtCall(rapid.Byte().Draw(t, "call"))}}
		if rapid.Bool().Draw(t, "source") {
			s.j.Role, s.j.Stage = libvirt.Source, libvirt.Sending
		}
		step := s.due()
		if text := s.String(); step > libvirt.Recovered || text == "" {
			t.Fatalf("due %d in %s", step, text)
		}
		if s.l.Run > libvirt.ShuttingDown && (step == libvirt.KeepAtSource || step == libvirt.Move) &&
			s.l.Call == libvirt.Broken {
			t.Fatalf("a word that means nothing is no proof:\n%v", s)
		}
	})
}

// TestFinalStatus: what was noted as the end stays the end, whatever is seen.
func TestFinalStatus(t *testing.T) {
	for _, role := range []libvirt.Role{libvirt.Source, libvirt.JobTarget} {
		for _, stage := range []libvirt.Stage{libvirt.Listening, libvirt.Sending, libvirt.Arrived,
			libvirt.Stranded, libvirt.Kept, libvirt.Moved, libvirt.Resumed, libvirt.Abandoned,
			libvirt.Left, libvirt.Discarded} {
			for _, final := range []hypervisor.JobStatus{hypervisor.JobSucceeded,
				hypervisor.JobFailed, hypervisor.JobCancelled} {
				j := &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: role, Stage: stage,
					Last: last(final)}}
				everyLook(j, func(l libvirt.Look) {
					if is := libvirt.Status(j, l); is != final {
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
		want     libvirt.NextStep
	}{
		{"it may take its time to shut down", hypervisor.Stopping, time.Second, false, libvirt.NoStep},
		{"its time to shut down is over", hypervisor.Stopping, 0, false, libvirt.Force},
		{"it may take its time to reboot", hypervisor.Rebooting, time.Second, false, libvirt.NoStep},
		{"its time to reboot is over", hypervisor.Rebooting, 0, false, libvirt.Reset},
		{"it has rebooted", hypervisor.Rebooting, time.Second, true, libvirt.Settled},
		{"it has rebooted before it was asked to stop", hypervisor.Stopping, time.Second, true,
			libvirt.NoStep},
		{"it has started", hypervisor.Starting, time.Second, false, libvirt.Settled},
		{"nothing was asked", hypervisor.Absent, 0, true, libvirt.NoStep},
	} {
		d := &libvirt.DomainRecord{Domain: backend.Domain{Doing: row.doing, By: now.Add(row.in)}}
		if due := libvirt.Due(d, nil, libvirt.Look{Run: libvirt.Runs, Rebooted: row.rebooted}, now); due !=
			row.want {
			t.Errorf("%s: due %v, want %v", row.name, due, row.want)
		}
	}
}

// TestMode: post-copy is said once it was asked for, and that a guest is paused while it is.
func TestMode(t *testing.T) {
	for run := libvirt.Gone; run <= libvirt.ShuttingDown; run++ {
		postcopy := run == libvirt.PausedPostCopy || run == libvirt.PausedPostCopyFailed ||
			run == libvirt.RunsPostCopy || run == libvirt.RunsPostCopyFailed
		for n := range 1 << 3 {
			j, was := &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source}}, false
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
			if is := libvirt.Mode(j, libvirt.Look{Run: run}); is != want {
				t.Errorf("%v, %+v: %v, want %v", run, j, is, want)
			}
		}
	}
}

// TestNames: every step and every run has a name of its own, and nothing else has.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := libvirt.NoStep; s <= libvirt.TidyMove; s++ {
		if name := s.String(); name == "invalid" || seen[name] {
			t.Errorf("step %d is called %q", s, name)
		}
		seen[s.String()] = true
	}
	for r := libvirt.Gone; r <= libvirt.ShuttingDown; r++ {
		if name := r.String(); name == "invalid" || seen[name] {
			t.Errorf("run %d is called %q", r, name)
		}
		seen[r.String()] = true
	}
	if a, b := (libvirt.TidyMove + 1).String(), (libvirt.ShuttingDown + 1).String(); a != "invalid" ||
		b != "invalid" {
		t.Errorf("what is none is called %q and %q", a, b)
	}
}
