package sim

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant string        `json:"invariant"`
	At        time.Duration `json:"-"`
	AtSeconds float64       `json:"atSeconds"`
	Detail    string        `json:"detail"`
}

func (w *World) checkVM(vm hypervisor.VMID) {
	w.invariants.look(vm)
	defer w.invariants.look("")
	for _, inv := range w.laws.OfVM {
		if err := inv.OfVM(&w.invariants, vm); err != nil {
			w.report(inv, string(vm), err)
		}
	}
	copies := w.invariants.Copies(vm)
	w.invariants.Became(vm, copies)
	if len(w.watch.orphans) > 0 {
		w.watch.reap(vm)
	}
	w.watch.Did(vm, doing(copies), w.Now())
}

// doing returns what a guest does, by its copies.
func doing(copies []fake.Copy) activity {
	does := guestStands
	for _, c := range copies {
		switch c.State {
		case hypervisor.Running, hypervisor.Stopping, hypervisor.Rebooting:
			return guestRuns
		case hypervisor.Starting, hypervisor.Shutoff:
			does = guestBoots
		}
	}
	return does
}

func (w *World) checkMigration(before, after *store.Migration) {
	if w.past.muted || w.past.back { // what is written to a backup no agent acts upon
		return
	}
	for _, inv := range w.laws.OfMigration {
		if err := inv.OfMigration(&w.invariants, before, after); err != nil {
			w.report(inv, string(after.Spec.ID), err)
		}
	}
}

// CheckAtRest checks what only holds when everything has come to rest.
func (w *World) CheckAtRest() {
	if w.past.back { // where VMs are, operators have yet to tell the store
		return
	}
	for _, inv := range w.laws.AtRest {
		if err := inv.AtRest(&w.invariants); err != nil {
			w.report(inv, "", err)
		}
	}
}

// report keeps a violation, each once for each subject.
func (w *World) report(inv *Invariant, subject string, err error) {
	if w.watch.told[inv.Name+subject] {
		return
	}
	w.watch.told[inv.Name+subject] = true
	w.watch.violations = append(w.watch.violations, Violation{inv.Name, w.Now(),
		w.Now().Seconds(), err.Error()})
	w.say("", "", "VIOLATED "+inv.Name+": "+err.Error())
}

// Violations lists the invariants that did not hold.
func (w *World) Violations() []Violation { return w.watch.violations }

// An invariantView is the world as invariants look at it. It answers the lists that are asked for
// at every step from memory of its own: each is valid until the next of its kind.
type invariantView struct {
	*World
	Pasts
	copies []fake.Copy
	of     hypervisor.VMID // whose copies they are until something changes; "" is none
	moves  []*store.Migration
}

// look looks at the copies of a VM, for all invariants until the next look.
func (s *invariantView) look(vm hypervisor.VMID) {
	if s.of = ""; vm != "" {
		s.Copies(vm)
		s.of = vm
	}
}

// Copies implements [InvariantWorld].
func (s *invariantView) Copies(vm hypervisor.VMID) []fake.Copy {
	if s.of != vm || vm == "" {
		s.copies = s.network.AppendCopies(s.copies[:0], vm)
		s.believe(vm)
	}
	return s.copies
}

// Migrations implements [InvariantWorld].
func (s *invariantView) Migrations(vm hypervisor.VMID) []*store.Migration {
	s.moves = s.moves[:0]
	for _, t := range s.watch.Of(vm) {
		s.moves = append(s.moves, t.Last)
	}
	return s.moves
}

// Overbooked implements [InvariantWorld].
func (w *World) Overbooked(host hypervisor.HostName) bool { return w.watch.overbooked[host] }

// VMs implements [InvariantWorld].
func (s *invariantView) VMs() []hypervisor.VMID { return s.watch.VMs() }

// Copies returns where a VM has domains, ordered by host.
func (w *World) Copies(vm hypervisor.VMID) []fake.Copy { return w.network.Copies(vm) }

// Slots implements [InvariantWorld].
func (w *World) Slots() *migration.Slots { return &w.watch.Slots }

// Limits implements [InvariantWorld].
func (w *World) Limits() migration.Limits { return w.limits }

// Deleted implements [InvariantWorld].
func (s *invariantView) Deleted(vm hypervisor.VMID) bool { return s.watch.deleted[vm] }

// down reports whether a host has no power.
func (w *World) down(host hypervisor.HostName) bool { return w.watch.powerless[host] }

// Claims implements [InvariantWorld].
func (s *invariantView) Claims() []placement.Reservation { return s.boss.Claims() }

// Faulty implements [InvariantWorld].
func (w *World) Faulty() bool { return w.watch.faulty }

// Unexplained implements [InvariantWorld].
func (s *invariantView) Unexplained() []string {
	var list []string
	for _, e := range s.Evacuations() {
		for _, left := range e.Left {
			if len(left.Reasons) == 0 {
				list = append(list, string(left.VM)+" stays on "+string(e.Host)+" for no reason")
			}
		}
	}
	return list
}
