package qmp

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/monitor"
)

// leftover reports whether a process has nothing to do here any more: its job was
// ended, and we died before it was. One that was started since is none.
func leftover(d *DomainRecord, j *Job, l Look) bool {
	switch {
	case j == nil || !l.Alive:
		return false
	case j.Stage == Discarded || j.Stage == KeptRecord && j.Cold,
		j.Cold && j.Role == Source && !j.Stage.Live() && l.Run == monitor.PreLaunch:
		return !d.Ran && d.Doing == hypervisor.Absent // it was needed for copies only
	case j.Stage == Left || j.Stage == Abandoned:
		return l.Run == monitor.FinishMigrate || l.Run == monitor.PostMigrate
	}
	return false
}

// leftoverState: whatever a process is that is about to end, it does not run the VM.
func leftoverState(d *DomainRecord, j *Job) hypervisor.DomainState {
	switch {
	case j.Cold && j.Role == Source: // it rests
	case j.Stage == Left:
		return hypervisor.HandedOver
	case j.Stage == Abandoned:
		return hypervisor.HandingOver
	case j.Stage == Discarded:
		return hypervisor.Receiving
	}
	return d.Rest
}

// Incoming reports whether a domain is there only because the VM may come. One that
// was started since is its host's own.
func Incoming(d *DomainRecord, j *Job) bool {
	switch {
	case d.Ran || d.Doing != hypervisor.Absent:
		return false
	case j == nil:
		return !d.Own
	}
	return j.Role == Target && !j.Stage.MayHaveRun()
}

// Missed reports whether a domain has ended that never had the VM, or whose VM is known to run
// elsewhere, and is being cleared away. It says nothing of the VM: what there was before is
// what there is.
func Missed(d *DomainRecord, j *Job, l Look) bool {
	return !l.Alive && !receives(j) && (d.Leaving || Incoming(d, j))
}
