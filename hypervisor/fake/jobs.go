package fake

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// job returns the transfer of a job that the host knows; nil is none. Most that are asked about are under
// way, and these are few.
func (h *Host) job(id hypervisor.JobID) *transfer {
	if !h.forgot {
		for _, t := range h.wire.transfers {
			if t.Job == id {
				return t
			}
		}
	}
	return h.jobs[id]
}

// receive opens a target, or answers the address of the one that is open.
func (h *Host) receive(in hypervisor.Incoming) (hypervisor.Address, error) {
	d, old := h.find(in.VM.ID), h.jobs[in.Job]
	switch {
	case in.Job == "" || in.VM.ID == "":
		return "", refuse(hypervisor.Invalid, "job %q of VM %q", in.Job, in.VM.ID)
	case old != nil && old.Refused && old.To == &h.wire:
		return "", refuse(hypervisor.Conflict, "job %s was discarded", in.Job)
	case old != nil && (old.To != &h.wire || !old.VM.Equal(in.VM) || old.Hold != in.Hold):
		return "", refuse(hypervisor.Conflict, "job %s is another migration", in.Job)
	case d != nil && d.Job == in.Job && old != nil && d.State != hypervisor.Shutoff:
		return addressOf(&h.wire, in.Job), nil
	case old != nil && (old.From != nil || old.Status(&h.wire).Final()):
		return "", refuse(hypervisor.Conflict, "job %s has ended", in.Job)
	case d != nil && occupies(d.State):
		return "", refuse(hypervisor.Conflict, "it is %v here", d.State)
	}
	if err := h.admit(in.VM); err != nil {
		return "", err
	}
	return h.listen(in, d), nil
}

// listen makes the incoming domain; d is what the host has of the VM, or nil.
func (h *Host) listen(in hypervisor.Incoming, d *domain) hypervisor.Address {
	if d == nil {
		d = h.network.define(h, in.VM, hypervisor.Receiving)
	} else {
		d.VM, d.found = d.machine.as(in.VM), nil
		d.Become(hypervisor.Receiving)
	}
	t := h.wire.Listen(in, d.VM, d)
	d.Job, d.Unresolved, d.transfer, h.jobs[in.Job] = in.Job, false, t, t
	return t.Address
}

// migrate connects a domain with the target that listens.
func (h *Host) migrate(out hypervisor.Outgoing) (none hypervisor.Address, err error) {
	o := out.Options
	if out.Job == "" || !sensible(o) {
		return "", refuse(hypervisor.Invalid, "job %q with %+v", out.Job, o)
	}
	if err := h.able(neededBy(o)); err != nil {
		return "", err
	}
	if old := h.jobs[out.Job]; old != nil {
		if old.From == &h.wire && old.VM.ID == out.VM {
			return "", nil
		}
		return "", refuse(hypervisor.Conflict, "job %s is another migration", out.Job)
	}
	d := h.find(out.VM)
	switch {
	case d == nil:
		return "", refuse(hypervisor.NotFound, "no such VM")
	case d.diskMoves():
		return "", d.conflictOfMove()
	case d.transfer != nil:
		return "", refuse(hypervisor.Conflict, "job %s is under way", d.Job)
	case d.State == hypervisor.Shutoff:
		return "", refuse(hypervisor.Unsupported, "the host cannot move a VM that is %v", d.State)
	case d.State != hypervisor.Running && d.State != hypervisor.Paused &&
		d.State != hypervisor.Rebooting:
		return "", refuse(hypervisor.Conflict, "it is %v", d.State)
	}
	t := h.network.world.At(out.Address)
	switch {
	case t == nil:
		return "", refuse(hypervisor.Transient, "%s: connection refused", out.Address)
	case t.From != nil:
		return "", refuse(hypervisor.Conflict, "%s has another source", out.Address)
	case t.Job != out.Job || !t.VM.Equal(*d.VM):
		return "", refuse(hypervisor.Invalid, "%s expects %s as described to job %s, not job %s",
			out.Address, t.VM.ID, t.Job, out.Job)
	}
	d.transfer, d.Job, d.Unresolved, h.jobs[t.Job] = t, t.Job, false, t
	t.Connect(&h.wire, d, o)
	return "", nil
}

// An adjustment changes a job.
type adjustment struct {
	job hypervisor.JobID
	how hypervisor.Adjustment
}

// adjust changes a job that h sends.
func (h *Host) adjust(a adjustment) (none hypervisor.Address, err error) {
	t := h.job(a.job)
	if t == nil || t.From != &h.wire {
		return "", refuse(hypervisor.NotFound, "no such job")
	}
	if _, ok := a.how.(hypervisor.StartPostCopy); ok {
		if err := h.able(hypervisor.CanPostCopy); err != nil {
			return "", err
		}
	}
	return "", t.Adjust(a.how)
}
