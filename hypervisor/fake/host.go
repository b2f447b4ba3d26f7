package fake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake/hardware"
	"github.com/godwit-vm/godwit/hypervisor/fake/transfer"
)

// A Host is one host of a Fabric and the hypervisor on it. It forgets its jobs
// when it crashes, but not which of them it was told to discard.
type Host struct {
	fabric  *Fabric
	host    hypervisor.Host
	wire    transfer.Host
	domains map[hypervisor.VMID]*domain
	jobs    map[hypervisor.JobID]*transfer.Transfer
	memory  hypervisor.Bytes
	cpus    int
	life    int // how often it crashed
	busy    time.Duration
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// Boot places a running VM at once: the set-up of a world. It refuses what is not
// a VM (Invalid), a VM that the host knows (Conflict) and one that does not fit
// (NoRoom).
func (h *Host) Boot(vm hypervisor.VM, w Workload) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	var err error
	switch d := h.domains[vm.ID]; {
	case h.wire.Off:
		err = refuse(hypervisor.Transient, "connection refused")
	case !w.Valid():
		err = refuse(hypervisor.Invalid, "workload %+v", w)
	case d != nil:
		err = refuse(hypervisor.Conflict, "it is %v here", d.State)
	default:
		err = h.admit(vm)
	}
	if err != nil {
		return h.explain("Boot", vm.ID, err)
	}
	d := h.fabric.define(h, vm, hypervisor.Running)
	d.defined, d.machine.workload = true, w
	return nil
}

// SetWorkload changes how the guest of a VM dirties memory from now on, here and
// wherever it moves. It answers NotFound when the host does not know the VM.
func (h *Host) SetWorkload(vm hypervisor.VMID, w Workload) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	d := h.domains[vm]
	switch {
	case d == nil:
		return h.explain("SetWorkload", vm, refuse(hypervisor.NotFound, "no such VM"))
	case !w.Valid():
		return h.explain("SetWorkload", vm, refuse(hypervisor.Invalid, "workload %+v", w))
	}
	d.machine.workload = w
	for _, d := range d.machine.domains {
		if t := d.sending(); t != nil {
			t.SetWorkload(w)
		}
	}
	return nil
}

// Busy returns the virtual time that calls to the host took since the last Busy:
// what hung or late answers cost their caller.
func (h *Host) Busy() time.Duration {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	busy := h.busy
	h.busy = 0
	return busy
}

// Host answers the host as it was added.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if err := h.asked(ctx, operation{"Host", "Host", ""}); err != nil {
		return hypervisor.Host{}, err
	}
	return h.host, nil
}

// Domains lists what the host knows, ordered by VM.
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if err := h.asked(ctx, operation{"Domains", "Domains", ""}); err != nil {
		return nil, err
	}
	list := make([]hypervisor.Domain, 0, len(h.domains))
	for _, d := range h.domains {
		list = append(list, d.Domain)
	}
	slices.SortFunc(list, func(a, b hypervisor.Domain) int { return cmp.Compare(a.VM.ID, b.VM.ID) })
	return list, nil
}

// Domain answers one VM.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if err := h.asked(ctx, operation{"Domain", "Domain", vm}); err != nil {
		return hypervisor.Domain{}, err
	}
	if d := h.domains[vm]; d != nil {
		return d.Domain, nil
	}
	return hypervisor.Domain{VM: hypervisor.VM{ID: vm}}, nil
}

// Receive opens a target. It answers Conflict for a VM that the host runs or
// keeps, for a job that has ended here, and for one that it was told to discard:
// that promise outlives a request that was on its way.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	return call(ctx, h, operation{"Receive", "Receive", in.VM.ID},
		func() (hypervisor.Address, error) { return h.receive(in) })
}

// Migrate begins to send. It answers Transient when nobody listens at the
// address, and Conflict for a VM that cannot be sent now.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return h.perform(ctx, operation{"Migrate", "Migrate", out.VM},
		func() error { return h.migrate(out) })
}

// Progress answers how the job goes. The source's downtime ends when the target
// holds the complete state; a held target's goes on until it is activated.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	t, op := h.jobs[job], operation{"Progress", "Progress", ""}
	if t != nil {
		op.vm = t.VM.ID
	}
	if err := h.asked(ctx, op); err != nil {
		return hypervisor.Progress{}, err
	}
	if t != nil {
		return t.Progress(&h.wire), nil
	}
	return hypervisor.Progress{Job: job}, nil
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	return h.perform(ctx, operation{"Adjust", nameOf(a), h.vmOf(job)},
		func() error { return h.adjust(job, a) })
}

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	return h.perform(ctx, operation{"Do", nameOf(c), vm}, func() error {
		err := h.do(vm, c)
		if c, ok := c.(hypervisor.Discard); ok && err == nil {
			h.promise(vm, c.Job)
		}
		return err
	})
}

// vmOf returns the VM of a job, for errors and faults.
func (h *Host) vmOf(job hypervisor.JobID) hypervisor.VMID {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if t := h.jobs[job]; t != nil {
		return t.VM.ID
	}
	return ""
}

// An operation is one call of the port.
type operation struct {
	method string // "Do"
	name   string // "Start"
	vm     hypervisor.VMID
}

func (h *Host) perform(ctx context.Context, op operation, act func() error) error {
	_, err := call(ctx, h, op, func() (struct{}, error) { return struct{}{}, act() })
	return err
}

// asked is what every question meets: a dead host, or a fault. An answer has no effect.
func (h *Host) asked(ctx context.Context, op operation) error {
	if ctx.Err() == nil && !h.wire.Off && len(h.fabric.faults) == 0 {
		return nil
	}
	_, err := reach(ctx, h, op, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// call does what every call of the port does, with the lock of its own.
func call[T any](ctx context.Context, h *Host, op operation, act func() (T, error)) (T, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	return reach(ctx, h, op, act)
}

// reach acts unless it meets a dead host or a fault, shares the wire anew, and says
// where an error comes from.
func reach[T any](ctx context.Context, h *Host, op operation, act func() (T, error)) (T, error) {
	f := h.fabric
	var none T
	fail := func(kind hypervisor.Kind, err error) (T, error) {
		return none, h.explain(op.name, op.vm, &hypervisor.Error{Kind: kind, Err: err})
	}
	if err := ctx.Err(); err != nil {
		return fail(hypervisor.Transient, err)
	}
	if h.wire.Off {
		return fail(hypervisor.Transient, errors.New("connection refused"))
	}
	fault := f.meet(h, op)
	switch fault.How {
	case FailBefore:
		return fail(hypervisor.Transient, errors.New("injected: failed before the effect"))
	case Hang:
		h.busy += fault.Delay
		return fail(hypervisor.Unknown, context.DeadlineExceeded)
	case LateEffect:
		life := h.life
		f.in(fault.Delay, func() {
			if h.life == life {
				_, _ = act() // nobody waits for the answer
			}
		})
		return fail(hypervisor.Unknown, errors.New("injected: the effect comes later"))
	}
	answer, err := act()
	f.world.Settle()
	switch fault.How {
	case FailAfter:
		return fail(hypervisor.Unknown, errors.New("injected: failed after the effect"))
	case LateAnswer:
		h.busy += fault.Delay
	}
	return answer, h.explain(op.name, op.vm, err)
}

// explain completes a refusal with what was asked of whom.
func (h *Host) explain(op string, vm hypervisor.VMID, err error) error {
	if err == nil {
		return nil
	}
	var e *hypervisor.Error
	if errors.As(err, &e) {
		return &hypervisor.Error{Op: op, Host: h.host.Name, VM: vm, Kind: e.Kind, Err: e.Err}
	}
	return err
}

// admit refuses what is not a VM and what does not fit.
func (h *Host) admit(vm hypervisor.VM) error {
	switch {
	case !hardware.Possible(vm):
		return refuse(hypervisor.Invalid, "VM %q with %v, %d CPUs and disks %+v", vm.ID,
			vm.Memory, vm.CPUs, hardware.Disks(vm))
	case vm.Memory > h.host.Memory-h.memory:
		return refuse(hypervisor.NoRoom, "memory needs %v has %v", vm.Memory,
			h.host.Memory-h.memory)
	case vm.CPUs > h.host.CPUs-h.cpus:
		return refuse(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, h.host.CPUs-h.cpus)
	}
	return nil
}
