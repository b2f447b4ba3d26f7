// Package tally keeps the books of a simulated world, from its records alone: what each
// migration was last said to be, what it holds of the limits, how it ended, where VMs are at
// home, and when drained hosts were empty. It decides nothing, and reads no clock: times are
// virtual, and the caller's.
package tally

import (
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/drains"
)

// Totals counts migrations by how they ended.
type Totals struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"` // cancelled by somebody
	// MemoryLost counts those of Succeeded whose VM lost its memory on arrival and
	// started anew.
	MemoryLost int `json:"memoryLost,omitempty"`
}

// A Move is a migration.
type Move struct {
	Last  *record.Migration // as it was last written
	slot  migration.Slot
	holds bool // the slot, by its record
}

// A Book is what is known of a world by its records. Use [New].
type Book struct {
	Slots  migration.Slots // that are held
	Totals Totals
	Moved  []*Move // migrations that have succeeded, in the order of their ends
	Done   int     // migrations that have ended
	Drains drains.Book
	// News is when something happened that had not happened before.
	News time.Duration
	// Shown says that somebody may keep what Put returns.
	Shown bool

	moves    map[migration.ID]*Move
	kept     map[hypervisor.VMID][]*Move // those that are kept, oldest first
	home     map[hypervisor.VMID]hypervisor.HostName
	names    []hypervisor.VMID // of home, in order; nil: they have changed
	failures map[hypervisor.VMID]int
	blank    record.Migration // what a new one was before
}

// New returns an empty book.
func New() Book {
	return Book{moves: map[migration.ID]*Move{}, kept: map[hypervisor.VMID][]*Move{},
		home: map[hypervisor.VMID]hypervisor.HostName{}, failures: map[hypervisor.VMID]int{}}
}

// Has reports whether there is, or was, a migration of that name.
func (b *Book) Has(id migration.ID) bool { return b.moves[id] != nil }

// Of returns the migrations of a VM that are kept, oldest first. Nobody changes the list.
func (b *Book) Of(vm hypervisor.VMID) []*Move { return b.kept[vm] }

// Home returns where a VM is at home; "" is that it has no record.
func (b *Book) Home(vm hypervisor.VMID) hypervisor.HostName { return b.home[vm] }

// VMs returns the VMs that have a record, in order. Nobody changes the list.
func (b *Book) VMs() []hypervisor.VMID {
	if b.names == nil {
		b.names = slices.AppendSeq(make([]hypervisor.VMID, 0, len(b.home)), maps.Keys(b.home))
		slices.Sort(b.names)
	}
	return b.names
}

// Sent returns what all migrations have sent, as far as they have told.
func (b *Book) Sent() hypervisor.Bytes {
	var sent hypervisor.Bytes
	for _, t := range b.moves {
		sent += t.Last.Source.Sent
	}
	return sent
}

// Put enters a migration as it is now, and returns it as it was before: with only a Spec
// when it is new. Nil says that it, or a later writing of it, was entered before. What is
// returned holds until the next Put, or for good when it is Shown.
func (b *Book) Put(m *record.Migration, now time.Duration) *record.Migration {
	t := b.moves[m.Spec.ID]
	var before *record.Migration
	switch {
	case t == nil:
		t, before = &Move{}, b.begin(m, now)
		b.moves[m.Spec.ID], b.kept[m.Spec.VM] = t, append(b.kept[m.Spec.VM], t)
	case t.Last.Version >= m.Version:
		return nil
	default:
		before = t.Last
	}
	t.Last = m
	s := &m.State
	b.hold(t, migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target},
		migration.HoldsSlot(s.Phase, s.Target != "", true))
	if s.Phase.Final() && !before.State.Phase.Final() {
		b.end(t, now)
	}
	return before
}

// begin counts a new migration, and returns what it was before: nothing.
func (b *Book) begin(m *record.Migration, now time.Duration) *record.Migration {
	b.Totals.Total++
	if b.failures[m.Spec.VM] == 0 {
		b.News = now
	}
	before := &b.blank
	if b.Shown {
		before = &record.Migration{}
	}
	before.Spec = m.Spec
	return before
}

// repeats is how often a VM's migration may fail before one more failure is
// nothing new.
const repeats = 6

// end counts a migration that has come to its end.
func (b *Book) end(t *Move, now time.Duration) {
	vm, s := t.Last.Spec.VM, &t.Last.State
	b.Done++
	if b.failures[vm]++; b.failures[vm] <= repeats || s.Phase == migration.Succeeded {
		b.News = now
	}
	switch {
	case s.Phase == migration.Succeeded:
		b.Totals.Succeeded++
		if s.Because == migration.MemoryLost {
			b.Totals.MemoryLost++
		}
		delete(b.failures, vm)
		b.Moved = append(b.Moved, t)
	case s.Because == "canceled":
		b.Totals.Aborted++
	default:
		b.Totals.Failed++
	}
}

// hold counts the slot that a migration holds from now on, if it holds one.
func (b *Book) hold(t *Move, slot migration.Slot, holds bool) {
	if t.holds == holds && t.slot == slot {
		return
	}
	if t.holds {
		b.Slots.Return(t.slot)
	}
	if t.slot, t.holds = slot, holds; holds {
		b.Slots.Take(slot)
	}
}

// PutVM enters where a VM is at home.
func (b *Book) PutVM(v *record.VM, now time.Duration) {
	id := v.VM.ID
	from := b.home[id]
	if from == v.Host {
		return
	}
	b.News, b.home[id] = now, v.Host
	b.Drains.Came(v.Host)
	if from == "" {
		b.names = nil
		return
	}
	b.Drains.Left(from, now)
}

// Gone enters that a record is no longer there.
func (b *Book) Gone(key record.Key, now time.Duration) {
	switch key.Kind {
	case record.MigrationKind:
		if t := b.moves[migration.ID(key.Name)]; t != nil {
			b.hold(t, migration.Slot{}, false)
			vm := t.Last.Spec.VM
			b.kept[vm] = slices.DeleteFunc(b.kept[vm], func(o *Move) bool { return o == t })
		}
	case record.VMKind:
		id := hypervisor.VMID(key.Name)
		if from := b.home[id]; from != "" {
			b.Drains.Left(from, now)
		}
		delete(b.home, id)
		b.names = nil
	}
}
