package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// InvariantWorld is what an invariant may look at.
type InvariantWorld interface {
	Copies(hypervisor.VMID) []fake.Copy // where a VM has domains
	VMs() []hypervisor.VMID             // that have a record, in order
	VM(hypervisor.VMID) *store.VM
	Migrations(hypervisor.VMID) []*store.Migration // of a VM, as stored, oldest first
	Slots() *migration.Slots                       // counted apart from the controller
	Limits() migration.Limits
	Claims() []placement.Reservation // of hosts, as the controller has them, by VM
	HostRecord(hypervisor.HostName) *store.Host
	Deleted(hypervisor.VMID) bool  // the VM's record was deleted
	Down(hypervisor.HostName) bool // the host has no power
	// Overbooked: the host was set up with more than it has, and nothing has come to it since.
	Overbooked(hypervisor.HostName) bool
	// Disowned: the VM's copy on the host runs, and an operator gave their word that it does
	// not. For all invariants it is dead, as Copies says; when the host is heard again the
	// operators must be told of it.
	Disowned(hypervisor.VMID, hypervisor.HostName) bool
	Faulty() bool              // something has been broken
	Unexplained() []string     // the VMs that stay on a drained host without a reason
	Past(hypervisor.VMID) Past // before its domains became what they are
}

// An Invariant is something that holds in every world, whatever breaks. Each
// has just one of the three functions.
type Invariant struct {
	Name string
	Says string // in the words of an operator
	// OfVM is checked whenever a domain of a VM has changed.
	OfVM func(InvariantWorld, hypervisor.VMID) error
	// OfMigration is checked whenever a migration was written.
	OfMigration func(w InvariantWorld, before, after *store.Migration) error
	// AtRest is checked when a world has come to rest, long after its last
	// fault.
	AtRest func(InvariantWorld) error
	// SparesGiven: it says nothing about a VM that was given to another host and has not
	// started there yet. What is left of it elsewhere is all that there is of it, and stays.
	// And when it is asked to move on before it has started, that fails although it is
	// nowhere: it starts once no migration moves it any more.
	SparesGiven bool
}

// Invariants is what godwit promises.
var Invariants = []Invariant{
	{Name: "runs-once", Says: "no VM executes in two places at once", OfVM: runsOnce},
	{Name: "never-lost", Says: "of every VM there is a copy that can run", OfVM: neverLost},
	{Name: "keeps-memory", Says: "without faults no VM loses its memory", OfVM: keepsMemory},
	{Name: "never-older", Says: "no VM goes on with memory from before it has run elsewhere",
		OfVM: neverOlder},
	{Name: "phases-forward", Says: "a migration moves one phase forward at a time, and an end is " +
		"an end", OfMigration: phasesForward},
	{Name: "success-is-arrival", Says: "a migration succeeds only when the VM is at its target",
		OfMigration: successIsArrival},
	{Name: "failure-keeps-source", Says: "a migration fails only while the VM is at its source",
		OfMigration: failureKeepsSource, SparesGiven: true},
	{Name: "released-after-arrival", Says: "what is left at a source is given up only once the " +
		"VM has arrived", OfMigration: releasedAfterArrival},
	{Name: "limits", Says: "no more moves at once than the limits allow",
		OfMigration: withinLimits},
	{Name: "one-move", Says: "a VM is handed over to one migration at a time",
		OfMigration: oneMove},
	{Name: "all-end", Says: "once faults have ended every migration ends", AtRest: allEnd},
	{Name: "proved-ends", Says: "a migration ends when the hosts that it waits for are known to " +
		"be dead", AtRest: provedEnds},
	{Name: "records-are-true", Says: "every VM is where its record says",
		AtRest: recordsAreTrue},
	{Name: "nothing-left", Says: "no host keeps a copy that belongs elsewhere",
		AtRest: nothingLeft, SparesGiven: true},
	{Name: "reservations-are-true", Says: "only a VM that is on a host, or on its way there, holds " +
		"room there", AtRest: reservationsAreTrue},
	{Name: "not-overbooked", Says: "no host is home to more than it has, unless by force",
		AtRest: notOverbooked},
	{Name: "explained", Says: "every VM that stays on a drained host has a reason", AtRest: explained},
}

// laws are the invariants, by when they are checked.
type laws struct{ OfVM, OfMigration, AtRest []*Invariant }

// sortedLaws returns [Invariants], sorted.
func sortedLaws() (l laws) {
	for i := range Invariants {
		switch inv := &Invariants[i]; {
		case inv.OfVM != nil:
			l.OfVM = append(l.OfVM, inv)
		case inv.OfMigration != nil:
			l.OfMigration = append(l.OfMigration, inv)
		default:
			l.AtRest = append(l.AtRest, inv)
		}
	}
	return l
}

func runsOnce(w InvariantWorld, vm hypervisor.VMID) error {
	copies := w.Copies(vm)
	running := func(c fake.Copy) bool { return c.State.Executes() }
	first := slices.IndexFunc(copies, running)
	if first < 0 || !slices.ContainsFunc(copies[first+1:], running) {
		return nil
	}
	var on []hypervisor.HostName
	for _, c := range copies {
		if running(c) {
			on = append(on, c.Host)
		}
	}
	return fmt.Errorf("%s runs on %v", vm, on)
}

func neverLost(w InvariantWorld, vm hypervisor.VMID) error {
	if w.Deleted(vm) {
		return nil
	}
	copies := w.Copies(vm)
	for _, c := range copies {
		if c.State != hypervisor.Absent && c.State != hypervisor.Receiving {
			return nil
		}
	}
	return fmt.Errorf("of %s there is only %v", vm, copies)
}

func keepsMemory(w InvariantWorld, vm hypervisor.VMID) error {
	if w.Faulty() || w.Deleted(vm) {
		return nil
	}
	copies := w.Copies(vm)
	for _, c := range copies {
		if c.State.HoldsState() {
			return nil
		}
	}
	if v := w.VM(vm); v == nil || v.Off() || v.Ended || v.Operation != store.Nothing {
		return nil // that was announced
	}
	return fmt.Errorf("the memory of %s is gone: %v", vm, copies)
}

// phasesForward: a hand-over may pass Scheduled in the same writing. After it, the
// VM names the migration by then.
func phasesForward(w InvariantWorld, before, after *store.Migration) error {
	from, to := before.State.Phase, after.State.Phase
	if to == migration.PreparingTarget && from < to {
		v := w.VM(after.Spec.VM)
		if v != nil && v.ActiveMigration != after.Spec.ID {
			return fmt.Errorf("%s was handed over, and its VM names %q", after.Spec.ID, v.ActiveMigration)
		}
		if from == migration.Scheduling {
			return nil
		}
	}
	switch {
	case from == to, to == migration.Failed && !from.Final(), to == from+1 && !from.Final():
		return nil
	}
	return fmt.Errorf("%s went from %q to %q", after.Spec.ID, from, to)
}

func successIsArrival(w InvariantWorld, before, after *store.Migration) error {
	if after.State.Phase != migration.Succeeded || before.State.Phase == migration.Succeeded {
		return nil
	}
	there := false
	for _, c := range w.Copies(after.Spec.VM) {
		if c.Host == after.State.Source && c.State.Executes() {
			return fmt.Errorf("%s succeeded while the VM runs on its source %s", after.Spec.ID,
				c.Host)
		}
		there = there || c.Host == after.State.Target && c.State != hypervisor.Receiving
	}
	if !there {
		return fmt.Errorf("%s succeeded, but the VM is not on %s", after.Spec.ID,
			after.State.Target)
	}
	return nil
}

func failureKeepsSource(w InvariantWorld, before, after *store.Migration) error {
	if after.State.Phase != migration.Failed || before.State.Phase == migration.Failed ||
		!after.Source.Began || w.Deleted(after.Spec.VM) {
		return nil
	}
	kept := false
	for _, c := range w.Copies(after.Spec.VM) {
		if c.Host == after.State.Target && c.State.Executes() {
			return fmt.Errorf("%s failed while the VM runs on its target %s", after.Spec.ID, c.Host)
		}
		if c.Host != after.State.Source {
			continue
		}
		if kept = true; c.State == hypervisor.HandingOver || c.State == hypervisor.HandedOver {
			return fmt.Errorf("%s failed while its source %s is %v: the VM may run at its target",
				after.Spec.ID, c.Host, c.State)
		}
	}
	if kept {
		return nil
	}
	return fmt.Errorf("%s failed, but the VM is not on %s", after.Spec.ID, after.State.Source)
}

// releasedAfterArrival: until the VM is known to run at its target, what is left of it at its
// source may be all that there is of its memory.
func releasedAfterArrival(_ InvariantWorld, _, after *store.Migration) error {
	if !after.Source.Released || after.State.Phase == migration.Succeeded {
		return nil
	}
	return fmt.Errorf("%s is %s and its source was released", after.Spec.ID, after.State.Phase)
}

// withinLimits: slots are taken by these writings alone. What goes on with a slot that it has exceeds
// nothing, although more may be held by then: a drain that was late was allowed that for its own host.
func withinLimits(w InvariantWorld, before, after *store.Migration) error {
	was, held := slotOf(before)
	is, holds := slotOf(after)
	if !holds || held && was == is {
		return nil
	}
	l, s, source, target := w.Limits(), w.Slots(), after.State.Source, after.State.Target
	if held && was.Source == is.Source {
		return withinTarget(l, s, target)
	}
	if s.Running() > l.PerCluster || s.From(source) > l.PerSource {
		if h := w.HostRecord(source); h != nil && h.DrainPace != nil { // its drain was late, and its operator allowed it
			l = h.DrainPace.Raised(l)
		}
	}
	switch {
	case s.Running() > l.PerCluster:
		return fmt.Errorf("%d migrations at once, %d allowed", s.Running(), l.PerCluster)
	case s.From(source) > l.PerSource:
		return fmt.Errorf("%d migrations from %s, %d allowed", s.From(source), source, l.PerSource)
	}
	return withinTarget(l, s, target)
}

func withinTarget(l migration.Limits, s *migration.Slots, target hypervisor.HostName) error {
	if l.PerTarget < migration.Unlimited && s.To(target) > l.PerTarget {
		return fmt.Errorf("%d migrations to %s, %d allowed", s.To(target), target, l.PerTarget)
	}
	return nil
}

func oneMove(w InvariantWorld, _, after *store.Migration) error {
	if p := after.State.Phase; !p.HandedOver() || p.Final() {
		return nil
	}
	for _, other := range w.Migrations(after.Spec.VM) {
		p, id := other.State.Phase, other.Spec.ID
		if id != after.Spec.ID && p.HandedOver() && !p.Final() {
			return fmt.Errorf("%s and %s move %s", id, after.Spec.ID, after.Spec.VM)
		}
	}
	return nil
}

// allEnd: a migration that cannot be decided because a host is still without
// power, and was not fenced, is said to be of unknown outcome.
func allEnd(w InvariantWorld) error {
	for _, vm := range w.VMs() {
		for _, m := range w.Migrations(vm) {
			s := &m.State
			switch {
			case s.Phase.Final(), s.Phase <= migration.Pending:
				continue // it waits for room or for a slot: that is no fault
			case m.Target.Completed && held(w.VM(vm)):
				continue // it has arrived, and waits until its operator has changed the VM
			case (w.Down(s.Source) || w.Down(s.Target)) && m.Source.Began:
				if !s.Conditions.Has(migration.OutcomeUnknown) {
					return fmt.Errorf("%s waits for a dead host and does not say so", m.Spec.ID)
				}
				continue
			}
			return fmt.Errorf("%s is still %s", m.Spec.ID, s.Phase)
		}
	}
	return nil
}

// provedEnds: also when none of the dead hosts comes back. One that is only silent is waited
// for, and so is a migration that changes a VM.
func provedEnds(w InvariantWorld) error {
	for _, vm := range w.VMs() {
		if held(w.VM(vm)) {
			continue
		}
		for _, m := range w.Migrations(vm) {
			dead, silent := 0, 0
			for _, host := range [...]hypervisor.HostName{m.State.Source, m.State.Target} {
				switch {
				case host == "" || !w.Down(host):
				case w.HostRecord(host).Fenced:
					dead++
				default:
					silent++
				}
			}
			p := m.State.Phase
			if dead > 0 && silent == 0 && p.HandedOver() && !p.Final() {
				return fmt.Errorf("%s is still %s, although its dead host was fenced", m.Spec.ID, p)
			}
		}
	}
	return nil
}

// held reports whether an operator changes a VM, so that its migration cannot end.
func held(v *store.VM) bool {
	return v != nil && (v.Blockers.CPUChange || v.Blockers.MemoryChange)
}

func recordsAreTrue(w InvariantWorld) error {
	for _, vm := range w.VMs() {
		v := w.VM(vm)
		if v.Off() || v.ActiveMigration != "" || w.Down(v.Host) {
			continue
		}
		for _, c := range v.DiskChanges {
			if c.Why == "" && !standsInTrouble(w, v) && !distrusted(w.HostRecord(v.Host)) {
				return fmt.Errorf("%s is to %s, and nothing says why it does not", vm, c.Words())
			}
		}
		runs, rests := false, false
		for _, c := range w.Copies(vm) {
			if v.Pause && v.Trouble == "" && c.Host == v.Host && c.State == hypervisor.Running &&
				!distrusted(w.HostRecord(v.Host)) {
				return fmt.Errorf("%s runs on %s, and is to be paused", vm, v.Host)
			}
			runs = runs || c.Host == v.Host && (c.State.Executes() ||
				(v.Pause || v.Trouble != "") && c.State == hypervisor.Paused)
			// It may be on another host than its record says, when no host told of its move while a store of
			// before it was reconciled.
			rests = rests || c.State.Rests()
		}
		explained := rests && (v.Trouble != "" || distrusted(w.HostRecord(v.Host)))
		if !runs && !explained {
			return fmt.Errorf("%s does not run on %s: %v", vm, v.Host, w.Copies(vm))
		}
	}
	return nil
}

// standsInTrouble reports whether a VM does not run on its host, and its record says why. Nothing is changed on it
// then.
func standsInTrouble(w InvariantWorld, v *store.VM) bool {
	return v.Trouble != "" && !slices.ContainsFunc(w.Copies(v.VM.ID), func(c fake.Copy) bool {
		return c.Host == v.Host && c.State.Executes()
	})
}

// distrusted reports whether a host lives that was said to be off. Until operators have started its
// machine anew it starts and changes nothing, nothing is started for it elsewhere, and its record says
// so.
func distrusted(h *store.Host) bool {
	return h != nil && h.Refuted() != ""
}

func nothingLeft(w InvariantWorld) error {
	for _, vm := range w.VMs() {
		v := w.VM(vm)
		copies := w.Copies(vm)
		if len(copies) == 1 && copies[0].State.Rests() && (w.Down(v.Host) || v.Trouble != "") {
			// This is all of it: it was given to a host that died before it started there, or the host of its
			// record knows that it has moved, and says so.
			continue
		}
		for _, c := range copies {
			if c.Host != v.Host && v.ActiveMigration == "" && !w.Down(c.Host) {
				if w.Disowned(vm, c.Host) && told(w.HostRecord(c.Host), vm) {
					continue
				}
				if c.State == hypervisor.Crashed && w.Down(v.Host) {
					continue // the half of a broken post-copy: it stays until the other host is heard
				}
				return fmt.Errorf("%s has left %v on %s", vm, c.State, c.Host)
			}
		}
	}
	return nil
}

// told reports whether the agent of a host says that a VM runs there that is not to.
func told(h *store.Host, vm hypervisor.VMID) bool {
	return slices.ContainsFunc(h.Strays, func(s store.Stray) bool { return s.VM == vm })
}

func explained(w InvariantWorld) error {
	if list := w.Unexplained(); len(list) > 0 {
		return errors.New(list[0])
	}
	return nil
}
