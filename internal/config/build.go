package config

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Build makes the world of a scenario: its hosts, its VMs, the migrations that
// had not ended, and its events. VMs that do not run are left out. A host that is down has no
// power until an event lets it return.
func (s *Scenario) Build(c sim.Config) (*sim.World, error) {
	w := s.world(c)
	w.Network().Share(s.Fleet.Network)
	w.Expect(len(s.Fleet.VMs))
	if s.overcommitted() {
		w.Network().Overcommit()
	}
	for i := range s.Fleet.Hosts {
		h := &s.Fleet.Hosts[i]
		if err := w.AddHost(hostRecord(h)); err != nil {
			return nil, err
		}
		if h.Down {
			w.At(0, sim.CrashHost{Host: h.Name})
		}
	}
	for i := range s.Fleet.VMs {
		v := &s.Fleet.VMs[i]
		if v.Host == "" {
			continue
		}
		if err := w.AddVM(vmRecord(v), v.Workload); err != nil {
			return nil, err
		}
	}
	for _, m := range s.Fleet.Migrations {
		if m.CrossCluster { // the other cluster is not simulated: its VM stays
			continue
		}
		if err := s.addMigration(w, m); err != nil {
			return nil, err
		}
	}
	for _, e := range s.Events {
		w.At(e.At, e.What)
	}
	return w, nil
}

// takesLess reports whether a VM takes less of its host than it has.
func takesLess(v inventory.VM) bool {
	return v.Balloon > 0 || v.CPURequest > 0 && v.CPURequest < v.CPUs
}

// taken is what the VMs on a host take.
type taken struct {
	memory hypervisor.Bytes
	cpus   int
}

func (s *Scenario) used() map[hypervisor.HostName]taken {
	used := make(map[hypervisor.HostName]taken, len(s.Fleet.Hosts))
	for i := range s.Fleet.VMs {
		v := &s.Fleet.VMs[i]
		t := used[v.Host]
		vm := inventory.PlacementVM(v)
		used[v.Host] = taken{t.memory + vm.Demand(), t.cpus + vm.DemandCPUs()}
	}
	return used
}

// overcommitted reports whether a host has more VMs than it has room for, or a VM takes less of its
// host than it has. Hypervisors run that; what else a host takes is for placement to say, which knows
// its size.
func (s *Scenario) overcommitted() bool {
	used := s.used()
	return slices.ContainsFunc(s.Fleet.VMs, takesLess) ||
		slices.ContainsFunc(s.Fleet.Hosts, func(h inventory.Host) bool {
			t := used[h.Name]
			return t.memory > h.Memory || t.cpus > h.CPUs
		})
}

// hostRecord returns the host as it is stored.
func hostRecord(h *inventory.Host) store.Host {
	return store.Host{Host: h.Host, Labels: h.Labels, Taints: h.Taints,
		Cordoned: h.Cordoned || h.Down, NotReady: h.Down, Facts: h.Facts}
}

func vmRecord(v *inventory.VM) store.VM {
	r := store.VM{VM: v.VM, Namespace: v.Namespace, Labels: migration.Labels(v.Labels),
		Strategy: v.Strategy, Migratable: v.Migratable, NotMigratableReason: v.NotMigratableReason, EvacuateFrom: v.EvacuateFrom, Pause: v.Pause,
		Host: v.Host, Overhead: v.Overhead, Balloon: v.Balloon, Disk: v.Disk,
		CPURequest: v.CPURequest}
	if !v.Unmeasured {
		r.Dirtied = sim.DirtyRates(v.VM, v.Workload)
	}
	if p := &v.Placement; placement.Asks(p) {
		r.Placement = p
	}
	return r
}

// addMigration takes over a migration that had not ended. One that was under way
// starts over: how far its memory was is not known.
func (s *Scenario) addMigration(w *sim.World, m inventory.Migration) error {
	spec := m.Spec
	if spec.Created.IsZero() || spec.Created.After(sim.Epoch) {
		spec.Created = sim.Epoch
	}
	r := store.Migration{Spec: spec}
	if _, err := w.Store().Put(context.Background(), &r); err != nil {
		return fmt.Errorf("migration %s: %w", spec.ID, err)
	}
	return nil
}

// Hosts returns the names of the fleet's hosts, in order.
func (s *Scenario) Hosts() []hypervisor.HostName {
	return slices.Sorted(maps.Keys(s.names().hosts))
}
