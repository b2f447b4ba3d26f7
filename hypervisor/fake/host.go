package fake

import (
	"context"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Host is one host of a Network and the hypervisor on it. It forgets its jobs
// when it crashes, but not which of them it was told to discard.
type Host struct {
	network   *Network
	host      hypervisor.Host
	reader    any // see Network.Know
	wire      transferHost
	sorted    []*domain // ordered by VM
	unseen    []*domain // of which the present directory says nothing
	shelf     []jobs    // of other directories, by number
	directory int       // the present one's number
	jobs      jobs
	forgot    bool // jobs that may be under way: by a crash, or in another directory
	memory    hypervisor.Bytes
	cpus      int
	listed    list         // what Domains answered last
	late      []*postponed // calls
	busy      time.Duration
	consoles  map[hypervisor.VMID]*console // that are open
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// Boot places a running VM at once: the set-up of a world. It refuses what is not a VM (Invalid), a
// VM that the host knows (Conflict) and one that does not fit (NoRoom).
func (h *Host) Boot(vm hypervisor.VM, w Workload) error {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	var err error
	switch d := h.find(vm.ID); {
	case h.wire.Off:
		err = refuse(hypervisor.Transient, "connection refused")
	case !w.Valid():
		err = refuse(hypervisor.Invalid, "workload %+v", w)
	case d != nil:
		err = refuse(hypervisor.Conflict, "it is %v here", d.State)
	case h.behind(vm.ID) != nil:
		err = refuse(hypervisor.Conflict, "another directory has it")
	default:
		err = h.admit(vm)
	}
	if err != nil {
		return h.explain("Boot", vm.ID, err)
	}
	d := h.network.define(h, vm, hypervisor.Running)
	d.defined, d.machine.workload = true, h.network.alike.Keep(w)
	return nil
}

// SetWorkload changes how the guest of a VM dirties memory from now on, here and
// wherever it moves. It answers NotFound when the host does not know the VM.
func (h *Host) SetWorkload(vm hypervisor.VMID, w Workload) error {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	d := h.find(vm)
	switch {
	case d == nil:
		return h.explain("SetWorkload", vm, refuse(hypervisor.NotFound, "no such VM"))
	case !w.Valid():
		return h.explain("SetWorkload", vm, refuse(hypervisor.Invalid, "workload %+v", w))
	}
	d.machine.workload = h.network.alike.Keep(w)
	for d := d.machine.first; d != nil; d = d.next {
		if t := d.sending(); t != nil {
			t.SetWorkload(w)
		}
	}
	return nil
}

// Busy returns the virtual time that calls to the host took since the last Busy:
// what hung or late answers cost their caller.
func (h *Host) Busy() time.Duration {
	h.network.mu.Lock()
	busy := h.busy
	h.busy = 0
	h.network.mu.Unlock()
	return busy
}

// Host answers the host as it was added.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if err := h.ask(ctx, "Host", ""); err != nil {
		return hypervisor.Host{}, err
	}
	return h.host, nil
}

// Domains lists what the host knows, ordered by VM. As long as nothing changes it answers
// the same list, which must not be changed; see also [Network.Spare].
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if err := h.ask(ctx, "Domains", ""); err != nil {
		return nil, err
	}
	at := func(i int) hypervisor.Domain { return h.sorted[i].answer() }
	return h.listed.Now(len(h.sorted), at, h.network.spare), nil
}

// Domain answers one VM.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if err := h.ask(ctx, "Domain", vm); err != nil {
		return hypervisor.Domain{}, err
	}
	if d := h.peek(vm); d != nil {
		return d.answer(), nil
	}
	return hypervisor.Domain{VM: hypervisor.VM{ID: vm}}, h.explain("Domain", vm, h.locked(vm))
}

// Receive opens a target. It answers Conflict for a VM that the host runs or
// keeps, for a job that has ended here, and for one that it was told to discard:
// that promise outlives a request that was on its way.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	return perform(ctx, h, operation{"Receive", nil, in.VM.ID}, in, (*Host).receive)
}

// Migrate begins to send. It answers Transient when nothing listens at the
// address, and Conflict for a VM that cannot be sent now.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	_, err := perform(ctx, h, operation{"Migrate", nil, out.VM}, out, (*Host).migrate)
	return err
}

// Progress answers how the job goes. The source's downtime ends when the target
// holds the complete state; a held target's goes on until it is activated.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	t, vm := h.job(job), hypervisor.VMID("")
	if t != nil {
		vm = t.VM.ID
	}
	if err := h.ask(ctx, "Progress", vm); err != nil {
		return hypervisor.Progress{}, err
	}
	if t != nil {
		return t.Progress(&h.wire, job), nil
	}
	return hypervisor.Progress{Job: job}, nil
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	op := operation{"Adjust", a, ""}
	if t := h.job(job); t != nil {
		op.vm = t.VM.ID
	}
	_, err := perform(ctx, h, op, adjustment{job, a}, (*Host).adjust)
	return err
}

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	_, err := perform(ctx, h, operation{"Do", c, vm}, command{vm, c}, (*Host).command)
	return err
}

// admit refuses what is not a VM and what does not fit.
func (h *Host) admit(vm hypervisor.VM) error {
	if h.network.lenient {
		return admit(vm, math.MaxInt64, math.MaxInt)
	}
	return admit(vm, h.host.Memory-h.memory, h.host.CPUs-h.cpus)
}
