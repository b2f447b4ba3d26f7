package migration

import (
	"math"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An ID names a migration. It is the job's name on the hypervisors, too.
type ID = hypervisor.JobID

// A Creator is who asked for a migration. Only what the system repeats by itself backs off.
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
