package qmp

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// leftover reports whether a process has nothing to do here any more: its job was
// ended, and we died before it was. One that was started since is none.
func leftover(d *domainRecord, j *jobRecord, l look) bool {
	switch {
	case j == nil || !l.Alive:
		return false
	case j.Stage == stageDiscarded || j.Stage == stageKept && j.Cold,
		j.Cold && j.Role == backend.Source && !j.Stage.Live() && l.Run == qemu.PreLaunch:
		return !d.Ran && d.Doing == hypervisor.Absent // it was needed for copies only
	case j.Stage == stageLeft || j.Stage == stageAbandoned:
		return l.Run == qemu.FinishMigrate || l.Run == qemu.PostMigrate
	}
	return false
}

// ends reports whether the next step of a process is that it is ended.
func ends(d *domainRecord, j *jobRecord, l look) bool {
	return l.Alive && d != nil && (d.Ending || leftover(d, j, l))
}

// leftoverState: whatever a process is that is about to end, it does not run the VM.
func leftoverState(d *domainRecord, j *jobRecord) hypervisor.DomainState {
	switch {
	case j.Cold && j.Role == backend.Source: // it rests
	case j.Stage == stageLeft:
		return hypervisor.HandedOver
	case j.Stage == stageAbandoned:
		return hypervisor.HandingOver
	case j.Stage == stageDiscarded:
		return hypervisor.Receiving
	}
	return d.Rest
}

// incoming reports whether a domain is there only because the VM may come. One that
// was started since is its host's own.
func incoming(d *domainRecord, j *jobRecord) bool {
	switch {
	case d.Ran || d.Doing != hypervisor.Absent:
		return false
	case j == nil:
		return !d.Own
	}
	return j.Role == backend.Target && !j.Stage.MayHaveRun()
}

// missed reports whether a domain has ended that never had the VM, or whose VM is known to run
// elsewhere, and is being cleared away. It says nothing of the VM: what there was before is
// what there is.
func missed(d *domainRecord, j *jobRecord, l look) bool {
	return !l.Alive && !receives(j) && (d.Leaving || incoming(d, j))
}
