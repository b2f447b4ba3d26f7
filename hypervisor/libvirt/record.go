package libvirt

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A domainRecord is what is kept of a VM on this host besides what libvirt keeps. A domain that Ran,
// was not seen to end since, and is found shut off for no known reason has crashed.
type domainRecord struct {
	backend.Domain
	// Name and UUID are the domain's in libvirt.
	Name string
	UUID string
	// Boot is the start after which the domain's memory may have been saved, as hypervisor.Start counts:
	// the last one here, of which it is certain that libvirt has done it, or that came here with the VM.
	// 0 is that it has not been started by anyone who counts.
	Boot int `json:",omitempty"`
	// Crashed: it rests, and has lost its memory unasked.
	Crashed bool
	// Autostart is only read: an earlier version gave it back to a VM that had stayed.
	Autostart bool
	// Move is the disk that goes to another image; nil is none. It is replaced, never changed.
	Move *backend.DiskMove `json:",omitempty"`
}

// unsure is the Boot of a domain of which a start was asked from its disks. Until libvirt has done it, memory
// that was saved before may be there.
const unsure = -1

// continues reports whether a start may continue memory that was saved here: the VM was started nowhere
// else since. Last is the start after which it may have been saved.
func continues(last, boot int) bool { return boot == 0 || last != unsure && boot == last+1 }

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

// A jobRecord is what is kept of one migration on this host.
type jobRecord struct {
	backend.Job[stage]

	// Of a target.

	// Seen: libvirt has begun to receive it.
	Seen bool
	// Unborn: it was held, and its process ended before it was let run. It never ran.
	Unborn bool

	// Of a source.

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
func (j *jobRecord) Sends() bool {
	return j != nil && j.Role == backend.Source && j.Stage == stageSending
}

// Receives reports whether the host waits for the VM, or is being sent it.
func (j *jobRecord) Receives() bool {
	return j != nil && j.Role == backend.Target && j.Stage == stageListening
}
