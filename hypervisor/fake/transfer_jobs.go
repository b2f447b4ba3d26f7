package fake

import (
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// jobs are the transfers that a host knows.
type jobs map[hypervisor.JobID]*transfer

// Promise remembers that a job was discarded at h: a request to receive it that is still on
// its way must not bring it to life.
func (j jobs) Promise(h *transferHost, vm hypervisor.VMID, job hypervisor.JobID) {
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
func (j jobs) Forget(h *transferHost) {
	for _, id := range slices.Sorted(maps.Keys(j)) {
		t := j[id]
		delete(j, id)
		if t.Refused && t.To == h {
			j.Promise(h, t.VM.ID, id)
		}
	}
}

// Listen opens a target on the host for what vm describes, which is not to be changed.
func (h *transferHost) Listen(in hypervisor.Incoming, vm *hypervisor.VM, target end) *transfer {
	t := h.never(vm)
	t.underWay = h.world.free(t)
	t.Job, t.Address = in.Job, addressOf(h, in.Job)
	t.Hold, t.target, t.stage = in.Hold, target, waiting
	t.status[atTarget] = hypervisor.JobSetup
	h.world.open[t.Address] = t
	return t
}

// never returns a transfer that is over before it began.
func (h *transferHost) never(vm *hypervisor.VM) *transfer {
	t := new(transfer)
	t.VM, t.To, t.stage, t.stopped, t.dark, t.wakes = vm, h, closed, -1, -1, -1
	return t
}
