package agent

import (
	"context"

	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// lacks returns every reason why this host has no room for a VM that is to come.
func (a *Agent) lacks(ctx context.Context, m *store.Migration, vm *store.VM) (
	[]placement.Reason, error) {
	own, err := store.HostNamed(ctx, a.store, a.host)
	if err != nil {
		return nil, err
	}
	host, err := a.present(ctx, own.Facts)
	if err != nil {
		return nil, err
	}
	if host.Spacious(m, vm) {
		return nil, nil
	}
	source, err := store.HostNamed(ctx, a.store, m.State.Source)
	if err != nil {
		return nil, err
	}
	return host.Lacks(m, vm, source), nil
}

// cannotHold returns every reason why this host cannot hold a VM that is at home here in a
// size.
func (a *Agent) cannotHold(ctx context.Context, v *store.VM, size *store.Size) (
	[]placement.Reason, error) {
	host, err := a.present(ctx, a.ownRecord().Facts)
	if err != nil {
		return nil, err
	}
	return host.CannotHold(v, size), nil
}

// present returns this host as its hypervisor answers now.
func (a *Agent) present(ctx context.Context, facts *placement.Facts) (*present, error) {
	size, err := a.hv.Host(ctx)
	if err != nil {
		return nil, err
	}
	size.Name = a.host
	domains, err := a.hv.Domains(ctx)
	return &present{Size: size, Domains: domains, Facts: facts, Home: &a.home}, err
}
