package qmp

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// about reports whether e is about the job, or about the host for whatever job:
// that a target was discarded once says nothing about the next one there.
func about(e hypervisor.Evidence, job hypervisor.JobID) bool {
	return e.Job == "" || e.Job == job
}

// activate starts a received domain that was held. It takes evidence that the
// source has stopped, or is dead. Who sends is not known here, only who does not:
// the evidence must be about the VM on another host.
func (d *domain) activate(ctx context.Context, p present, c hypervisor.Activate) error {
	e := c.Stopped
	if e.Proof == hypervisor.NoProof {
		return refuse(hypervisor.Invalid, "no evidence that the source has stopped")
	}
	j := p.job
	if j == nil || j.ID != c.Job || j.Role != journal.Target {
		return refuse(hypervisor.Conflict, "it belongs to job %q", p.rec.Job)
	}
	stopped := e.Proof == hypervisor.SourceStopped && e.VM == d.id || e.Dead(d.id, e.Host)
	switch {
	case j.Stage == journal.Activating && (p.state.Executes() || p.state == hypervisor.Paused):
		return nil
	case !p.look.Complete() || j.Stage != journal.Listening:
		return p.conflict()
	case !stopped || !about(e, c.Job) || e.Host == "" || e.Host == d.host.config.Name:
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that the source stopped",
			e.Proof, e.VM, e.Host)
	}
	return d.letArrive(ctx, p.vm)
}

// discard forgets an incoming domain that has not started, and promises never to
// receive the job. That is written before the process is ended.
func (d *domain) discard(ctx context.Context, p present, c hypervisor.Discard) error {
	h := d.host
	here := p.rec != nil && p.rec.Job == c.Job && p.job != nil && p.job.Role == journal.Target
	old := h.job(c.Job)
	switch {
	case c.Job == "":
		return refuse(hypervisor.Invalid, "the job has no name")
	case here && p.job.Stage == journal.Activating:
		return p.conflict()
	case p.state == hypervisor.Receiving && !here || p.state == hypervisor.Received && !here:
		return refuse(hypervisor.Conflict, "it belongs to job %q", p.rec.Job)
	case old != nil && old.Role == journal.Source && old.VM.ID == d.id && old.Stage.Live():
		return p.conflict()
	case old != nil && old.Role == journal.Target && old.Stage == journal.Activating:
		return refuse(hypervisor.Conflict, "the VM has run here")
	}
	promise := journal.Job{ID: c.Job, VM: hypervisor.VM{ID: d.id}}
	if old != nil {
		promise = *old
	}
	if promise.Role != journal.Source && !promise.Refused {
		promise.Refused, promise.Stage = true, journal.Discarded
		if promise.Role == journal.Target && !promise.Last.Status.Final() {
			promise.Last.Status = hypervisor.JobFailed
			promise.Last.Error = "the target was discarded"
		}
		if err := h.putJob(&promise, true); err != nil {
			return err
		}
	}
	if !here {
		return nil
	}
	return d.vanish(ctx, p.vm)
}

// vanish ends an incoming domain that never ran. A VM that the host had before
// stays.
func (d *domain) vanish(ctx context.Context, vm *instance) error {
	rec := d.record()
	if !rec.Ending {
		if err := d.put(true, func(r *journal.Domain) { r.Ending = true }); err != nil {
			return err
		}
	}
	if vm != nil {
		if err := vm.kill(ctx); err != nil {
			return err
		}
	}
	return d.bury()
}

// resume lets a source that stopped for the switch-over run again, with evidence
// that the target did not and will not. After post-copy began there is no way
// back.
func (d *domain) resume(ctx context.Context, p present, c hypervisor.Resume) error {
	j, err := d.stoppedFor(p, c.Job, c.NeverRan)
	switch {
	case err != nil:
		return err
	case j.Stage == journal.Resumed || p.state == hypervisor.Running ||
		p.state == hypervisor.Paused || j.Cold && p.state == hypervisor.Shutoff:
		return nil
	case p.state != hypervisor.HandingOver && p.state != hypervisor.HandedOver:
		return p.conflict()
	case j.PostCopied:
		return refuse(hypervisor.Conflict, "the target ran in post-copy")
	case !j.Cold && p.look.Migration != qapi.Completed:
		return refuse(hypervisor.Conflict, "the switch-over is under way")
	case !c.NeverRan.NeverRan(d.id, j.Target, c.Job):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that it never ran on %s",
			c.NeverRan.Proof, c.NeverRan.VM, c.NeverRan.Host, j.Target)
	}
	if err := d.endJob(journal.Resumed, "the source resumed"); err != nil {
		return err
	}
	if j.Cold || p.rec.Paused {
		return nil
	}
	if len(locals(p.rec.VM)) > 0 {
		if err := d.dropMirrors(ctx, p.vm); err != nil {
			return err
		}
	}
	return p.vm.Cont(ctx)
}

// endJob notes, for good, that a stopped source takes part in its job no more.
func (d *domain) endJob(stage journal.Stage, why string) error {
	d.hangUp()
	err := d.putJob(true, func(j *journal.Job) {
		j.Stage = stage
		if !j.Acknowledged {
			j.Last.Status, j.Last.Error = hypervisor.JobFailed, why
		}
	})
	return errors.Join(err, d.put(true, func(r *journal.Domain) { r.Unresolved = false }))
}

// abandon gives up the memory of a source that stopped for the switch-over.
func (d *domain) abandon(ctx context.Context, p present, c hypervisor.Abandon) error {
	j, err := d.stoppedFor(p, c.Job, c.Dead)
	switch {
	case err != nil:
		return err
	case p.state == hypervisor.Crashed || p.state == hypervisor.Shutoff:
		return nil
	case p.state != hypervisor.HandingOver && p.state != hypervisor.HandedOver:
		return p.conflict()
	case !about(c.Dead, c.Job) || !c.Dead.Dead(d.id, j.Target):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that %s is dead",
			c.Dead.Proof, c.Dead.VM, c.Dead.Host, j.Target)
	}
	if err := d.endJob(journal.Abandoned, "its memory was given up"); err != nil {
		return err
	}
	if p.vm == nil {
		return d.put(true, func(r *journal.Domain) { r.Rest = hypervisor.Crashed })
	}
	if err := p.vm.kill(ctx); err != nil {
		return err
	}
	return d.bury()
}

// stoppedFor returns the job that this domain is the source of.
func (d *domain) stoppedFor(p present, job hypervisor.JobID, e hypervisor.Evidence,
) (*journal.Job, error) {
	switch {
	case e.Proof == hypervisor.NoProof:
		return nil, refuse(hypervisor.Invalid, "no evidence about the target")
	case p.job == nil || p.job.ID != job || p.job.Role != journal.Source:
		return nil, refuse(hypervisor.Conflict, "it belongs to job %q", p.rec.Job)
	}
	return p.job, nil
}

// release removes a source that has stopped for good, its local disks, too. It
// refuses a domain that executes, is paused or is needed by a switch-over under
// way.
func (d *domain) release(ctx context.Context, p present, c hypervisor.Release) error {
	e := c.Moved
	if e.Proof == hypervisor.NoProof {
		return refuse(hypervisor.Invalid, "no evidence that the VM has moved")
	}
	if p.rec == nil {
		return nil
	}
	j := p.job
	switch {
	case p.state == hypervisor.Receiving || p.state == hypervisor.Received ||
		p.state.Executes() || p.state == hypervisor.Paused:
		return p.conflict()
	case p.rec.Job != "" && p.rec.Job != c.Job:
		return refuse(hypervisor.Conflict, "it belongs to job %q", p.rec.Job)
	case !about(e, c.Job) || !e.Moved(d.id, d.host.config.Name):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that it moved",
			e.Proof, e.VM, e.Host)
	case j != nil && j.Role == journal.Source && p.vm != nil && !j.Cold &&
		p.look.Migration != qapi.Completed:
		return refuse(hypervisor.Conflict, "the switch-over is under way")
	}
	d.hangUp()
	if j != nil && j.Role == journal.Source {
		err := d.putJob(true, func(j *journal.Job) {
			j.Stage, j.Last.Status = journal.Left, hypervisor.JobSucceeded
		})
		if err != nil {
			return err
		}
	}
	err := d.put(true, func(r *journal.Domain) { r.Own, r.Ran, r.Ending = false, false, true })
	if err == nil && p.vm != nil {
		err = p.vm.kill(ctx)
	}
	if err != nil {
		return err
	}
	return d.bury()
}
