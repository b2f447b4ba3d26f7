package migration

import (
	"math"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

// An ID names a migration. It is the job's name on the hypervisors, too.
type ID = hypervisor.JobID

// A Creator is the origin of a migration. Only what the system repeats by itself backs off.
type Creator uint8

// The creators.
const (
	User Creator = iota
	Evacuation
	WorkloadUpdate
)

// String returns the creator's word.
func (c Creator) String() string { return word(creators[:], int(c)) }

var creators = [...]string{"user", "evacuation", "workload-update"}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (c Creator) MarshalText() ([]byte, error) {
	return humanize.Text(c, creators[:], "creator of a migration")
}

// UnmarshalText reads a word that MarshalText wrote.
func (c *Creator) UnmarshalText(text []byte) error {
	return humanize.Parse(c, creators[:], "creator of a migration", text)
}

// UnmarshalJSON reads a word, or the number that versions before stored.
func (c *Creator) UnmarshalJSON(text []byte) error {
	return humanize.JSON(c, creators[:], "creator of a migration", text)
}

// A Spec is what was asked for. It does not change afterwards.
type Spec struct {
	ID       ID
	VM       hypervisor.VMID
	Created  time.Time
	Target   hypervisor.HostName // requested; "" lets godwit choose
	Priority Priority
	By       Creator
	// Force says what happens when Target refuses. Absent: the migration waits until it
	// takes the VM, as KubeVirt's does. No: it ends as a conflict. Yes: policy and capacity are
	// overruled and become debts; what physics forbids is a conflict. Only with a Target.
	Force placement.Force `json:",omitzero"`
	// Compat serves older clients: an absent force is then as Yes, and nothing is on record.
	Compat   bool `json:",omitempty"`
	Timeouts Overrides
}

// Replaces reports whether m takes the place of other, which has no target yet: an operator names
// a host, or is in a greater hurry, and other was asked for by the system.
func (m *Spec) Replaces(other *Spec) bool {
	return m.By == User && other.By != User && m.VM == other.VM &&
		(m.Target != "" || m.Priority > other.Priority)
}

// Overrides are timeouts of one migration. A nil field takes the [Config]'s.
type Overrides struct {
	Unschedulable, Target, UtilityVolumes *time.Duration
}

// ParseSeconds reads an override as KubeVirt's annotations hold it: a whole number of seconds.
// Anything else is no override. What no duration can hold is taken as the nearest that one can.
// Source: KubeVirt v1.9.0 migration.go:1717 (strconv.Atoi).
func ParseSeconds(text string) *time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return new(time.Duration(max(-most, min(n, most))) * time.Second)
}
