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

// failoverView is the warden's picture of the records but the signs of life. All of it can be
// made again from the store.
type failoverView struct {
	bare     bool // nothing is reserved in the books for what comes later
	drain    evacuation.Params
	hosts    map[hypervisor.HostName]*store.Host
	guests   map[hypervisor.VMID]*failoverGuest
	on       map[hypervisor.HostName]map[hypervisor.VMID]bool // VMs by host; "" is nowhere
	moves    map[migration.ID]*store.Migration
	rebuilds map[store.Key]*store.Rebuild
	books    *Reservations
	health   migration.TargetHealth // what ended migrations say of hosts
}

// failoverGuest is one VM in the view.
type failoverGuest struct {
	rec     *store.VM
	place   *placement.VM
	moves   map[migration.ID]bool
	account Allocation
}

func newView(c *FailoverConfig) *failoverView {
	return &failoverView{drain: c.Evacuation,
		hosts:  map[hypervisor.HostName]*store.Host{},
		guests: map[hypervisor.VMID]*failoverGuest{},
		on:     map[hypervisor.HostName]map[hypervisor.VMID]bool{},
		moves:  map[migration.ID]*store.Migration{}, rebuilds: map[store.Key]*store.Rebuild{},
		books: NewReservations(ReservationsConfig{Placement: c.Placement})}
}

// learn takes in a record unless it, or a later writing of it, is known.
func (v *failoverView) learn(r store.Record) {
	switch r := r.(type) {
	case *store.Host:
		if old := v.hosts[r.Host.Name]; old == nil || old.Version < r.Version {
			v.hosts[r.Host.Name] = r
			taints := evacuation.Host{Name: r.Host.Name, Taints: r.Taints}
			v.books.Host(r, r.Closed || v.drain.Draining(taints))
		}
	case *store.VM:
		if g := v.guest(r.VM.ID); g.rec == nil || g.rec.Version < r.Version {
			v.settle(g, r)
			v.rebook(r.VM.ID, g)
		}
	case *store.Migration:
		if old := v.moves[r.Spec.ID]; old == nil || old.Version < r.Version {
			if o, ended := r.Outcome(); ended && (old == nil || !old.State.Phase.Final()) {
				v.health.Add(&o)
			}
			v.moves[r.Spec.ID] = r
			g := v.guest(r.Spec.VM)
			g.moves[r.Spec.ID] = true
			v.rebook(r.Spec.VM, g)
		}
	case *store.Rebuild:
		if old := v.rebuilds[r.Key()]; old == nil || old.Version < r.Version {
			v.rebuilds[r.Key()] = r
		}
	}
}

// forget takes in that a record is gone.
func (v *failoverView) forget(key store.Key) {
	switch key.Kind {
	case store.HostKind:
		name := hypervisor.HostName(key.Name)
		if v.hosts[name] != nil {
			delete(v.hosts, name)
			v.books.Host(&store.Host{Host: hypervisor.Host{Name: name}, Lost: true}, true)
		}
	case store.VMKind:
		id := hypervisor.VMID(key.Name)
		if g := v.guests[id]; g != nil {
			v.settle(g, nil)
			v.rebook(id, g)
		}
	case store.MigrationKind:
		if m := v.moves[migration.ID(key.Name)]; m != nil {
			delete(v.moves, m.Spec.ID)
			if o, ended := m.Outcome(); ended {
				v.health.Forget(&o)
			}
			g := v.guest(m.Spec.VM)
			delete(g.moves, m.Spec.ID)
			v.rebook(m.Spec.VM, g)
		}
	case store.RebuildKind:
		delete(v.rebuilds, key)
	}
}

// settle lets a guest be where its record says; nil is a record that is gone.
func (v *failoverView) settle(g *failoverGuest, r *store.VM) {
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

// rebook tells the books what a VM holds, as package controller does: its home, unless
// it has ended, and the targets of its migrations.
func (v *failoverView) rebook(id hypervisor.VMID, g *failoverGuest) {
	if g.rec == nil && len(g.moves) == 0 {
		delete(v.guests, id)
	}
	s := Usage{VM: g.place}
	if g.rec != nil && !g.rec.Ended {
		s.Home = g.rec.Host
	}
	for _, name := range slices.Sorted(maps.Keys(g.moves)) {
		if m, holds := Held(v.moves[name], g.rec); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	if m, holds := Restarts(g.rec); holds && !v.bare {
		s.Moves = append(s.Moves, m)
	}
	v.books.Set(id, &g.account, s)
}

// failoverGuest returns the VM's entry; its record is nil while it is not known.
func (v *failoverView) guest(id hypervisor.VMID) *failoverGuest {
	g := v.guests[id]
	if g == nil {
		g = &failoverGuest{moves: map[migration.ID]bool{}}
		v.guests[id] = g
	}
	return g
}

// worth reports whether something is gained when a host is known to be off: VMs that
// are rebuilt, or migrations that wait for word of it.
func (v *failoverView) worth(c *FailoverConfig, host hypervisor.HostName) bool {
	for id := range v.on[host] {
		why := stays(c, v.guests[id].rec)
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
	case v.Claim != "":
		return is(claimed, "a migration that has ended", string(v.Claim)+" has not")
	}
	return nil
}
