package fake

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake/hardware"
	"github.com/godwit-vm/godwit/hypervisor/fake/listing"
	"github.com/godwit-vm/godwit/hypervisor/fake/transfer"
)

// A Host is one host of a Fabric and the hypervisor on it. It forgets its jobs
// when it crashes, but not which of them it was told to discard.
type Host struct {
	fabric *Fabric
	host   hypervisor.Host
	wire   transfer.Host
	sorted []*domain // ordered by VM
	jobs   map[hypervisor.JobID]*transfer.Transfer
	memory hypervisor.Bytes
	cpus   int
	listed listing.List // what Domains answered last
	late   []*operation // whose effect comes later
	busy   time.Duration
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// Boot places a running VM at once: the set-up of a world. It refuses what is not a VM (Invalid), a
// VM that the host knows (Conflict) and one that does not fit (NoRoom).
func (h *Host) Boot(vm hypervisor.VM, w Workload) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	var err error
	switch d := h.find(vm.ID); {
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
	d := h.find(vm)
	switch {
	case d == nil:
		return h.explain("SetWorkload", vm, refuse(hypervisor.NotFound, "no such VM"))
	case !w.Valid():
		return h.explain("SetWorkload", vm, refuse(hypervisor.Invalid, "workload %+v", w))
	}
	d.machine.workload = w
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
	if _, err := h.call(ctx, operation{method: "Host"}); err != nil {
		return hypervisor.Host{}, err
	}
	return h.host, nil
}

// Domains lists what the host knows, ordered by VM. As long as nothing changes it answers
// the same list, which nobody is to change; see also [Fabric.Spare].
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if _, err := h.call(ctx, operation{method: "Domains"}); err != nil {
		return nil, err
	}
	at := func(i int) *hypervisor.Domain { return &h.sorted[i].Domain }
	return h.listed.Now(len(h.sorted), at, h.fabric.spare), nil
}

// Domain answers one VM.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	if _, err := h.call(ctx, operation{method: "Domain", vm: vm}); err != nil {
		return hypervisor.Domain{}, err
	}
	if d := h.peek(vm); d != nil {
		return d.Domain, nil
	}
	return hypervisor.Domain{VM: hypervisor.VM{ID: vm}}, nil
}

// Receive opens a target. It answers Conflict for a VM that the host runs or
// keeps, for a job that has ended here, and for one that it was told to discard:
// that promise outlives a request that was on its way.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	return h.call(ctx, operation{"Receive", in, in.VM.ID, in.Job})
}

// Migrate begins to send. It answers Transient when nobody listens at the
// address, and Conflict for a VM that cannot be sent now.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	_, err := h.call(ctx, operation{"Migrate", out, out.VM, out.Job})
	return err
}

// Progress answers how the job goes. The source's downtime ends when the target
// holds the complete state; a held target's goes on until it is activated.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	t, op := h.jobs[job], operation{method: "Progress"}
	if t != nil {
		op.vm = t.VM.ID
	}
	if _, err := h.call(ctx, op); err != nil {
		return hypervisor.Progress{}, err
	}
	if t != nil {
		return t.Progress(&h.wire, job), nil
	}
	return hypervisor.Progress{Job: job}, nil
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	op := operation{"Adjust", a, "", job}
	if t := h.jobs[job]; t != nil {
		op.vm = t.VM.ID
	}
	_, err := h.call(ctx, op)
	return err
}

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	h.fabric.mu.Lock()
	defer h.fabric.mu.Unlock()
	_, err := h.call(ctx, operation{"Do", c, vm, ""})
	return err
}

// An operation is one call of the port.
type operation struct {
	method string // "Do"
	what   any    // that is asked for; nil is a question
	vm     hypervisor.VMID
	job    hypervisor.JobID
}

// name returns what was asked for: "Migrate", or of a command its own name, "Start".
func (o operation) name() string {
	if o.method == "Do" || o.method == "Adjust" {
		return nameOf(o.what)
	}
	return o.method
}

// act does what was asked for; an answer has no effect.
func (h *Host) act(op operation) (address hypervisor.Address, err error) {
	switch op.method {
	case "Receive":
		address, err = h.receive(op.what.(hypervisor.Incoming))
	case "Migrate":
		err = h.migrate(op.what.(hypervisor.Outgoing))
	case "Adjust":
		a, _ := op.what.(hypervisor.Adjustment)
		err = h.adjust(op.job, a)
	case "Do":
		c, _ := op.what.(hypervisor.Command)
		err = h.do(op.vm, c)
		if c, ok := c.(hypervisor.Discard); ok && err == nil {
			h.promise(op.vm, c.Job)
		}
	}
	return address, err
}

// call acts unless it meets a dead host or a fault, shares the wire anew, and says
// where an error comes from.
func (h *Host) call(ctx context.Context, op operation) (hypervisor.Address, error) {
	f := h.fabric
	fail := func(kind hypervisor.Kind, err error) (hypervisor.Address, error) {
		return "", h.explain(op.name(), op.vm, &hypervisor.Error{Kind: kind, Err: err})
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
		h.putOff(op, fault.Delay)
		return fail(hypervisor.Unknown, errors.New("injected: the effect comes later"))
	}
	address, err := h.act(op)
	if err == nil && op.what != nil { // what was put off for the VM is overtaken
		h.late = slices.DeleteFunc(h.late, func(o *operation) bool { return o.vm == op.vm })
	}
	f.world.Settle()
	switch fault.How {
	case FailAfter:
		return fail(hypervisor.Unknown, errors.New("injected: failed after the effect"))
	case LateAnswer:
		h.busy += fault.Delay
	}
	if err != nil {
		err = h.explain(op.name(), op.vm, err)
	}
	return address, err
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
	return hardware.Admit(vm, h.host.Memory-h.memory, h.host.CPUs-h.cpus)
}
