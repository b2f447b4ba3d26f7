package sim

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/drains"
)

// watch sees everything that is stored and everything that runs. It keeps the
// books that the invariants and the result need, and touches nothing.
type watch struct {
	w    *World
	seen record.Revision

	last  map[migration.ID]*record.Migration
	ofVM  map[hypervisor.VMID][]migration.ID
	home  map[hypervisor.VMID]hypervisor.HostName // by the records
	slots migration.Slots

	triggers  []When
	deleted   map[hypervisor.VMID]bool
	powerless map[hypervisor.HostName]bool
	faulty    bool // something has been broken

	drains     drains.Book
	totals     Totals
	moved      []moved
	done       int       // migrations that have ended
	news       time.Time // when something happened that had not happened before
	failures   map[hypervisor.VMID]int
	violations []Violation
	told       map[string]bool
}

// moved is a migration that has succeeded.
type moved struct {
	vm             hypervisor.VMID
	id             migration.ID
	source, target hypervisor.HostName
}

func newWatch(w *World) watch {
	return watch{w: w,
		last:      map[migration.ID]*record.Migration{},
		ofVM:      map[hypervisor.VMID][]migration.ID{},
		home:      map[hypervisor.VMID]hypervisor.HostName{},
		deleted:   map[hypervisor.VMID]bool{},
		powerless: map[hypervisor.HostName]bool{},
		told:      map[string]bool{},
		failures:  map[hypervisor.VMID]int{},
		news:      w.now,
	}
}

// look takes in what has changed, and checks the invariants of it.
func (x *watch) look() {
	changes, _ := x.w.store.Changes(x.w.ctx, record.Everything, x.seen) // memory does not fail
	x.seen = changes.Next
	for _, r := range changes.Records {
		switch r := r.(type) {
		case *record.Migration:
			x.migration(r)
		case *record.VM:
			x.vm(r)
		case *record.Host:
			host := evacuation.Host{Name: r.Host.Name, Taints: r.Taints}
			if x.w.config.Controller.Evacuation.Draining(host) {
				x.drains.Begin(r.Host.Name, x.w.Now())
			} else {
				x.drains.End(r.Host.Name)
			}
		}
	}
	for _, key := range changes.Gone {
		x.gone(key)
	}
	for _, vm := range x.w.fabric.Touched() {
		x.w.checkVM(vm)
	}
}

func (x *watch) migration(m *record.Migration) {
	id := m.Spec.ID
	before := x.last[id]
	if before == nil {
		x.ofVM[m.Spec.VM] = append(x.ofVM[m.Spec.VM], id)
		x.totals.Total++
		before = &record.Migration{Spec: m.Spec}
		if x.failures[m.Spec.VM] == 0 {
			x.news = x.w.now
		}
	} else if before.Version >= m.Version {
		return
	}
	x.last[id] = m
	x.hold(before, -1)
	x.hold(m, +1)
	x.w.checkMigration(before, m)
	if x.w.config.Watch != nil {
		x.w.config.Watch(x.w.Now(), before, m)
	}
	if m.State.Phase != before.State.Phase {
		x.fire(m)
	}
	if m.State.Phase.Final() && !before.State.Phase.Final() {
		x.ended(m)
	}
}

// repeats is how often a VM's migration may fail before one more failure is
// nothing new.
const repeats = 6

// ended counts a migration that has come to its end.
func (x *watch) ended(m *record.Migration) {
	x.done++
	if x.failures[m.Spec.VM]++; x.failures[m.Spec.VM] <= repeats ||
		m.State.Phase == migration.Succeeded {
		x.news = x.w.now
	}
	switch {
	case m.State.Phase == migration.Succeeded:
		x.totals.Succeeded++
		if m.State.Because == migration.MemoryLost {
			x.totals.MemoryLost++
		}
		delete(x.failures, m.Spec.VM)
		x.moved = append(x.moved, moved{m.Spec.VM, m.Spec.ID, m.State.Source, m.State.Target})
	case m.State.Because == "canceled":
		x.totals.Aborted++
	default:
		x.totals.Failed++
	}
}

// hold counts the slot that a migration holds, by its record.
func (x *watch) hold(m *record.Migration, n int) {
	s := &m.State
	if !migration.HoldsSlot(s.Phase, s.Target != "", true) {
		return
	}
	slot := migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target}
	if n > 0 {
		x.slots.Take(slot)
		return
	}
	x.slots.Return(slot)
}

func (x *watch) vm(v *record.VM) {
	id := v.VM.ID
	if from := x.home[id]; from != v.Host {
		x.news = x.w.now
		x.home[id] = v.Host
		x.drains.Came(v.Host)
		if from != "" {
			x.drains.Left(from, x.w.Now())
		}
	}
}

func (x *watch) gone(key record.Key) {
	switch key.Kind {
	case record.MigrationKind:
		if m := x.last[migration.ID(key.Name)]; m != nil {
			x.hold(m, -1)
			x.ofVM[m.Spec.VM] = slices.DeleteFunc(x.ofVM[m.Spec.VM],
				func(id migration.ID) bool { return id == m.Spec.ID })
		}
	case record.VMKind:
		id := hypervisor.VMID(key.Name)
		if from := x.home[id]; from != "" {
			x.drains.Left(from, x.w.Now())
		}
		delete(x.home, id)
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
