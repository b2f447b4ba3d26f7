package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// An Event is something that operators, guests or fate do to a world.
type Event interface{ happen(*World) }

type (
	// Drain puts the drain taint on a host, with what becomes of VMs that cannot be migrated.
	Drain struct {
		Host  hypervisor.HostName
		Terms evacuation.Terms
		By    *evacuation.Deadline // nil: it has none
	}
	// Undrain takes it off again.
	Undrain struct{ Host hypervisor.HostName }
	// Close keeps new VMs from a host; Open lets them in again.
	Close struct{ Host hypervisor.HostName }
	// Open undoes Close.
	Open struct{ Host hypervisor.HostName }
	// Mark asks a VM to leave its host, as an eviction does.
	Mark struct{ VM hypervisor.VMID }
	// Evict shuts a VM down to leave its host, as a drain does with one that it cannot migrate:
	// with a target to start there, else to stay off.
	Evict struct {
		VM     hypervisor.VMID
		Target hypervisor.HostName
		Grace  time.Duration // default: the agent's
	}
	// Unmark takes the mark back.
	Unmark struct{ VM hypervisor.VMID }
	// Migrate asks for a migration, as a user does.
	Migrate struct {
		VM       hypervisor.VMID
		Target   hypervisor.HostName // "" is anywhere
		Priority migration.Priority
		Force    placement.Force
		Compat   bool
	}
	// Configure starts the controller anew with another bandwidthPerMigration, as an operator
	// does the user that has edited its file; 0 is no cap.
	Configure struct{ Bandwidth hypervisor.Bandwidth }
	// Cancel cancels every unfinished migration of a VM.
	Cancel struct{ VM hypervisor.VMID }
	// Delete deletes a VM's record.
	Delete struct{ VM hypervisor.VMID }
	// Stop asks for a VM to be shut down.
	Stop struct{ VM hypervisor.VMID }
	// Pause asks for a VM's guest to be paused; a paused guest is no outage. Resume asks for it to run
	// again.
	Pause struct{ VM hypervisor.VMID }
	// Resume undoes Pause.
	Resume struct{ VM hypervisor.VMID }
	// Release asks for a stale claim of a VM to be taken back, as an operator does.
	Release struct {
		VM hypervisor.VMID
		By string
	}
	// Change changes a VM's record, as other controllers do.
	Change struct {
		VM   hypervisor.VMID
		What string // for the trace
		How  func(*store.VM)
	}
	// Tamper changes a migration's record without any participant's knowledge.
	Tamper struct {
		VM   hypervisor.VMID
		What string
		How  func(*store.Migration)
	}
)

func (e Configure) happen(w *World) {
	w.say("", "", "configured with bandwidthPerMigration "+e.Bandwidth.String())
	cluster := *w.config.Controller.Complete().Cluster
	cluster.BandwidthPerMigration = e.Bandwidth
	w.config.Controller.Cluster = &cluster
	if p := w.people[""]; p.brain != nil {
		w.kill(p)
		w.spawn(p)
	}
}

func (e Drain) happen(w *World) {
	if !w.known(e.Host) {
		return
	}
	w.say("", "", "drain "+string(e.Host))
	w.watch.Drains.Begin(e.Host, w.Now())
	key := w.drainKey()
	w.changeHost(e.Host, func(h *store.Host) {
		h.Taints = append(slices.Clip(h.Taints), placement.Taint{Key: key,
			Effect: placement.NoSchedule})
		h.Drain, h.DrainBy = e.Terms, e.By
	})
}

func (e Undrain) happen(w *World) {
	if !w.known(e.Host) {
		return
	}
	w.say("", "", "stop draining "+string(e.Host))
	key := w.drainKey()
	w.changeHost(e.Host, func(h *store.Host) {
		h.Taints = slices.DeleteFunc(slices.Clone(h.Taints), func(t placement.Taint) bool {
			return t.Key == key
		})
		h.Drain, h.DrainBy, h.DrainPace = evacuation.Terms{}, nil, nil
	})
}

func (e Close) happen(w *World) {
	if !w.known(e.Host) {
		return
	}
	w.say("", "", "cordon "+string(e.Host))
	w.changeHost(e.Host, func(h *store.Host) { h.Cordoned = true })
}

func (e Open) happen(w *World) {
	if !w.known(e.Host) {
		return
	}
	w.say("", "", "uncordon "+string(e.Host))
	w.changeHost(e.Host, func(h *store.Host) { h.Cordoned = false })
}

func (e Mark) happen(w *World) {
	w.say("", e.VM, "marked to leave")
	w.changeVM(e.VM, func(v *store.VM) { v.EvacuateFrom = v.Host })
}

func (e Evict) happen(w *World) {
	w.say("", e.VM, "is to be shut down")
	w.changeVM(e.VM, func(v *store.VM) {
		v.EvacuateFrom = v.Host
		v.Evicted = &store.Eviction{Restart: e.Target != "", Target: e.Target, Grace: e.Grace}
	})
}

func (e Unmark) happen(w *World) {
	w.say("", e.VM, "mark taken back")
	w.changeVM(e.VM, func(v *store.VM) { v.EvacuateFrom = "" })
}

func (e Migrate) happen(w *World) {
	if r, _ := w.store.Get(w.ctx, vmKey(e.VM)); r != nil {
		if can, why := r.(*store.VM).CanMigrate(); !can { // as the client refuses it
			w.say("", e.VM, "migration refused: it cannot migrate: "+why)
			return
		}
	}
	for n := 1; ; n++ {
		id := migration.ID(fmt.Sprintf("%s#u%d", e.VM, n))
		if w.watch.Has(e.VM, id) {
			continue // no name is given twice, even when its first bearer is gone
		}
		m := &store.Migration{Spec: migration.Spec{ID: id, VM: e.VM, Created: w.now,
			Priority: e.Priority, Target: e.Target, Force: e.Force, Compat: e.Compat}}
		if _, err := w.store.Put(w.ctx, m); err == nil {
			w.say("", e.VM, "migration asked for")
			return
		}
	}
}

func (e Cancel) happen(w *World) {
	w.say("", e.VM, "cancel")
	for _, m := range w.unfinished(e.VM) {
		next := *m
		next.Cancel = true
		w.put(&next)
	}
}

func (e Delete) happen(w *World) {
	if r, _ := w.store.Get(w.ctx, vmKey(e.VM)); r != nil {
		w.say("", e.VM, "deleted")
		w.watch.deleted[e.VM] = true
		_ = w.store.Delete(w.ctx, r) // it was read just now
	}
}

func (e Stop) happen(w *World) {
	w.say("", e.VM, "stop")
	w.changeVM(e.VM, func(v *store.VM) { v.Stopped = true })
}

func (e Pause) happen(w *World) {
	w.say("", e.VM, "pause")
	w.changeVM(e.VM, func(v *store.VM) { v.Pause = true })
}

func (e Resume) happen(w *World) {
	w.say("", e.VM, "resume")
	w.changeVM(e.VM, func(v *store.VM) { v.Pause = false })
}

func (e Release) happen(w *World) {
	v := w.VM(e.VM)
	if v == nil {
		return
	}
	r, _ := w.store.Get(w.ctx, store.Key{Kind: store.MigrationKind, Name: string(v.ActiveMigration)})
	claimant, _ := r.(*store.Migration)
	if why := store.Holder(v, claimant, w.HostRecord(v.Host)); why != "" {
		w.say("", e.VM, "its release is refused: "+why)
		return
	}
	w.say("", e.VM, "release asked for by "+e.By)
	w.changeVM(e.VM, func(v *store.VM) { v.Release = &store.Release{By: e.By, Claim: v.ActiveMigration} })
}

func (e Change) happen(w *World) {
	w.say("", e.VM, e.What)
	w.changeVM(e.VM, e.How)
}

func (e Tamper) happen(w *World) {
	w.say("", e.VM, e.What)
	for _, m := range w.unfinished(e.VM) {
		next := *m
		e.How(&next)
		w.put(&next)
	}
}

// VM returns a VM's record; nil when there is none.
func (w *World) VM(id hypervisor.VMID) *store.VM {
	r, _ := w.store.Get(w.ctx, vmKey(id)) // memory does not fail
	v, _ := r.(*store.VM)
	return v
}

// HostRecord returns a host's record; nil when there is none.
func (w *World) HostRecord(name hypervisor.HostName) *store.Host {
	r, _ := w.store.Get(w.ctx, store.Key{Kind: store.HostKind, Name: string(name)})
	h, _ := r.(*store.Host)
	return h
}

func (w *World) changeVM(id hypervisor.VMID, how func(*store.VM)) {
	if v := w.VM(id); v != nil {
		next := *v
		how(&next)
		w.put(&next)
	}
}

func (w *World) changeHost(name hypervisor.HostName, how func(*store.Host)) {
	if h := w.HostRecord(name); h != nil {
		next := *h
		how(&next)
		w.put(&next)
	}
}

// put stores what was read at this very moment: no other write can have come between.
func (w *World) put(r store.Record) {
	if _, err := w.store.Put(w.ctx, r); err != nil {
		panic("sim: a record changed while nothing else ran: " + err.Error())
	}
}

func (w *World) unfinished(vm hypervisor.VMID) []*store.Migration {
	return slices.DeleteFunc(w.Migrations(vm), func(m *store.Migration) bool {
		return m.State.Phase.Final()
	})
}

func (w *World) drainKey() string {
	if k := w.config.Controller.Evacuation.DrainKey; k != "" {
		return k
	}
	return "kubevirt.io/drain"
}

func vmKey(id hypervisor.VMID) store.Key {
	return store.Key{Kind: store.VMKind, Name: string(id)}
}

// When lets something happen once, as soon as a migration of a VM is stored in
// a phase.
type When struct {
	VM    hypervisor.VMID
	Phase migration.Phase
	Do    Event
}

func (e When) happen(w *World) { w.watch.triggers = append(w.watch.triggers, e) }

// Load changes how a VM's guest dirties memory.
type Load struct {
	VM   hypervisor.VMID
	Load fake.Workload
}

func (e Load) happen(w *World) {
	w.say("", e.VM, "its load changes")
	if e.Load.Zero > w.zero[e.VM] {
		w.zero[e.VM] = e.Load.Zero // at some time so much need not be sent
	}
	for _, c := range w.network.Copies(e.VM) {
		w.tried(w.network.Host(c.Host).SetWorkload(e.VM, e.Load))
	}
}

// Migrations lists the migrations of a VM that are kept, oldest first.
func (w *World) Migrations(vm hypervisor.VMID) (list []*store.Migration) {
	for _, t := range w.watch.Of(vm) {
		r, _ := w.store.Get(w.ctx, t.Last.Key())
		if m, ok := r.(*store.Migration); ok {
			list = append(list, m)
		}
	}
	return list
}

// Apply has the controller carry out a plan, as an operator asks for it: the hosts that it empties are
// cordoned, and it begins now.
type Apply struct{ Plan store.Plan }

func (e Apply) happen(w *World) {
	w.say("", "", "apply plan "+e.Plan.Name)
	for _, host := range e.Plan.Hosts {
		w.changeHost(host, func(h *store.Host) { h.Cordoned = true })
	}
	e.Plan.Version, e.Plan.Created = 0, w.now
	w.put(&e.Plan)
}

// WishPlan pauses, resumes or aborts a plan.
type WishPlan struct {
	Name string
	Wish store.PlanWish
}

func (e WishPlan) happen(w *World) {
	p := w.Plan(e.Name)
	if p == nil {
		return
	}
	w.say("", "", e.Wish.String()+" plan "+e.Name)
	next := *p
	next.Wish = e.Wish
	w.put(&next)
}

// Plan returns a plan's record; nil when there is none.
func (w *World) Plan(name string) *store.Plan {
	p, _ := store.PlanNamed(w.ctx, w.store, name) // memory does not fail
	return p
}
