package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// phone is an agent's connection to its hypervisor.
type phone struct {
	p    *process
	real hypervisor.Hypervisor
}

// stand stands before a call.
func (h phone) stand(format string, args ...any) error {
	if call := fmt.Sprintf(format, args...); !h.p.pass(call) {
		return &hypervisor.Error{Op: call, Kind: hypervisor.Transient,
			Err: errors.New("it is not reached")}
	}
	return nil
}

// said keeps what was answered in the trace.
func (h phone) said(err error) error {
	if err != nil {
		h.p.w.say("    %v", err)
	}
	return err
}

// Host implements [hypervisor.Hypervisor].
func (h phone) Host(ctx context.Context) (hypervisor.Host, error) {
	if err := h.stand("Host"); err != nil {
		return hypervisor.Host{}, err
	}
	return h.real.Host(ctx)
}

// Domains implements [hypervisor.Hypervisor].
func (h phone) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := h.stand("Domains"); err != nil {
		return nil, err
	}
	return h.real.Domains(ctx)
}

// Domain implements [hypervisor.Hypervisor].
func (h phone) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	if err := h.stand("Domain"); err != nil {
		return hypervisor.Domain{}, err
	}
	d, err := h.real.Domain(ctx, vm)
	h.p.w.say("    it is %v job %q unresolved %v", d.State, d.Job, d.Unresolved)
	return d, h.said(err)
}

// Progress implements [hypervisor.Hypervisor].
func (h phone) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	if err := h.stand("Progress %s", job); err != nil {
		return hypervisor.Progress{}, err
	}
	p, err := h.real.Progress(ctx, job)
	h.p.w.say("    it is %v %v", p.Status, p.Mode)
	return p, h.said(err)
}

// Receive implements [hypervisor.Hypervisor].
func (h phone) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	if err := h.stand("Receive %s", in.Job); err != nil {
		return "", err
	}
	a, err := h.real.Receive(ctx, in)
	return a, h.said(err)
}

// Migrate implements [hypervisor.Hypervisor].
func (h phone) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	if err := h.stand("Migrate %s", out.Job); err != nil {
		return err
	}
	return h.said(h.real.Migrate(ctx, out))
}

// Adjust implements [hypervisor.Hypervisor].
func (h phone) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	if err := h.stand("Adjust %T", a); err != nil {
		return err
	}
	return h.said(h.real.Adjust(ctx, job, a))
}

// Do implements [hypervisor.Hypervisor].
func (h phone) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	if err := h.stand("Do %T", c); err != nil {
		return err
	}
	return h.said(h.real.Do(ctx, vm, c))
}

// torn is a hypervisor that goes on with the target of a post-copy whose connection broke,
// as hypervisor/qmp and hypervisor/libvirt do: the guest runs, as far as it gets without the
// memory that it lacks, while its job is Broken. Only killing it ends that. The model
// below lets such a guest crash at once.
type torn struct {
	hypervisor.Hypervisor
	w    *world
	host hypervisor.HostName
}

// Domains implements [hypervisor.Hypervisor].
func (h torn) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	all, err := h.Hypervisor.Domains(ctx)
	for i := range all {
		if h.w.isTorn(h.host) {
			all[i].State = hypervisor.Running
		}
	}
	return all, err
}

// Domain implements [hypervisor.Hypervisor].
func (h torn) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := h.Hypervisor.Domain(ctx, vm)
	if h.w.isTorn(h.host) {
		d.State = hypervisor.Running
	}
	return d, err
}

// Do implements [hypervisor.Hypervisor]: no command but one that ends it reaches such a guest.
func (h torn) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	if !h.w.isTorn(h.host) {
		return h.Hypervisor.Do(ctx, vm, c)
	}
	switch c.(type) {
	case hypervisor.Kill, hypervisor.Stop:
		h.w.kill(h.host)
		return nil
	}
	return &hypervisor.Error{Op: fmt.Sprintf("%T", c), VM: vm, Host: h.host,
		Kind: hypervisor.Conflict, Err: errors.New("it is Running")}
}
