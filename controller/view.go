package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller/books"
	"github.com/godwit-vm/godwit/controller/queue"
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
	books   *books.Books
	queue   queue.Queue[*flight]
	drain   func(*record.Host) bool
	eager   bool // plan evacuations on every step of a migration

	dirty due.Work[migration.ID]        // migrations to be stepped
	plans due.Work[hypervisor.HostName] // hosts whose evacuation is to be planned

	moves []books.Move // scratch of rebook

	unfinished int                 // migrations that have not ended
	nowhere    queue.Line[*flight] // migrations that fit nowhere when they were tried
	room       bool                // room has appeared since then
}

// flight is one migration in the view.
type flight struct {
	rec     *record.Migration
	guest   *guest // the VM that it moves
	ended   bool
	holds   bool
	slot    migration.Slot
	tries   int  // how often no host was found in a row
	nowhere bool // it is in view.nowhere
	overrun bool // its tenant's quota was in the way when it was tried
}

// Asked implements [queue.Item].
func (f *flight) Asked() migration.Spec { return f.rec.Spec }

// guest is one VM in the view.
type guest struct {
	rec     *record.VM
	place   *placement.VM       // nil while the record is not known
	on      hypervisor.HostName // where it is at home
	site    *site               // the host of that name; nil while it is nowhere
	flights []*flight           // oldest first
}

// site is one host in the view.
type site struct {
	rec    *record.Host
	guests map[hypervisor.VMID]*guest
	marked int       // guests that were asked to leave
	newest time.Time // when the youngest migration from here was created
}

func newView(c books.Config, eager bool, drain func(*record.Host) bool) *view {
	if c.Inbound == migration.Unlimited {
		c.Inbound = 0
	}
	return &view{
		eager:   eager,
		flights: map[migration.ID]*flight{},
		guests:  map[hypervisor.VMID]*guest{},
		hosts:   map[hypervisor.HostName]*site{},
		books:   books.New(c),
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
			v.queue.Remove(f)
			if !f.ended {
				v.unfinished--
			}
			delete(v.flights, f.rec.Spec.ID)
			g := f.guest
			g.flights = slices.DeleteFunc(g.flights, func(o *flight) bool { return o == f })
			v.rebook(string(f.rec.Spec.VM), g)
		}
	case record.VMKind:
		if g := v.guests[hypervisor.VMID(key.Name)]; g != nil {
			v.move(g, "")
			g.rec, g.place = nil, nil
			v.rebook(key.Name, g)
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
		g := v.guest(m.Spec.VM)
		f = &flight{rec: m, guest: g}
		v.flights[m.Spec.ID] = f
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
		v.lookAtFlights(f.guest)
	}
	if g := f.guest; g.on != "" && (v.eager || m.State.Phase == migration.Failed) {
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
	}
	v.rebook(string(f.rec.Spec.VM), f.guest)
}

// rebook tells the books what a VM holds: its home, unless it has ended, and the
// targets of its migrations. A migration that has succeeded keeps its target until
// the VM's record says where the VM is.
func (v *view) rebook(id string, g *guest) {
	s := books.Standing{VM: g.place, Moves: v.moves[:0]}
	if g.rec != nil && !g.rec.Ended {
		s.Home = g.on
	}
	for _, f := range g.flights {
		landed := f.rec.State.Phase == migration.Succeeded && g.rec != nil &&
			g.rec.Claim == f.rec.Spec.ID && g.rec.Host == f.rec.State.Source
		if f.rec.State.Target != "" && (f.holds || landed) {
			s.Moves = append(s.Moves, f.booking(f.rec.State.Target, landed))
		}
	}
	v.books.Set(hypervisor.VMID(id), s)
	v.moves = s.Moves
}

// booking is what a migration holds at its target.
func (f *flight) booking(target hypervisor.HostName, landed bool) books.Move {
	return books.Move{ID: f.rec.Spec.ID, Target: target, Landed: landed,
		Owner: f.rec.Spec.By.String(), Deadline: f.rec.State.Deadline}
}

// release gives back the slot that a migration holds.
func (v *view) release(f *flight) {
	if !f.holds {
		return
	}
	f.holds = false
	v.slots.Return(f.slot)
	v.room = true
	v.queue.Freed(f.slot.Source)
}

func (v *view) learnVM(r *record.VM) {
	g := v.guest(r.VM.ID)
	if g.rec != nil && g.rec.Version >= r.Version {
		return
	}
	old := g.rec
	if old == nil || !r.PlacedAs(old) {
		g.place = r.Place()
	}
	if old != nil && old.Host == r.Host && old.Mark == r.Mark {
		g.rec = r // it stays where it is
	} else {
		v.move(g, "")
		g.rec = r
		v.move(g, r.Host)
	}
	v.rebook(string(r.VM.ID), g)
	v.lookAtFlights(g)
	if old != nil && !books.LeavesDifferently(old, r) {
		return
	}
	v.room = true
	s := g.site
	if s == nil {
		s = v.site(r.Host)
	}
	if v.drains(s) || s.marked > 0 || old != nil && old.Mark != r.Mark {
		v.plan(r.Host)
	}
}

// move takes a guest from where it is to another host; "" is nowhere.
func (v *view) move(g *guest, to hypervisor.HostName) {
	if g.on != "" {
		delete(g.site.guests, g.rec.VM.ID)
		if g.rec.Mark == g.on {
			g.site.marked--
		}
	}
	if g.on, g.site = to, nil; to == "" {
		return
	}
	g.site = v.site(to)
	g.site.guests[g.rec.VM.ID] = g
	if g.rec.Mark == to {
		g.site.marked++
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

// bookHost hands what a host's record says to the books.
func (v *view) bookHost(s *site) {
	v.books.Host(s.rec, s.rec.Closed || v.drains(s))
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
		case !books.Cleared(f.rec, false):
			for _, waiting := range f.guest.flights {
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
