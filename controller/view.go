package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// view is the controller's picture of the records, and what follows from it:
// slots, books and who is where. All of it can be made again from the store.
type view struct {
	flights map[migration.ID]*flight
	guests  map[hypervisor.VMID]*guest
	hosts   map[hypervisor.HostName]*site
	groups  map[string][]*guest // that are to be on one host, by group
	bare    bool                // nothing is reserved in the books for what comes later
	latest  *flight             // that was looked at: news are of it more often than not
	slots   migration.Slots
	books   *Reservations
	queue   Queue[*flight]
	drain   func(*store.Host) bool
	eager   bool // plan evacuations on every step of a migration

	dirty due.Work[*flight]             // migrations to be stepped
	plans due.Work[hypervisor.HostName] // hosts whose evacuation is to be planned
	// starts are VMs that are off and are to run, and whose host may not take them.
	starts due.Work[hypervisor.VMID]
	// releases are VMs whose claims are stale.
	releases due.Work[hypervisor.VMID]
	begun    []*store.Rebuild // of VMs that have been started elsewhere, and are cleaned up
	moves    []Move           // scratch of rebook
	plain    placement.VM     // scratch of placed: a VM without constraints

	traffic   traffic                // on links, where they are shared by a model
	health    migration.TargetHealth // what ended migrations say of hosts
	failed    []hypervisor.HostName  // of migrations that failed since they were looked at
	forgiving bool                   // as KubeVirt: no host is remembered

	unfinished int                    // migrations that have not ended
	stuck      int                    // of them, those for which no host was found at the last try
	nowhere    PriorityQueue[*flight] // migrations that fit nowhere when they were tried
	room       bool                   // room has appeared since then
}

// flight is one migration in the view.
type flight struct {
	rec     *store.Migration
	guest   *guest // the VM that it moves
	source  *site  // what its record names, as target; nil while it names none
	target  *site
	alarm   due.Alarm[*flight] // when it is to be looked at, changed or not
	turn    QueueEntry         // in the view's queue
	gone    bool               // its record is gone
	ended   bool
	holds   bool   // a slot
	tries   uint8  // how often no host was found in a row, as far as that matters
	hosts   bool   // it has failed before the transfer, for what a host did
	nowhere bool   // it is in view.nowhere
	wires   []wire // that it uses; none where links are not shared by a model
	waitsOn wire   // it waits for its turn there; the zero value is nowhere
	told    wire   // what it was last said to wait for
	overrun bool   // its tenant's quota was in the way when it was tried
	capped  bool   // its cap on the bandwidth is what this controller is configured with
}

// Asked implements [Item].
func (f *flight) Asked() *migration.Spec { return &f.rec.Spec }

// Turn implements [Item].
func (f *flight) Turn() *QueueEntry { return &f.turn }

// guest is one VM in the view.
type guest struct {
	rec     *store.VM
	place   *placement.VM // of one with constraints; the others share view.plain
	site    *site         // where it is at home; nil while it is nowhere
	at      int           // in the site's guests
	flights []*flight     // oldest first
	one     [1]*flight    // where they are, as a rule
	account Allocation
}

// site is one host in the view.
type site struct {
	rec    *store.Host
	drains bool      // it carries the drain taint
	guests []*guest  // in no order
	marked int       // guests that were asked to leave
	next   time.Time // the next migration from here is not created before
}

func (s *site) name() hypervisor.HostName { return s.rec.Host.Name }

// learn takes in a record unless it is known already.
func (v *view) learn(r store.Record) {
	switch r := r.(type) {
	case *store.Migration:
		v.learnMigration(r)
	case *store.VM:
		v.learnVM(r)
	case *store.Host:
		v.learnHost(r)
	case *store.Rebuild:
		if r.Cleaned && r.Evidence.Proof == hypervisor.ProcessReaped {
			v.begun = append(v.begun, r)
		}
	}
}

// forget takes in that a record is gone.
func (v *view) forget(key store.Key) {
	switch key.Kind {
	case store.MigrationKind:
		if f := v.flights[migration.ID(key.Name)]; f != nil {
			v.release(f, &f.rec.State)
			v.queue.Remove(f)
			v.forgetOutcome(f)
			f.gone = true
			if v.setTries(f, 0); !f.ended {
				v.unfinished--
			}
			delete(v.flights, f.rec.Spec.ID)
			g := f.guest
			g.flights = slices.DeleteFunc(g.flights, func(o *flight) bool { return o == f })
			v.rebook(string(f.rec.Spec.VM), g)
		}
	case store.VMKind:
		if g := v.guests[hypervisor.VMID(key.Name)]; g != nil {
			v.move(g, "")
			v.untie(g)
			g.rec, g.place = nil, nil
			v.rebook(key.Name, g)
			v.lookAtFlights(g)
		}
	case store.HostKind:
		if s := v.hosts[hypervisor.HostName(key.Name)]; s != nil {
			defer v.startAllOf(s)
			v.bookHost(s, &store.Host{Host: hypervisor.Host{Name: s.rec.Host.Name}, Lost: true})
			v.lookAtAllOf(s)
		}
	}
}

func (v *view) learnMigration(m *store.Migration) {
	f, before := v.latest, &migration.State{}
	if f == nil || f.gone || f.rec.Spec.ID != m.Spec.ID {
		f = v.flights[m.Spec.ID]
	}
	switch {
	case f == nil:
		if f = v.board(m); m.Spec.By == migration.User && len(f.guest.flights) > 1 {
			v.lookAtFlights(f.guest) // one of them may give way
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
	if f.rec = m; ends {
		v.learnOutcome(f)
	}
	v.account(f, before)
	v.dirty.Add(f)
	if m.State.Phase.Final() {
		v.lookAtFlights(f.guest)
	}
	if s := f.guest.site; s != nil && (v.eager || m.State.Phase == migration.Failed) {
		v.plan(s)
	}
}

// setTries notes how often no host was found for a migration in a row.
func (v *view) setTries(f *flight, tries uint8) {
	switch {
	case f.tries == 0 && tries > 0:
		v.stuck++
	case f.tries > 0 && tries == 0:
		v.stuck--
	}
	f.tries = tries
}

// board enters a migration that was not known.
func (v *view) board(m *store.Migration) *flight {
	g := v.guest(m.Spec.VM)
	f := &flight{rec: m, guest: g}
	f.alarm.Of = f
	v.flights[m.Spec.ID] = f
	at, _ := slices.BinarySearchFunc(g.flights, f, byAge)
	if g.flights = slices.Insert(g.flights, at, f); len(g.flights) > 1 {
		g.one[0] = nil // they are elsewhere
	}
	v.unfinished++
	return f
}

// byAge orders flights, whatever their priority.
func byAge(a, b *flight) int {
	return cmp.Or(a.rec.Spec.Created.Compare(b.rec.Spec.Created),
		cmp.Compare(a.rec.Spec.ID, b.rec.Spec.ID))
}

// account brings slots and books in line with a migration's record. They change with its
// state alone, and most writings do not change that.
func (v *view) account(f *flight, before *migration.State) {
	s := &f.rec.State
	if s.Phase == before.Phase && s.Source == before.Source && s.Target == before.Target &&
		s.Deadline.Equal(before.Deadline) {
		return
	}
	leaves, goes := s.Source != before.Source, s.Target != before.Target
	if leaves {
		f.source = v.siteOf(s.Source)
	}
	if goes {
		f.target = v.siteOf(s.Target)
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
		v.books.Extend(&f.guest.account, f.rec.Spec.ID, s.Deadline)
	default:
		v.rebook(string(f.rec.Spec.VM), f.guest)
	}
}

// slotOf is the slot that a migration in a state holds, if it holds one.
func slotOf(s *migration.State) migration.Slot {
	return migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}
}

// rebook tells the books what a VM holds, and what the others of its group hold where it goes.
func (v *view) rebook(id string, g *guest) {
	v.book(id, g)
	if g.rec == nil || !g.binds() {
		return
	}
	for _, o := range v.company(g) {
		if o != g {
			v.book(string(o.rec.VM.ID), o)
		}
	}
}

// book tells the books what a VM holds: its home, unless it has ended, its moves' targets, and where it
// is to follow.
func (v *view) book(id string, g *guest) {
	s := Usage{VM: v.placed(g), Moves: v.moves[:0]}
	if g.site != nil && !g.rec.Ended {
		s.Home = g.site.name()
	}
	for _, f := range g.flights {
		if m, holds := Held(f.rec, g.rec); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	if m, holds := Restarts(g.rec); holds && !v.bare {
		s.Moves = append(s.Moves, m)
	}
	if g.rec != nil && !v.bare && len(s.Moves) == 0 {
		if m, holds := v.saved(g); holds {
			s.Moves = append(s.Moves, m)
		}
	}
	v.books.Set(hypervisor.VMID(id), &g.account, s)
	v.moves = s.Moves
}

// release gives back the slot that a migration holds, whose last state was s.
func (v *view) release(f *flight, s *migration.State) {
	if !f.holds {
		return
	}
	f.holds = false
	v.leave(f)
	v.slots.Return(slotOf(s))
	v.room = true
	v.queue.Freed(s.Source)
}

func (v *view) learnVM(r *store.VM) {
	g := v.guest(r.VM.ID)
	if g.rec != nil && g.rec.Version >= r.Version {
		return
	}
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
	if old != nil && old.Host == r.Host && old.Mark == r.Mark {
		g.rec = r // it stays where it is
	} else {
		v.move(g, "")
		g.rec = r
		v.move(g, r.Host)
	}
	if !placed || old.Host != r.Host || old.Ended != r.Ended || old.Evicted != r.Evicted || old.Stopped != r.Stopped ||
		old.Claim != r.Claim && slices.ContainsFunc(g.flights, succeeded) {
		v.rebook(string(r.VM.ID), g)
	}
	v.lookAtFlights(g)
	if r.Startable() {
		v.starts.Add(r.VM.ID)
	}
	if r.Released() {
		v.releases.Add(r.VM.ID)
	}
	if old != nil && !LeavesDifferently(old, r) {
		return
	}
	v.room = true
	if s := g.site; s != nil && (s.drains || s.marked > 0 || r.Evicted != nil ||
		old != nil && old.Mark != r.Mark) {
		v.plan(s)
	}
}

// succeeded reports whether a migration has: what it holds depends on whom its VM names.
func succeeded(f *flight) bool { return f.rec.State.Phase == migration.Succeeded }

// placed returns how placement sees a guest: nil while its record is not known. It is valid
// until the next call.
func (v *view) placed(g *guest) *placement.VM {
	if g.place != nil || g.rec == nil {
		return g.place
	}
	g.rec.PlaceIn(&v.plain)
	return &v.plain
}

// move takes a guest from where it is to another host; "" is nowhere.
func (v *view) move(g *guest, to hypervisor.HostName) {
	if s := g.site; s != nil {
		last := len(s.guests) - 1
		s.guests[g.at], s.guests[last].at = s.guests[last], g.at
		s.guests[last], s.guests = nil, s.guests[:last]
		if g.rec.Mark == s.name() {
			s.marked--
		}
	}
	if g.site = v.siteOf(to); g.site == nil {
		return
	}
	g.at, g.site.guests = len(g.site.guests), append(g.site.guests, g)
	if g.rec.Mark == to {
		g.site.marked++
	}
}

func (v *view) learnHost(h *store.Host) {
	s := v.site(h.Host.Name)
	if s.rec.Version >= h.Version {
		return
	}
	worse := h.Lost != s.rec.Lost || h.Fenced != s.rec.Fenced || h.Proof() != s.rec.Proof()
	drained, takes := s.drains, v.takes(s)
	v.bookHost(s, h)
	if takes && !v.takes(s) {
		v.startAllOf(s)
	}
	if drained || s.drains || s.marked > 0 {
		v.plan(s)
	}
	if worse {
		v.lookAtAllOf(s)
	}
}

// takes reports whether a host starts VMs that are off there, as far as its record alone says.
func (v *view) takes(s *site) bool {
	h := s.rec
	return h.Version != 0 && !h.Closed && !s.drains && !h.Lost && !h.Fenced
}

// startAllOf marks the VMs of a host that are off and are to run.
func (v *view) startAllOf(s *site) {
	var all []hypervisor.VMID
	for _, g := range s.guests {
		if g.rec.Startable() {
			all = append(all, g.rec.VM.ID)
		}
	}
	slices.Sort(all) // guests are in no order
	for _, vm := range all {
		v.starts.Add(vm)
	}
}

// bookHost hands what a host's record says to the books.
func (v *view) bookHost(s *site, h *store.Host) {
	drained := s.drains
	s.rec, s.drains = h, v.drain(h)
	v.books.Host(h, h.Closed || s.drains)
	if drained != s.drains {
		for _, g := range s.guests {
			if g.binds() {
				v.book(string(g.rec.VM.ID), g)
			}
		}
	}
	v.room = true
}

// lookAtAllOf marks every unfinished migration from or to a host, of one of its VMs that is
// not under way yet, too, and those that wait because an earlier one has left something there.
func (v *view) lookAtAllOf(s *site) {
	var all []*flight
	for _, f := range v.flights {
		switch {
		case f.source != s && f.target != s && f.guest.site != s:
		case !f.ended:
			all = append(all, f)
		case !Cleared(f.rec, false):
			all = append(all, f.guest.flights...)
		}
	}
	slices.SortFunc(all, byAge)
	for _, f := range all {
		v.dirty.Add(f)
	}
}

// lookAtFlights marks a VM's migrations, except those of which nothing is left to be done.
func (v *view) lookAtFlights(g *guest) {
	for _, f := range g.flights {
		if !f.rec.State.Released || g.rec != nil && g.rec.Claim == f.rec.Spec.ID {
			v.dirty.Add(f)
		}
	}
}

// plan marks a host whose evacuation may have to be planned anew.
func (v *view) plan(s *site) {
	if s.rec.Version != 0 {
		v.plans.Add(s.name())
	}
}

// guest returns the VM's entry; its record is nil while it is not known. Entries stay: they are
// cut from pieces, larger ones in a larger cluster.
func (v *view) guest(id hypervisor.VMID) *guest {
	if f := v.latest; f != nil && f.rec.Spec.VM == id {
		return f.guest
	}
	g := v.guests[id]
	if g == nil {
		g = new(guest)
		g.flights, v.guests[id] = g.one[:0], g
	}
	return g
}

// site returns the host's entry; a host that is not known counts as lost.
func (v *view) site(name hypervisor.HostName) *site {
	s := v.hosts[name]
	if s == nil {
		s = &site{}
		v.hosts[name] = s
		v.bookHost(s, &store.Host{Host: hypervisor.Host{Name: name}, Lost: true})
	}
	return s
}

// siteOf is site, and nil for no host.
func (v *view) siteOf(name hypervisor.HostName) *site {
	if name == "" {
		return nil
	}
	return v.site(name)
}
