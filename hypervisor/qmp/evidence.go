//go:build linux

package qmp

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// Activate starts a received domain that was held. It takes evidence that the
// source has stopped, or is dead.
func (d move) Activate(ctx context.Context, p found, c hypervisor.Activate) error {
	if err := backend.Given(c.Stopped, "that the source has stopped"); err != nil {
		return err
	}
	j := p.Job
	if j == nil || j.ID != c.Job || j.Role != backend.Target {
		return qemu.Refuse(hypervisor.Conflict, "it belongs to job %q", p.Rec.Job)
	}
	unproven := backend.Stopped(c.Stopped, d.ID, c.Job, j.Source)
	switch {
	case j.Stage.MayHaveRun() && (p.State.Executes() || p.State == hypervisor.Paused):
		return nil
	case !p.Look.Complete() || j.Stage != stageListening:
		return p.Conflict()
	case unproven != nil:
		return unproven
	}
	return d.letArrive(ctx, p.VM, func(*jobRecord) {})
}

// Discard forgets an incoming domain that has not started, and promises never to
// receive the job. That is written before the process is ended.
func (d move) Discard(ctx context.Context, p found, c hypervisor.Discard) error {
	h := d.Node
	here := p.Rec != nil && p.Rec.Job == c.Job && p.Job != nil && p.Job.Role == backend.Target
	old := h.Job(c.Job)
	switch {
	case c.Job == "":
		return qemu.Refuse(hypervisor.Invalid, "the job has no name")
	case old != nil && old.Refused && p.State != hypervisor.Receiving &&
		p.State != hypervisor.Received:
		return nil // it was discarded before
	case here && p.Job.Stage.MayHaveRun(), p.Rec != nil && p.State != hypervisor.Receiving &&
		p.State != hypervisor.Received && (here || old == nil || old.Stage != stageDiscarded):
		return p.Conflict()
	case p.State == hypervisor.Receiving && !here || p.State == hypervisor.Received && !here:
		return qemu.Refuse(hypervisor.Conflict, "it belongs to job %q", p.Rec.Job)
	case old != nil && old.Role == backend.Source && old.VM.ID == d.ID && old.Stage.Live():
		return p.Conflict()
	case old != nil && old.Role == backend.Target && old.Stage.MayHaveRun():
		return qemu.Refuse(hypervisor.Conflict, "the VM has run here")
	}
	promise := jobRecord{Job: backend.Job[stage]{ID: c.Job, VM: hypervisor.VM{ID: d.ID}}}
	if old != nil {
		promise = *old
	}
	if promise.Role != backend.Source && !promise.Refused {
		promise.Refused, promise.Stage = true, stageDiscarded
		if here { // a status that was final stays
			promise.Last.Status = statusOf(p.Rec, p.Job, p.Look)
		}
		if promise.Role == backend.Target && !promise.Last.Status.Final() {
			promise.Last.Status = hypervisor.JobFailed
		}
		promise.Last.Error = "the target was discarded"
		if err := h.PutJob(&promise, true); err != nil {
			return err
		}
	}
	if !here {
		return nil
	}
	return d.vanish(ctx, p.VM)
}

// vanish ends an incoming domain that never ran. A VM that the host had before
// stays.
func (d move) vanish(ctx context.Context, vm *qemu.Instance) error {
	rec := d.Record()
	if !rec.Ending {
		if err := d.Put(true, func(r *domainRecord) { r.Ending = true }); err != nil {
			return err
		}
	}
	if vm != nil {
		if err := vm.Kill(ctx); err != nil {
			return err
		}
	}
	return d.Reap()
}

// Resume lets a source that stopped for the switch-over run again, with evidence
// that the target did not and will not. After post-copy began there is no way
// back.
func (d move) Resume(ctx context.Context, p found, c hypervisor.Resume) error {
	j, err := d.stoppedFor(p, c.Job, c.NeverRan)
	switch {
	case err != nil:
		return err
	case j.Stage == stageResumed || p.State == hypervisor.Running ||
		p.State == hypervisor.Paused || j.Cold && p.State == hypervisor.Shutoff && !j.Stage.Live():
		return nil
	case !standsFor(p, j):
		return p.Conflict()
	case j.PostCopied && (j.Acknowledged || postcopy(p.Look.Migration)):
		return qemu.Refuse(hypervisor.Conflict, "QEMU has no way back from post-copy: abandon it")
	}
	if err := backend.NeverRan(c.NeverRan, d.ID, c.Job, j.Target); err != nil {
		return err
	}
	ended := p.Look.Run == qemu.PostMigrate || strandedSource(j, p.Look)
	if !j.Cold && !ended { // it waits for a target that is no more
		return p.VM.MigrateCancel(ctx) // then the guest runs on, and stepKeepAtSource is next
	}
	if !j.Cold && len(p.Rec.VM.LocalDisks()) > 0 {
		if err := p.VM.DropMirrors(ctx, p.Rec.VM); err != nil {
			return err
		}
	}
	if err := d.endJob(stageResumed, "the source resumed"); err != nil {
		return err
	}
	if j.Cold {
		return d.endCold(ctx, p.VM)
	}
	if p.Rec.Paused {
		return nil
	}
	d.Unexpect()
	return p.VM.Cont(ctx)
}

// standsFor reports whether the domain stands, or rests, for its job.
func standsFor(p found, j *jobRecord) bool {
	return p.State == hypervisor.HandingOver || p.State == hypervisor.HandedOver ||
		j.Cold && j.Stage.Live() && p.State == hypervisor.Shutoff
}

// endJob notes, for good, that a stopped source takes part in its job no more. The job comes
// last: a VM that dies in between is looked at once more.
func (d move) endJob(stage stage, why string) error {
	d.HangUp()
	if err := d.Put(true, func(r *domainRecord) { r.Unresolved = false }); err != nil {
		return err
	}
	return d.PutJob(true, func(j *jobRecord) {
		j.Stage = stage
		if !j.Acknowledged {
			j.Last.Status, j.Last.Error = hypervisor.JobFailed, why
		}
	})
}

// Abandon gives up the memory of a source that stopped for the switch-over.
func (d move) Abandon(ctx context.Context, p found, c hypervisor.Abandon) error {
	j, err := d.stoppedFor(p, c.Job, c.Dead)
	switch {
	case err != nil:
		return err
	case !standsFor(p, j) && !p.Rec.Unresolved && p.State.Rests():
		return nil
	case !standsFor(p, j) && !p.Rec.Unresolved || p.State.Executes() ||
		p.State == hypervisor.Paused:
		return p.Conflict()
	}
	if err := backend.Dead(c.Dead, d.ID, c.Job, j.Target); err != nil {
		return err
	}
	if err := d.endJob(stageAbandoned, "its memory was given up"); err != nil {
		return err
	}
	switch {
	case j.Cold:
		return d.endCold(ctx, p.VM)
	case p.VM == nil:
		return nil
	}
	if err := p.VM.Kill(ctx); err != nil {
		return err
	}
	return d.Reap()
}

// hasNothingLeft reports whether the source of a post-copy has no memory any more
// that its target lacks. QEMU may not notice when its connection breaks just then.
func (d move) hasNothingLeft(ctx context.Context, p found) bool {
	if !p.Job.Acknowledged || !postcopy(p.Look.Migration) {
		return false
	}
	m, err := p.VM.QueryMigrate(ctx)
	return err == nil && m.RAM.Total > 0 && m.RAM.Remaining == 0
}

// stoppedFor returns the job that this domain is the source of.
func (d move) stoppedFor(p found, job hypervisor.JobID, e hypervisor.Evidence,
) (*jobRecord, error) {
	switch err := backend.Given(e, "about the target"); {
	case err != nil:
		return nil, err
	case p.Job == nil || p.Job.ID != job || p.Job.Role != backend.Source:
		return nil, qemu.Refuse(hypervisor.Conflict, "it belongs to job %q", p.Rec.Job)
	}
	return p.Job, nil
}

// Release removes a source that has stopped for good, its local disks, too. It
// refuses a domain that executes, is paused or is needed by a switch-over under
// way.
func (d move) Release(ctx context.Context, p found, c hypervisor.Release) error {
	if err := backend.Given(c.Moved, "that the VM has moved"); err != nil {
		return err
	}
	if p.Rec == nil {
		return nil
	}
	j, unproven := p.Job, backend.Moved(c.Moved, d.ID, c.Job, d.Node.Name)
	switch {
	case p.State == hypervisor.Receiving || p.State == hypervisor.Received ||
		p.State.Executes() || p.State == hypervisor.Paused:
		return p.Conflict()
	case p.Rec.Job != "" && p.Rec.Job != c.Job:
		return qemu.Refuse(hypervisor.Conflict, "it belongs to job %q", p.Rec.Job)
	case unproven != nil:
		return unproven
	case p.State == hypervisor.HandingOver && !p.Look.Heard() && p.VM != nil:
		return p.Conflict()
	case j != nil && j.Role == backend.Source && p.VM != nil && !j.Cold &&
		p.Look.Run != qemu.PostMigrate && p.Look.Migration != qemu.Completed &&
		!strandedSource(j, p.Look) && !d.hasNothingLeft(ctx, p):
		return qemu.Refuse(hypervisor.Conflict, "the switch-over is under way")
	}
	d.HangUp()
	// First of all: what is left of a job that is over would else be the host's own.
	err := d.Put(true, func(r *domainRecord) { r.Leaving, r.Ending = true, true })
	if err == nil && j != nil && j.Role == backend.Source {
		err = d.HasLeft()
	}
	if err == nil && p.VM != nil {
		err = p.VM.Kill(ctx)
	}
	if err != nil {
		return err
	}
	return d.Reap()
}
