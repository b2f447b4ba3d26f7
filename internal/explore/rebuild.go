package explore

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// What a failover controller does is played as one step, not by package controller: a VM whose host is
// fenced is given to another host, with the record that says so.

// mayGive reports whether a VM may be given away because its host is fenced.
func (w *World) mayGive(p, v int) bool {
	if w.second(p) || w.record(uint8(p)).Proof().Proof == hypervisor.NoProof {
		return false
	}
	vm := w.VM(w.Scene.VMs[v].Name)
	return vm.Host == w.hostOf(p) && vm.ActiveMigration == "" && !vm.Stopped && w.shelter(p) > 0
}

// shelter returns the first other host that is alive, takes VMs, and has room by the
// records; 0 is none.
func (w *World) shelter(from int) int {
	for p := 1; p < len(w.lines); p++ {
		h := w.record(uint8(p))
		if p != from && !w.second(p) && !w.Procs[p].Off && !h.NotReady && !h.Fenced && h.Fencing == nil &&
			len(h.Taints) == 0 && w.taken(h.Host.Name)+memory <= h.Host.Memory {
			return p
		}
	}
	return 0
}

// taken is what the VMs that are at home on a host, or on the way there, have of it.
func (w *World) taken(host hypervisor.HostName) (sum hypervisor.Bytes) {
	for _, v := range w.Scene.VMs {
		if w.VM(v.Name).Host == host {
			sum += memory
		}
	}
	for _, m := range w.all() {
		if m.State.Target == host && !m.State.Phase.Final() {
			sum += memory
		}
	}
	return sum
}

// give gives a VM to another host.
func (w *World) give(from, v int) {
	next := *w.VM(w.Scene.VMs[v].Name)
	r := &store.Rebuild{VM: next.VM.ID, Source: next.Host, Target: w.hostOf(w.shelter(from)),
		Decided: w.Now, Boots: next.Boots, Evidence: w.record(uint8(from)).Proof()}
	if old, _ := w.Store.Get(w.ctx, r.Key()); old != nil {
		r.Version = old.RecordVersion()
	}
	w.put(r)
	next.MoveTo(r.Target)
	next.EvacuateFrom = ""
	w.put(&next)
	w.saw(0, w.VM(next.VM.ID).Version) // the leader has done that
}
