package controller

import (
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// failoverCache is the failover controller's picture of the records but the heartbeats. All of it can be
// made again from the store.
type failoverCache struct {
	bare         bool // nothing is reserved for what comes later
	drain        evacuation.Params
	hosts        map[hypervisor.HostName]*store.Host
	vms          map[hypervisor.VMID]*failoverVM
	on           map[hypervisor.HostName]map[hypervisor.VMID]bool // VMs by host; "" is nowhere
	moves        map[migration.ID]*store.Migration
	rebuilds     map[store.Key]*store.Rebuild
	reservations *reservations
	health       migration.TargetHealth // what ended migrations say of hosts
}

// failoverVM is one VM in the cache.
type failoverVM struct {
	rec        *store.VM
	place      *placement.VM
	moves      map[migration.ID]bool
	allocation allocation
}

func newFailoverCache(c *FailoverConfig) *failoverCache {
	return &failoverCache{drain: c.Evacuation,
		hosts: map[hypervisor.HostName]*store.Host{},
		vms:   map[hypervisor.VMID]*failoverVM{},
		on:    map[hypervisor.HostName]map[hypervisor.VMID]bool{},
		moves: map[migration.ID]*store.Migration{}, rebuilds: map[store.Key]*store.Rebuild{},
		reservations: newReservations(reservationsConfig{Placement: c.Placement})}
}

// learn takes in a record unless it, or a later writing of it, is known.
func (v *failoverCache) learn(r store.Record) {
	switch r := r.(type) {
	case *store.Host:
		if old := v.hosts[r.Host.Name]; old == nil || old.Version < r.Version {
			v.hosts[r.Host.Name] = r
			taints := evacuation.Host{Name: r.Host.Name, Taints: r.Taints}
			v.reservations.Host(r, r.Cordoned || v.drain.Draining(taints))
		}
	case *store.VM:
		if g := v.vm(r.VM.ID); g.rec == nil || g.rec.Version < r.Version {
			v.settle(g, r)
			v.updateReservation(r.VM.ID, g)
		}
	case *store.Migration:
		if old := v.moves[r.Spec.ID]; old == nil || old.Version < r.Version {
			if o, ended := r.Outcome(); ended && (old == nil || !old.State.Phase.Final()) {
				v.health.Add(&o)
			}
			v.moves[r.Spec.ID] = r
			g := v.vm(r.Spec.VM)
			g.moves[r.Spec.ID] = true
			v.updateReservation(r.Spec.VM, g)
		}
	case *store.Rebuild:
		if old := v.rebuilds[r.Key()]; old == nil || old.Version < r.Version {
			v.rebuilds[r.Key()] = r
		}
	}
}

// forget takes in that a record is gone.
func (v *failoverCache) forget(key store.Key) {
	switch key.Kind {
	case store.HostKind:
		name := hypervisor.HostName(key.Name)
		if v.hosts[name] != nil {
			delete(v.hosts, name)
			v.reservations.Host(&store.Host{Host: hypervisor.Host{Name: name}, NotReady: true}, true)
		}
	case store.VMKind:
		id := hypervisor.VMID(key.Name)
		if g := v.vms[id]; g != nil {
			v.settle(g, nil)
			v.updateReservation(id, g)
		}
	case store.MigrationKind:
		if m := v.moves[migration.ID(key.Name)]; m != nil {
			delete(v.moves, m.Spec.ID)
			if o, ended := m.Outcome(); ended {
				v.health.Forget(&o)
			}
			g := v.vm(m.Spec.VM)
			delete(g.moves, m.Spec.ID)
			v.updateReservation(m.Spec.VM, g)
		}
	case store.RebuildKind:
		delete(v.rebuilds, key)
	}
}

// settle lets a VM be where its record says; nil is a record that is gone.
func (v *failoverCache) settle(g *failoverVM, r *store.VM) {
	if g.rec != nil {
		delete(v.on[g.rec.Host], g.rec.VM.ID)
	}
	g.rec, g.place = r, nil
	if r == nil {
		return
	}
	g.place = r.Place()
	if v.on[r.Host] == nil {
		v.on[r.Host] = map[hypervisor.VMID]bool{}
	}
	v.on[r.Host][r.VM.ID] = true
}

// updateReservation updates the reservations of a VM, as the cache does: its home, unless
// it has ended, and the targets of its migrations.
func (v *failoverCache) updateReservation(id hypervisor.VMID, g *failoverVM) {
	if g.rec == nil && len(g.moves) == 0 {
		delete(v.vms, id)
	}
	s := usage{VM: g.place}
	if g.rec != nil && !g.rec.Ended {
		s.Home = g.rec.Host
	}
	for _, name := range slices.Sorted(maps.Keys(g.moves)) {
		if m, holds := heldMove(v.moves[name], g.rec); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	if m, holds := restarts(g.rec); holds && !v.bare {
		s.Moves = append(s.Moves, m)
	}
	v.reservations.Set(id, &g.allocation, s)
}

// vm returns the VM's entry; its record is nil while it is not known.
func (v *failoverCache) vm(id hypervisor.VMID) *failoverVM {
	g := v.vms[id]
	if g == nil {
		g = &failoverVM{moves: map[migration.ID]bool{}}
		v.vms[id] = g
	}
	return g
}

// worth reports whether something is gained when a host is known to be off: VMs that
// are rebuilt, or migrations that wait for word of it.
func (v *failoverCache) worth(c *FailoverConfig, host hypervisor.HostName) bool {
	for id := range v.on[host] {
		why := stays(c, v.vms[id].rec)
		if len(why) == 0 || why[0].Check == claimed {
			return true
		}
	}
	for _, m := range v.moves {
		if m.Source.Began && !m.State.Phase.Final() &&
			(m.State.Source == host || m.State.Target == host) {
			return true
		}
	}
	return false
}

// claimed is the reason of a VM whose migration has not ended.
const claimed = "claim"

// stays returns what keeps a VM on its host, whatever becomes of the host; none is
// nothing.
func stays(c *FailoverConfig, v *store.VM) []placement.Reason {
	is := func(check, need, have string) []placement.Reason {
		return []placement.Reason{{Check: check, Need: need, Have: have}}
	}
	switch {
	case v.Stopped:
		return is("stopped", "a VM that is to run", "it is stopped")
	case v.Evicted != nil && !v.Evicted.Restart:
		return is("stopped", "a VM that is to run", "it was shut down to leave its host")
	case v.Ended:
		return is("ended", "a VM that is to run", "it has shut down by itself")
	case v.Host != "" && len(v.VM.LocalDisks()) > 0:
		return is("local disks", "disks that other hosts reach",
			v.VM.LocalDisks()[0].Name+" is on "+string(v.Host))
	case c.Priority(v) < 0:
		return is("priority", "a VM that is to be rebuilt", "it is not to be")
	case v.ActiveMigration != "":
		return is(claimed, "a migration that has ended", string(v.ActiveMigration)+" has not")
	}
	return nil
}
