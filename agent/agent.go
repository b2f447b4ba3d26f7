package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Agent acts for one host: it prepares targets, drives sources, cleans up what
// is left of VMs that have moved, and keeps the host's VMs running. It keeps
// nothing that the store and the hypervisor do not have.
type Agent struct {
	host     hypervisor.HostName
	config   Config
	hv       hypervisor.Hypervisor
	store    store.Store
	recorder store.EventRecorder

	seen      store.Revision
	own       *store.Host                  // nil while none is stored
	moves     migrationCache               // those that concern this host
	home      localVMs                     // the VMs that are on this host
	rebuilds  map[store.Key]*store.Rebuild // of VMs that were here
	alone     map[hypervisor.VMID]bool     // VMs that only this agent starts
	queue     workQueue
	unmanaged []UnmanagedDomain
	suspects  []hypervisor.VMID          // something was hinted of them, and they are not at home
	gauge     gauge                      // which guest is measured
	warned    map[hypervisor.VMID]string // what was said of a VM that is left alone
	unresized map[hypervisor.VMID]refusedSize
	refused   time.Time // when the agent was refused that was told of
	waits     string    // what was said of why this agent is not admitted

	hinted  bool            // hints come, which tell that a transfer has ended
	resync  time.Time       // when everything is looked at again
	patient time.Duration   // how long until then
	unkept  error           // why the ledger could not be written
	draft   store.Migration // scratch of report: what is stored is the store's own
}

// New returns an agent that knows nothing yet. It panics when [Config.Validate] refuses the
// configuration.
func New(host hypervisor.HostName, config Config, hv hypervisor.Hypervisor, records store.Store,
	recorder store.EventRecorder) *Agent {
	if err := config.Validate(); err != nil {
		panic("agent: " + err.Error())
	}
	return &Agent{host: host, config: config.complete(), hv: hv, store: records, recorder: recorder,
		rebuilds: map[store.Key]*store.Rebuild{}, warned: map[hypervisor.VMID]string{},
		alone:     map[hypervisor.VMID]bool{},
		unresized: map[hypervisor.VMID]refusedSize{}}
}

// Hint says that something may have happened to a VM on this host: the next Reconcile looks
// at what concerns it. A lost hint costs only time. It reports whether there is anything to
// look at. A VM that cannot be dealt with waits for its time all the same: a start that fails
// gives a hint, too.
func (a *Agent) Hint(vm hypervisor.VMID) bool {
	a.hinted = true
	heeds := a.resync.IsZero() // everything is looked at
	moves, v := a.moves.Of(vm), (*store.VM)(nil)
	if moves != nil { // as nearly always
		v = moves.local
	} else {
		v = a.home.Get(vm)
	}
	if v != nil && v.ActiveMigration == "" && !a.queue.Failing(v.Key()) {
		a.queue.Add(v.Key())
		heeds = true
	}
	for m := moves; m != nil; m = m.Next() {
		a.queue.Add(m.Key())
		m.Notify()
		heeds = true
	}
	if !heeds && v == nil && len(a.suspects) < mostSuspects {
		a.suspects = append(a.suspects, vm)
	}
	return heeds
}

// mostSuspects is how many hints of VMs that are not at home are remembered: those beyond are
// found when everything is looked at.
const mostSuspects = 1000

// Reconcile looks once at everything that changed or is due, acts once, and
// says when it next wants to look; the zero time is when something changes.
func (a *Agent) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if err := a.pull(ctx); err != nil {
		return now.Add(a.config.Retry), err
	}
	if a.replaced(a.own) {
		a.tellWaits(now)
		return now.Add(a.config.Resync), nil // its record changes before it may act
	}
	a.tellRefused(now)
	if !a.told() {
		a.resync = time.Time{} // everything is looked at
	}
	if !now.Before(a.resync) {
		amiss, err := a.lookAtAll(ctx, now)
		if err != nil {
			return now.Add(a.config.Retry), err
		}
		a.bePatient(amiss)
		a.resync = now.Add(a.patient)
	}
	a.queue.RequeueDue(now)
	errs := a.forgetful()
	if err := errors.Join(a.meetSuspects(ctx, now), a.tellStrays(ctx)); err != nil {
		errs = append(errs, err)
	}
	for key, ok := a.queue.Take(); ok; key, ok = a.queue.Take() {
		err := a.look(ctx, key, now)
		if err == nil {
			a.queue.Done(key)
			continue
		}
		a.queue.Failed(key, err, now, a.config.Retry, a.config.RetryCap)
		if !errors.Is(err, store.Stale) { // what another process wrote is read then
			errs = append(errs, err)
		}
	}
	return workqueue.Earliest(a.queue.Next(), a.resync), errors.Join(errs...)
}

// bePatient waits longer before everything is looked at once more, as long as
// nothing is amiss: hosts on which nothing happens cost next to nothing.
func (a *Agent) bePatient(amiss bool) {
	a.patient = workqueue.Backoff(a.patient, a.config.ResyncCap, 1)
	if amiss || a.patient == 0 {
		a.patient = a.config.Resync
	}
}

// pull takes in what changed in the records that concern this host.
func (a *Agent) pull(ctx context.Context) error {
	changes, err := a.store.Changes(ctx, store.Feed{Host: a.host}, a.seen)
	if err != nil {
		return err
	}
	if changes.Reset {
		a.moves.Keep(changes.Records)
		a.home.Clear()
		clear(a.rebuilds)
		a.own, a.resync = nil, time.Time{} // everything is looked at
	}
	for _, r := range changes.Records {
		a.learn(r)
	}
	for _, key := range changes.Gone {
		switch key.Kind { // a VM and a migration may have the same name
		case store.MigrationKind:
			a.moves.Drop(migration.ID(key.Name))
		case store.VMKind:
			a.leftHome(hypervisor.VMID(key.Name))
			a.deleted(hypervisor.VMID(key.Name))
		case store.RebuildKind:
			delete(a.rebuilds, key)
		case store.HostKind:
			a.own = nil
		}
	}
	a.seen = changes.Next
	return nil
}

// learn takes in a record that concerns, or concerned, this host.
func (a *Agent) learn(r store.Record) {
	switch r := r.(type) {
	case *store.Migration:
		if old := a.moves.Get(r.Spec.ID); old != nil && old.Version >= r.Version {
			return
		}
		if r.State.Source != a.host && r.State.Target != a.host || a.over(r) {
			a.moves.Drop(r.Spec.ID)
			return
		}
		a.moves.Put(r, a.home.Get)
		a.queue.Add(r.Key())
	case *store.VM:
		if old := a.home.Get(r.VM.ID); old != nil && old.Version >= r.Version {
			return
		}
		if r.Host != a.host {
			if a.home.Get(r.VM.ID) != nil && !a.moving(r.VM.ID) {
				a.suspects = append(a.suspects, r.VM.ID) // it may run here all the same
			}
			a.leftHome(r.VM.ID)
			a.remember(r)
			return
		}
		a.atHome(r)
		a.remember(r)
		a.unmanaged = slices.DeleteFunc(a.unmanaged, func(s UnmanagedDomain) bool {
			return s.VM == r.VM.ID // it was one, and is at home now
		})
		if r.ActiveMigration != "" && !r.Releasing() {
			a.queue.Drop(r.Key()) // it is left alone
		} else if !a.resync.IsZero() { // else everything is looked at
			a.queue.Add(r.Key())
		}
	case *store.Host:
		a.learnOwn(r)
	case *store.Rebuild:
		a.rebuilds[r.Key()] = r
		a.queue.Add(r.Key())
	}
}

// atHome takes in what is stored about a VM that is at home here.
func (a *Agent) atHome(v *store.VM) {
	a.home.Put(v)
	a.moves.At(v.VM.ID, v)
}

// leftHome takes in that a VM is not at home here, or no longer.
func (a *Agent) leftHome(vm hypervisor.VMID) {
	a.home.Drop(vm)
	delete(a.alone, vm)
	a.moves.At(vm, nil)
}

// over reports whether nothing is left to be done here about a migration: the VM has left for
// good, or has come and is at home.
func (a *Agent) over(m *store.Migration) bool {
	switch {
	case m.State.Phase != migration.Succeeded:
		return false
	case m.State.Target == a.host:
		return a.home.Get(m.Spec.VM) != nil
	}
	return m.Source.Released
}

// look does what one record asks of this host.
func (a *Agent) look(ctx context.Context, key store.Key, now time.Time) error {
	switch key.Kind {
	case store.MigrationKind:
		switch m := a.moves.Get(migration.ID(key.Name)); {
		case m == nil || a.over(m):
			a.moves.Drop(migration.ID(key.Name))
		case m.State.Target == a.host:
			return a.receive(ctx, m, now)
		default:
			return a.send(ctx, m, now)
		}
	case store.VMKind:
		if v := a.home.Get(hypervisor.VMID(key.Name)); v != nil {
			return a.keepRunning(ctx, v, now)
		}
	case store.RebuildKind:
		if r := a.rebuilds[key]; r != nil {
			return a.cleanUp(ctx, r, now)
		}
	}
	return nil
}

// report stores what this agent has to say about a migration, on condition that what it
// goes by stands.
func (a *Agent) report(ctx context.Context, m *store.Migration,
	say func(*store.Migration), while ...store.Record) (*store.Migration, error) {
	a.draft = *m
	say(&a.draft)
	if m.State.Source == a.host {
		a.draft.Source.Brownout = a.moves.Brownout(m.Spec.ID)
	}
	if a.config.Session != "" && len(while) == 0 {
		while = []store.Record{a.ownRecord()} // what another agent of this host would say differs
	}
	stored, err := a.store.Put(ctx, &a.draft, while...)
	if err != nil {
		return nil, err
	}
	saved := stored.(*store.Migration)
	if a.moves.Put(saved, a.home.Get); a.over(saved) {
		a.moves.Drop(saved.Spec.ID)
	}
	return saved, nil
}

// announce stores what this agent has to say, and then says it.
func (a *Agent) announce(ctx context.Context, m *store.Migration, now time.Time, what string,
	say func(*store.Migration)) error {
	_, err := a.report(ctx, m, say)
	if err == nil {
		a.note(now, m, what)
	}
	return err
}

// again asks to look at a migration once more after a while.
func (a *Agent) again(m *store.Migration, now time.Time, after time.Duration) {
	a.queue.At(m.Key(), now.Add(after))
}

func (a *Agent) note(now time.Time, m *store.Migration, what string) {
	a.recorder.Note(now, a.host, m.Spec.VM, what)
}
