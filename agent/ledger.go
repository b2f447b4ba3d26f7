package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Ledger remembers on the host itself what the records of its VMs were, and which VMs have left.
// It is the agent's own evidence against a store that was set back:
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
	v = withLife(v, old.Record)
	next := store.Holding{VM: v.VM.ID, Record: v}
	switch here := v.Host == a.host; {
	case !here && !known, known && old.Record != nil && v.Precedes(old.Record):
		return
	case here && old.Overrules(v):
		return
	case !here && old.Left != nil && old.Left.To == v.Host:
		next.Left = old.Left
	case !here:
		next.Left = &store.Departure{To: v.Host}
	}
	a.keep(next)
}

// withLife returns a record with the life of one that the ledger has, if an earlier version of godwit
// has dropped it.
func withLife(v, old *store.VM) *store.VM {
	if old == nil || v.Life != nil || old.Life == nil {
		return v
	}
	with := *v
	with.Life = old.Life
	return &with
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
		h.Left = &store.Departure{}
		a.keep(h)
	}
}

// leaves keeps that a VM is about to be sent, before anything is.
func (a *Agent) leaves(m *store.Migration, now time.Time) error {
	v := a.home.Get(m.Spec.VM)
	if a.config.Ledger == nil || v == nil {
		return nil
	}
	old, _ := a.config.Ledger.Holding(v.VM.ID)
	if v = withLife(v, old.Record); old.Record != nil && v.Precedes(old.Record) {
		v = old.Record
	}
	return a.config.Ledger.Keep(store.Holding{VM: v.VM.ID, Record: v, Left: &store.Departure{
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
	why := "it is not started here: "
	if h.Here() {
		why = "it is left alone: "
	}
	why += fmt.Sprintf("%s knows of a later life of it than its record: ", a.host)
	switch {
	case h.Here():
		why += "it was deleted and added anew since"
	case h.Left.To == "":
		why += "it was deleted since"
	default:
		why += "it has gone to " + string(h.Left.To)
	}
	if h.Left != nil && h.Left.Move != "" {
		why += " by migration " + string(h.Left.Move)
	}
	if v.Life.Is(h.Record.Life) {
		why += fmt.Sprintf(" (move %d, and the record says %d)", h.Record.Moves, v.Moves)
	}
	return why + ": godwit store reconcile"
}

// isHere reports whether the ledger knows that a VM is here, in a later life than its record says.
func (a *Agent) isHere(v *store.VM) bool {
	h, known := a.holding(v.VM.ID)
	return known && h.Here() && v.Precedes(h.Record)
}

// uncounted reports whether the moves of a VM are to be counted from now on, or it has no life yet.
func (a *Agent) uncounted(v *store.VM) bool {
	return a.config.Ledger != nil && (v.Moves == 0 || v.Life == nil)
}

// count begins to count the moves of a VM, and gives it a life if an earlier version of godwit has
// added it.
func (a *Agent) count(v *store.VM) {
	if !a.uncounted(v) {
		return
	}
	if v.Moves = max(1, v.Moves); v.Life == nil {
		v.Life = &store.Life{After: store.Revision(v.Version)}
		if a.config.Epoch != nil {
			v.Life.Epoch = a.config.Epoch()
		}
	}
}
