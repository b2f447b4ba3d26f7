package agent

import (
	"context"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/choose"
	"github.com/godwit-vm/godwit/migration/placement/filter"
	"github.com/godwit-vm/godwit/record"
)

// lacks returns every reason why this host has no room for a VM, whatever the books of
// the controller say: memory, and where more is known about the host than its size, all
// that runs out or that no VM runs without. Wishes are not asked about here: the
// controller confirms them.
// Source: Nova compute/manager.py (check_can_live_migrate_destination, under the claim).
func (a *Agent) lacks(ctx context.Context, m *record.Migration, vm *record.VM) (
	[]placement.Reason, error) {
	own, err := a.hostRecord(ctx, a.host)
	if err != nil {
		return nil, err
	}
	host, err := a.present(ctx, own.Facts)
	if err != nil {
		return nil, err
	}
	source, err := a.hostRecord(ctx, m.State.Source)
	if err != nil {
		return nil, err
	}
	place := vm.Place()
	o := placement.Options{Source: m.State.Source, Move: placement.Survey(place, m.State.Source,
		[]placement.Host{{Name: m.State.Source, Facts: source.Facts}})}
	return placement.CheckAll(conditions(own.Facts != nil, forced(m)), place, &host, o), nil
}

// conditions are what this host holds a VM against.
func conditions(known, forced bool) []placement.Filter {
	switch {
	case forced && known:
		return append(filter.Physical(), filter.ForcedMemory())
	case forced:
		return []placement.Filter{filter.ForcedMemory()}
	case known:
		return slices.DeleteFunc(filter.All(), func(f placement.Filter) bool {
			return f.Class == placement.Policy
		})
	}
	return slices.DeleteFunc(placement.Basic(), func(f placement.Filter) bool {
		return f.Name != "memory"
	})
}

// forced reports whether policy and capacity were overruled.
func forced(m *record.Migration) bool {
	return m.Decision != nil && m.Decision.Outcome == choose.Accepted && m.Decision.Action != ""
}

// present returns this host as it is now: what its hypervisor says that it has, less
// what is on it.
func (a *Agent) present(ctx context.Context, facts *placement.Facts) (placement.Host, error) {
	size, err := a.hv.Host(ctx)
	if err != nil {
		return placement.Host{}, err
	}
	domains, err := a.hv.Domains(ctx)
	if err != nil {
		return placement.Host{}, err
	}
	books := placement.NewIndex(0, placement.Host{Name: a.host, Memory: size.Memory,
		CPUs: size.CPUs, Facts: facts, Load: &placement.Load{}})
	for i := range domains {
		d := &domains[i]
		if rests(*d) {
			continue
		}
		vm := &placement.VM{ID: d.VM.ID, Memory: d.VM.Memory, CPUs: d.VM.CPUs}
		if v := a.vms[d.VM.ID]; v != nil {
			vm = v.Place()
			vm.Memory, vm.CPUs = d.VM.Memory, d.VM.CPUs
		}
		if books.Reserve(vm, a.host) {
			books.Arrive(a.host)
		}
	}
	host, _ := books.Get(a.host)
	return host, nil
}

// hostRecord reads what is stored about a host; one that is not known is empty.
func (a *Agent) hostRecord(ctx context.Context, name hypervisor.HostName) (*record.Host, error) {
	r, err := a.store.Get(ctx, record.Key{Kind: record.HostKind, Name: string(name)})
	if h, ok := r.(*record.Host); ok {
		return h, err
	}
	return &record.Host{}, err
}
