package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Write is what a peer asks for, beside what is stored.
type Write struct {
	Old  store.Record // as stored, of the version that the write is conditional on; nil: none
	Next store.Record // as it is to be stored; nil: deleted
	// Others are the records of VMs that the write depends on, as stored: what it is conditional on,
	// and that of the name to which a VM was renamed.
	Others []*store.VM

	fields []string // in which the two differ
}

// Judge reads from a store what is needed to judge a write of the agent of a host, and says why it may
// not write it, in words; "" is that it may. The error is Stale for a version that is not the stored
// one, so that the write, which is conditional on it, is of what was judged.
func Judge(ctx context.Context, s store.Store, host hypervisor.HostName, deletes bool, r store.Record,
	while []store.Record) (w Write, why string, err error) {
	w.Next = r
	if l, is := r.(*store.Lease); is && l.Owner == store.HostLease(host) {
		return w, "", nil // it is often written, and judged by its name alone
	}
	if w.Old, err = s.Get(ctx, r.Key()); err != nil {
		return w, "", err
	}
	at := store.Version(0)
	if w.Old != nil {
		at = w.Old.RecordVersion()
	}
	if at != r.RecordVersion() && (w.Old != nil || !deletes) {
		return w, "", &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Stale}
	}
	if deletes {
		w.Next = nil
	}
	if w.fields, err = changed(w.Old, w.Next); err != nil {
		return w, "", err
	}
	if w.Others, err = w.others(ctx, s, while); err != nil {
		return w, "", err
	}
	return w, agentMay(host, w), nil
}

// others reads the records of VMs by which the making and the deleting of one is judged: a VM that gets
// another name is both.
func (w *Write) others(ctx context.Context, s store.Store, while []store.Record) ([]*store.VM, error) {
	old, _ := w.Old.(*store.VM)
	next, _ := w.Next.(*store.VM)
	switch {
	case old != nil && next == nil && old.Rename != nil:
		v, err := store.VMNamed(ctx, s, old.Rename.To)
		if err != nil || v == nil {
			return nil, err
		}
		return []*store.VM{v}, nil
	case old != nil || next == nil:
		return nil, nil
	}
	for _, r := range while {
		if k := r.Key(); k.Kind == store.VMKind {
			v, err := store.VMNamed(ctx, s, hypervisor.VMID(k.Name))
			if err != nil || v == nil || v.Version != r.RecordVersion() {
				return nil, err
			}
			return []*store.VM{v}, nil // the first: no write depends on more
		}
	}
	return nil, nil
}

// acted are the fields that the agent of a host changes in records that are its own, by kind; of a
// kind that is not here, none. A field with a condition has it in onTerms. Source: the documentation of
// the fields in package store, and each write of package agent.
var acted = map[store.Kind][]string{
	store.VMKind: {"Ended", "Boots", "Operation", "Rebooted", "Snapshots", "Paused", "Size", "Dirtied", "Trouble",
		"Unclaimed", "VM", "DiskChanges", "SnapshotRequests", "Rename", "Life", "Moves"},
	store.HostKind:      {"Host", "Identity", "Session", "Refused", "Strays", "Told", "Account", "Adopt"},
	store.MigrationKind: {"Source", "Target"},
	store.RebuildKind:   {"Cleaned"},
}

// agentMay returns why the agent of a host may not write something, in words; "" is that it may. A
// record is judged by whose it is before the write. Source: Kubernetes' NodeRestriction and Node
// authorizer, which confine a kubelet to its own node, and to the pods that are bound to it.
func agentMay(host hypervisor.HostName, w Write) string {
	is := w.Old
	if is == nil {
		is = w.Next
	}
	if is == nil {
		return "" // what is not there is deleted
	}
	if w.fields == nil {
		var err error
		if w.fields, err = changed(w.Old, w.Next); err != nil {
			return err.Error()
		}
	}
	switch is := is.(type) {
	case *store.Lease:
		if is.Owner != store.HostLease(host) || w.Next == nil {
			return "a lease of another"
		}
		return ""
	case *store.Host:
		return w.ofHost(host, is)
	case *store.VM:
		return w.ofVM(host, is)
	case *store.Migration:
		return w.ofMigration(host)
	case *store.Rebuild:
		if r, _ := w.Next.(*store.Rebuild); w.Old == nil || r == nil || is.Source != host || !r.Cleaned {
			return "a rebuild that does not ask this host to clean up"
		}
		return w.beyond(store.RebuildKind)
	}
	return "a " + is.Key().Kind.String() + ", which no agent writes"
}

// beyond names a field that a write changes and no agent does; "" is none.
func (w *Write) beyond(kind store.Kind, besides ...string) string {
	for _, f := range w.fields {
		if !slices.Contains(acted[kind], f) && !slices.Contains(besides, f) {
			return f + " of a " + kind.String() + ", which no agent writes"
		}
	}
	return ""
}

// ofHost judges a write of a host's record.
func (w *Write) ofHost(host hypervisor.HostName, is *store.Host) string {
	next, _ := w.Next.(*store.Host)
	switch old, _ := w.Old.(*store.Host); {
	case is.Host.Name != host:
		return "the record of host " + string(is.Host.Name)
	case next == nil:
		return "the record of its host is not for it to delete"
	case old == nil: // nothing is placed on it before its agent has claimed it
		return w.beyond(store.HostKind, "NotReady")
	case !same(old.Identity, next.Identity) && (next.Identity == nil || old.Admits(*next.Identity) != ""):
		return "the identity of its host, which an operator gives to another agent"
	case next.Adopt != nil && !same(old.Adopt, next.Adopt):
		return "Adopt of a host, which is an operator's word"
	}
	return w.beyond(store.HostKind)
}

// ofMigration judges a write of a migration's record.
func (w *Write) ofMigration(host hypervisor.HostName) string {
	old, _ := w.Old.(*store.Migration)
	if old == nil || w.Next == nil {
		return "a migration is not for an agent to make or to delete"
	}
	for _, f := range w.fields {
		if f == "Source" && old.State.Source != host || f == "Target" && old.State.Target != host {
			return fmt.Sprintf("%s of a migration from %s to %s", f, old.State.Source, old.State.Target)
		}
	}
	return w.beyond(store.MigrationKind)
}

// ofVM judges a write of a VM's record.
func (w *Write) ofVM(host hypervisor.HostName, is *store.VM) string {
	old, _ := w.Old.(*store.VM)
	next, _ := w.Next.(*store.VM)
	switch {
	case old == nil:
		return w.renamed(host, next)
	case old.Host != host:
		return fmt.Sprintf("the record of %s, which is on %q", is.VM.ID, old.Host)
	case next == nil && w.hasNewName(old):
		return ""
	case next == nil:
		return "a VM is not for an agent to delete, unless it has another name already"
	}
	if why := w.beyond(store.VMKind); why != "" {
		return why
	}
	for _, f := range w.fields {
		if may := onTerms[f]; may != nil && !may(old, next) {
			return f + " of a vm otherwise than it was asked for"
		}
	}
	return ""
}

// onTerms are fields of VMs that an agent changes only as it was asked to.
var onTerms = map[string]func(old, next *store.VM) bool{
	"Boots":     func(old, next *store.VM) bool { return next.Boots == old.Boots+1 },
	"Rebooted":  func(_, next *store.VM) bool { return next.Rebooted == next.Reboots },
	"Unclaimed": func(old, next *store.VM) bool { return old.Releasing() && next.Unclaimed == old.ActiveMigration },
	"Rename":    func(_, next *store.VM) bool { return next.Rename == nil },
	"Moves":     func(old, next *store.VM) bool { return old.Moves == 0 && next.Moves == 1 },
	"Life":      begins,
	"VM":        func(old, next *store.VM) bool { return plugged(old, next) || relocated(old, next) },
	"DiskChanges": func(old, next *store.VM) bool {
		return plugged(old, next) || explained(old, next) || relocated(old, next)
	},
	"SnapshotRequests": snapshotsEnded,
}

// begins reports whether a VM of an earlier version of godwit is given its life.
func begins(old, next *store.VM) bool {
	return old.Life == nil && next.Life != nil && next.Life.ID == "" &&
		next.Life.After == store.Revision(old.Version)
}

// plugged reports whether one of the changes of disks that were asked for was made.
func plugged(old, next *store.VM) bool {
	for i := range old.DiskChanges {
		made := *old
		made.Changed(i)
		if same(made.VM, next.VM) && same(made.DiskChanges, next.DiskChanges) {
			return true
		}
	}
	return false
}

// explained reports whether only the reasons differ for which disks were not changed.
func explained(old, next *store.VM) bool {
	if len(old.DiskChanges) != len(next.DiskChanges) {
		return false
	}
	for i, c := range next.DiskChanges {
		if c.Why = old.DiskChanges[i].Why; !same(old.DiskChanges[i], c) {
			return false
		}
	}
	return same(old.VM, next.VM)
}

// relocated reports whether only the moves of disks have come further that were asked for, and the disks
// are where they say.
func relocated(old, next *store.VM) bool {
	if len(old.DiskChanges) != len(next.DiskChanges) {
		return false
	}
	vm := old.VM
	for i, c := range next.DiskChanges {
		was := old.DiskChanges[i]
		if c.Move == nil || was.Move == nil {
			if !same(was, c) {
				return false
			}
			continue
		}
		asked := c.Move.Asked()
		switch {
		case asked != was.Move.Asked() || was.By != c.By:
			return false
		case c.Move.Switched && !was.Move.Switched && !old.VM.HasDisk(asked.Disk, c.Move.From):
			return false
		case c.Move.Switched:
			vm = vm.AtPath(asked.Disk, asked.To)
		case was.Move.Switched:
			vm = vm.AtPath(asked.Disk, was.Move.From)
		}
	}
	return same(vm, next.VM)
}

// snapshotsEnded reports whether only requests have ended that had not.
func snapshotsEnded(old, next *store.VM) bool {
	if len(old.SnapshotRequests) != len(next.SnapshotRequests) {
		return false
	}
	for i, r := range next.SnapshotRequests {
		was := old.SnapshotRequests[i]
		if was.Ended.IsZero() {
			r.Ended, r.Why = was.Ended, was.Why
		}
		if !same(was, r) {
			return false
		}
	}
	return true
}

// renamed judges a record of a VM that is made: the agent of its host makes that of a VM which was to
// get another name, on condition that the one of the old name stands.
func (w *Write) renamed(host hypervisor.HostName, next *store.VM) string {
	for _, v := range w.Others {
		if v.Host == host && v.Rename != nil && v.Rename.To == next.VM.ID && v.CannotRename() == "" &&
			next.Life != nil && same(v.Renamed(*next.Life), next) {
			return ""
		}
	}
	return "a VM is not for an agent to add, unless an operator has renamed it"
}

// hasNewName reports whether a VM has the name already that was asked for.
func (w *Write) hasNewName(old *store.VM) bool {
	return old.Rename != nil && slices.ContainsFunc(w.Others, func(v *store.VM) bool {
		return v.VM.ID == old.Rename.To && old.Rename.Done(v)
	})
}

// agentMayAmend returns why the agent of a host may not change the history of a store, in words; ""
// is that it may: it may say that it has seen a newer store.
func agentMayAmend(host hypervisor.HostName, old, next store.History) string {
	says := old
	says.Doubt = next.Doubt
	switch {
	case !same(says, next):
		return "the history of the store, of which an agent writes only its doubt"
	case same(old, next):
		return ""
	case old.Doubt != nil || next.Doubt == nil || next.Doubt.By != "agent/"+string(host):
		return "a doubt about the store that is not its own"
	}
	return ""
}

// same reports whether two values are stored alike.
func same(a, b any) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}
