package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// cache is the controller's picture of the records, and what follows from it:
// slots, reservations, and the host of each VM. All of it can be made again from the store.
type cache struct {
	migrations   map[migration.ID]*migrationEntry
	vms          map[hypervisor.VMID]*vmEntry
	hosts        map[hypervisor.HostName]*hostEntry
	groups       map[string][]*vmEntry // that are to be on one host, by group
	bare         bool                  // nothing is reserved for what comes later
	latest       *migrationEntry       // that was looked at: news are of it more often than not
	slots        migration.Slots
	reservations *reservations
	queue        queue[*migrationEntry]
	drain        func(*store.Host) bool
	eager        bool // plan evacuations on every step of a migration

	dirty workqueue.Work[*migrationEntry]     // migrations to be stepped
	plans workqueue.Work[hypervisor.HostName] // hosts whose evacuation is to be planned
	// starts are VMs that are off and are to run, and whose host may not take them.
	starts workqueue.Work[hypervisor.VMID]
	// releases are VMs whose claims are stale.
	releases workqueue.Work[hypervisor.VMID]
	applied  applied
	serviced serviced
	// late are hosts whose drain has a deadline that is to be looked at, and paces when that is; hurried are
	// those for which limits were raised.
	late    workqueue.Work[hypervisor.HostName]
	paces   workqueue.Timers[hypervisor.HostName]
	hurried map[hypervisor.HostName]bool
	begun   []*store.Rebuild // of VMs that have been started elsewhere, and are cleaned up
	moves   []reservedMove   // scratch of rebook
	plain   placement.VM     // scratch of placed: a VM without constraints

	traffic   traffic                // on links, where they are shared by a model
	health    migration.TargetHealth // what ended migrations say of hosts
	failed    []hypervisor.HostName  // of migrations that failed since they were looked at
	forgiving bool                   // as KubeVirt: no host is remembered

	unfinished    int                            // migrations that have not ended
	stuck         int                            // of them, those for which no host was found at the last try
	unschedulable priorityQueue[*migrationEntry] // migrations that fit nowhere when they were tried
	capacityFreed bool                           // room has appeared since then
}

// migrationEntry is one migration in the cache.
type migrationEntry struct {
	rec           *store.Migration
	vm            *vmEntry   // the VM that it moves
	source        *hostEntry // what its record names, as target; nil while it names none
	target        *hostEntry
	alarm         workqueue.Alarm[*migrationEntry] // when it is to be looked at, changed or not
	entry         queueEntry                       // in the cache's queue
	gone          bool                             // its record is gone
	ended         bool
	holds         bool   // a slot
	tries         uint8  // how often no host was found in a row, as far as that matters
	hosts         bool   // it has failed before the transfer, for what a host did
	unschedulable bool   // it is in cache.unschedulable
	wires         []wire // that it uses; none where links are not shared by a model
	waitsOn       wire   // it waits for its turn there; the zero value is nowhere
	told          wire   // what it was last said to wait for
	overrun       bool   // its tenant's quota was in the way when it was tried
	capped        bool   // its cap on the bandwidth is what this controller is configured with
}

// Asked implements [item].
func (f *migrationEntry) Asked() *migration.Spec { return &f.rec.Spec }

// Entry implements [item].
func (f *migrationEntry) Entry() *queueEntry { return &f.entry }

// vmEntry is one VM in the cache.
type vmEntry struct {
	rec        *store.VM
	place      *placement.VM      // of one with constraints; the others share cache.plain
	host       *hostEntry         // where it is at home; nil while it is nowhere
	at         int                // in the VMs of its host
	migrations []*migrationEntry  // oldest first
	one        [1]*migrationEntry // where they are, as a rule
	allocation allocation
}

// hostEntry is one host in the cache.
type hostEntry struct {
	rec    *store.Host
	drains bool       // it carries the drain taint
	vms    []*vmEntry // in no order
	marked int        // VMs that were asked to leave
	next   time.Time  // the next migration from here is not created before
}

func (s *hostEntry) name() hypervisor.HostName { return s.rec.Host.Name }

// learn takes in a record unless it is known already.
func (v *cache) learn(r store.Record) {
	switch r := r.(type) {
	case *store.Migration:
		v.learnMigration(r)
	case *store.VM:
		v.learnVM(r)
	case *store.Host:
		v.learnHost(r)
	case *store.Plan:
		v.changePlans(func(a *applied) { a.learn(r) })
		v.serviced.learnPlan(r)
	case *store.Maintenance:
		v.serviced.learn(r)
	case *store.Rebuild:
		if r.Cleaned && r.Evidence.Proof == hypervisor.ProcessReaped {
			v.begun = append(v.begun, r)
		}
	}
}

// forget takes in that a record is gone.
func (v *cache) forget(key store.Key) {
	switch key.Kind {
	case store.PlanKind:
		v.changePlans(func(a *applied) { a.forget(key.Name) })
		v.serviced.forgetPlan(key.Name)
	case store.MaintenanceKind:
		v.serviced.forget(key.Name)
	case store.MigrationKind:
		if f := v.migrations[migration.ID(key.Name)]; f != nil {
			v.applied.moved(f.rec.Spec.VM)
			v.release(f, &f.rec.State)
			v.queue.Remove(f)
			v.forgetOutcome(f)
			f.gone = true
			if v.setTries(f, 0); !f.ended {
				v.unfinished--
			}
			delete(v.migrations, f.rec.Spec.ID)
			g := f.vm
			g.migrations = slices.DeleteFunc(g.migrations, func(o *migrationEntry) bool { return o == f })
			v.updateReservation(string(f.rec.Spec.VM), g)
		}
	case store.VMKind:
		if g := v.vms[hypervisor.VMID(key.Name)]; g != nil {
			v.applied.moved(hypervisor.VMID(key.Name))
			v.serviced.changed()
			v.move(g, "")
			v.untie(g)
			g.rec, g.place = nil, nil
			v.updateReservation(key.Name, g)
			v.requeueMigrationsOf(g)
		}
	case store.HostKind:
		if s := v.hosts[hypervisor.HostName(key.Name)]; s != nil {
			defer v.requeueStartsOf(s)
			v.updateHost(s, &store.Host{Host: hypervisor.Host{Name: s.rec.Host.Name}, NotReady: true})
			v.requeueAllOf(s)
		}
	}
}

func (v *cache) learnMigration(m *store.Migration) {
	f, before := v.latest, &migration.State{}
	if f == nil || f.gone || f.rec.Spec.ID != m.Spec.ID {
		f = v.migrations[m.Spec.ID]
	}
	switch {
	case f == nil:
		if f = v.addMigration(m); m.Spec.By == migration.User && len(f.vm.migrations) > 1 {
			v.requeueMigrationsOf(f.vm) // one of them may give way
		}
	case f.rec.Version >= m.Version:
		return
	default:
		before = &f.rec.State
	}
	ends := m.State.Phase.Final() && !f.ended
	if ends {
		f.ended = true
		v.unfinished--
		v.setTries(f, 0)
	}
	v.applied.moved(m.Spec.VM)
	if f.rec = m; ends {
		v.learnOutcome(f)
	}
	v.updateHolds(f, before)
	v.dirty.Add(f)
	if m.State.Phase.Final() {
		v.requeueMigrationsOf(f.vm)
	}
	if s := f.vm.host; s != nil && (v.eager || m.State.Phase == migration.Failed) {
		v.plan(s)
	}
}

// setTries notes how often no host was found for a migration in a row.
func (v *cache) setTries(f *migrationEntry, tries uint8) {
	switch {
	case f.tries == 0 && tries > 0:
		v.stuck++
	case f.tries > 0 && tries == 0:
		v.stuck--
	}
	f.tries = tries
}

// addMigration enters a migration that was not known.
func (v *cache) addMigration(m *store.Migration) *migrationEntry {
	g := v.vm(m.Spec.VM)
	f := &migrationEntry{rec: m, vm: g}
	f.alarm.Of = f
	v.migrations[m.Spec.ID] = f
	at, _ := slices.BinarySearchFunc(g.migrations, f, byAge)
	if g.migrations = slices.Insert(g.migrations, at, f); len(g.migrations) > 1 {
		g.one[0] = nil // they are elsewhere
	}
	v.unfinished++
	return f
}

// byAge orders migrations, whatever their priority.
func byAge(a, b *migrationEntry) int {
	return cmp.Or(a.rec.Spec.Created.Compare(b.rec.Spec.Created),
		cmp.Compare(a.rec.Spec.ID, b.rec.Spec.ID))
}

// updateHolds brings slots and reservations in line with a migration's record. They change with its
// state alone, and most writings do not change that.
func (v *cache) updateHolds(f *migrationEntry, before *migration.State) {
	s := &f.rec.State
	if s.Phase == before.Phase && s.Source == before.Source && s.Target == before.Target &&
		s.Deadline.Equal(before.Deadline) {
		return
	}
	leaves, goes := s.Source != before.Source, s.Target != before.Target
	if leaves {
		f.source = v.hostOf(s.Source)
	}
	if goes {
		f.target = v.hostOf(s.Target)
	}
	held, holds, slot := f.holds, migration.HoldsSlot(s.Phase, s.Target != "", true), slotOf(s)
	if held && (!holds || leaves || goes) {
		v.release(f, before)
	}
	if holds && !f.holds {
		f.holds = true
		v.slots.Take(slot)
		v.enter(f)
	}
	switch {
	case s.Target == "" && before.Target == "":
	case held && holds && !goes:
		v.reservations.Extend(&f.vm.allocation, f.rec.Spec.ID, s.Deadline)
	default:
		v.updateReservation(string(f.rec.Spec.VM), f.vm)
	}
}

// slotOf is the slot that a migration in a state holds, if it holds one.
func slotOf(s *migration.State) migration.Slot {
	return migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}
}

// updateReservation updates the reservations of a VM, and those of the others of its group where it goes.
func (v *cache) updateReservation(id string, g *vmEntry) {
	v.reserve(id, g)
	if g.rec == nil || !g.binds() {
		return
	}
	for _, o := range v.company(g) {
		if o != g {
			v.reserve(string(o.rec.VM.ID), o)
		}
	}
}

// reserve updates the reservations of one VM: its home, unless it has ended, its moves' targets, and where it
// is to follow.
func (v *cache) reserve(id string, g *vmEntry) {
	s := usage{VM: v.placed(g), Moves: v.moves[:0]}
	if g.host != nil && !g.rec.Ended {
		s.Home = g.host.name()
	}
	for _, f := range g.migrations {
		if m, holds := heldMove(f.rec, g.rec); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	if m, holds := restarts(g.rec); holds && !v.bare {
		s.Moves = append(s.Moves, m)
	}
	if g.rec != nil && !v.bare && len(s.Moves) == 0 {
		if m, holds := v.saved(g); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	v.reservations.Set(hypervisor.VMID(id), &g.allocation, s)
	v.moves = s.Moves
}

// release gives back the slot that a migration holds, whose last state was s.
func (v *cache) release(f *migrationEntry, s *migration.State) {
	if !f.holds {
		return
	}
	f.holds = false
	v.leave(f)
	v.slots.Return(slotOf(s))
	v.capacityFreed = true
	v.queue.Freed(s.Source)
}

func (v *cache) learnVM(r *store.VM) {
	g := v.vm(r.VM.ID)
	if g.rec != nil && g.rec.Version >= r.Version {
		return
	}
	v.applied.moved(r.VM.ID)
	v.serviced.changed()
	old := g.rec
	placed := old != nil && r.PlacedAs(old)
	switch {
	case r.Placement == nil:
		v.untie(g)
		g.place = nil
	case !placed:
		v.untie(g)
		g.place = r.Place()
		v.tie(g)
	}
	if old != nil && old.Host == r.Host && old.EvacuateFrom == r.EvacuateFrom {
		g.rec = r // it stays where it is
	} else {
		v.move(g, "")
		g.rec = r
		v.move(g, r.Host)
	}
	if !placed || old.Host != r.Host || old.EvacuateFrom != r.EvacuateFrom || old.Ended != r.Ended || old.Evicted != r.Evicted || old.Stopped != r.Stopped ||
		old.ActiveMigration != r.ActiveMigration && slices.ContainsFunc(g.migrations, succeeded) {
		v.updateReservation(string(r.VM.ID), g)
	}
	v.requeueMigrationsOf(g)
	if r.Startable() {
		v.starts.Add(r.VM.ID)
	}
	if r.Released() {
		v.releases.Add(r.VM.ID)
	}
	if old != nil && !leavesDifferently(old, r) {
		return
	}
	v.capacityFreed = true
	if s := g.host; s != nil && (s.drains || s.marked > 0 || r.Evicted != nil ||
		old != nil && old.EvacuateFrom != r.EvacuateFrom) {
		v.plan(s)
	}
}

// succeeded reports whether a migration has: what it holds depends on the migration that its VM names.
func succeeded(f *migrationEntry) bool { return f.rec.State.Phase == migration.Succeeded }

// placed returns how placement sees a VM: nil while its record is not known. It is valid
// until the next call.
func (v *cache) placed(g *vmEntry) *placement.VM {
	if g.place != nil || g.rec == nil {
		return g.place
	}
	g.rec.PlaceIn(&v.plain)
	return &v.plain
}

// move takes a VM from where it is to another host; "" is nowhere.
func (v *cache) move(g *vmEntry, to hypervisor.HostName) {
	if s := g.host; s != nil {
		last := len(s.vms) - 1
		s.vms[g.at], s.vms[last].at = s.vms[last], g.at
		s.vms[last], s.vms = nil, s.vms[:last]
		if g.rec.EvacuateFrom == s.name() {
			s.marked--
		}
	}
	if g.host = v.hostOf(to); g.host == nil {
		return
	}
	g.at, g.host.vms = len(g.host.vms), append(g.host.vms, g)
	if g.rec.EvacuateFrom == to {
		g.host.marked++
	}
}

func (v *cache) learnHost(h *store.Host) {
	s := v.host(h.Host.Name)
	if s.rec.Version >= h.Version {
		return
	}
	worse := h.NotReady != s.rec.NotReady || h.Fenced != s.rec.Fenced || h.Proof() != s.rec.Proof()
	v.serviced.changed()
	drained, takes, old := s.drains, v.takes(s), s.rec
	v.updateHost(s, h)
	v.learnPace(old, h)
	if takes && !v.takes(s) {
		v.requeueStartsOf(s)
	}
	if drained || s.drains || s.marked > 0 || old.Version == 0 { // a drain may have been withdrawn before this controller began
		v.plan(s)
	}
	if worse {
		v.requeueAllOf(s)
	}
}

// takes reports whether a host starts VMs that are off there, as far as its record alone says.
func (v *cache) takes(s *hostEntry) bool {
	h := s.rec
	return h.Version != 0 && !h.Cordoned && !s.drains && !h.NotReady && !h.Fenced
}

// requeueStartsOf marks the VMs of a host that are off and are to run.
func (v *cache) requeueStartsOf(s *hostEntry) {
	var all []hypervisor.VMID
	for _, g := range s.vms {
		if g.rec.Startable() {
			all = append(all, g.rec.VM.ID)
		}
	}
	slices.Sort(all) // guests are in no order
	for _, vm := range all {
		v.starts.Add(vm)
	}
}

// updateHost hands what a host's record says to the reservations.
func (v *cache) updateHost(s *hostEntry, h *store.Host) {
	drained := s.drains
	s.rec, s.drains = h, v.drain(h)
	v.reservations.Host(h, h.Cordoned || s.drains)
	if drained != s.drains {
		for _, g := range s.vms {
			if g.binds() {
				v.reserve(string(g.rec.VM.ID), g)
			}
		}
	}
	v.capacityFreed = true
}

// requeueAllOf marks every unfinished migration from or to a host, of one of its VMs that is
// not under way yet, too, and those that wait because an earlier one has left something there.
func (v *cache) requeueAllOf(s *hostEntry) {
	var all []*migrationEntry
	for _, f := range v.migrations {
		switch {
		case f.source != s && f.target != s && f.vm.host != s:
		case !f.ended:
			all = append(all, f)
		case !cleared(f.rec, false):
			all = append(all, f.vm.migrations...)
		}
	}
	slices.SortFunc(all, byAge)
	for _, f := range all {
		v.dirty.Add(f)
	}
}

// requeueMigrationsOf marks a VM's migrations, except those of which nothing is left to be done.
func (v *cache) requeueMigrationsOf(g *vmEntry) {
	for _, f := range g.migrations {
		if !f.rec.State.Released || g.rec != nil && g.rec.ActiveMigration == f.rec.Spec.ID {
			v.dirty.Add(f)
		}
	}
}

// plan marks a host whose evacuation may have to be planned anew.
func (v *cache) plan(s *hostEntry) {
	if s.rec.Version != 0 {
		v.plans.Add(s.name())
	}
}

// vm returns the VM's entry; its record is nil while it is not known. Entries stay: they are
// cut from pieces, larger ones in a larger cluster.
func (v *cache) vm(id hypervisor.VMID) *vmEntry {
	if f := v.latest; f != nil && f.rec.Spec.VM == id {
		return f.vm
	}
	g := v.vms[id]
	if g == nil {
		g = new(vmEntry)
		g.migrations, v.vms[id] = g.one[:0], g
	}
	return g
}

// host returns the host's entry; a host that is not known counts as lost.
func (v *cache) host(name hypervisor.HostName) *hostEntry {
	s := v.hosts[name]
	if s == nil {
		s = &hostEntry{}
		v.hosts[name] = s
		v.updateHost(s, &store.Host{Host: hypervisor.Host{Name: name}, NotReady: true})
	}
	return s
}

// hostOf is host, and nil for no host.
func (v *cache) hostOf(name hypervisor.HostName) *hostEntry {
	if name == "" {
		return nil
	}
	return v.host(name)
}
