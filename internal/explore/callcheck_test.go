package explore_test

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// violate keeps the first violation.
func (w *world) violate(name string, err error) {
	if err != nil && w.broken == nil {
		w.broken = fmt.Errorf("%s: %w", name, err)
		w.say("VIOLATION %v", w.broken)
	}
}

// checkVM checks the VM, of which a domain has changed.
func (w *world) checkVM() {
	copies := w.Copies(web)
	w.say("    web: %v", copies)
	for i := range sim.Invariants {
		if inv := &sim.Invariants[i]; inv.OfVM != nil {
			w.violate(inv.Name, inv.OfVM(w, web))
		}
	}
	w.pasts.Became(web, copies)
}

// wrote checks a record that was just written. One VM comes up to no limit.
func (w *world) wrote(before, after store.Record) {
	m, is := after.(*store.Migration)
	if !is {
		return
	}
	old, _ := before.(*store.Migration)
	if old == nil {
		old = &store.Migration{Spec: m.Spec}
	}
	w.violate("arrival-is-complete", w.arrivalIsComplete(old, m))
	for i := range sim.Invariants {
		inv := &sim.Invariants[i]
		if inv.OfMigration != nil && inv.Name != "limits" && !w.excused(inv) {
			w.violate(inv.Name, inv.OfMigration(w, old, m))
		}
	}
}

// arrivalIsComplete: no agent says of a VM that it has arrived with its memory when the rest of
// that can never come.
func (w *world) arrivalIsComplete(before, after *store.Migration) error {
	t := after.Target
	if !t.Completed || t.Lost || before.Target.Completed || w.off[after.State.Target] {
		return nil
	}
	p, err := w.Host(after.State.Target).Progress(ctx, after.Spec.ID)
	if err != nil || p.Status != hypervisor.JobBroken {
		return err
	}
	return fmt.Errorf("%s is said to have arrived with its memory, and its job is %v: %v",
		after.Spec.ID, p.Status, w.Copies(web))
}

// excused reports whether an invariant says nothing about the VM, because it was given to
// another host and has not started there yet.
func (w *world) excused(inv *sim.Invariant) bool {
	return inv.SparesGiven && slices.ContainsFunc(w.hosts, func(h hypervisor.HostName) bool {
		stored, _ := w.store.Get(ctx, (&store.Rebuild{VM: web, Source: h}).Key())
		r, is := stored.(*store.Rebuild)
		return is && !r.Cleaned && !r.Done(w.VM(web))
	})
}

// checkAtRest checks what only holds when the world has come to rest.
func (w *world) checkAtRest() {
	for i := range sim.Invariants {
		if inv := &sim.Invariants[i]; inv.AtRest != nil && !w.excused(inv) {
			w.violate(inv.Name, inv.AtRest(w))
		}
	}
	v := w.VM(web)
	for _, c := range w.Copies(web) {
		if v.Stopped && c.State.Executes() {
			w.violate("stays-off", fmt.Errorf("it is %v on %s although it is stopped", c.State,
				c.Host))
		}
	}
}

// isTorn reports whether the guest on a host is the target of a post-copy that is broken, and
// goes on without the memory that it lacks.
func (w *world) isTorn(h hypervisor.HostName) bool {
	if !w.tears || w.off[h] {
		return false
	}
	d, _ := w.Host(h).Domain(ctx, web)
	if d.State != hypervisor.Crashed || d.Job == "" || w.killed[h] == d.Job {
		return false
	}
	p, _ := w.Host(h).Progress(ctx, d.Job)
	stored, _ := w.store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(d.Job)})
	m, is := stored.(*store.Migration)
	return is && m.State.Target == h && p.Status == hypervisor.JobBroken &&
		p.Mode == hypervisor.PostCopy
}

// What invariants look at.

// Copies implements [sim.InvariantWorld]: a guest that is torn executes.
func (w *world) Copies(vm hypervisor.VMID) []fake.Copy {
	copies := w.Network.Copies(vm)
	for i, c := range copies {
		if w.isTorn(c.Host) {
			copies[i].State = hypervisor.Running
		}
	}
	return copies
}

// VMs implements [sim.InvariantWorld].
func (w *world) VMs() []hypervisor.VMID { return []hypervisor.VMID{web} }

// VM implements [sim.InvariantWorld].
func (w *world) VM(id hypervisor.VMID) *store.VM {
	r, _ := w.store.Get(ctx, store.Key{Kind: store.VMKind, Name: string(id)})
	v, _ := r.(*store.VM)
	return v
}

// HostRecord implements [sim.InvariantWorld].
func (w *world) HostRecord(n hypervisor.HostName) *store.Host {
	r, _ := w.store.Get(ctx, store.Key{Kind: store.HostKind, Name: string(n)})
	h, _ := r.(*store.Host)
	return h
}

// Migrations implements [sim.InvariantWorld].
func (w *world) Migrations(hypervisor.VMID) (all []*store.Migration) {
	for i := range w.moves {
		r, _ := w.store.Get(ctx, store.Key{Kind: store.MigrationKind,
			Name: fmt.Sprintf("web#%d", i+1)})
		if m, is := r.(*store.Migration); is {
			all = append(all, m)
		}
	}
	return all
}

// Claims implements [sim.InvariantWorld].
func (w *world) Claims() []placement.Reservation {
	for _, p := range w.procs {
		if c, is := p.brain.(*controller.Controller); is {
			return c.Claims()
		}
	}
	return nil
}

// Slots implements [sim.InvariantWorld]: they are not counted.
func (w *world) Slots() *migration.Slots { return nil }

// Limits implements [sim.InvariantWorld].
func (w *world) Limits() migration.Limits { return w.config.Limits() }

// Deleted implements [sim.InvariantWorld].
func (w *world) Deleted(hypervisor.VMID) bool { return false }

// Overbooked implements [sim.InvariantWorld].
func (w *world) Overbooked(hypervisor.HostName) bool { return false }

// Down implements [sim.InvariantWorld].
func (w *world) Down(h hypervisor.HostName) bool { return w.off[h] }

// Disowned implements [sim.InvariantWorld]: no operator gives a word that is wrong.
func (w *world) Disowned(hypervisor.VMID, hypervisor.HostName) bool { return false }

// Faulty implements [sim.InvariantWorld].
func (w *world) Faulty() bool { return w.hurt }

// Unexplained implements [sim.InvariantWorld]: no host is drained.
func (w *world) Unexplained() []string { return nil }

// Past implements [sim.InvariantWorld].
func (w *world) Past(vm hypervisor.VMID) sim.Past { return w.pasts.Past(vm) }
