package sim

import (
	"slices"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// watch sees everything that is stored and everything that runs. It keeps the
// statistics that the invariants and the result need, and touches nothing.
type watch struct {
	stats
	w *World

	triggers   []When
	deleted    map[hypervisor.VMID]bool
	powerless  map[hypervisor.HostName]bool
	words      map[hypervisor.HostName]bool // said to be off, and nothing speaks against it yet
	orphans    map[orphan]bool
	overbooked map[hypervisor.HostName]bool // as they were set up, and nothing has come to them since
	faulty     bool                         // something has been broken
	violations []Violation
	told       map[string]bool
}

func newWatch(w *World) watch {
	x := watch{w: w, stats: newStats(), deleted: map[hypervisor.VMID]bool{},
		powerless: map[hypervisor.HostName]bool{}, told: map[string]bool{},
		words: map[hypervisor.HostName]bool{}, orphans: map[orphan]bool{},
		overbooked: map[hypervisor.HostName]bool{}}
	x.Shown = w.config.Watch != nil
	return x
}

// stored takes in a record that was written, or deleted. Every writing is seen, not only the
// last before a look.
func (x *watch) stored(old, now store.Record) {
	switch r := now.(type) {
	case nil:
		x.Gone(old, x.w.Now())
	case *store.Migration:
		x.migration(r)
	case *store.VM:
		x.PutVM(r, x.w.Now())
		before, is := old.(*store.VM)
		if x.overbooked[r.Host] && (!is || before.Host != r.Host || r.Place().Demand() > before.Place().Demand()) {
			delete(x.overbooked, r.Host)
		}
		if is && x.w.config.WatchVM != nil {
			x.w.config.WatchVM(x.w.Now(), before, r)
		}
	case *store.Host:
		x.word(r)
		host := evacuation.Host{Name: r.Host.Name, Taints: r.Taints}
		if x.w.config.Controller.Evacuation.Draining(host) {
			x.Drains.Begin(r.Host.Name, x.w.Now())
		} else {
			x.Drains.End(r.Host.Name)
		}
	}
}

// check checks the invariants of the VMs whose domains have changed.
func (x *watch) check() {
	for _, vm := range x.w.network.Touched() {
		x.w.checkVM(vm)
	}
}

func (x *watch) migration(m *store.Migration) {
	before := x.Put(m, x.w.Now())
	if before == nil {
		return
	}
	x.w.checkMigration(before, m)
	if x.w.config.Watch != nil {
		x.w.config.Watch(x.w.Now(), before, m)
	}
	if m.State.Phase != before.State.Phase {
		x.fire(before.State.Phase, m)
	}
}

// fire lets happen what waited for a migration to come to a phase, or to pass it.
func (x *watch) fire(from migration.Phase, m *store.Migration) {
	to := m.State.Phase
	x.triggers = slices.DeleteFunc(x.triggers, func(t When) bool {
		passed := from < t.Phase && t.Phase < to && !to.Final()
		due := t.VM == m.Spec.VM && (t.Phase == to || passed)
		if due {
			x.w.At(x.w.Now(), t.Do)
		}
		return due
	})
}
