package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Ledger remembers on the host itself what the records of its VMs were, and which VMs have left.
// It is the agent's own witness against a store that was set back:
//
//	a VM is at home ──► its record is kept       it is about to be sent ──► Left, before anything is
//	                                             it is kept here        ──► Left is taken back
//	a record says that a VM is at home which has left since ──► it is not started
type Ledger interface {
	// Holding answers what is known of a VM; false is nothing.
	Holding(hypervisor.VMID) (store.Holding, bool)
	// Keep remembers what is known of a VM. When it returns, a loss of power does not undo it.
	Keep(store.Holding) error
}

// holding answers what the ledger knows of a VM; false is nothing, as without a ledger.
func (a *Agent) holding(vm hypervisor.VMID) (store.Holding, bool) {
	if a.config.Ledger == nil {
		return store.Holding{}, false
	}
	return a.config.Ledger.Holding(vm)
}

// remember keeps a record that the agent has seen, unless what is kept is of a later life of the
// VM. Of a VM that is elsewhere, and was never here, nothing is kept.
func (a *Agent) remember(v *store.VM) {
	if a.config.Ledger == nil {
		return
	}
	old, known := a.config.Ledger.Holding(v.VM.ID)
	next := store.Holding{VM: v.VM.ID, Record: v}
	switch here := v.Host == a.host; {
	case !here && !known, known && old.Record != nil && v.Moves < old.Record.Moves:
		return
	case here && old.Overrules(v):
		return
	case !here && old.Left != nil && old.Left.To == v.Host:
		next.Left = old.Left
	case !here:
		next.Left = &store.Left{To: v.Host}
	}
	a.keep(next)
}

// keep writes to the ledger; an error is told at the next look.
func (a *Agent) keep(h store.Holding) {
	a.unkept = cmp.Or(a.unkept, a.config.Ledger.Keep(h))
}

// forgetful tells that the ledger could not be written since the last look.
func (a *Agent) forgetful() (errs []error) {
	if a.unkept != nil {
		errs = append(errs, fmt.Errorf("the ledger of %s: %w", a.host, a.unkept))
		a.unkept = nil
	}
	return errs
}

// deleted takes in that a VM which was here has no record any more.
func (a *Agent) deleted(vm hypervisor.VMID) {
	if h, known := a.holding(vm); known && h.Here() {
		h.Left = &store.Left{}
		a.keep(h)
	}
}

// leaves keeps that a VM is about to be sent, before anything is.
func (a *Agent) leaves(m *store.Migration, now time.Time) error {
	v := a.home.Get(m.Spec.VM)
	if a.config.Ledger == nil || v == nil {
		return nil
	}
	return a.config.Ledger.Keep(store.Holding{VM: v.VM.ID, Record: v, Left: &store.Left{
		To: m.State.Target, Move: m.Spec.ID, At: now.UTC().Round(0)}})
}

// stays takes back that a VM is about to be sent: it is certain that it is here.
func (a *Agent) stays(vm hypervisor.VMID) error {
	h, known := a.holding(vm)
	if !known || h.Left == nil {
		return nil
	}
	h.Left = nil
	return a.config.Ledger.Keep(h)
}

// overruled says why a VM is not started here although its record says that it is here: by the
// ledger it has left since. "" is that nothing speaks against the record.
func (a *Agent) overruled(v *store.VM) string {
	h, known := a.holding(v.VM.ID)
	if !known || !h.Overrules(v) {
		return ""
	}
	how := "it was deleted since"
	if h.Left.To != "" {
		how = "it has gone to " + string(h.Left.To)
	}
	if h.Left.Move != "" {
		how += " by migration " + string(h.Left.Move)
	}
	return fmt.Sprintf("it is not started here: %s knows of a later life of it than its record: %s "+
		"(move %d, and the record says %d): godwit store reconcile", a.host, how, h.Record.Moves,
		v.Moves)
}

// isHere reports whether the ledger knows that a VM is here, in a later life than its record says.
func (a *Agent) isHere(v *store.VM) bool {
	h, known := a.holding(v.VM.ID)
	return known && h.Here() && h.Record.Moves > v.Moves
}

// uncounted reports whether the moves of a VM are to be counted from now on.
func (a *Agent) uncounted(v *store.VM) bool { return a.config.Ledger != nil && v.Moves == 0 }

// count begins to count the moves of a VM.
func (a *Agent) count(v *store.VM) {
	if a.uncounted(v) {
		v.Moves = 1
	}
}
