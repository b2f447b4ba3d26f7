package fake

import (
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Jobs are the transfers that a host knows.
type Jobs map[hypervisor.JobID]*Transfer

// Promise remembers that a job was discarded at h: a request to receive it that is still on
// its way must not bring it to life.
func (j Jobs) Promise(h *TransferHost, vm hypervisor.VMID, job hypervisor.JobID) {
	t := j[job]
	if t == nil {
		t = h.never(&hypervisor.VM{ID: vm})
		j[job] = t
	}
	if t.To == h {
		t.Refused = true
	}
}

// Forget loses all jobs, but not the promise of h to receive some of them never.
func (j Jobs) Forget(h *TransferHost) {
	for _, id := range slices.Sorted(maps.Keys(j)) {
		t := j[id]
		delete(j, id)
		if t.Refused && t.To == h {
			j.Promise(h, t.VM.ID, id)
		}
	}
}

// Listen opens a target on the host for what vm describes, which is not to be changed.
func (h *TransferHost) Listen(in hypervisor.Incoming, vm *hypervisor.VM, target End) *Transfer {
	t := h.never(vm)
	t.underWay = h.world.free(t)
	t.Job, t.Address = in.Job, Address(h, in.Job)
	t.Hold, t.target, t.stage = in.Hold, target, waiting
	t.status[atTarget] = hypervisor.JobSetup
	h.world.open[t.Address] = t
	return t
}

// never returns a transfer that is over before it began.
func (h *TransferHost) never(vm *hypervisor.VM) *Transfer {
	t := new(Transfer)
	t.VM, t.To, t.stage, t.stopped, t.dark, t.wakes = vm, h, closed, -1, -1, -1
	return t
}
