package migration

import (
	"cmp"
	"time"
)

// A Priority orders migrations that wait: the larger goes first.
// Source: KubeVirt v1.9.0 pkg/util/migrations/migrations.go:19.
type Priority int16

// The priorities, with KubeVirt's numbers.
const (
	Lowest            Priority = 0    // asked for by a user, or an unknown word
	SystemMaintenance Priority = 20   // the descheduler
	UserTriggered     Priority = 50   // hot-plug and volume changes
	SystemCritical    Priority = 100  // evacuation and upgrades
	inFlight          Priority = 1000 // work on what already runs comes first
)

// ParsePriority returns the priority that a word names; an unknown word is Lowest, as in
// KubeVirt.
func ParsePriority(word string) Priority { return priorities[word] }

var priorities = map[string]Priority{"system-critical": SystemCritical,
	"user-triggered": UserTriggered, "system-maintenance": SystemMaintenance}

// Requeue returns how long a migration that a limit holds back waits before it asks again.
// Source: KubeVirt v1.9.0 migration.go:1404.
func (p Priority) Requeue() time.Duration {
	switch {
	case p >= SystemCritical:
		return time.Second
	case p >= UserTriggered:
		return 3 * time.Second
	}
	return 5 * time.Second
}

// ByPrecedence orders waiting migrations, first to go first: by priority, then by age, then by
// name. KubeVirt leaves the order among equals to the timing of its queue; a total order lets
// no migration starve among equals.
func ByPrecedence(a, b Spec) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created),
		cmp.Compare(a.ID, b.ID))
}
