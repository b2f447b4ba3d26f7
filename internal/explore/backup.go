package explore

import (
	"maps"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// Pages are what the ledger of a host says. They are replaced, never changed.
type Pages map[hypervisor.VMID]store.Holding

// hostLedger is the ledger of a process's host, which outlives the process.
type hostLedger struct {
	w *World
	p int
}

// Holding implements [agent.Ledger].
func (b *hostLedger) Holding(vm hypervisor.VMID) (store.Holding, bool) {
	h, known := b.w.Ledgers[b.p][vm]
	return h, known
}

// Keep implements [agent.Ledger]. One that has died in the middle of its look keeps nothing.
func (b *hostLedger) Keep(h store.Holding) error {
	if b.w.Look.died {
		return errHungUp
	}
	next := maps.Clone(b.w.Ledgers[b.p])
	if next == nil {
		next = Pages{}
	}
	next[h.VM] = h
	b.w.Ledgers[b.p] = next
	return nil
}

// agentConfig is that of a process's agent.
func (w *World) agentConfig(p int) agent.Config {
	c := w.agents
	if w.Scene.Backup {
		c.Ledger = &hostLedger{w, p}
	}
	c.Admission = w.Scene.Marks
	return c
}

// rebuilt reports whether a VM was given away of a host that was off. What such a host has in its
// ledger is older than that: there only those who have seen the newer store can tell, before the
// host begins to act, and that is played where a scene says "marks".
func (w *World) rebuilt() bool {
	for _, v := range w.Scene.VMs {
		for p := 1; p < len(w.lines); p++ {
			r := &store.Rebuild{VM: v.Name, Source: w.hostOf(p)}
			if old, _ := w.Store.Get(w.ctx, r.Key()); old != nil {
				return true
			}
		}
	}
	return false
}

// setBack lets the store be as it was in the beginning. Without marks it is as after a restore that is
// not recognised as one, or that was reconciled wrongly: it is for the agents' ledgers to tell. All
// processes start anew then, as they do when a store is believed again.
func (w *World) setBack() {
	w.Back = true
	before := w.revision() + 1
	for _, m := range w.all() {
		must(w.Store.Delete(w.ctx, m))
	}
	w.forget()
	w.touch(theStore)
	for _, r := range w.backup {
		now, _ := w.Store.Get(w.ctx, r.Key())
		if now == nil {
			w.put(r.WithVersion(0))
			continue
		}
		w.put(r.WithVersion(now.RecordVersion()))
	}
	if w.Scene.Marks {
		w.restored(store.Jump{After: w.saved, Before: before})
		return
	}
	for p := range w.Procs[:len(w.lines)] {
		if w.Procs[p].Brain != nil {
			w.spawn(p)
		}
	}
}
