package fake

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// activate starts a received domain that was held. It takes evidence that the
// source has stopped, or is dead: the first is an attribute of the second.
func (d *domain) activate(c hypervisor.Activate) error {
	if c.Stopped.Proof == hypervisor.NoProof {
		return refuse(hypervisor.Invalid, "no evidence that the source has stopped")
	}
	t := d.host.jobs[c.Job]
	switch {
	case d.Job != c.Job || t == nil || t.To != &d.host.wire:
		return refuse(hypervisor.Conflict, "it belongs to job %q", d.Job)
	case d.State == hypervisor.Running || d.State == hypervisor.Paused && t.Rests():
		return nil
	case d.State != hypervisor.Received:
		return d.conflict()
	case !c.Stopped.About(c.Job) || !t.Stopped(c.Stopped):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that %s stopped",
			c.Stopped.Proof, c.Stopped.VM, c.Stopped.Host, t.From.Name)
	}
	t.Activate(d)
	return nil
}

// discard forgets an incoming domain that has not started.
func (d *domain) discard(c hypervisor.Discard) error {
	switch {
	case d.State != hypervisor.Receiving && d.State != hypervisor.Received:
		return d.conflict()
	case d.Job != c.Job:
		return refuse(hypervisor.Conflict, "it belongs to job %q", d.Job)
	}
	if d.transfer != nil {
		d.transfer.Lose(d, "the target was discarded")
	}
	d.Vanish()
	return nil
}

// resume lets a source that stopped for the switch-over run again, with evidence
// that the target did not and will not. After post-copy began there is no way back.
func (d *domain) resume(c hypervisor.Resume) error {
	t, err := d.stoppedFor(c.Job, c.NeverRan)
	switch {
	case err != nil:
		return err
	case d.State == hypervisor.Running || d.State == hypervisor.Paused:
		return nil
	case d.State != hypervisor.HandingOver && d.State != hypervisor.HandedOver:
		return d.conflict()
	case t.NoReturn():
		return refuse(hypervisor.Conflict, "the target ran in post-copy")
	case !c.NeverRan.NeverRan(d.VM.ID, t.To.Name, c.Job):
		return refuse(hypervisor.Conflict,
			"%v about %s on %s does not prove that it never ran on %s",
			c.NeverRan.Proof, c.NeverRan.VM, c.NeverRan.Host, t.To.Name)
	}
	t.GiveBack(d)
	d.Unresolved = false
	return nil
}

// abandon gives up the memory of a source that stopped for the switch-over.
func (d *domain) abandon(c hypervisor.Abandon) error {
	t, err := d.stoppedFor(c.Job, c.Dead)
	switch {
	case err != nil:
		return err
	case !d.Unresolved && d.State.Rests():
		return nil
	case occupies(d.State) && d.State != hypervisor.HandingOver && d.State != hypervisor.HandedOver:
		return d.conflict()
	case !c.Dead.About(c.Job) || !c.Dead.Dead(d.VM.ID, t.To.Name):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that %s is dead",
			c.Dead.Proof, c.Dead.VM, c.Dead.Host, t.To.Name)
	}
	d.die("its memory was given up")
	d.Unresolved = false
	return nil
}

// stoppedFor returns the transfer of a job that this domain is the source of.
func (d *domain) stoppedFor(job hypervisor.JobID, e hypervisor.Evidence) (*transfer,
	error) {
	t := d.host.jobs[job]
	switch {
	case e.Proof == hypervisor.NoProof:
		return nil, refuse(hypervisor.Invalid, "no evidence about the target")
	case d.Job != job || t == nil || t.From != &d.host.wire:
		return nil, refuse(hypervisor.Conflict, "it belongs to job %q", d.Job)
	}
	return t, nil
}

// release removes a source that has stopped for good. It refuses a domain that
// executes, is paused or is needed by a switch-over under way.
func (d *domain) release(c hypervisor.Release) error {
	if c.Moved.Proof == hypervisor.NoProof {
		return refuse(hypervisor.Invalid, "no evidence that the VM has moved")
	}
	t := d.transfer
	switch {
	case d.State == hypervisor.Receiving || d.State == hypervisor.Received ||
		d.State.Executes() || d.State == hypervisor.Paused:
		return d.conflict()
	case d.Job != "" && d.Job != c.Job:
		return refuse(hypervisor.Conflict, "it belongs to job %q", d.Job)
	case t != nil && !t.Confirming():
		return refuse(hypervisor.Conflict, "the switch-over is under way")
	case !c.Moved.About(c.Job) || !c.Moved.Moved(d.VM.ID, d.host.host.Name):
		return refuse(hypervisor.Conflict, "%v about %s on %s does not prove that it moved",
			c.Moved.Proof, c.Moved.VM, c.Moved.Host)
	}
	if t != nil {
		t.Confirm()
	}
	d.Become(hypervisor.Absent)
	return nil
}
