package evacuation

import (
	"cmp"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

// DefaultDrainKey is the key of the taint that drains a host.
// Source: KubeVirt v1.9.0 virt-config.go (NodeDrainTaintDefaultKey).
const DefaultDrainKey = "kubevirt.io/drain"

// Params say how hosts are emptied. The zero value creates all migrations at
// once, the largest VM first, and moves no VM that does not ask for it.
type Params struct {
	// DrainKey is the key of the taint that drains a host; its effect must be
	// NoSchedule, its value does not matter. Default: [DefaultDrainKey].
	DrainKey string
	// Strategy is the cluster's default for VMs that have none.
	Strategy Strategy
	Mode     Mode
	// Terms are those of drains that have none of their own.
	Terms Terms
	// Limits bound the modes of free spots; QueueAll ignores them.
	Limits Limits
	Order  Order
	// Policy, when there is one, orders in place of Order, and says how much leaves a
	// host at once within all limits. Default: nil, Order and the limits alone.
	Policy Policy
	// Compatible reproduces KubeVirt where godwit does better:
	//
	//   - a VM that cannot migrate is noticed only when a spot is left over for
	//     it, and never in QueueAll; by default always;
	//   - after creating something there is no look again by the clock; by default
	//     candidates left over are looked at again after 5 s and VMs that
	//     cannot migrate after a minute;
	//   - migrations in the modes of free spots have no priority; by default
	//     they have the same as in QueueAll;
	//   - [Count] counts no migration that waits, so that a second look creates
	//     more than there are spots, and compares names without namespaces;
	//   - [Cancel] cancels no migration.
	Compatible bool
}

// Draining reports whether the host carries the drain taint, so that every VM
// must leave it.
// Source: KubeVirt v1.9.0 evacuation.go:416 (nodeHasTaint).
func (p Params) Draining(h Host) bool {
	key := cmp.Or(p.DrainKey, DefaultDrainKey)
	for _, t := range h.Taints {
		if t.Key == key && t.Effect == placement.NoSchedule {
			return true
		}
	}
	return false
}

// A Mode says where migrations that may not start yet wait.
type Mode uint8

// The modes.
const (
	// QueueAll creates a migration for every candidate; the limits hold them
	// back, and their priority orders them, in the queue of package migration.
	// Source: KubeVirt v1.9.0 evacuation.go:438 (sync).
	QueueAll Mode = iota
	// FreeSpots creates as many migrations as may start now, counting all that
	// are unfinished; compatible: those that hold a slot.
	// Source: KubeVirt v1.8.4 evacuation.go:376 (sync).
	FreeSpots
	// FreeSpotsV059 also counts migrations that wait, and does not know
	// LiveMigrateIfPossible. KubeVirt v0.59.0 panicked when more was unfinished
	// than a limit allows and nothing was left to do; here nothing is done.
	// Source: KubeVirt v0.59.0 evacuation.go (sync).
	FreeSpotsV059
)

var modes = [...]string{"QueueAll", "FreeSpots", "FreeSpotsV059"}

// String returns the mode's name.
func (m Mode) String() string { return word(modes[:], "Mode", uint8(m)) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (m Mode) MarshalText() ([]byte, error) {
	return humanize.Text(m, modes[:], "mode of an evacuation")
}

// UnmarshalText reads a word that MarshalText wrote.
func (m *Mode) UnmarshalText(text []byte) error {
	return humanize.Parse(m, modes[:], "mode of an evacuation", text)
}

// UnmarshalJSON reads a word, or the number that versions before stored.
func (m *Mode) UnmarshalJSON(text []byte) error {
	return humanize.JSON(m, modes[:], "mode of an evacuation", text)
}

// An Order says which candidates go first. More urgent ones always do, and
// equal ones go by ID.
type Order uint8

// The orders.
const (
	// LargestFirst puts the longest migrations first: memory, with local disks, is the best
	// guess at how long one takes, since all of it is sent at least once. A drain is
	// over when its last VM has left, and a long migration that starts last
	// leaves the other slots idle for its whole length. With the longest first
	// m slots finish within 4/3 of the shortest possible time, in an arbitrary
	// order only within 2 - 1/m (Graham, "Bounds on multiprocessing timing
	// anomalies", 1969).
	LargestFirst Order = iota
	// SmallestFirst brings the most VMs away in the least time: for a host that
	// may die before it is empty.
	SmallestFirst
	// ByID goes by name only. KubeVirt's order is that of a hash table; this
	// one can at least be repeated.
	ByID
)

var orders = [...]string{"LargestFirst", "SmallestFirst", "ByID"}

// String returns the order's name.
func (o Order) String() string { return word(orders[:], "Order", uint8(o)) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (o Order) MarshalText() ([]byte, error) { return humanize.Text(o, orders[:], "order") }

// UnmarshalText reads a word that MarshalText wrote.
func (o *Order) UnmarshalText(text []byte) error {
	return humanize.Parse(o, orders[:], "order", text)
}

// UnmarshalJSON reads a word, or the number that versions before stored.
func (o *Order) UnmarshalJSON(text []byte) error {
	return humanize.JSON(o, orders[:], "order", text)
}

// compare orders two candidates, first to go first; more urgent ones always do.
func (p Params) compare(link hypervisor.Bandwidth, a, b *VM) int {
	if p.Policy == nil || a.priority() != b.priority() {
		return p.Order.compare(a, b)
	}
	if c := p.Policy.Compare(link, a.Evacuating(), b.Evacuating()); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// compare orders two candidates, first to go first. It is total for different
// IDs. It does not use cmp.Or, which would compare the IDs every time.
func (o Order) compare(a, b *VM) int {
	if c := cmp.Compare(b.priority(), a.priority()); c != 0 {
		return c
	}
	switch {
	case a.Memory == b.Memory:
	case o == LargestFirst:
		return cmp.Compare(b.Memory, a.Memory)
	case o == SmallestFirst:
		return cmp.Compare(a.Memory, b.Memory)
	}
	return cmp.Compare(a.ID, b.ID)
}

// word returns words[i], and says so when there is none.
func word(words []string, kind string, i uint8) string {
	if int(i) < len(words) {
		return words[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}
