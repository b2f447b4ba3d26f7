package explore

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// listed is what is known of the migrations that are stored. Neither the list nor the count
// is changed once it is made, so that it is brought back with the rest of a state.
type listed struct {
	list  []*store.Migration // in the order of their IDs
	known bool               // the list is right
	slots *migration.Slots   // that they hold; nil is not counted
}

// all lists the migrations that are stored.
func (w *World) all() []*store.Migration {
	if w.known {
		return w.list
	}
	c, _ := w.Store.Changes(w.ctx, store.Everything, 0) // memory does not fail
	w.listed = listed{known: true}
	for _, r := range c.Records {
		if m, ok := r.(*store.Migration); ok {
			w.list = append(w.list, m)
		}
	}
	slices.SortFunc(w.list, byID)
	return w.list
}

func byID(a, b *store.Migration) int { return cmp.Compare(a.Spec.ID, b.Spec.ID) }

// relist takes in that a migration was written; before is nil when it is new.
func (w *World) relist(before, after *store.Migration) {
	if !w.known {
		return
	}
	at, there := slices.BinarySearchFunc(w.list, after, byID)
	if w.list = slices.Clone(w.list); there {
		w.list[at] = after
	} else {
		w.list = slices.Insert(w.list, at, after)
	}
	if before == nil || slotOf(before) != slotOf(after) {
		w.slots = nil
	}
}

// forget takes in that migrations may have been deleted.
func (w *World) forget() { w.listed = listed{} }

// Migrations implements [sim.InvariantWorld].
func (w *World) Migrations(vm hypervisor.VMID) []*store.Migration {
	var list []*store.Migration
	for _, m := range w.all() {
		if m.Spec.VM == vm {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *store.Migration) int {
		return a.Spec.Created.Compare(b.Spec.Created)
	})
	return list
}

// slot is what a migration holds, if anything.
type slot struct {
	migration.Slot
	held bool
}

func slotOf(m *store.Migration) slot {
	s := &m.State
	if !migration.HoldsSlot(s.Phase, s.Target != "", true) {
		return slot{}
	}
	return slot{migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}, true}
}

// Slots implements [sim.InvariantWorld].
func (w *World) Slots() *migration.Slots {
	all := w.all()
	if w.slots == nil {
		w.slots = new(migration.Slots)
		for _, m := range all {
			if s := slotOf(m); s.held {
				w.slots.Take(s.Slot)
			}
		}
	}
	return w.slots
}
