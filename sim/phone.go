package sim

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// phone is an agent's connection to its hypervisor. When it is dead, or when
// the process at this end is, nobody is reached and nothing takes effect.
type phone struct {
	real *fake.Host
	line *line
	dead bool
}

var errHungUp = errors.New("connection refused")

func (p *phone) check(op string) error {
	if p.dead || p.line.died {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Transient, Err: errHungUp}
	}
	return nil
}

// Host implements hypervisor.Hypervisor.
func (p *phone) Host(ctx context.Context) (hypervisor.Host, error) {
	if err := p.check("Host"); err != nil {
		return hypervisor.Host{}, err
	}
	return p.real.Host(ctx)
}

// Domains implements hypervisor.Hypervisor.
func (p *phone) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := p.check("Domains"); err != nil {
		return nil, err
	}
	return p.real.Domains(ctx)
}

// Domain implements hypervisor.Hypervisor.
func (p *phone) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	if err := p.check("Domain"); err != nil {
		return hypervisor.Domain{}, err
	}
	return p.real.Domain(ctx, vm)
}

// Receive implements hypervisor.Hypervisor.
func (p *phone) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	if err := p.check("Receive"); err != nil {
		return "", err
	}
	return p.real.Receive(ctx, in)
}

// Migrate implements hypervisor.Hypervisor.
func (p *phone) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	if err := p.check("Migrate"); err != nil {
		return err
	}
	return p.real.Migrate(ctx, out)
}

// Progress implements hypervisor.Hypervisor.
func (p *phone) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	if err := p.check("Progress"); err != nil {
		return hypervisor.Progress{}, err
	}
	return p.real.Progress(ctx, job)
}

// Adjust implements hypervisor.Hypervisor.
func (p *phone) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	if err := p.check("Adjust"); err != nil {
		return err
	}
	return p.real.Adjust(ctx, job, a)
}

// Do implements hypervisor.Hypervisor.
func (p *phone) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	if err := p.check("Do"); err != nil {
		return err
	}
	return p.real.Do(ctx, vm, c)
}
