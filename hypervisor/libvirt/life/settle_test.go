package life_test

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/life"
)

// settle does what is due, as packages node and transfer do it, until nothing is.
// Libvirt does nothing meanwhile but what it is told. Loops says that it never ends.
func (s situation) settle() (after situation, loops bool) {
	done := s.steps()
	return done[len(done)-1].situation, len(done) > maxSteps
}

// maxSteps is more than ever follow from each other.
const maxSteps = 6

// A done is a step and what is so afterwards.
type done struct {
	step life.Step
	situation
}

// steps are the steps of a settle. The first is none.
func (s situation) steps() []done {
	all := []done{{life.Rest, s}}
	for len(all) <= maxSteps {
		step := s.due()
		if step == life.Rest {
			return all
		}
		if step == all[len(all)-1].step { // done, and due again
			for len(all) <= maxSteps {
				all = append(all, done{step, s})
			}
			return all
		}
		s = s.then(step)
		all = append(all, done{step, s})
	}
	return all
}

// then is what is so after a step.
func (s situation) then(step life.Step) situation {
	if s.d == nil {
		return s
	}
	d, j, l := *s.d, journal.Job{}, s.l
	if s.j != nil {
		j = *s.j
	}
	switch step {
	case life.Bury:
		lost := l.Run == life.ShutoffCrashed || l.Run == life.ShutoffUnknown && d.Ran
		d.Crashed = lost && d.Doing != hypervisor.Stopping
		d.Ran, d.Doing, d.By = false, hypervisor.Absent, time.Time{}
	case life.Press:
		d.Asked = now
	case life.Force:
		l.Run = life.ShutoffClean
	case life.Reset, life.Settled:
		d.Doing, d.By = hypervisor.Absent, time.Time{}
	default:
		if gone := transfer(step, &d, &j, &l); gone {
			return situation{nil, &j, l}
		}
	}
	if s.j == nil {
		return situation{&d, nil, l}
	}
	return situation{&d, &j, l}
}

// transfer does a step of a migration, and reports whether the domain is forgotten.
func transfer(step life.Step, d *journal.Domain, j *journal.Job, l *life.Look) (gone bool) {
	switch step {
	case life.Send:
		j.Last.Status, l.Call, l.Sends = hypervisor.JobSetup, life.Calling, !j.Cold
	case life.Abort:
		l.Aborted = true
	case life.GoOver:
		l.Run = life.PausedPostCopy
	case life.NoteStop:
		j.Stopped = true
	case life.NoteAbort:
		j.Aborted = true
	case life.Move:
		j.Stage, j.Last.Status, l.Call = journal.Moved, hypervisor.JobSucceeded, life.NoCall
		d.Ran, d.Unresolved, d.Crashed = false, false, false
	case life.Keep:
		j.Stage, j.Last.Status, l.Call = journal.Kept, hypervisor.JobFailed, life.NoCall
		if j.Cancelled {
			j.Last.Status = hypervisor.JobCancelled
		}
		d.Unresolved = false
	case life.Strand:
		if slices.Contains(executing, l.Run) {
			l.Run = life.PausedUser
		}
		d.Unresolved, j.Stage, j.Last.Status = true, journal.Stranded, hypervisor.JobBroken
	case life.NoteArrival:
		j.Seen = true
	case life.Arrive:
		arrive(d, j, *l)
	case life.Lapse:
		j.Refused, j.Stage, j.Last.Status = true, journal.Discarded, hypervisor.JobFailed
		return true
	case life.Recovered:
		j.Last.Status = hypervisor.JobSucceeded
	}
	return false
}

func arrive(d *journal.Domain, j *journal.Job, l life.Look) {
	d.Ran = l.Run.Alive()
	d.Crashed = l.Run == life.ShutoffCrashed || l.Run == life.ShutoffUnknown && !j.Cold
	j.Stage = journal.Arrived
	if l.Run == life.RunsPostCopy || l.Run == life.RunsPostCopyFailed {
		j.PostCopied, j.Last.Mode = true, hypervisor.PostCopy
		return
	}
	j.Last.Status = hypervisor.JobSucceeded
}
