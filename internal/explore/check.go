package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant string // its name in [sim.Invariants]
	Detail    string
}

// String says both.
func (v *Violation) String() string { return v.Invariant + ": " + v.Detail }

// violate keeps the first violation.
func (w *World) violate(name string, err error) {
	if err != nil && w.Broken == nil {
		w.Broken = &Violation{name, err.Error()}
	}
}

// judge takes over what is wrong by the scene's own judge.
func (w *World) judge() {
	if w.wrong == nil {
		return
	}
	if name, detail := w.wrong(w); name != "" {
		w.violate(name, errors.New(detail))
	}
}

func (w *World) checkVM(vm hypervisor.VMID) {
	for i := range sim.Invariants {
		if inv := &sim.Invariants[i]; inv.OfVM != nil {
			w.violate(inv.Name, inv.OfVM(w, vm))
		}
	}
	v := w.Scene.vmIndex(string(vm))
	w.Older[v] = w.Older[v].After(w.Copies(vm))
	for p := range w.Orphans {
		if w.Orphans[p]>>v&1 == 1 && !slices.ContainsFunc(w.real(vm), func(c fake.Copy) bool {
			return c.Host == w.machine(p) &&
				(c.State.Executes() || c.State == hypervisor.Paused || handing(c.State))
		}) {
			w.Orphans[p] &^= 1 << v // should it run again, it was started
		}
	}
}

// Past implements [sim.InvariantWorld].
func (w *World) Past(vm hypervisor.VMID) sim.Past {
	return w.Older[w.Scene.vmIndex(string(vm))]
}

// wrote checks a record that was just written.
func (w *World) wrote(before, after store.Record) {
	w.touch(theStore)
	if v, is := after.(*store.VM); is && !w.Back && strings.Contains(v.Trouble, "a later life") {
		w.violate("believes-the-store", fmt.Errorf("%s is of the only store that there was, and %s does "+
			"not believe it: %s", v.VM.ID, v.Host, v.Trouble))
	}
	m, ok := after.(*store.Migration)
	if !ok {
		return
	}
	old, _ := before.(*store.Migration)
	w.relist(old, m)
	if old == nil {
		old = &store.Migration{Spec: m.Spec}
	}
	for i := range sim.Invariants {
		if inv := &sim.Invariants[i]; inv.OfMigration != nil && !w.excused(inv, m.Spec.VM) {
			w.violate(inv.Name, inv.OfMigration(w, old, m))
		}
	}
}

// checkAtRest checks what only holds when a world has come to rest.
func (w *World) checkAtRest() {
	if w.Back { // where VMs are, operators have yet to tell the store
		return
	}
	for i := range sim.Invariants {
		inv := &sim.Invariants[i]
		if inv.AtRest != nil && !w.excused(inv, w.VMs()...) && !(inv.Name == "nothing-left" && w.renewed()) {
			w.violate(inv.Name, inv.AtRest(w))
		}
	}
	w.judge()
}

// renewed reports whether a VM was deleted and another one of its name added. What rests of the first
// where it was last is not removed by an agent that has not seen the deletion: it never starts again.
func (w *World) renewed() bool {
	return slices.ContainsFunc(w.Scene.Script[:w.Script], func(line string) bool {
		return strings.HasPrefix(line, "renew ")
	})
}

// excused reports whether an invariant says nothing about some VMs, because one of them was
// given to another host and has not started there yet.
func (w *World) excused(inv *sim.Invariant, vms ...hypervisor.VMID) bool {
	return inv.SparesGiven && slices.ContainsFunc(vms, w.unstarted)
}

// unstarted reports whether a VM was given to another host and has not started since.
func (w *World) unstarted(vm hypervisor.VMID) bool {
	for p := 1; p < len(w.lines); p++ {
		stored, _ := w.Store.Get(w.ctx, (&store.Rebuild{VM: vm, Source: w.hostOf(p)}).Key())
		if r, ok := stored.(*store.Rebuild); ok && !r.Cleaned && !r.Done(w.VM(vm)) {
			return true
		}
	}
	return false
}

// What invariants look at.

// Copies implements [sim.InvariantWorld]. The answer is valid until the next about the same VM. What
// an operator has said to be dead is dead: see [World.Disowned].
func (w *World) Copies(vm hypervisor.VMID) []fake.Copy {
	list := w.real(vm)
	for i := range list {
		switch c := &list[i]; {
		case !w.Disowned(vm, c.Host) && !w.givenUp(vm, *c) || c.State.Rests():
		case c.State == hypervisor.Receiving || c.State == hypervisor.Received:
			c.State = hypervisor.Absent
		default:
			c.State = hypervisor.Crashed
		}
	}
	return list
}

// givenUp reports whether a copy stood between two hosts when the word that its host is off was found
// to be wrong, and its migration had been decided by that word: its agent gives it up, and never
// resumes it. Until then nothing is wrong with a migration that has failed meanwhile.
// Source: agent (Agent.closeUp).
func (w *World) givenUp(vm hypervisor.VMID, c fake.Copy) bool {
	p, v := w.Scene.hostIndex(string(c.Host))+1, w.Scene.vmIndex(string(vm))
	return w.Orphans[p]>>v&1 == 1 && handing(c.State)
}

// real returns the copies that there are. It is valid until the next about the same VM.
func (w *World) real(vm hypervisor.VMID) []fake.Copy {
	v := w.Scene.vmIndex(string(vm))
	if v < 0 {
		return nil
	}
	w.copies[v] = w.Network.AppendCopies(w.copies[v][:0], vm)
	return w.copies[v]
}

// Disowned implements [sim.InvariantWorld].
func (w *World) Disowned(vm hypervisor.VMID, host hypervisor.HostName) bool {
	p, v := w.Scene.hostIndex(string(host))+1, w.Scene.vmIndex(string(vm))
	if w.second(p) || v < 0 {
		return false
	}
	at := w.VM(vm)
	return w.believed(p) && !w.Procs[p].Off ||
		w.Orphans[p]>>v&1 == 1 && (at == nil || at.Host != host)
}

// VMs implements [sim.InvariantWorld].
func (w *World) VMs() []hypervisor.VMID {
	var list []hypervisor.VMID
	for _, v := range w.Scene.VMs {
		if w.VM(v.Name) != nil {
			list = append(list, v.Name)
		}
	}
	slices.Sort(list)
	return list
}

// VM implements [sim.InvariantWorld].
func (w *World) VM(id hypervisor.VMID) *store.VM {
	r, _ := w.Store.Get(w.ctx, store.Key{Kind: store.VMKind, Name: string(id)})
	v, _ := r.(*store.VM)
	return v
}

// HostRecord implements [sim.InvariantWorld].
func (w *World) HostRecord(name hypervisor.HostName) *store.Host {
	r, _ := w.Store.Get(w.ctx, store.Key{Kind: store.HostKind, Name: string(name)})
	h, _ := r.(*store.Host)
	return h
}

// Limits implements [sim.InvariantWorld].
func (w *World) Limits() migration.Limits { return w.limits }

// Claims implements [sim.InvariantWorld].
func (w *World) Claims() []placement.Reservation { return w.boss().Claims() }

func (w *World) boss() *controller.Controller {
	return w.Procs[0].Brain.(*controller.Controller)
}

// Deleted implements [sim.InvariantWorld]: no scene deletes a VM.
func (w *World) Deleted(hypervisor.VMID) bool { return false }

// Overbooked implements [sim.InvariantWorld]: no host begins so.
func (w *World) Overbooked(hypervisor.HostName) bool { return false }

// Down implements [sim.InvariantWorld].
func (w *World) Down(host hypervisor.HostName) bool {
	p := w.Scene.hostIndex(string(host)) + 1
	return w.Procs[p].Off || !w.second(p) && w.believed(p)
}

// Faulty implements [sim.InvariantWorld].
func (w *World) Faulty() bool { return w.hurt }

// Unexplained implements [sim.InvariantWorld].
func (w *World) Unexplained() []string {
	var list []string
	for _, vm := range w.VMs() {
		v := w.VM(vm)
		h := w.HostRecord(v.Host)
		drained := w.config.Evacuation.Draining(evacuation.Host{Name: v.Host, Taints: h.Taints})
		if drained && len(w.boss().Why(vm, w.Now)) == 0 {
			list = append(list, string(vm)+" stays on "+string(v.Host)+" for no reason")
		}
	}
	return list
}
