package qmp_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A situation is all that this package is told.
type situation struct {
	d *qmp.DomainRecord
	j *qmp.Job
	l qmp.Look
}

func (s situation) state() hypervisor.DomainState { return qmp.State(s.d, s.j, s.l) }

func (s situation) status() hypervisor.JobStatus { return qmp.Status(s.d, s.j, s.l) }

func (s situation) due() qmp.NextStep { return qmp.Due(s.d, s.j, s.l, now) }

func (s situation) String() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%+v", *s.j)
	}
	return fmt.Sprintf("%+v\n%s\n%+v\nis %v, %v, due %v", *s.d, job, s.l, s.state(), s.status(),
		s.due())
}

// has reports whether the job is there and in one of the stages.
func (s situation) has(role qmp.Role, stages ...qmp.Stage) bool {
	for _, stage := range stages {
		if s.j != nil && s.j.Role == role && s.j.Stage == stage {
			return true
		}
	}
	return false
}

// sends reports whether a guest may be moved away at the moment.
func (s situation) sends() bool {
	return s.has(qmp.Source, qmp.Mirroring, qmp.Sending)
}

// missed reports whether a domain was there only for a VM that did not come, and ended.
func (s situation) missed() bool {
	started := s.d.Ran || s.d.Doing != hypervisor.Absent
	never := s.has(qmp.Target, qmp.Discarded, qmp.KeptRecord) || s.j == nil && !s.d.Own
	return !s.l.Alive && !started && never
}

var (
	runStates = []qemu.RunState{qemu.Running, qemu.Paused, qemu.PreLaunch, qemu.InMigrate,
		qemu.FinishMigrate, qemu.PostMigrate, qemu.Shutdown, qemu.Suspended, "guest-panicked"}
	statuses = []qemu.MigrationStatus{"", qemu.None, qemu.Setup, qemu.Cancelling, qemu.Cancelled,
		qemu.Active, qemu.PostcopyActive, qemu.PostcopyPaused, qemu.PostcopyConnects, qemu.PostcopyRecover,
		qemu.Completed, qemu.Failed, qemu.PreSwitchover, qemu.Device, qemu.WaitUnplug}
	doings = []hypervisor.DomainState{hypervisor.Absent, hypervisor.Starting, hypervisor.Stopping,
		hypervisor.Rebooting}
	sourceStages = []qmp.Stage{qmp.Preparing, qmp.Mirroring, qmp.Sending,
		qmp.KeptRecord, qmp.Resumed, qmp.Abandoned, qmp.Left}
	targetStages = []qmp.Stage{qmp.Listening, qmp.Activating, qmp.Arrived,
		qmp.Discarded, qmp.KeptRecord}
	copies = [][]qemu.Job{nil, {{Status: "running"}}, {{Status: qemu.JobReady}},
		{{Status: qemu.JobConcluded}}, {{Status: qemu.JobConcluded, Error: "no space"}},
		{{Status: qemu.JobReady}, {Status: qemu.JobConcluded}}, {{Status: qemu.JobNull}}}
)

// bits spreads the lowest bits of n over flags.
func bits(n int, flags ...*bool) {
	for i, f := range flags {
		*f = n>>i&1 == 1
	}
}

// everyJob calls do with every job that makes a difference, and with none.
func everyJob(do func(*qmp.Job)) {
	do(nil)
	do(&qmp.Job{})
	for _, stage := range sourceStages {
		for n := range 1 << 7 {
			j := &qmp.Job{Job: qmp.BaseJob{Role: qmp.Source, Stage: stage}}
			parked := false
			bits(n, &j.Cold, &j.GuestPaused, &j.PostCopied, &j.Released, &j.Acknowledged,
				&j.Options.HoldSwitchOver, &parked)
			if j.Released && !j.Options.HoldSwitchOver || j.GuestPaused && j.Cold ||
				parked && (j.Cold || j.GuestPaused || j.Released || !j.PostCopied) {
				continue // that cannot be asked for
			}
			if parked {
				j.Parked = now.Add(-time.Second)
			}
			do(j)
		}
	}
	for _, stage := range targetStages {
		for n := range 1 << 4 {
			j := &qmp.Job{Job: qmp.BaseJob{Role: qmp.Target, Stage: stage}}
			bits(n, &j.Cold, &j.Hold, &j.Stopped, &j.Resting)
			do(j)
		}
	}
}

// everyLook calls do with every look at a domain with the job: a migration is
// looked at while it may be under way, copies of disks where they matter.
func everyLook(j *qmp.Job, do func(qmp.Look)) {
	do(qmp.Look{})
	for _, run := range runStates {
		if j == nil || !j.Stage.Live() {
			do(qmp.Look{Alive: true, Run: run})
			continue
		}
		for _, m := range statuses {
			l := qmp.Look{Alive: true, Run: run, Migration: m}
			do(l)
			if !j.Parked.IsZero() && run == qemu.Paused {
				for _, l.SwitchOver = range []qmp.SwitchOver{qmp.SwitchOverAwaited,
					qmp.SwitchOverNever} {
					do(l)
				}
				l.SwitchOver = qmp.SwitchOverUnknown
			}
			copying := j.Stage == qmp.Mirroring && m == qemu.None ||
				j.Stage == qmp.Sending && m == qemu.PreSwitchover
			if !copying {
				continue
			}
			for _, l.Mirrors = range copies[1:] {
				do(l)
			}
		}
	}
}

// TestLaws goes through every combination of what was noted and what is seen.
func TestLaws(t *testing.T) {
	testutil.Unraced(t)
	count := 0
	everyJob(func(j *qmp.Job) {
		everyLook(j, func(l qmp.Look) {
			for _, doing := range doings {
				for n := range 1 << 4 {
					d := &qmp.DomainRecord{Domain: backend.Domain{Doing: doing},
						Rest: hypervisor.Shutoff}
					late, foreign := false, false
					bits(n, &d.Ran, &d.Paused, &late, &foreign)
					d.Own = !foreign
					if late {
						d.By = now.Add(-time.Second)
					}
					if late && doing == hypervisor.Absent {
						continue // nothing can be late
					}
					count++
					if s := (situation{d, j, l}); !s.lawful(t) {
						t.FailNow()
					}
				}
			}
		})
	})
	t.Logf("%d situations", count)
}

// TestLawsAnyhow draws what TestLaws does not combine.
func TestLawsAnyhow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := situation{drawDomain(t), drawJob(t), drawLook(t)}
		if !s.lawful(t) {
			t.FailNow()
		}
		if s.d.Ending = true; s.l.Alive && s.due() != qmp.Quit {
			t.Fatalf("it is meant to end:\n%v", s)
		}
	})
}

func drawDomain(t *rapid.T) *qmp.DomainRecord {
	d := &qmp.DomainRecord{Domain: backend.Domain{Doing: rapid.SampledFrom(doings).Draw(t,
		"doing")}, Rest: rapid.SampledFrom([]hypervisor.DomainState{hypervisor.Shutoff,
		hypervisor.Crashed}).Draw(t, "rest")}
	bits(rapid.IntRange(0, 15).Draw(t, "domain"), &d.Own, &d.Ran, &d.Paused, &d.Unresolved)
	if rapid.Bool().Draw(t, "by") {
		d.By = now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "seconds")) * time.Second)
	}
	return d
}

func drawJob(t *rapid.T) *qmp.Job {
	j := &qmp.Job{}
	j.Role = rapid.SampledFrom([]qmp.Role{qmp.NoRole, qmp.Source, qmp.Target}).
		Draw(t, "role")
	stages := sourceStages
	if j.Role == qmp.Target {
		stages = targetStages
	}
	j.Stage = rapid.SampledFrom(stages).Draw(t, "stage")
	j.Last.Status = rapid.Custom(func(t *rapid.T) hypervisor.JobStatus {
		return hypervisor.JobStatus(rapid.IntRange(0, int(hypervisor.JobBroken)).Draw(t, "n"))
	}).Draw(t, "last")
	j.Last.Mode = hypervisor.Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
	bits(rapid.IntRange(0, 1<<10-1).Draw(t, "job"), &j.Cold, &j.Hold, &j.Stopped, &j.Resting,
		&j.GuestPaused, &j.PostCopied, &j.Released, &j.Acknowledged, &j.Options.HoldSwitchOver,
		&j.Refused)
	return j
}

func drawLook(t *rapid.T) qmp.Look {
	return qmp.Look{Alive: rapid.Bool().Draw(t, "alive"),
		Run:       rapid.SampledFrom(runStates).Draw(t, "run"),
		Migration: rapid.SampledFrom(statuses).Draw(t, "migration"),
		Mirrors:   rapid.SampledFrom(copies).Draw(t, "copies")}
}

// TestProgressOfAStatus: what was final does not become unfinished by a later look
// of the same stage: QEMU's own endings are final, and so is what was noted.
func TestProgressOfAStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, j, before, after := drawDomain(t), drawJob(t), drawLook(t), drawLook(t)
		if j.Stage == qmp.Mirroring || !before.Alive || !after.Alive {
			return // Mirroring does not look at it, and the dead are noted anew
		}
		if !follows(j, before, after) {
			return
		}
		was, is := qmp.Status(d, j, before), qmp.Status(d, j, after)
		if was.Final() && is != was {
			t.Fatalf("%v became %v:\n%v", was, is, situation{d, j, after})
		}
	})
}

// follows reports whether QEMU can be seen as after when it was seen as before:
// here, only that an ended migration stays so, and its guest where it is.
func follows(j *qmp.Job, before, after qmp.Look) bool {
	switch before.Migration {
	case qemu.Failed, qemu.Cancelled, qemu.Completed:
		settled := before.Run == after.Run ||
			before.Run == qemu.FinishMigrate && after.Run == qemu.PostMigrate
		return after.Migration == before.Migration && settled
	}
	return false
}

// TestStepNames: every step has a name of its own, and other values do not.
func TestStepNames(t *testing.T) {
	seen := map[string]bool{}
	for s := qmp.NoStep; s <= qmp.GiveUp; s++ {
		if name := s.String(); name == "invalid" || seen[name] {
			t.Errorf("step %d is called %q", s, name)
		}
		seen[s.String()] = true
	}
	if name := (qmp.GiveUp + 1).String(); name != "invalid" {
		t.Errorf("no step is called %q", name)
	}
}
