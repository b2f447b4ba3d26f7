package sim

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Accessors for invariant checks, beside [World.VMs], [World.VM], [World.HostRecord],
// [World.Migrations], [World.Copies], [World.Evacuations], [World.Faulty] and [World.Result].
// Nothing that is returned may be changed.

// Hosts returns the names of all hosts, as they were added.
func (w *World) Hosts() []hypervisor.HostName { return slices.Clone(w.order) }

// RunsOn returns the hosts on which a VM executes now, by what the hypervisors say and not by
// the records: one, or none while it is stopped, switches over or is lost.
func (w *World) RunsOn(vm hypervisor.VMID) []hypervisor.HostName {
	var on []hypervisor.HostName
	for _, c := range w.network.Copies(vm) {
		if c.State.Executes() {
			on = append(on, c.Host)
		}
	}
	return on
}

// VMsOn returns the VMs that are at home on a host, by their records, in order.
func (w *World) VMsOn(host hypervisor.HostName) []hypervisor.VMID {
	return slices.DeleteFunc(w.VMs(), func(vm hypervisor.VMID) bool {
		return w.watch.Home(vm) != host
	})
}

// Moving returns the migrations that have a target and have not ended, by VM, those of one
// VM oldest first: what is under way.
func (w *World) Moving() []*store.Migration {
	var list []*store.Migration
	for _, vm := range w.VMs() {
		for _, m := range w.unfinished(vm) {
			if m.State.Target != "" {
				list = append(list, m)
			}
		}
	}
	return list
}

// Demand returns what the VMs at home on a host need of its memory, and those on their way
// there besides.
func (w *World) Demand(host hypervisor.HostName) (home, coming hypervisor.Bytes) {
	for _, vm := range w.VMsOn(host) {
		if v := w.VM(vm); !v.Ended {
			home += v.Place().Demand()
		}
	}
	for _, m := range w.Moving() {
		if v := w.VM(m.Spec.VM); v.Host != host && m.State.Target == host {
			coming += v.Place().Demand()
		}
	}
	return home, coming
}

// Draining reports whether a host is being emptied: it carries the taint that drains.
func (w *World) Draining(host hypervisor.HostName) bool { return w.watch.Drains.On(host) }

// Ended counts the attempts of a VM that are kept, by how they ended.
func (w *World) Ended(vm hypervisor.VMID) (succeeded, failed int) {
	for _, m := range w.Migrations(vm) {
		switch m.State.Phase {
		case migration.Succeeded:
			succeeded++
		case migration.Failed:
			failed++
		}
	}
	return succeeded, failed
}
