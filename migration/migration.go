package migration

import (
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An ID names a migration. It is the job's name on the hypervisors, too.
type ID = hypervisor.JobID

// A Creator is who asked for a migration. Only what the system repeats by
// itself backs off.
type Creator uint8

// The creators.
const (
	User Creator = iota
	Evacuation
	WorkloadUpdate
)

// A Spec is what was asked for. It does not change afterwards.
type Spec struct {
	ID       ID
	VM       hypervisor.VMID
	Created  time.Time
	Priority Priority
	By       Creator
	Target   hypervisor.HostName // requested; "" lets godwit choose
	Timeouts Overrides
}

// Overrides are timeouts of one migration. A nil field takes the [Config]'s.
type Overrides struct {
	Unschedulable, Target, UtilityVolumes *time.Duration
}

// ParseSeconds reads an override as KubeVirt's annotations hold it: a whole
// number of seconds. Anything else is no override.
// Source: KubeVirt v1.9.0 migration.go:1717 (strconv.Atoi).
func ParseSeconds(text string) *time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	d := time.Duration(n) * time.Second
	return &d
}
