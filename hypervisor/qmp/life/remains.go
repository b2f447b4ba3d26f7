package life

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// leftover reports whether a process has nothing to do here any more: its job was
// ended, and we died before it was. One that was started since is none.
func leftover(d *journal.Domain, j *journal.Job, l Look) bool {
	switch {
	case j == nil || !l.Alive:
		return false
	case j.Stage == journal.Discarded || j.Stage == journal.Kept && j.Cold,
		j.Cold && j.Role == journal.Source && !j.Stage.Live() && l.Run == qapi.PreLaunch:
		return !d.Ran && d.Doing == hypervisor.Absent // it was needed for copies only
	case j.Stage == journal.Left || j.Stage == journal.Abandoned:
		return l.Run == qapi.FinishMigrate || l.Run == qapi.PostMigrate
	}
	return false
}

// leftoverState: whatever a process is that is about to end, it does not run the VM.
func leftoverState(d *journal.Domain, j *journal.Job) hypervisor.DomainState {
	switch {
	case j.Cold && j.Role == journal.Source: // it rests
	case j.Stage == journal.Left:
		return hypervisor.HandedOver
	case j.Stage == journal.Abandoned:
		return hypervisor.HandingOver
	case j.Stage == journal.Discarded:
		return hypervisor.Receiving
	}
	return d.Rest
}

// Incoming reports whether a domain is there only because the VM may come. One that
// was started since is its host's own.
func Incoming(d *journal.Domain, j *journal.Job) bool {
	switch {
	case d.Ran || d.Doing != hypervisor.Absent:
		return false
	case j == nil:
		return !d.Own
	}
	return j.Role == journal.Target && !j.Stage.MayHaveRun()
}

// Missed reports whether a domain has ended that never had the VM, or whose VM is known to run
// elsewhere, and is being cleared away. It says nothing of the VM: what there was before is
// what there is.
func Missed(d *journal.Domain, j *journal.Job, l Look) bool {
	return !l.Alive && !receives(j) && (d.Leaving || Incoming(d, j))
}
