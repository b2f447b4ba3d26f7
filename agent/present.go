package agent

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// present is a host as it is now.
type present struct {
	Size    hypervisor.Host
	Domains []hypervisor.Domain
	Facts   *placement.Facts // nil: no more than its size is known
	Home    *localVMs        // the VMs that are at home there
}

// less returns the host less what is on it besides one VM. What rests keeps its room if it is
// at home there and shall run: after a loss of power each waits for its start. Without a load
// only memory and CPUs are counted.
func (p *present) less(besides hypervisor.VMID, load *placement.Load) *placement.Host {
	host := &placement.Host{Name: p.Size.Name, Memory: p.Size.Memory, CPUs: p.Size.CPUs,
		Facts: p.Facts, Load: load}
	var vm placement.VM // used again: it is large
	constrained := false
	for i := range p.Domains {
		d := &p.Domains[i]
		v := p.Home.Get(d.VM.ID)
		if d.VM.ID == besides || d.State.Rests() && (v == nil || v.Ended) {
			continue
		}
		if v == nil || constrained {
			vm = placement.VM{ID: d.VM.ID}
		}
		vm.CPURequest = 0
		if constrained = v != nil && v.Placement != nil; v != nil {
			v.PlaceIn(&vm)
		}
		vm.Memory, vm.CPUs = d.VM.Memory, d.VM.CPUs
		host.Hold(&vm)
	}
	return host
}

// Lacks returns every reason why the host has no room for a VM that m brings from another:
// memory, and where more is known about the host than its size, all that runs out or that
// no VM runs without. Wishes are not asked about here: the controller confirms them.
// Source: Nova compute/manager.py (check_can_live_migrate_destination, under the claim).
func (p *present) Lacks(m *store.Migration, vm *store.VM, source *store.Host,
) []placement.Reason {
	place, from := vm.Place(), source.Host.Name
	o := placement.Options{Source: from}
	if p.Facts == nil { // then memory alone counts
		return placement.CheckAll(conditions(false, forced(m)), place, p.less("", nil), o)
	}
	o.Move = placement.CompareHosts(place, from, []placement.Host{{Name: from, Facts: source.Facts}})
	all := conditions(true, forced(m))
	if host := p.atMost(); host != nil && len(placement.CheckAll(all, place, host, o)) == 0 {
		return nil
	}
	return placement.CheckAll(all, place, p.less("", &placement.Load{}), o)
}

// atMost returns the host with no less on it than [present.less] finds, without a look at any
// record: as if all that is on it needed all of its own. It is nil where a sum does not tell
// enough: where a VM may have devices, disks, or seats in the host's cells.
func (p *present) atMost() *placement.Host {
	if p.Home.special > 0 || len(p.Facts.Cells) > 0 {
		return nil
	}
	host := &placement.Host{Name: p.Size.Name, Memory: p.Size.Memory, CPUs: p.Size.CPUs,
		Facts: p.Facts, Load: &placement.Load{VMs: len(p.Domains)},
		UsedMemory: max(0, p.Home.overhead)}
	for i := range p.Domains {
		vm := &p.Domains[i].VM
		host.UsedMemory += max(0, vm.Memory)
		host.UsedCPUs += max(0, vm.CPUs)
		if host.UsedMemory < 0 || host.UsedCPUs < 0 {
			return nil // more than can be said
		}
	}
	return host
}

// Spacious reports whether the host lacks nothing for sure. That answers most questions without
// a look at any record: no more is known than its size, and it has the memory even if all that
// is on it needed all of its own.
func (p *present) Spacious(m *store.Migration, vm *store.VM) bool {
	if p.Facts != nil || forced(m) {
		return false
	}
	var comes placement.VM
	vm.PlaceIn(&comes)
	free := p.Size.Memory - max(0, p.Home.overhead)
	for i := range p.Domains {
		if free -= max(0, p.Domains[i].VM.Memory); free < 0 {
			return false
		}
	}
	return comes.Demand() <= free
}

// forced reports whether policy and capacity were overruled.
func forced(m *store.Migration) bool {
	return m.Decision != nil && m.Decision.Outcome == placement.Accepted && m.Decision.Action != ""
}

// conditions are what a host holds a VM against that comes.
func conditions(known, forced bool) []placement.Filter {
	switch {
	case forced && known:
		return append(placement.HardFilters(), placement.ForcedMemory())
	case forced:
		return []placement.Filter{placement.ForcedMemory()}
	case known:
		return needs
	}
	return memory
}

// The conditions that are no wishes, those of them that run out, and that there is enough
// memory.
var (
	needs = slices.DeleteFunc(placement.AllFilters(), func(f placement.Filter) bool {
		return f.Class == placement.Policy
	})
	runsOut = slices.DeleteFunc(placement.AllFilters(), func(f placement.Filter) bool {
		return f.Class != placement.Capacity
	})
	memory = slices.DeleteFunc(placement.Basic(), func(f placement.Filter) bool {
		return f.Name != "memory"
	})
)

// CannotHold returns every reason why the host cannot hold a VM that is at home there in a
// size: all that runs out. What the VM has now is not in the way.
func (p *present) CannotHold(vm *store.VM, size *store.Size) []placement.Reason {
	wanted := *vm
	wanted.Size = size
	return placement.CheckAll(runsOut, wanted.Place(), p.less(vm.VM.ID, &placement.Load{}),
		placement.Options{})
}
