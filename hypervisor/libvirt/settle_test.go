package libvirt_test

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// settle performs steps, as node.go and transfer.go do, until none is left.
// Libvirt does nothing meanwhile but what it is told. Loops says that it never ends.
func (s situation) settle() (after situation, loops bool) {
	done := s.steps()
	return done[len(done)-1].situation, len(done) > maxSteps
}

// maxSteps is more than ever follow from each other.
const maxSteps = 6

// A done is a step and what is so afterwards.
type done struct {
	step libvirt.NextStep
	situation
}

// steps are the steps of a settle. The first is none.
func (s situation) steps() []done {
	all := []done{{libvirt.NoStep, s}}
	for len(all) <= maxSteps {
		step := s.due()
		if step == libvirt.NoStep {
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
func (s situation) then(step libvirt.NextStep) situation {
	if s.d == nil {
		return s
	}
	d, j, l := *s.d, libvirt.Job{}, s.l
	if s.j != nil {
		j = *s.j
	}
	switch step {
	case libvirt.Reap:
		lost := l.Run == libvirt.ShutoffCrashed || l.Run == libvirt.ShutoffUnknown && d.Ran
		d.Crashed = lost && d.Doing != hypervisor.Stopping
		d.Ran, d.Doing, d.By = false, hypervisor.Absent, time.Time{}
	case libvirt.Press:
		d.Asked = now
	case libvirt.Force:
		l.Run = libvirt.ShutoffClean
	case libvirt.Reset, libvirt.Settled:
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
func transfer(step libvirt.NextStep, d *libvirt.DomainRecord, j *libvirt.Job, l *libvirt.Look) (gone bool) {
	switch step {
	case libvirt.Send:
		j.Last.Status, l.Call, l.Sends = hypervisor.JobSetup, libvirt.Calling, !j.Cold
	case libvirt.Abort:
		l.Aborted = true
	case libvirt.SwitchToPostCopy:
		l.Run = libvirt.PausedPostCopy
	case libvirt.NoteStop:
		j.Stopped = true
	case libvirt.NoteAbort:
		j.Aborted = true
	case libvirt.Move:
		j.Stage, j.Last.Status, l.Call = libvirt.Moved, hypervisor.JobSucceeded, libvirt.NoCall
		d.Ran, d.Unresolved, d.Crashed = false, false, false
	case libvirt.KeepAtSource:
		j.Stage, j.Last.Status, l.Call = libvirt.Kept, hypervisor.JobFailed, libvirt.NoCall
		if j.Cancelled {
			j.Last.Status = hypervisor.JobCancelled
		}
		d.Unresolved = false
	case libvirt.MarkUnresolved:
		if slices.Contains(executing, l.Run) {
			l.Run = libvirt.PausedUser
		}
		d.Unresolved, j.Stage, j.Last.Status = true, libvirt.Stranded, hypervisor.JobBroken
	case libvirt.NoteArrival:
		j.Seen = true
	case libvirt.Arrive:
		arrive(d, j, *l)
	case libvirt.Lapse:
		j.Refused, j.Stage, j.Last.Status = true, libvirt.Discarded, hypervisor.JobFailed
		return true
	case libvirt.Recovered:
		j.Last.Status = hypervisor.JobSucceeded
	}
	return false
}

func arrive(d *libvirt.DomainRecord, j *libvirt.Job, l libvirt.Look) {
	d.Ran = l.Run.Alive()
	d.Crashed = l.Run == libvirt.ShutoffCrashed || l.Run == libvirt.ShutoffUnknown && !j.Cold
	j.Stage = libvirt.Arrived
	if l.Run == libvirt.RunsPostCopy || l.Run == libvirt.RunsPostCopyFailed {
		j.PostCopied, j.Last.Mode = true, hypervisor.PostCopy
		return
	}
	j.Last.Status = hypervisor.JobSucceeded
}
