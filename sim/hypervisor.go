package sim

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
)

// flakyHypervisor is an agent's connection to its hypervisor. When the daemon at the
// other end is dead, or the process at this end is, it is not reached and nothing
// takes effect.
type flakyHypervisor struct {
	Real  hypervisor.Hypervisor
	Store *FlakyStore // the same process's
	Dead  bool        // the daemon
}

var errHungUp = errors.New("connection refused")

func (h *flakyHypervisor) check(op string) error {
	if h.Dead || h.Store.Died {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Transient, Err: errHungUp}
	}
	return nil
}

// Host implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Host(ctx context.Context) (hypervisor.Host, error) {
	if err := h.check("Host"); err != nil {
		return hypervisor.Host{}, err
	}
	return h.Real.Host(ctx)
}

// Domains implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := h.check("Domains"); err != nil {
		return nil, err
	}
	return h.Real.Domains(ctx)
}

// Domain implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	if err := h.check("Domain"); err != nil {
		return hypervisor.Domain{}, err
	}
	return h.Real.Domain(ctx, vm)
}

// Receive implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address,
	error) {
	if err := h.check("Receive"); err != nil {
		return "", err
	}
	return h.Real.Receive(ctx, in)
}

// Migrate implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	if err := h.check("Migrate"); err != nil {
		return err
	}
	return h.Real.Migrate(ctx, out)
}

// Progress implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	if err := h.check("Progress"); err != nil {
		return hypervisor.Progress{}, err
	}
	return h.Real.Progress(ctx, job)
}

// Adjust implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Adjust(ctx context.Context, job hypervisor.JobID,
	a hypervisor.Adjustment) error {
	if err := h.check("Adjust"); err != nil {
		return err
	}
	return h.Real.Adjust(ctx, job, a)
}

// Do implements [hypervisor.Hypervisor].
func (h *flakyHypervisor) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	if err := h.check("Do"); err != nil {
		return err
	}
	return h.Real.Do(ctx, vm, c)
}
