//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"errors"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// belongs refuses a command about another job than the domain's.
func belongs(f found, job hypervisor.JobID, role backend.Role) error {
	if f.Job == nil || f.Job.ID != job || f.Job.Role != role {
		of := hypervisor.JobID("")
		if f.Job != nil {
			of = f.Job.ID
		}
		return backend.Errorf(hypervisor.Conflict, "it belongs to job %q", of)
	}
	return nil
}

// Activate starts a received domain that was held. It takes evidence that the
// source has stopped, or is dead.
func (d move) Activate(ctx context.Context, f found, c hypervisor.Activate) error {
	if err := backend.Given(c.Stopped, "that the source has stopped"); err != nil {
		return err
	}
	if err := belongs(f, c.Job, backend.Target); err != nil {
		return err
	}
	source := cmp.Or(f.Observed.Mark.Source, c.Stopped.Host) // the mark of an old version names none
	unproven := backend.Stopped(c.Stopped, d.ID, c.Job, source)
	switch {
	case f.Job.Stage == stageArrived && (f.State.Executes() || f.State == hypervisor.Paused):
		return nil
	case f.State != hypervisor.Received || f.Job.Refused:
		return f.Conflict()
	case unproven != nil:
		return unproven
	}
	if f.Observed.Mark.Resting { // it stays as it was: it has only come
		return d.arrive(ctx, f.Observed)
	}
	err := d.Put(true, func(r *domainRecord) { r.Ran = true })
	if err == nil {
		err = d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Resume() })
	}
	if err != nil {
		return err
	}
	s, err := d.See(ctx)
	if err != nil {
		return err
	}
	return d.arrive(ctx, s)
}

// Discard promises that libvirt will not receive the VM for this job. A domain that
// is being received only its source can end safely: libvirt may let it run at any
// moment. One that is complete is the only copy that there is, unless its source says
// that it has its own still.
func (d move) Discard(ctx context.Context, f found, c hypervisor.Discard) error {
	n := d.Node
	old := n.Job(c.Job)
	here := f.Job != nil && f.Job.ID == c.Job && f.Job.Role == backend.Target
	waits := f.State == hypervisor.Receiving
	held := here && (f.State == hypervisor.Received || f.Job.Unborn && f.Observed.Run.Rests())
	switch {
	case c.Job == "":
		return backend.Errorf(hypervisor.Invalid, "the job has no name")
	case old != nil && old.Refused && !(waits && here) && !held:
		return nil // it was discarded before
	case waits && !here:
		return backend.Errorf(hypervisor.Conflict, "it belongs to job %q", f.Job.ID)
	case waits && (f.Observed.Run.Alive() || !f.Observed.Defined && f.Observed.Run != runGone) &&
		!d.deserted(ctx, f.Observed):
		return backend.Errorf(hypervisor.Conflict, "libvirt is receiving it: cancel the job at its "+
			"source, or wait until libvirt notices that the source is gone")
	case !waits && f.State != hypervisor.Absent && !(held && d.spare(ctx, f.Observed)):
		return f.Conflict()
	case old != nil && old.Role == backend.Source && old.VM.ID == d.ID && old.Stage.Live():
		return f.Conflict()
	case old != nil && old.Role == backend.Target && old.Stage == stageArrived && !old.Unborn:
		return backend.Errorf(hypervisor.Conflict, "the VM has run here")
	case old != nil && old.Role == backend.Source:
		return nil // it will not be received here: its id is used up
	}
	if err := d.forsake(ctx, f, here); err != nil {
		return err
	}
	if err := d.setTombstone(ctx); err != nil {
		if errors.Is(err, hypervisor.Conflict) || backend.KindOf(err) == hypervisor.Unknown {
			return backend.Errorf(hypervisor.Conflict, "libvirt has begun to receive it: %w",
				backend.Bare(err))
		}
		return err
	}
	if here { // what libvirt has made of its disks
		if err := remove(ctx, n, d.Name, old.VM); err != nil {
			return err
		}
	}
	promise := jobRecord{Job: backend.Job[stage]{ID: c.Job, VM: hypervisor.VM{ID: d.ID}}}
	if old != nil {
		promise = *old
	}
	promise.Refused, promise.Stage = true, stageDiscarded
	if promise.Role == backend.Target {
		promise.Last.Status = hypervisor.JobFailed
	}
	promise.Last.Error = "the target was discarded"
	if err := n.PutJob(&promise, true); err != nil {
		return err
	}
	n.Expire(d.Name)
	if !here {
		n.Unreserve(d.ID) // of a target that was noted only half
		return nil
	}
	return d.Remove()
}

// forsake removes an incoming domain from libvirt. That it will never have come is noted
// first: half removed, it looks like one that came and rests.
func (d move) forsake(ctx context.Context, f found, here bool) error {
	if f.Observed.Run == runGone {
		return nil
	}
	if here {
		if err := d.PutJob(true, func(j *jobRecord) { j.Refused = true }); err != nil {
			return err
		}
	}
	return d.Erase(ctx, f.Observed, false)
}

// deserted reports whether the source of an incoming domain runs and sends no more,
// by the word of its own libvirtd. What is here then never becomes complete: libvirt
// may not have been told, or may wait for a process that hangs.
func (d move) deserted(ctx context.Context, s observation) bool {
	there, err := d.atSource(ctx, s)
	return err == nil && there.Run.Executes() &&
		(there.Aborted || !there.Sends && there.Run != runsCancelled)
}

// spare reports whether the source of a held domain has its process still, and sends no
// more, by the word of its own libvirtd: the answer that the domain is complete was
// lost. Of its own accord libvirt then ends neither the source nor lets this one run.
func (d move) spare(ctx context.Context, s observation) bool {
	there, err := d.atSource(ctx, s)
	return err == nil && there.Run.Alive() && !there.Sends &&
		there.Run != runPausedPostCopy && there.Run != runPausedPostCopyFailed
}

// atSource looks at the domain where it comes from. What is not the same domain there
// is Gone.
func (d move) atSource(ctx context.Context, s observation) (observation, error) {
	if s.Mark.From == "" || s.Mark.Source == d.Node.Name {
		return observation{}, nil
	}
	peer, err := d.Node.Reach(ctx, s.Mark.From)
	if err != nil {
		return observation{}, err
	}
	there, err := seeAt(ctx, peer, d.Name)
	if there.UUID != s.UUID {
		return observation{}, err
	}
	return there, err
}

// stoppedFor refuses what is not about the job that this domain is the source of.
func stoppedFor(f found, job hypervisor.JobID, e hypervisor.Evidence) error {
	if err := backend.Given(e, "about the target"); err != nil {
		return err
	}
	return belongs(f, job, backend.Source)
}

// Resume lets a source that stopped for the switch-over run again, with evidence
// that the target did not and will not.
func (d move) Resume(ctx context.Context, f found, c hypervisor.Resume) error {
	if err := stoppedFor(f, c.Job, c.NeverRan); err != nil {
		return err
	}
	j := f.Job
	switch {
	case j.Stage == stageResumed, j.Stage == stageKept:
		return nil
	case f.State == hypervisor.HandedOver:
		return backend.Errorf(hypervisor.Unsupported,
			"libvirt has given up the memory of a source whose target has it")
	case j.Stage != stageStranded:
		return f.Conflict()
	case j.PostCopied || f.Observed.Run == runPausedPostCopy ||
		f.Observed.Run == runPausedPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "the target ran in post-copy")
	}
	if err := backend.NeverRan(c.NeverRan, d.ID, c.Job, j.Target); err != nil {
		return err
	}
	if f.Observed.Run.Stands() && !j.Resting {
		err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Resume() })
		if err != nil {
			return err
		}
	}
	return d.endJob(stageResumed, "the source resumed")
}

// endJob notes, for good, that a source takes part in its job no more.
func (d move) endJob(stage stage, why string) error {
	err := d.Put(true, func(r *domainRecord) { r.Unresolved = false })
	if err != nil {
		return err
	}
	return d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last.Status, j.Last.Error = stage, hypervisor.JobFailed, why
	})
}

// Abandon gives up the memory of a source that stopped for the switch-over.
func (d move) Abandon(ctx context.Context, f found, c hypervisor.Abandon) error {
	if err := stoppedFor(f, c.Job, c.Dead); err != nil {
		return err
	}
	j := f.Job
	rests := f.State.Rests()
	switch {
	case rests && !f.Unresolved() && j.Stage != stageStranded:
		return nil
	case j.Stage != stageStranded && j.Stage != stageMoved, f.State.Executes():
		return f.Conflict() // libvirt may have let a stranded guest go on: it is paused first
	case j.Stage == stageMoved && c.Dead.Proof == hypervisor.TargetDiscarded:
		return backend.Errorf(hypervisor.Conflict, "libvirt says that %s had it", j.Target)
	}
	if err := backend.Dead(c.Dead, d.ID, c.Job, j.Target); err != nil {
		return err
	}
	if f.Observed.Run.Alive() {
		err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Destroy() })
		if err != nil {
			return err
		}
	}
	if err := d.endJob(stageAbandoned, "its memory was given up"); err != nil {
		return err
	}
	d.Node.Unreserve(d.ID)
	return d.Put(true, func(r *domainRecord) { r.Crashed, r.Ran = !j.Cold, false })
}

// Release removes a source that has moved, its definition and its local disks, too.
// It refuses a domain that executes, is paused or is needed by a switch-over.
func (d move) Release(ctx context.Context, f found, c hypervisor.Release) error {
	if err := backend.Given(c.Moved, "that the VM has moved"); err != nil {
		return err
	}
	j, unproven := f.Job, backend.Moved(c.Moved, d.ID, c.Job, d.Node.Name)
	if f.State == hypervisor.Absent && (j == nil || j.ID != c.Job || j.Stage != stageLeft) {
		return nil
	}
	job := hypervisor.JobID("")
	if j != nil {
		job = j.ID
	}
	stranded := j != nil && (j.Stage == stageStranded || j.Stage == stageLeft)
	switch {
	case f.State == hypervisor.Receiving || f.State == hypervisor.Received ||
		f.State.Executes() || f.State == hypervisor.Paused:
		return f.Conflict()
	case job != "" && job != c.Job:
		return backend.Errorf(hypervisor.Conflict, "it belongs to job %q", job)
	case unproven != nil:
		return unproven
	case f.Observed.Run.Alive() && !stranded:
		return backend.Errorf(hypervisor.Conflict, "the switch-over is under way")
	case f.Observed.Run == runPausedPostCopy || f.Observed.Run == runPausedPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "its target lacks memory: recover or abandon it")
	}
	if j != nil && j.Role == backend.Source {
		err := d.PutJob(true, func(j *jobRecord) {
			j.Stage, j.Last.Status = stageLeft, hypervisor.JobSucceeded
		})
		if err != nil {
			return err
		}
	}
	if err := d.Erase(ctx, f.Observed, true); err != nil {
		return err
	}
	if err := remove(ctx, d.Node, d.Name, f.VM); err != nil {
		return err
	}
	return d.Remove()
}
