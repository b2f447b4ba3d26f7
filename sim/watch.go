package sim

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/tally"
)

// watch sees everything that is stored and everything that runs. It keeps the
// books that the invariants and the result need, and touches nothing.
type watch struct {
	tally.Book
	w     *World
	seen  record.Revision
	fresh []*record.Migration // entered since the last look, oldest first

	triggers   []When
	deleted    map[hypervisor.VMID]bool
	powerless  map[hypervisor.HostName]bool
	faulty     bool // something has been broken
	violations []Violation
	told       map[string]bool
}

func newWatch(w *World) watch {
	x := watch{w: w, Book: tally.New(), deleted: map[hypervisor.VMID]bool{},
		powerless: map[hypervisor.HostName]bool{}, told: map[string]bool{}}
	x.Shown = w.config.Watch != nil
	return x
}

// look takes in what has changed, and checks the invariants of it.
func (x *watch) look() {
	changes, _ := x.w.store.Changes(x.w.ctx, record.Everything, x.seen) // memory does not fail
	x.seen = changes.Next
	for _, r := range changes.Records {
		switch r := r.(type) {
		case *record.Migration:
			if !x.entered(r) {
				x.migration(r)
			}
		case *record.VM:
			x.PutVM(r, x.w.Now())
		case *record.Host:
			host := evacuation.Host{Name: r.Host.Name, Taints: r.Taints}
			if x.w.config.Controller.Evacuation.Draining(host) {
				x.Drains.Begin(r.Host.Name, x.w.Now())
			} else {
				x.Drains.End(r.Host.Name)
			}
		}
	}
	for _, key := range changes.Gone {
		x.Gone(key, x.w.Now())
	}
	clear(x.fresh)
	x.fresh = x.fresh[:0]
}

// check checks the invariants of the VMs whose domains have changed.
func (x *watch) check() {
	for _, vm := range x.w.fabric.Touched() {
		x.w.checkVM(vm)
	}
}

// wrote takes in a record that a participant has just written.
func (x *watch) wrote(r record.Record) {
	if m, ok := r.(*record.Migration); ok {
		x.migration(m)
		x.fresh = append(x.fresh, m)
	}
}

// entered reports whether this very writing of a migration has been taken in.
func (x *watch) entered(m *record.Migration) bool {
	i, _ := slices.BinarySearchFunc(x.fresh, m.Version,
		func(f *record.Migration, v record.Version) int { return cmp.Compare(f.Version, v) })
	return i < len(x.fresh) && x.fresh[i] == m
}

func (x *watch) migration(m *record.Migration) {
	before := x.Put(m, x.w.Now())
	if before == nil {
		return
	}
	x.w.checkMigration(before, m)
	if x.w.config.Watch != nil {
		x.w.config.Watch(x.w.Now(), before, m)
	}
	if m.State.Phase != before.State.Phase {
		x.fire(m)
	}
}

// fire lets happen what waited for a migration to come to a phase.
func (x *watch) fire(m *record.Migration) {
	x.triggers = slices.DeleteFunc(x.triggers, func(t When) bool {
		due := t.VM == m.Spec.VM && t.Phase == m.State.Phase
		if due {
			x.w.At(x.w.Now(), t.Do)
		}
		return due
	})
}
