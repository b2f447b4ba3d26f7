package qmp

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A domainRecord is what is kept of a VM on this host.
type domainRecord struct {
	backend.Domain
	// Own: the VM is defined here and stays when its process ends. An incoming
	// domain becomes its host's own when it runs.
	Own bool
	// Before is what there was of an incoming VM before it came; nil is nothing. It
	// is put back if the VM does not come.
	Before *domainRecord
	// Rest is what the domain is when it has no process: Shutoff or Crashed.
	Rest hypervisor.DomainState

	// Of the process that the domain has, or had last.

	// Boot names the start of the host in which the process was started.
	Boot string
	// Ending: the process is meant to end. What it was is then at rest, not lost.
	Ending bool
	// Leaving: nothing of the domain is to be left: it runs elsewhere.
	Leaving bool
	// Paused: an operator paused the guest.
	Paused bool

	// Growing are the disks whose images a resize is making larger, in the sizes that they
	// had. Nothing was written beyond yet.
	Growing []hypervisor.Disk
	// Hotplug is what a VM that runs is being made by a resize; nil is nothing. What its QEMU has of
	// that is not noted yet.
	Hotplug *hypervisor.VM `json:",omitempty"`
	// Move is the disk that goes to another image; nil is none. It is replaced, never changed.
	Move *backend.DiskMove `json:",omitempty"`
}

// A stage is how far a job has come on this host, as far as only the journal can
// tell. The rest is what the hypervisor process says.
type stage string

// The stages of a target, and of a source, in order.
const (
	stageListening  stage = "listening"  // room is made; the state may be under way
	stageActivating stage = "activating" // the guest may run, and is being let
	stageArrived    stage = "arrived"    // it was let run, or rests as it did
	stageDiscarded  stage = "discarded"  // the copy did not and will not run

	stagePreparing stage = "preparing" // nothing was sent yet
	stageMirroring stage = "mirroring" // local disks are being copied
	stageSending   stage = "sending"   // the transfer is begun, or has been
	stageKept      stage = "kept"      // it ended, and the VM stayed here
	stageResumed   stage = "resumed"   // it had stopped, and runs again with evidence
	stageAbandoned stage = "abandoned" // its memory was given up with evidence
	stageLeft      stage = "left"      // it moved, and what was left is removed
)

// Live reports whether a job in this stage may have a transfer under way.
func (s stage) Live() bool {
	return s == stageListening || s == stageArrived || s == stageActivating || s == stageMirroring || s == stageSending
}

// MayHaveRun reports whether the guest of a target in this stage runs, or did.
func (s stage) MayHaveRun() bool { return s == stageActivating || s == stageArrived }

// A jobRecord is what is kept of one migration on this host.
type jobRecord struct {
	backend.Job[stage]

	// Of a target.

	Source hypervisor.HostName // the sending host, once it has said so
	// Prepared says how the transfer will be done, once its source has asked.
	Prepared *prepared
	// Stopped: the source has said that its guest has stopped for good. Resting:
	// and that it had been paused by its operator. Heard is when.
	Stopped, Resting bool
	Heard            time.Time

	// Of a source.

	// Parked is since when StartPostCopy has kept the guest stopped, so that QEMU does not let
	// it run again whatever becomes of the transfer; zero: it does not have to.
	Parked time.Time
	// Released: SwitchOver was asked of a job that waits before it.
	Released bool
	// Acknowledged: the target knows that the guest has stopped for good.
	Acknowledged bool
}

// Owes reports whether a source that sends must still tell its target that the
// guest has stopped for good.
func (j *jobRecord) Owes() bool {
	return j.Role == backend.Source && j.Stage == stageSending && !j.Acknowledged
}

// prepared is what a target told its source.
type prepared struct {
	Options hypervisor.TransferOptions
	URI     string // where the target's process listens
	Disks   string // where its local disks are exported, if it has any
}
