package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/record"
)

// view is the controller's picture of the records, and what follows from it:
// slots, books and who is where. All of it can be made again from the store.
type view struct {
	flights map[migration.ID]*flight
	guests  map[hypervisor.VMID]*guest
	hosts   map[hypervisor.HostName]*site
	slots   migration.Slots
	books   *placement.Index
	queue   queue
	drain   func(*record.Host) bool
	eager   bool // plan evacuations on every step of a migration

	dirty due.Work[migration.ID]        // migrations to be stepped
	plans due.Work[hypervisor.HostName] // hosts whose evacuation is to be planned

	unfinished int  // migrations that have not ended
	nowhere    line // migrations that fit nowhere when they were tried
	room       bool // room has appeared since then
}

// flight is one migration in the view.
type flight struct {
	rec      *record.Migration
	ended    bool
	holds    bool
	slot     migration.Slot
	reserved hypervisor.HostName // where the books hold room for it
	vm       *placement.VM       // what the books hold
	tries    int                 // how often no host was found in a row
	nowhere  bool                // it is in view.nowhere
}

// guest is one VM in the view.
type guest struct {
	rec     *record.VM
	place   *placement.VM       // what the books hold
	on      hypervisor.HostName // where it is at home
	booked  bool                // the books count it there
	flights []*flight           // oldest first
}

// site is one host in the view.
type site struct {
	rec    *record.Host
	guests map[hypervisor.VMID]*guest
	marked int       // guests that were asked to leave
	newest time.Time // when the youngest migration from here was created
}

func newView(inbound int, eager bool, drain func(*record.Host) bool) *view {
	if inbound == migration.Unlimited {
		inbound = 0
	}
	return &view{
		eager:   eager,
		flights: map[migration.ID]*flight{},
		guests:  map[hypervisor.VMID]*guest{},
		hosts:   map[hypervisor.HostName]*site{},
		books:   placement.NewIndex(inbound),
		drain:   drain,
	}
}

// learn takes in a record unless it is known already.
func (v *view) learn(r record.Record) {
	switch r := r.(type) {
	case *record.Migration:
		v.learnMigration(r)
	case *record.VM:
		v.learnVM(r)
	case *record.Host:
		v.learnHost(r)
	}
}

// forget takes in that a record is gone.
func (v *view) forget(key record.Key) {
	switch key.Kind {
	case record.MigrationKind:
		if f := v.flights[migration.ID(key.Name)]; f != nil {
			v.release(f)
			v.queue.remove(f)
			if !f.ended {
				v.unfinished--
			}
			delete(v.flights, f.rec.Spec.ID)
			g := v.guest(f.rec.Spec.VM)
			g.flights = slices.DeleteFunc(g.flights, func(o *flight) bool { return o == f })
		}
	case record.VMKind:
		if g := v.guests[hypervisor.VMID(key.Name)]; g != nil {
			v.move(g, "")
			v.unreserve(g)
			g.rec, g.place = nil, nil
			v.reserveAll(g)
			v.lookAtFlights(g)
		}
	case record.HostKind:
		if s := v.hosts[hypervisor.HostName(key.Name)]; s != nil {
			s.rec = &record.Host{Host: hypervisor.Host{Name: s.rec.Host.Name}, Lost: true}
			v.bookHost(s)
			v.lookAtAllOf(s.rec.Host.Name)
		}
	}
}

func (v *view) learnMigration(m *record.Migration) {
	f := v.flights[m.Spec.ID]
	switch {
	case f == nil:
		f = &flight{rec: m}
		v.flights[m.Spec.ID] = f
		g := v.guest(m.Spec.VM)
		at, _ := slices.BinarySearchFunc(g.flights, f, func(a, b *flight) int {
			return migration.ByPrecedence(ageOnly(a), ageOnly(b))
		})
		g.flights = slices.Insert(g.flights, at, f)
		v.unfinished++
	case f.rec.Version >= m.Version:
		return
	}
	if m.State.Phase.Final() && !f.ended {
		f.ended = true
		v.unfinished--
	}
	f.rec = m
	v.account(f)
	v.dirty.Add(m.Spec.ID)
	if m.State.Phase.Final() {
		v.lookAtFlights(v.guest(m.Spec.VM))
	}
	if g := v.guest(m.Spec.VM); g.on != "" && (v.eager || m.State.Phase == migration.Failed) {
		v.plan(g.on)
	}
}

// ageOnly orders the flights of one VM by age, whatever their priority.
func ageOnly(f *flight) migration.Spec {
	return migration.Spec{ID: f.rec.Spec.ID, Created: f.rec.Spec.Created}
}

// account brings slots and books in line with a migration's record.
func (v *view) account(f *flight) {
	s := &f.rec.State
	holds := migration.HoldsSlot(s.Phase, s.Target != "", true)
	slot := migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}
	if f.holds && (!holds || slot != f.slot) {
		v.release(f)
	}
	if holds && !f.holds {
		f.holds, f.slot = true, slot
		v.slots.Take(slot)
		v.reserve(f)
	}
}

// reserve books room for a migration at its target, as much as its VM takes. A VM
// whose record is gone may still be on its way: it takes nobody knows how much,
// and counts as incoming.
func (v *view) reserve(f *flight) {
	if !f.holds || f.slot.Target == "" {
		return
	}
	place := v.guest(f.rec.Spec.VM).place
	if place == nil {
		place = &placement.VM{ID: f.rec.Spec.VM}
	}
	v.site(f.slot.Target) // the books know every host that is spoken of
	if v.books.Reserve(place, f.slot.Target) {
		f.reserved, f.vm = f.slot.Target, place
	}
}

func (v *view) reserveAll(g *guest) {
	for _, f := range g.flights {
		v.reserve(f)
	}
}

// unreserve gives back the room that is booked for a VM's migrations.
func (v *view) unreserve(g *guest) {
	for _, f := range g.flights {
		if f.reserved != "" {
			v.books.Cancel(f.vm, f.reserved)
			f.reserved = ""
		}
	}
}

// release gives back what a migration holds.
func (v *view) release(f *flight) {
	if !f.holds {
		return
	}
	f.holds = false
	v.slots.Return(f.slot)
	if f.reserved != "" {
		v.books.Cancel(f.vm, f.reserved)
		f.reserved = ""
	}
	v.room = true
	v.queue.freed(f.slot.Source)
}

func (v *view) learnVM(r *record.VM) {
	g := v.guest(r.VM.ID)
	if g.rec != nil && g.rec.Version >= r.Version {
		return
	}
	old := g.rec
	v.move(g, "")
	v.unreserve(g)
	g.rec = r
	g.place = &placement.VM{ID: r.VM.ID, Memory: r.VM.Memory, CPUs: r.VM.CPUs}
	if r.Placement != nil {
		g.place.Constraints = *r.Placement
	}
	v.move(g, r.Host)
	v.reserveAll(g)
	v.lookAtFlights(g)
	if old != nil && !leavesDifferently(old, r) {
		return
	}
	v.room = true
	s := v.site(r.Host)
	if v.drains(s) || s.marked > 0 || old != nil && old.Mark != r.Mark {
		v.plan(r.Host)
	}
}

// leavesDifferently reports whether evacuation may see the VM in a new light.
func leavesDifferently(a, b *record.VM) bool {
	return a.Host != b.Host || a.Mark != b.Mark || a.Strategy != b.Strategy ||
		a.Migratable != b.Migratable || a.Ended != b.Ended ||
		a.Claim != "" && b.Claim == ""
}

// move books a guest out of where it is and into another host; "" is nowhere.
func (v *view) move(g *guest, to hypervisor.HostName) {
	if g.on != "" {
		if g.booked {
			v.books.Leave(g.place, g.on)
			g.booked = false
		}
		s := v.site(g.on)
		delete(s.guests, g.rec.VM.ID)
		if g.rec.Mark == g.on {
			s.marked--
		}
	}
	g.on = to
	if to == "" {
		return
	}
	s := v.site(to)
	s.guests[g.rec.VM.ID] = g
	if g.rec.Mark == to {
		s.marked++
	}
	if !g.rec.Ended && v.books.Reserve(g.place, to) { // who has ended takes no room
		v.books.Arrive(to)
		g.booked = true
	}
}

func (v *view) learnHost(h *record.Host) {
	s := v.site(h.Host.Name)
	if s.rec.Version >= h.Version {
		return
	}
	worse := h.Lost != s.rec.Lost || h.Fenced != s.rec.Fenced
	drained := v.drains(s)
	s.rec = h
	v.bookHost(s)
	if drained || v.drains(s) || s.marked > 0 {
		v.plan(h.Host.Name)
	}
	if worse {
		v.lookAtAllOf(h.Host.Name)
	}
}

// bookHost hands what a host's record says to the books, which keep what is
// used and reserved.
func (v *view) bookHost(s *site) {
	h := s.rec
	b, _ := v.books.Get(h.Host.Name)
	b.Name, b.Memory, b.CPUs = h.Host.Name, h.Host.Memory, h.Host.CPUs
	b.Labels, b.Taints = h.Labels, h.Taints
	b.Down, b.Closed = h.Lost || h.Fenced, h.Closed || v.drains(s)
	v.books.Update(b)
	v.room = true
}

func (v *view) drains(s *site) bool { return v.drain(s.rec) }

// lookAtAllOf marks every unfinished migration from or to a host, and those that
// wait because an earlier one has left something there.
func (v *view) lookAtAllOf(host hypervisor.HostName) {
	var ids []migration.ID
	for id, f := range v.flights {
		switch s := &f.rec.State; {
		case s.Source != host && s.Target != host:
		case !s.Phase.Final():
			ids = append(ids, id)
		case !f.cleared(false):
			for _, waiting := range v.guest(f.rec.Spec.VM).flights {
				ids = append(ids, waiting.rec.Spec.ID)
			}
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		v.dirty.Add(id)
	}
}

// lookAtFlights marks a VM's migrations, except those of which nothing is left
// to be done.
func (v *view) lookAtFlights(g *guest) {
	for _, f := range g.flights {
		if !f.rec.State.Released || g.rec != nil && g.rec.Claim == f.rec.Spec.ID {
			v.dirty.Add(f.rec.Spec.ID)
		}
	}
}

// plan marks a host whose evacuation may have to be planned anew.
func (v *view) plan(host hypervisor.HostName) {
	if s := v.hosts[host]; s != nil && s.rec.Version != 0 {
		v.plans.Add(host)
	}
}

// guest returns the VM's entry; its record is nil while it is not known.
func (v *view) guest(id hypervisor.VMID) *guest {
	g := v.guests[id]
	if g == nil {
		g = &guest{}
		v.guests[id] = g
	}
	return g
}

// site returns the host's entry; a host that is not known counts as lost.
func (v *view) site(name hypervisor.HostName) *site {
	s := v.hosts[name]
	if s == nil {
		s = &site{rec: &record.Host{Host: hypervisor.Host{Name: name}, Lost: true},
			guests: map[hypervisor.VMID]*guest{}}
		v.hosts[name] = s
		v.bookHost(s)
	}
	return s
}
