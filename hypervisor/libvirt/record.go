package libvirt

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Domain is what is kept of a VM on this host besides what libvirt keeps.
type domainRecord struct {
	// VM is the VM as it was asked for, or as it is to come.
	VM hypervisor.VM
	// Name and UUID are the domain's in libvirt.
	Name string
	UUID string
	// Job is the migration that the domain takes part in, or took part in last.
	Job hypervisor.JobID
	// Unresolved: the job left this domain stopped, and only the other side can
	// know whether the VM runs there.
	Unresolved bool
	// Ran: the guest was let run, or may have been, and has not been seen to end
	// since. A domain that is found shut off for no known reason has crashed then.
	Ran bool
	// Crashed: it rests, and has lost its memory unasked.
	Crashed bool
	// Autostart: libvirt started the domain with its host, until a migration took
	// that away so that a source that is left behind never starts.
	Autostart bool
	// Doing is what was asked and is under way: Starting, Stopping, Rebooting, or
	// Absent for nothing; By is when patience ends.
	Doing hypervisor.DomainState
	By    time.Time
	// Asked is when the guest's power button was pressed last for that.
	Asked time.Time
	// Measuring is when the present measurement ends. DirtyRate and Measured are
	// the last one's.
	Measuring time.Time
	DirtyRate hypervisor.Bandwidth
	Measured  time.Time
}

// A role is what a host is in a job.
type role string

// The roles.
const (
	roleNone   role = "" // it has only promised not to take part
	roleSource role = "source"
	roleTarget role = "target"
)

// A stage is how far a job has come on this host, as far as only the journal can
// tell. The rest is what libvirt says.
type stage string

// The stages of a target, and of a source, in order.
const (
	stageListening stage = "listening" // room is kept; the state may be under way
	stageArrived   stage = "arrived"   // it was let run, or rests as it did
	stageDiscarded stage = "discarded" // the copy did not and will not run

	stageSending   stage = "sending"   // libvirt was, or is about to be, asked to migrate
	stageStranded  stage = "stranded"  // it ended, and only the target knows how
	stageKept      stage = "kept"      // it ended, and the VM stayed here
	stageMoved     stage = "moved"     // libvirt says that the target has it
	stageResumed   stage = "resumed"   // it had stopped, and runs again with evidence
	stageAbandoned stage = "abandoned" // its memory was given up with evidence
	stageLeft      stage = "left"      // it moved, and what was left is removed
)

// Live reports whether a job in this stage may have a transfer under way.
func (s stage) Live() bool { return s == stageListening || s == stageSending }

// A jobRecord is what is kept of one migration on this host. It is kept after the domain
// is gone: the id of a job is never used again.
type jobRecord struct {
	ID    hypervisor.JobID
	VM    hypervisor.VM
	Role  role
	Stage stage
	// Refused: this host was told to discard the job, and will never receive it.
	Refused bool
	Started time.Time
	// Last is the last progress that was seen; it is final when its status is.
	Last hypervisor.Progress
	// Cold: the VM was Shutoff and rests at the target.
	Cold bool

	// Of a target.

	Hold bool
	// Seen: libvirt has begun to receive it.
	Seen bool
	// Token tells the addresses of two targets apart.
	Token string
	// Unborn: it was held, and its process ended before it was let run. It never ran.
	Unborn bool

	// Of a source.

	Target  hypervisor.HostName
	Address hypervisor.Address
	Options hypervisor.TransferOptions
	// GuestPaused: PauseGuest stopped the guest; a cancel lets it run again.
	GuestPaused bool
	// Cancelled: Cancel was asked. libvirt may not have heard it yet.
	Cancelled bool
	// PostCopied: StartPostCopy was asked. There is no way back.
	PostCopied bool
	// Aborted: libvirt has said that it ended the transfer before the target had
	// everything.
	Aborted bool
	// Again: when the job began, the domain ran again after an earlier migration that
	// had ended.
	Again bool
	// Stopped: the guest was seen to stand for the switch-over.
	Stopped bool
	// Resting: the guest was paused when the migration began, and stays so.
	Resting bool
}

// First returns the progress of the job before anything is sent.
func (j *jobRecord) First() hypervisor.Progress {
	return hypervisor.Progress{Job: j.ID, Started: j.Started, Total: j.VM.Memory,
		Disks: j.VM.LocalSize()}
}

// Sends reports whether the host is the source of a transfer under way.
func (j *jobRecord) Sends() bool { return j != nil && j.Role == roleSource && j.Stage == stageSending }

// Receives reports whether the host waits for the VM, or is being sent it.
func (j *jobRecord) Receives() bool {
	return j != nil && j.Role == roleTarget && j.Stage == stageListening
}
