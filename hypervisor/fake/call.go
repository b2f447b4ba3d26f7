package fake

import (
	"context"
	"errors"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An operation is one call of the port.
type operation struct {
	method string // "Do"
	what   any    // the command or the adjustment
	vm     hypervisor.VMID
}

// name returns what was asked for: "Migrate", or of a command its own name, "Start".
func (o operation) name() string {
	if o.method == "Do" || o.method == "Adjust" {
		return nameOf(o.what)
	}
	return o.method
}

// A postponed call has its effect later.
type postponed struct{ vm hypervisor.VMID }

// ask answers whether a question meets a dead host or a fault, which is rare.
func (h *Host) ask(ctx context.Context, method string, vm hypervisor.VMID) error {
	if len(h.network.faults) == 0 && !h.wire.Off && ctx.Err() == nil {
		return nil
	}
	op := operation{method: method, vm: vm}
	fault, err := h.begin(ctx, op)
	switch {
	case err != nil:
		return err
	case fault.How == LateEffect:
		return h.putOff(op, fault, func() {})
	}
	return h.end(op, fault, nil)
}

// perform acts unless it meets a dead host or a fault, shares the wire anew, and says where
// an error comes from.
func perform[T any](ctx context.Context, h *Host, op operation, what T,
	act func(*Host, T) (hypervisor.Address, error)) (hypervisor.Address, error) {
	fault, err := h.begin(ctx, op)
	if err != nil {
		return "", err
	}
	if fault.How == LateEffect {
		return "", h.putOff(op, fault, func() { _, _ = act(h, what) })
	}
	address, err := act(h, what)
	if err == nil && len(h.late) > 0 { // what was put off for the VM is overtaken
		h.late = slices.DeleteFunc(h.late, func(o *postponed) bool { return o.vm == op.vm })
	}
	h.network.world.Settle()
	return address, h.end(op, fault, err)
}

// begin returns the fault that a call meets and acts with: with LateEffect, later. An error is
// that it does not act.
func (h *Host) begin(ctx context.Context, op operation) (Fault, error) {
	if err := ctx.Err(); err != nil {
		return Fault{}, h.fail(op, hypervisor.Transient, err)
	}
	if h.wire.Off {
		return Fault{}, h.fail(op, hypervisor.Transient, errors.New("connection refused"))
	}
	if op.vm != "" && len(h.unseen) > 0 {
		if err := h.locked(op.vm); err != nil {
			return Fault{}, h.explain(op.name(), op.vm, err)
		}
	}
	if len(h.network.faults) == 0 {
		return Fault{}, nil
	}
	fault := h.network.meet(h, op)
	switch fault.How {
	case FailBefore:
		return fault, h.fail(op, hypervisor.Transient,
			errors.New("injected: failed before the effect"))
	case Hang:
		h.busy += fault.Delay
		return fault, h.fail(op, hypervisor.Unknown, context.DeadlineExceeded)
	}
	return fault, nil
}

// end answers, and says where an error comes from.
func (h *Host) end(op operation, fault Fault, err error) error {
	switch {
	case fault.How == FailAfter:
		return h.fail(op, hypervisor.Unknown, errors.New("injected: failed after the effect"))
	case fault.How == LateAnswer:
		h.busy += fault.Delay
	}
	if err == nil {
		return nil
	}
	return h.explain(op.name(), op.vm, err)
}

func (h *Host) fail(op operation, kind hypervisor.Kind, err error) error {
	return h.explain(op.name(), op.vm, &hypervisor.Error{Kind: kind, Err: err})
}

// explain completes a refusal with the operation, the VM and the host.
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
