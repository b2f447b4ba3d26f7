package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// backs sets a world back to a backup, and has it reconciled.
func backs(w *sim.World, saved, back time.Duration) {
	w.At(saved, sim.Backup{})
	w.At(back, sim.SetBack{})
	w.At(back+time.Minute, sim.Reconcile{})
}

// watched notes whether the store is reconciled: it is not when nothing was lost.
func watched(reconciled *bool) func(sim.Entry) {
	return func(e sim.Entry) {
		*reconciled = *reconciled || strings.Contains(e.String(), "the store is reconciled")
	}
}

// A backup of before the plan knows nothing of it: what it has moved stays where it is, and the plan may be applied
// again. One of while it was carried out has it ended: its names would be given twice.
func TestAPlanInAStoreThatWasSetBack(t *testing.T) {
	for saved, known := range map[time.Duration]bool{0: false, 1500 * time.Millisecond: true} {
		for _, back := range []time.Duration{2 * time.Second, 5 * time.Second, 20 * time.Second, time.Hour} {
			reconciled := false
			w, _ := applying(t, sim.Config{Claims: true, Marks: true, Trace: watched(&reconciled)})
			w.At(time.Second, sim.Apply{Plan: planned()})
			backs(w, saved, back)
			w.Run(2 * time.Hour)
			if p := w.Plan("weekend"); (p != nil) != known || known && (p.Ended.IsZero() ||
				reconciled != (p.Wish == store.AbortPlan)) {
				t.Errorf("saved after %v, back after %v, reconciled %v: %+v", saved, back, reconciled, p)
			}
			if lost := back > 8*time.Second || !known; lost != reconciled { // what was lost had been written
				t.Errorf("saved after %v, back after %v: reconciled %v", saved, back, reconciled)
			}
			again := planned()
			again.Name = "again"
			w.At(w.Now(), sim.Apply{Plan: again})
			w.Run(w.Now() + 24*time.Hour)
			w.CheckAtRest()
			for _, v := range w.Violations() {
				t.Errorf("saved after %v, back after %v: %s: %s", saved, back, v.Invariant, v.Detail)
			}
			if p := w.Plan("again"); p.Ended.IsZero() {
				t.Errorf("saved after %v, back after %v: %+v", saved, back, p)
			}
			for _, vm := range []vmid{"default/v1-1", "default/v1-2", "default/v1-3"} {
				if on := w.VM(vm).Host; on == "n1" {
					t.Errorf("saved after %v, back after %v: %s is on n1", saved, back, vm)
				}
			}
		}
	}
}

// A run of maintenance stops there: a hook may have begun of which the store does not know. It begins none by itself.
func TestMaintenanceInAStoreThatWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{5 * time.Second, 20 * time.Second, 40 * time.Second, 2 * time.Minute, 4 * time.Minute} {
		reconciled := false
		w, calls := maintained(t, sim.Config{Trace: watched(&reconciled)}, rolling())
		backs(w, 2*time.Second, back)
		w.Run(2 * time.Hour)
		before := len(*calls)
		m := w.Maintenance("patch")
		if !reconciled && back > 10*time.Second || reconciled && (!m.Ended.IsZero() || !strings.HasPrefix(m.Stopped, "the store was set back")) {
			t.Errorf("back after %v, reconciled %v: %+v", back, reconciled, m)
		}
		w.Run(w.Now() + 24*time.Hour)
		if len(*calls) != before {
			t.Errorf("back after %v: %v", back, *calls)
		}
		w.At(w.Now(), sim.WishMaintenance{Name: "patch"})
		w.At(w.Now(), sim.RunHooks{Run: "patch"}) // the command is repeated: its run had ended
		w.Run(w.Now() + 24*time.Hour)
		w.CheckAtRest()
		for _, v := range w.Violations() {
			t.Errorf("back after %v: %s: %s", back, v.Invariant, v.Detail)
		}
		for _, c := range *calls {
			if len(c.vms) > 0 {
				t.Errorf("back after %v: the hook of %s began with %v on it", back, c.host, c.vms)
			}
		}
		if m := w.Maintenance("patch"); m.Ended.IsZero() {
			t.Errorf("back after %v: %+v", back, m)
		}
	}
}
