package agent

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// A cachedMigration is a migration of which a host knows.
type cachedMigration struct {
	*store.Migration
	other    *cachedMigration // of the same VM, that became known later
	local    *store.VM        // the VM that it moves; nil is that it is not at home here
	memory   *convergence.State
	notified bool

	brownout store.Brownout // ahead of what is stored
	throttle int            // the share of CPU time that was taken at the last look, in percent
	looked   time.Time      // when that was; zero is never

	limitAt    time.Time // before then it is not told another limit
	recoveries int       // how often it was asked to recover the post-copy
	recoverAt  time.Time // before then it is not asked for again
	recovers   time.Time // until when it is looked at often: the hypervisor has begun to
}

// LimitAt returns when a hypervisor may be told that a limit has changed: at once, unless it was not taken.
func (l *migrationCache) LimitAt(id migration.ID) time.Time {
	if m := l.byID[id]; m != nil {
		return m.limitAt
	}
	return time.Time{}
}

// LimitLater notes that a hypervisor did not take a limit. Hints of what was asked come at once.
func (l *migrationCache) LimitLater(id migration.ID, at time.Time) {
	if m := l.byID[id]; m != nil {
		m.limitAt = at
	}
}

// Attempt notes that an attempt to recover a broken post-copy is made, and returns which one it is, and when the next
// may be made at the earliest: each asks to wait longer, from least up to most. Hints of what is asked come at once.
func (l *migrationCache) Attempt(id migration.ID, now time.Time, least, most time.Duration) (attempt int, next time.Time) {
	m := l.byID[id]
	m.recoverAt = now.Add(workqueue.Backoff(least, most, m.recoveries))
	m.recoveries++
	return m.recoveries, m.recoverAt
}

// RecoverAt returns when a broken post-copy may be recovered again at the earliest; zero is now.
func (l *migrationCache) RecoverAt(id migration.ID) time.Time {
	if m := l.byID[id]; m != nil {
		return m.recoverAt
	}
	return time.Time{}
}

// recoveryLooks is for how long one attempt to recover a broken post-copy is looked at often. A hypervisor says itself when a
// longer one has ended.
const recoveryLooks = 10 * time.Second

// Recovers notes whether the hypervisor has begun to recover a broken post-copy.
func (l *migrationCache) Recovers(id migration.ID, is bool, now time.Time) {
	m := l.byID[id]
	switch {
	case m == nil:
	case is:
		m.recovers = now.Add(recoveryLooks)
	default:
		m.recovers = time.Time{}
	}
}

// IsRecovering reports whether the hypervisor has begun to recover a broken post-copy a moment ago.
func (l *migrationCache) IsRecovering(id migration.ID, now time.Time) bool {
	m := l.byID[id]
	return m != nil && now.Before(m.recovers)
}

// Throttled takes in which share of CPU time is taken from a guest whose transfer is known.
func (l *migrationCache) Throttled(id migration.ID, percent int, now time.Time) {
	m := l.byID[id]
	if m == nil {
		return
	}
	span := time.Duration(0)
	if m.looked.IsZero() {
		m.brownout = m.Source.Brownout
	} else {
		span = now.Sub(m.looked)
	}
	m.brownout = m.brownout.During(span, m.throttle).During(0, percent)
	m.throttle, m.looked = percent, now
}

// Brownout returns how the guest of a move was slowed down so far.
func (l *migrationCache) Brownout(id migration.ID) store.Brownout {
	m := l.byID[id]
	switch {
	case m == nil:
		return store.Brownout{}
	case m.looked.IsZero():
		return m.Source.Brownout
	}
	return m.brownout
}

// A List is moves. The zero value is empty and ready.
type migrationCache struct {
	byID map[migration.ID]*cachedMigration
	byVM map[hypervisor.VMID]*cachedMigration // the first that became known
	free []*convergence.State                 // states that are no longer used
}

// Get returns a migration; nil is one that is not known.
func (l *migrationCache) Get(id migration.ID) *store.Migration {
	if m := l.byID[id]; m != nil {
		return m.Migration
	}
	return nil
}

// Put enters a migration, or another writing of it; local is its VM, if that is at home here: it is asked for
// when the migration was not known.
func (l *migrationCache) Put(r *store.Migration, local func(hypervisor.VMID) *store.VM) {
	if known := l.byID[r.Spec.ID]; known != nil {
		known.Migration = r
		return
	}
	if l.byID == nil {
		l.byID, l.byVM = map[migration.ID]*cachedMigration{}, map[hypervisor.VMID]*cachedMigration{}
	}
	m := &cachedMigration{Migration: r, local: local(r.Spec.VM)}
	l.byID[r.Spec.ID] = m
	last := l.byVM[r.Spec.VM]
	if last == nil {
		l.byVM[r.Spec.VM] = m
		return
	}
	for last.other != nil {
		last = last.other
	}
	last.other = m
}

// Drop forgets a migration, if it is known.
func (l *migrationCache) Drop(id migration.ID) {
	m := l.byID[id]
	if m == nil {
		return
	}
	l.Ended(id)
	delete(l.byID, id)
	vm := m.Spec.VM
	first := l.byVM[vm]
	if first == m {
		if l.byVM[vm] = m.other; m.other == nil {
			delete(l.byVM, vm)
		}
		return
	}
	for first.other != m {
		first = first.other
	}
	first.other = m.other
}

// Keep forgets all migrations that are not among some records, and what this host holds of the others.
func (l *migrationCache) Keep(records []store.Record) {
	if len(l.byID) == 0 {
		return
	}
	kept := make(map[store.Key]bool, len(records))
	for _, r := range records {
		kept[r.Key()] = true
	}
	for id, m := range l.byID {
		if m.local = nil; !kept[m.Key()] {
			l.Drop(id)
		}
	}
}

// Of returns the first move of a VM that became known, for [cachedMigration.Next] to go on; nil is none.
func (l *migrationCache) Of(vm hypervisor.VMID) *cachedMigration { return l.byVM[vm] }

// At takes in what is stored about a VM that is at home here; nil is that it is not, or no longer.
func (l *migrationCache) At(vm hypervisor.VMID, local *store.VM) {
	for m := l.byVM[vm]; m != nil; m = m.other {
		m.local = local
	}
}

// Next returns the next move of the same VM; nil is none.
func (m *cachedMigration) Next() *cachedMigration { return m.other }

// Notify says that something has happened to the move: see [migrationCache.Notified].
func (m *cachedMigration) Notify() { m.notified = true }

// Notified reports whether something has happened to a move that is known since it was last
// asked.
func (l *migrationCache) Notified(id migration.ID) bool {
	m := l.byID[id]
	was := m.notified
	m.notified = false
	return was
}

// Sorted returns all, by name.
func (l *migrationCache) Sorted() []*cachedMigration {
	if len(l.byID) == 0 {
		return nil // as on most hosts at most times
	}
	return slices.SortedFunc(maps.Values(l.byID), func(x, y *cachedMigration) int {
		return cmp.Compare(x.Spec.ID, y.Spec.ID)
	})
}

// Memory returns what convergence remembers of a transfer that is known, ahead of what is
// stored, to be changed in place until it has [migrationCache.Ended]: at first a copy of what is stored,
// if anything is.
func (l *migrationCache) Memory(id migration.ID) *convergence.State {
	m := l.byID[id]
	if m.memory == nil {
		if n := len(l.free); n > 0 {
			m.memory, l.free = l.free[n-1], l.free[:n-1]
		} else {
			m.memory = &convergence.State{}
		}
		if stored := m.Source.Monitor; stored != nil {
			*m.memory = *stored
		}
	}
	return m.memory
}

// Ended forgets what convergence remembers of a transfer.
func (l *migrationCache) Ended(id migration.ID) {
	if m := l.byID[id]; m != nil && m.memory != nil {
		*m.memory = convergence.State{}
		l.free = append(l.free, m.memory)
		m.memory = nil
	}
}
