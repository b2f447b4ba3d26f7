//go:build linux && libvirt_dlopen

package conn

import (
	"math"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// JobStatsOf converts libvirt's units: milliseconds, and for the dirty rate pages
// per second. What libvirt does not tell is zero; what no type of ours can hold is
// the largest value that can be held.
func JobStatsOf(i libvirt.DomainJobInfo) JobStats {
	j := JobStats{
		Elapsed:     milliseconds(i.TimeElapsed),
		Downtime:    milliseconds(i.Downtime),
		DowntimeNet: milliseconds(i.DowntimeNet),
		Setup:       milliseconds(i.SetupTime),

		MemoryTotal:     hypervisor.Bytes(amount(i.MemTotal)),
		MemoryProcessed: hypervisor.Bytes(amount(i.MemProcessed)),
		MemoryRemaining: hypervisor.Bytes(amount(i.MemRemaining)),
		MemoryBandwidth: hypervisor.Bandwidth(amount(i.MemBps)),
		PageSize:        hypervisor.Bytes(amount(i.MemPageSize)),
		Iteration:       int(amount(i.MemIteration)),

		DiskTotal:     hypervisor.Bytes(amount(i.DiskTotal)),
		DiskProcessed: hypervisor.Bytes(amount(i.DiskProcessed)),
		DiskRemaining: hypervisor.Bytes(amount(i.DiskRemaining)),
		DiskBandwidth: hypervisor.Bandwidth(amount(i.DiskBps)),

		PostCopyRequests: amount(i.MemPostcopyReqs),
		Throttle:         i.AutoConvergeThrottle,
		Error:            i.ErrorMessage,
	}
	page := j.PageSize
	if page == 0 {
		page = hypervisor.PageSize
	}
	j.DirtyRate = hypervisor.Bandwidth(times(amount(i.MemDirtyRate), int64(page)))
	if i.Type > 0 && int(i.Type) < len(jobTypes) {
		j.Type = JobType(i.Type)
	}
	if i.Operation > 0 && int(i.Operation) < len(operations) {
		j.Operation = Operation(i.Operation)
	}
	return j
}

// completed is what the event of a job that ended says. libvirt leaves out the type,
// and says only in newer versions whether the job ended well.
func completed(i libvirt.DomainJobInfo) *JobStats {
	j := JobStatsOf(i)
	j.Type = JobDone
	if i.JobSuccessSet && !i.JobSuccess {
		j.Type = JobFailed
	}
	return &j
}

// amount is n, or the largest that fits.
func amount(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func milliseconds(n uint64) time.Duration {
	return time.Duration(times(amount(n), int64(time.Millisecond)))
}

// times multiplies what is not negative, up to the largest that fits.
func times(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
