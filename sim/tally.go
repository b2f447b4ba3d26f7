package sim

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Totals counts migrations by how they ended.
type Totals struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"` // cancelled on request
	// MemoryLost counts those of Succeeded whose VM lost its memory on arrival and
	// started anew.
	MemoryLost int `json:"memoryLost,omitempty"`
}

// A moveStats is a migration.
type moveStats struct {
	Last *store.Migration // as it was last written
	Down time.Duration    // how long its guest stood in outages that have ended
}

// stats is what is known of a world by its records. Use [newStats].
type stats struct {
	Slots  migration.Slots // that are held
	Totals Totals
	Moved  []*moveStats // migrations that have succeeded, in the order of their ends
	Done   int          // migrations that have ended
	Drains drainTimes
	// News is when something happened that had not happened before.
	News time.Duration
	// Shown says that a caller may keep what Put returns.
	Shown bool

	guests   map[hypervisor.VMID]*guest
	names    []hypervisor.VMID     // of those with a home, in order; nil: they have changed
	gone     map[migration.ID]bool // migrations that were deleted
	sent     hypervisor.Bytes      // by them
	untold   int                   // of them that ended without a word about what they had sent
	lost     []time.Duration       // downtimes of those of them that did not succeed
	slowed   []store.Brownout      // of those of them whose guests were slowed down
	down     map[hypervisor.VMID]outage
	outages  outageStats     // that have ended
	failures []failureStats  // in the order of the first of each
	blank    store.Migration // what a new one was before
}

// guest is what is known of one VM.
type guest struct {
	home     hypervisor.HostName // "" is that it has no record
	stands   hypervisor.HostName // where a drain waits for it
	stood    time.Duration       // in outages that have ended
	kept     []*moveStats        // its migrations that are kept, oldest first
	failures int32               // since it was last moved
	wanted   bool                // it should run
	restarts bool                // as its operator wishes
	seen     bool                // does is known
	out      bool                // it has an entry in stats.down
	does     activity
	first    moveStats     // its first: most have one
	one      [1]*moveStats // room for kept
}

// newStats returns empty statistics.
func newStats() stats { return stats{guests: map[hypervisor.VMID]*guest{}} }

// Grow makes room for so many VMs, in empty statistics.
func (b *stats) Grow(n int) {
	if len(b.guests) == 0 {
		b.guests = make(map[hypervisor.VMID]*guest, n)
	}
}

// guest returns what is known of a VM, an empty entry for one that was unknown.
func (b *stats) guest(vm hypervisor.VMID) *guest {
	g := b.guests[vm]
	if g == nil {
		g = new(guest)
		b.guests[vm] = g
	}
	return g
}

// move returns a new move of a guest.
func (g *guest) move() *moveStats {
	if g.first.Last != nil {
		return &moveStats{}
	}
	g.kept = g.one[:0]
	return &g.first
}

// find returns a migration that is kept, the latest first; nil is none of that name.
func (g *guest) find(id migration.ID) *moveStats {
	for _, t := range slices.Backward(g.kept) {
		if t.Last.Spec.ID == id {
			return t
		}
	}
	return nil
}

// Has reports whether there is, or was, a migration of a VM with that name.
func (b *stats) Has(vm hypervisor.VMID, id migration.ID) bool {
	g := b.guests[vm]
	return g != nil && g.find(id) != nil || b.gone[id]
}

// Of returns the migrations of a VM that are kept, oldest first. The list must not be changed.
func (b *stats) Of(vm hypervisor.VMID) []*moveStats {
	if g := b.guests[vm]; g != nil {
		return g.kept
	}
	return nil
}

// Home returns where a VM is at home; "" is that it has no record.
func (b *stats) Home(vm hypervisor.VMID) hypervisor.HostName {
	if g := b.guests[vm]; g != nil {
		return g.home
	}
	return ""
}

// VMs returns the VMs that have a record, in order. The list must not be changed.
func (b *stats) VMs() []hypervisor.VMID {
	if b.names == nil {
		b.names = make([]hypervisor.VMID, 0, len(b.guests))
		for vm, g := range b.guests {
			if g.home != "" {
				b.names = append(b.names, vm)
			}
		}
		slices.Sort(b.names)
	}
	return b.names
}

// Sent returns what all migrations have sent, as far as they have told, and how many have ended
// without telling all of it: they have sent more.
func (b *stats) Sent() (sent hypervisor.Bytes, untold int) {
	sent, untold = b.sent, b.untold
	for _, g := range b.guests {
		for _, t := range g.kept {
			sent += t.Last.Source.Sent
			untold += t.untold()
		}
	}
	return sent, untold
}

// untold is 1 when a migration has begun to send, has ended, and how much it sent is unknown.
func (t *moveStats) untold() int {
	if m := t.Last; m.Source.Untold() && m.State.Phase.Final() {
		return 1
	}
	return 0
}

// brownoutsOf returns how guests were slowed down on their way, those that were, in no order.
func (b *stats) brownoutsOf() []store.Brownout {
	list := slices.Clone(b.slowed)
	for _, g := range b.guests {
		for _, t := range g.kept {
			if s := t.Last.Source.Brownout; s.Lasted > 0 {
				list = append(list, s)
			}
		}
	}
	return list
}

// Put enters a migration as it is now, and returns it as it was before: with only a Spec
// when it is new. Nil says that it, or a later writing of it, was entered before. What is
// returned holds until the next Put, or for good when it is Shown.
func (b *stats) Put(m *store.Migration, now time.Duration) *store.Migration {
	g := b.guest(m.Spec.VM)
	t := g.find(m.Spec.ID)
	var before *store.Migration
	switch {
	case t == nil:
		t, before = g.move(), b.begin(g, m, now)
		g.kept = append(g.kept, t)
	case t.Last.Version >= m.Version:
		return nil
	default:
		before = t.Last
	}
	t.Last = m
	b.hold(before, m)
	if m.State.Phase.Final() && !before.State.Phase.Final() {
		b.end(g, t, now)
	}
	return before
}

// begin counts a new migration, and returns what it was before: nothing.
func (b *stats) begin(g *guest, m *store.Migration, now time.Duration) *store.Migration {
	b.Totals.Total++
	if g.failures == 0 {
		b.News = now
	}
	before := &b.blank
	if b.Shown {
		before = &store.Migration{}
	}
	before.Spec = m.Spec
	return before
}

// repeats is how often a VM's migration may fail before one more failure is
// nothing new.
const repeats = 6

// end counts a migration that has come to its end.
func (b *stats) end(g *guest, t *moveStats, now time.Duration) {
	s := &t.Last.State
	b.Done++
	if g.failures++; g.failures <= repeats || s.Phase == migration.Succeeded {
		b.News = now
	}
	switch {
	case s.Phase == migration.Succeeded:
		b.Totals.Succeeded++
		if s.Because == migration.MemoryLost {
			b.Totals.MemoryLost++
		}
		g.failures = 0
		b.Moved = append(b.Moved, t)
	case migration.Withdrawn(s.Because):
		b.Totals.Aborted++
	default:
		b.Totals.Failed++
		b.fail(t.Last)
	}
}

// failureStats is migrations that failed for the same reason.
type failureStats struct {
	Why   string
	Count int
	VM    hypervisor.VMID // of the first of them
	More  bool            // others were of other VMs
}

// mostWhys is how many reasons are told apart by the hosts' own words. Further ones are by the
// rule that ended the migration.
const mostWhys = 32

// fail counts a migration that failed, by its reason.
func (b *stats) fail(m *store.Migration) {
	why := m.State.Because
	if text := m.Source.Error; text != "" && len(b.failures) < mostWhys {
		why += " (" + text + ")"
	}
	at := slices.IndexFunc(b.failures, func(f failureStats) bool { return f.Why == why })
	if at < 0 {
		at = len(b.failures)
		b.failures = append(b.failures, failureStats{Why: why, VM: m.Spec.VM})
	}
	b.failures[at].Count++
	b.failures[at].More = b.failures[at].More || b.failures[at].VM != m.Spec.VM
}

// failuresOf lists why migrations have failed, the most frequent reason first.
func (b *stats) failuresOf() []failureStats {
	all := slices.Clone(b.failures)
	slices.SortStableFunc(all, func(a, b failureStats) int { return b.Count - a.Count })
	return all
}

// hold counts the slot that a migration holds from now on, if it holds one; nil is that it is
// gone.
func (b *stats) hold(before, after *store.Migration) {
	was, held := slotOf(before)
	is, holds := slotOf(after)
	if held == holds && was == is {
		return
	}
	if held {
		b.Slots.Return(was)
	}
	if holds {
		b.Slots.Take(is)
	}
}

// slotOf returns the slot that a migration holds, if it does.
func slotOf(m *store.Migration) (migration.Slot, bool) {
	if m == nil || !migration.HoldsSlot(m.State.Phase, m.State.Target != "", true) {
		return migration.Slot{}, false
	}
	s := &m.State
	return migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}, true
}

// PutVM enters where a VM is at home.
func (b *stats) PutVM(v *store.VM, now time.Duration) {
	g := b.guest(v.VM.ID)
	b.want(g, v)
	b.judge(v.VM.ID, g, now)
	b.stand(g, v, now)
	from := g.home
	if from == v.Host {
		return
	}
	b.News, g.home = now, v.Host
	if from == "" {
		b.names = nil
	}
}

// stand enters on which host a VM stands in the way of a drain: not where it was shut down for it,
// and stays off.
func (b *stats) stand(g *guest, v *store.VM, now time.Duration) {
	at := hypervisor.HostName("")
	if v != nil && !(v.Ended && v.Evicted != nil && !v.Evicted.Restart) {
		at = v.Host
	}
	from := g.stands
	if from == at {
		return
	}
	if g.stands = at; at != "" {
		b.Drains.Arrived(at)
	}
	if from != "" {
		b.Drains.Departed(from, now)
	}
}

// Stands returns the host that is not empty because of a VM; "" is none.
func (b *stats) Stands(vm hypervisor.VMID) hypervisor.HostName {
	if g := b.guests[vm]; g != nil {
		return g.stands
	}
	return ""
}

// Gone enters that a record was deleted.
func (b *stats) Gone(r store.Record, now time.Duration) {
	switch r := r.(type) {
	case *store.Migration:
		g := b.guest(r.Spec.VM)
		if t := g.find(r.Spec.ID); t != nil {
			b.hold(t.Last, nil)
			b.sent += t.Last.Source.Sent
			b.untold += t.untold()
			if t.Down > 0 && !t.succeeded() {
				b.lost = append(b.lost, t.Down)
			}
			if s := t.Last.Source.Brownout; s.Lasted > 0 {
				b.slowed = append(b.slowed, s)
			}
			g.kept = slices.DeleteFunc(g.kept, func(o *moveStats) bool { return o == t })
			if b.gone == nil {
				b.gone = map[migration.ID]bool{}
			}
			b.gone[r.Spec.ID] = true
		}
	case *store.VM:
		g := b.guest(r.VM.ID)
		b.stand(g, nil, now)
		g.home, b.names = "", nil
		b.want(g, nil)
		b.judge(r.VM.ID, g, now)
	}
}
