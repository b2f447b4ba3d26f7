package controller

import (
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// ends reports whether a refusal ends the migration. A request that names a host and says nothing
// about force waits until it takes the VM; what the system asks for by itself waits
// until a VM that no host can take has been corrected.
func ends(m *migration.Spec, d *placement.Decision) bool {
	switch d.Outcome {
	case placement.Conflict:
		return m.Force != placement.Absent || m.Compat
	case placement.BadRequest:
		return m.By == migration.User
	}
	return false
}

// forcedBy returns what is to be kept with a VM that a migration has brought; nil when
// nothing was forced, which pays all debts.
func forcedBy(m *store.Migration) *store.Forced {
	d := m.Decision
	if d == nil || d.Action == "" || d.Action == placement.Bypassed && len(d.Debts) == 0 {
		return nil
	}
	return &store.Forced{Move: m.Spec.ID, Host: m.State.Target, Action: d.Action,
		Debts: d.Debts}
}

// forcedText says what a forced move overrules, for people.
func forcedText(d *placement.Decision) string {
	text := string(d.Action) + " to " + string(d.Host)
	for i, debt := range d.Debts {
		text += []string{": ", "; "}[min(i, 1)] + debt.Reason.String()
	}
	return text
}

// because says why a target was refused, for people.
func because(d *placement.Decision) string {
	if text := reasonsText(d.Why); d.Outcome != placement.Accepted && text != "" {
		return ": " + text
	}
	return ""
}

// stepText says how a migration has gone from a phase to where its record is now, and by which
// rule, for people.
func stepText(m *store.Migration, before migration.Phase, rule string) string {
	s := &m.State
	switch {
	case s.Conditions.Has(migration.OutcomeUnknown):
		return "outcome unknown: waits for word of " + string(s.Source) + " and " +
			string(s.Target)
	case s.Phase == before:
		return "aborting: " + rule
	case s.Phase == migration.Failed:
		text := before.String() + " → Failed: " + s.Because
		if m.Decision != nil && rule != "target-impossible" {
			text += because(m.Decision)
		}
		return text
	case s.Phase == migration.Succeeded:
		return "Running → Succeeded " + string(s.Source) + "→" + string(s.Target)
	case s.Phase == migration.Pending:
		return "Pending"
	case before == s.Phase-1:
		return onto(s.Phase)
	}
	return before.String() + " → " + s.Phase.String()
}

// onto says that a migration has come to a phase from the one before, for people.
func onto(p migration.Phase) string {
	if int(p) < len(onwards) {
		return onwards[p]
	}
	return p.String()
}

// onwards are the texts of the steps to each phase from the one before.
var onwards = func() (texts [migration.Failed + 1]string) {
	for p := migration.Pending; p <= migration.Failed; p++ {
		texts[p] = (p - 1).String() + " → " + p.String()
	}
	return texts
}()

// reasonsText says reasons in one line.
func reasonsText(why []placement.Reason) string {
	return (&hypervisor.Refusal{Reasons: why}).Error()
}

// migrationName is the name of a VM's migration with a number.
func migrationName(vm hypervisor.VMID, number int) migration.ID {
	return migration.ID(string(vm) + "#" + strconv.Itoa(number))
}

// Number is the number in a migration's name; 0 is that there is none.
func Number(id migration.ID) int {
	n, err := strconv.Atoi(string(id[strings.LastIndexByte(string(id), '#')+1:]))
	if err != nil {
		return 0
	}
	return n
}

// ledgerEntry is what the audit says about one step of a move.
func ledgerEntry(m *store.Migration, a placement.Amount, step placement.ReservationStep, at time.Time) placement.LedgerEntry {
	return placement.LedgerEntry{At: at, Step: step, Move: m.Spec.ID, VM: m.Spec.VM, Amount: a,
		Source: m.State.Source, Target: m.State.Target, Owner: m.Spec.By.String()}
}

// heldMove returns what a migration holds at its target, if it holds anything. One that has
// succeeded keeps its target until the VM's record says where the VM is; vm is nil where
// there is none.
func heldMove(m *store.Migration, vm *store.VM) (reservedMove, bool) {
	s := &m.State
	landed := s.Phase == migration.Succeeded && vm != nil && vm.ActiveMigration == m.Spec.ID &&
		vm.Host == s.Source
	if s.Target == "" || !landed && !migration.HoldsSlot(s.Phase, true, true) {
		return reservedMove{}, false
	}
	return moveOf(m, s.Target, landed), true
}

// restarts returns what a VM that is shut down to start on another host holds there.
func restarts(vm *store.VM) (reservedMove, bool) {
	if vm == nil || vm.Stopped || vm.Evicted == nil || vm.Evicted.Target == "" || vm.Evicted.Target == vm.Host {
		return reservedMove{}, false
	}
	return reservedMove{ID: migration.ID(vm.VM.ID) + "#restart", Target: vm.Evicted.Target, Saved: true,
		Owner: migration.Evacuation.String()}, true
}

// moveOf is what a migration holds at a target, or would.
func moveOf(m *store.Migration, target hypervisor.HostName, landed bool) reservedMove {
	return reservedMove{ID: m.Spec.ID, Target: target, Landed: landed, Owner: m.Spec.By.String(),
		Deadline: m.State.Deadline}
}

// remains returns the host on which something of an ended migration may be left.
func remains(m *store.Migration) hypervisor.HostName {
	if m.State.Phase == migration.Succeeded {
		return m.State.Source
	}
	return m.State.Target
}

// cleared reports whether nothing of an ended migration is left on its hosts.
func cleared(m *store.Migration, vmGone bool) bool {
	switch s := &m.State; {
	case !s.Phase.Final():
		return false
	case vmGone || s.Target == "":
		return true
	case s.Phase == migration.Succeeded:
		return m.Source.Released
	}
	return m.Target.Discarded || m.Target.Address == ""
}

// leavesDifferently reports whether evacuation may see the VM in a new light.
func leavesDifferently(a, b *store.VM) bool {
	return a.Host != b.Host || a.EvacuateFrom != b.EvacuateFrom || a.Strategy != b.Strategy ||
		a.Migratable != b.Migratable || len(a.Snapshots) != len(b.Snapshots) || a.Ended != b.Ended || a.Off() != b.Off() ||
		a.Between() != b.Between() || a.Blockers.Holds() != b.Blockers.Holds() ||
		a.ActiveMigration != "" && b.ActiveMigration == ""
}

// draft returns a copy of a record that is to be changed and put. It is valid until the
// next of its kind: what is stored is the store's own.
func draft[R any](scratch, r *R) *R {
	*scratch = *r
	return scratch
}
