package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// An UnmanagedDomain is a domain on this host that is not the host's own: it is never touched.
type UnmanagedDomain struct {
	VM    hypervisor.VMID
	State hypervisor.DomainState
	Why   string // in words: "it has no record"
	// Elsewhere is the host that its record names; "" is none.
	Elsewhere hypervisor.HostName
}

// UnmanagedDomains lists the domains here that no record explains, ordered by VM, as they were
// when everything was last looked at. It is not to be called during a Reconcile.
func (a *Agent) UnmanagedDomains() []UnmanagedDomain { return slices.Clone(a.unmanaged) }

// lookAtAll marks what is not as it should be: after a restart that is how an agent adopts
// what it finds, and later how it finds what it has missed. A VM that runs here, as it
// shall, costs one comparison. It reports whether anything was amiss.
func (a *Agent) lookAtAll(ctx context.Context, now time.Time) (amiss bool, err error) {
	for _, m := range a.moves.Sorted() {
		a.queue.Add(m.Key())
	}
	domains, err := a.hv.Domains(ctx)
	if err != nil {
		return false, err
	}
	found, first := 0, a.resync.IsZero()
	a.unmanaged = a.unmanaged[:0]
	if !first && a.home.Undisturbed(domains) { // the first time there may be more to tell
		return false, nil
	}
	for i := range domains {
		v, settled := a.home.Settled(domains[i].VM.ID)
		if v == nil {
			a.meet(ctx, &domains[i], now)
			continue
		}
		found++
		if first {
			if err := a.cancelForgotten(ctx, &domains[i], now); err != nil { // its QEMU may hang: the others do not wait for it
				a.warn(v.VM.ID, "whether a transfer is under way that has no record is not known: "+errorText(err), now)
			}
		}
		wrong := (domains[i].State != hypervisor.Running || !settled) &&
			(domains[i].State != hypervisor.Paused || !v.Stands() || v.Trouble != "")
		amiss = amiss || wrong
		if wrong || first && v.ActiveMigration == "" && (!asWanted(v, &domains[i]) ||
			a.uncounted(v) || a.mayAutostart(v)) {
			a.queue.Add(v.Key())
		}
	}
	if found == a.home.Len() {
		return amiss, nil // none is missing
	}
	here := make(map[hypervisor.VMID]bool, len(domains))
	for i := range domains {
		here[domains[i].VM.ID] = true
	}
	for _, v := range a.home.Sorted() {
		if !here[v.VM.ID] {
			a.queue.Add(v.Key())
		}
	}
	return true, nil
}

// cancelForgotten cancels a transfer out of this host whose migration has no record: the store was set back to
// before it. No host waits for its end, and where its target is off the guest would stop at the switch-over for good.
// Once the guest has stopped here, or runs there, only an operator can decide.
func (a *Agent) cancelForgotten(ctx context.Context, d *hypervisor.Domain, now time.Time) error {
	if d.Job == "" || !d.State.Executes() && d.State != hypervisor.Paused || a.moves.Get(d.Job) != nil {
		return nil
	}
	r, err := a.store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(d.Job)})
	if err != nil || r != nil {
		return err
	}
	p, err := a.hv.Progress(ctx, d.Job)
	switch {
	case err != nil || p.Status.Final() || p.Status == hypervisor.JobNone:
		return err
	case !cancellable(p):
		a.warn(d.VM.ID, "takes part in "+string(d.Job)+", a transfer whose migration has no record, and can only go on with it", now)
		return nil
	}
	a.warn(d.VM.ID, "ends "+string(d.Job)+", a transfer whose migration has no record", now)
	return a.cancel(ctx, d.Job)
}

// meet takes note of a domain that is not this host's own. One that executes while its
// record says that it is elsewhere, and no migration explains it, may run twice: that is
// reported once, and nothing is done about it, as it is not known which copy is the good one.
func (a *Agent) meet(ctx context.Context, d *hypervisor.Domain, now time.Time) {
	if a.moving(d.VM.ID) {
		return // that explains it
	}
	s := UnmanagedDomain{VM: d.VM.ID, State: d.State, Why: "it has no record"}
	v, err := store.VMNamed(ctx, a.store, d.VM.ID)
	switch {
	case err != nil:
		s.Why = "its record cannot be read: " + err.Error()
	case v != nil && (v.Host == a.host || v.ActiveMigration != "" && a.moves.Get(v.ActiveMigration) != nil):
		return // it has just come, or its record is about to say so
	case v != nil:
		s.Why, s.Elsewhere = "its record says that it is on "+string(v.Host), v.Host
		rebuilt := a.rebuilds[(&store.Rebuild{VM: d.VM.ID, Source: a.host}).Key()]
		if d.State.Executes() && rebuilt == nil { // of that [Agent.cleanUp] speaks
			a.warn(d.VM.ID, "runs here, and "+s.Why+": left alone", now)
		}
	}
	a.unmanaged = append(a.unmanaged, s)
}

// moving reports whether a migration explains that this host has a domain of a VM: one that is under
// way, or whose source is yet to be cleared away. One that has failed explains none that executes, and
// one that has come here is at home, or has been given away since.
func (a *Agent) moving(vm hypervisor.VMID) bool {
	for m := a.moves.Of(vm); m != nil; m = m.Next() {
		here := m.State.Phase == migration.Succeeded && m.State.Target == a.host
		if m.State.Phase != migration.Failed && !here {
			return true
		}
	}
	return false
}

// meetSuspects looks at the domains of which something was hinted, and that are not this host's
// own as far as is known.
func (a *Agent) meetSuspects(ctx context.Context, now time.Time) error {
	if len(a.suspects) == 0 {
		return nil
	}
	suspects := a.suspects
	a.suspects = nil
	for _, vm := range suspects {
		if a.home.Get(vm) != nil {
			continue
		}
		d, err := a.hv.Domain(ctx, vm)
		if err != nil {
			return err
		}
		a.unmanaged = slices.DeleteFunc(a.unmanaged, func(s UnmanagedDomain) bool { return s.VM == vm })
		if d.State != hypervisor.Absent {
			a.meet(ctx, &d, now)
		}
	}
	slices.SortFunc(a.unmanaged, func(x, y UnmanagedDomain) int { return cmp.Compare(x.VM, y.VM) })
	return nil
}

// tellStrays stores which VMs execute here although their records say that they are elsewhere,
// when that has changed: operators are told, and nothing else is done about it. A domain of which
// there is no record may be none of godwit's.
func (a *Agent) tellStrays(ctx context.Context) error {
	var strays []store.Stray
	for _, s := range a.unmanaged {
		if s.Elsewhere != "" && (s.State.Executes() || s.State == hypervisor.Paused) {
			strays = append(strays, store.Stray{VM: s.VM, Why: s.Why})
		}
	}
	if a.own == nil || slices.Equal(a.own.Strays, strays) && a.told() {
		return nil
	}
	next := *a.own
	if next.Strays = strays; a.config.Admission {
		next.Told = a.config.Session
	}
	stored, err := a.store.Put(ctx, &next)
	if err == nil {
		a.own = stored.(*store.Host)
	}
	if errors.Is(err, store.Stale) {
		return nil // another process has written another field: it is read first
	}
	return err
}

// told reports whether what executes here was looked at and told since this agent has begun, or was
// asked to look again.
func (a *Agent) told() bool {
	return !a.config.Admission || a.own != nil && a.own.Told == a.config.Session
}

// warn says something about a VM that is left alone, once.
func (a *Agent) warn(vm hypervisor.VMID, what string, now time.Time) {
	if a.warned[vm] != what {
		a.warned[vm] = what
		a.recorder.Note(now, a.host, vm, what)
	}
}

// cleanUp removes what is left here of a VM that was started anew on another host after
// this one was fenced: the record of that says so, and the VM's own record says where it is
// now. What executes, or holds memory, is no leftover: the fencing was none, and an
// operator has to choose.
// Source: Nova compute/manager.py (_destroy_evacuated_instances), by record, not by absence.
func (a *Agent) cleanUp(ctx context.Context, r *store.Rebuild, now time.Time) error {
	if r.Cleaned {
		return nil
	}
	v, err := store.VMNamed(ctx, a.store, r.VM)
	switch {
	case err != nil:
		return err
	case v == nil || v.Host == "" || v.Host == a.host:
		return nil // its place is not known, or it has come back
	case a.isHere(v):
		return nil // it has come back since: the record is older
	case v.ActiveMigration != "": // on the move again, perhaps to here
		a.queue.At(r.Key(), now.Add(a.config.Resync))
		return nil
	}
	d, err := a.hv.Domain(ctx, r.VM)
	if err != nil {
		return err
	}
	switch {
	case d.State == hypervisor.Absent:
	case d.State.Rests() && !r.Done(v): // it is all that there is of the VM
		a.queue.At(r.Key(), now.Add(a.config.Resync))
		return nil
	case d.State.Rests():
		if err := a.hv.Do(ctx, r.VM, hypervisor.Forget{Outdated: true}); err != nil {
			return err
		}
		a.recorder.Note(now, a.host, r.VM, "what was left here is removed: it was rebuilt on "+
			string(v.Host))
	default:
		a.warn(r.VM, "is here and not dead, although it was rebuilt on "+string(v.Host)+
			": left alone", now)
		a.queue.At(r.Key(), now.Add(a.config.Resync))
		return nil
	}
	next := *r
	next.Cleaned = true
	stored, err := a.store.Put(ctx, &next, v)
	if err == nil {
		a.rebuilds[r.Key()] = stored.(*store.Rebuild)
	}
	return err
}
