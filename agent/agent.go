package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/agent/terms"
	"github.com/godwit-vm/godwit/agent/todo"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// Agent acts for one host: it prepares targets, drives sources, cleans up what
// is left of VMs that have moved, and keeps the host's VMs running. It keeps
// nothing that the store and the hypervisor do not have.
type Agent struct {
	host   hypervisor.HostName
	config Config
	hv     hypervisor.Hypervisor
	store  record.Store
	noter  record.Noter

	seen      record.Revision
	own       *record.Host                       // nil while nobody has stored one
	moves     map[migration.ID]*record.Migration // those that concern this host
	vms       map[hypervisor.VMID]*record.VM     // those that are on this host
	rebuilds  map[record.Key]*record.Rebuild     // of VMs that were here
	todo      todo.List
	hints     []hypervisor.VMID
	byVM      map[hypervisor.VMID][]migration.ID
	strangers []Stranger
	warned    map[hypervisor.VMID]string // what was said of a VM that is left alone

	resync   time.Time     // when everything is looked at again
	patient  time.Duration // how long until then
	monitors terms.Memories
	draft    record.Migration // scratch of report: what is stored is the store's own
}

// New returns an agent that knows nothing yet.
func New(host hypervisor.HostName, config Config, hv hypervisor.Hypervisor, store record.Store,
	noter record.Noter) *Agent {
	return &Agent{host: host, config: config.Complete(), hv: hv, store: store, noter: noter,
		moves: map[migration.ID]*record.Migration{}, vms: map[hypervisor.VMID]*record.VM{},
		byVM: map[hypervisor.VMID][]migration.ID{}, hints: make([]hypervisor.VMID, 0, 4)}
}

// Hint says that something may have happened to a VM on this host. Hints are
// taken in by the next Reconcile; a lost one costs only time.
func (a *Agent) Hint(vm hypervisor.VMID) { a.hints = append(a.hints, vm) }

// Reconcile looks once at everything that changed or is due, acts once, and
// says when it next wants to look; the zero time is when something changes.
func (a *Agent) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if err := a.pull(ctx); err != nil {
		return now.Add(a.config.Retry), err
	}
	if a.resync.IsZero() {
		a.hints = a.hints[:0] // everything is looked at
	}
	a.takeHints()
	if !now.Before(a.resync) {
		amiss, err := a.lookAtAll(ctx, now)
		if err != nil {
			return now.Add(a.config.Retry), err
		}
		a.bePatient(amiss)
		a.resync = now.Add(a.patient)
	}
	a.todo.Wake(now)
	var errs []error
	for key, ok := a.todo.Take(); ok; key, ok = a.todo.Take() {
		err := a.look(ctx, key, now)
		if err == nil {
			a.todo.Done(key)
			continue
		}
		a.todo.Failed(key, err, now, a.config.Retry, a.config.RetryCap)
		if !errors.Is(err, record.Stale) { // what somebody else wrote is read then
			errs = append(errs, err)
		}
	}
	return due.Earliest(a.todo.Next(), a.resync), errors.Join(errs...)
}

// put enters a value into a map that is made for the first: most stay empty.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// bePatient waits longer before everything is looked at once more, as long as
// nothing is amiss: hosts on which nothing happens cost next to nothing.
func (a *Agent) bePatient(amiss bool) {
	a.patient = min(2*a.patient, a.config.ResyncCap)
	if amiss || a.patient == 0 {
		a.patient = a.config.Resync
	}
}

// pull takes in what changed in the records that concern this host.
func (a *Agent) pull(ctx context.Context) error {
	changes, err := a.store.Changes(ctx, record.Feed{Host: a.host}, a.seen)
	if err != nil {
		return err
	}
	if changes.Reset {
		clear(a.moves)
		clear(a.byVM)
		clear(a.vms)
		clear(a.rebuilds)
		a.own, a.resync = nil, time.Time{} // everything is looked at
	}
	for _, r := range changes.Records {
		a.learn(r)
	}
	for _, key := range changes.Gone {
		switch key.Kind { // a VM and a migration may have the same name
		case record.MigrationKind:
			a.forget(migration.ID(key.Name))
		case record.VMKind:
			delete(a.vms, hypervisor.VMID(key.Name))
		case record.RebuildKind:
			delete(a.rebuilds, key)
		case record.HostKind:
			a.own = nil
		}
	}
	a.seen = changes.Next
	return nil
}

// learn takes in a record that concerns, or concerned, this host.
func (a *Agent) learn(r record.Record) {
	switch r := r.(type) {
	case *record.Migration:
		if old := a.moves[r.Spec.ID]; old != nil && old.Version >= r.Version {
			return
		}
		if r.State.Source != a.host && r.State.Target != a.host {
			a.forget(r.Spec.ID)
			return
		}
		a.remember(r)
		a.todo.Add(r.Key())
	case *record.VM:
		if old := a.vms[r.VM.ID]; old != nil && old.Version >= r.Version {
			return
		}
		if r.Host != a.host {
			delete(a.vms, r.VM.ID)
			return
		}
		a.vms[r.VM.ID] = r
		if r.Claim != "" {
			a.todo.Drop(r.Key()) // it is left alone
		} else if !a.resync.IsZero() { // else everything is looked at
			a.todo.Add(r.Key())
		}
	case *record.Host:
		a.learnOwn(r)
	case *record.Rebuild:
		put(&a.rebuilds, r.Key(), r)
		a.todo.Add(r.Key())
	}
}

// remember keeps a migration in mind.
func (a *Agent) remember(m *record.Migration) {
	if a.moves[m.Spec.ID] == nil {
		a.byVM[m.Spec.VM] = append(a.byVM[m.Spec.VM], m.Spec.ID)
	}
	a.moves[m.Spec.ID] = m
}

// forget puts a migration out of mind: it does not concern this host, or there
// is nothing left to be done about it here.
func (a *Agent) forget(id migration.ID) {
	m := a.moves[id]
	if m == nil {
		return
	}
	delete(a.moves, id)
	delete(a.monitors, id)
	rest := slices.DeleteFunc(a.byVM[m.Spec.VM], func(o migration.ID) bool { return o == id })
	if a.byVM[m.Spec.VM] = rest; len(rest) == 0 {
		delete(a.byVM, m.Spec.VM)
	}
}

// takeHints marks what concerns the hinted VMs. A VM that cannot be dealt with waits for its
// time all the same: a start that fails gives a hint, too.
func (a *Agent) takeHints() {
	slices.Sort(a.hints)
	hints := slices.Compact(a.hints)
	a.hints = a.hints[:0]
	for _, vm := range hints {
		if v := a.vms[vm]; v != nil && v.Claim == "" && !a.todo.Failing(v.Key()) {
			a.todo.Add(v.Key())
		}
		for _, id := range a.byVM[vm] {
			a.todo.Add(a.moves[id].Key())
		}
	}
}

func (a *Agent) sortedMoves() []*record.Migration {
	if len(a.moves) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(a.moves), func(x, y *record.Migration) int {
		return cmp.Compare(x.Spec.ID, y.Spec.ID)
	})
}

// look does what one record asks of this host.
func (a *Agent) look(ctx context.Context, key record.Key, now time.Time) error {
	switch key.Kind {
	case record.MigrationKind:
		m := a.moves[migration.ID(key.Name)]
		switch {
		case m == nil:
			return nil
		case m.State.Target == a.host:
			return a.receive(ctx, m, now)
		case m.State.Phase == migration.Succeeded && m.Source.Released:
			a.forget(m.Spec.ID)
			return nil
		}
		return a.send(ctx, m, now)
	case record.VMKind:
		if v := a.vms[hypervisor.VMID(key.Name)]; v != nil {
			return a.keepRunning(ctx, v, now)
		}
	case record.RebuildKind:
		if r := a.rebuilds[key]; r != nil {
			return a.cleanUp(ctx, r, now)
		}
	}
	return nil
}

// report stores what this agent has to say about a migration, on condition that what it
// goes by stands.
func (a *Agent) report(ctx context.Context, m *record.Migration,
	say func(*record.Migration), while ...record.Record) (*record.Migration, error) {
	a.draft = *m
	say(&a.draft)
	stored, err := a.store.Put(ctx, &a.draft, while...)
	if err != nil {
		return nil, err
	}
	saved := stored.(*record.Migration)
	a.remember(saved)
	return saved, nil
}

// announce stores what this agent has to say, and then says it.
func (a *Agent) announce(ctx context.Context, m *record.Migration, now time.Time, what string,
	say func(*record.Migration)) error {
	_, err := a.report(ctx, m, say)
	if err == nil {
		a.note(now, m, what)
	}
	return err
}

// again asks to look at a migration once more after a while.
func (a *Agent) again(m *record.Migration, now time.Time, after time.Duration) {
	a.todo.At(m.Key(), now.Add(after))
}

func (a *Agent) note(now time.Time, m *record.Migration, what string) {
	a.noter.Note(now, a.host, m.Spec.VM, what)
}
