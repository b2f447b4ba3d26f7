package hypervisor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// VMID names a VM in the whole cluster: "namespace/name".
type VMID string

// HostName names a host in the whole cluster.
type HostName string

// JobID names one migration on the hypervisors that take part in it.
type JobID string

// A VM is a virtual machine as its operator wants it to run.
type VM struct {
	ID     VMID
	Memory Bytes // what the guest sees
	CPUs   int   // whole virtual CPUs
	// Hardware is the rest of the machine; nil is the backend's default. It is
	// shared between copies of the VM and never changed, only replaced.
	Hardware *Hardware
}

// Equal reports whether v and w describe the same virtual machine.
func (v VM) Equal(w VM) bool {
	return v.ID == w.ID && v.Memory == w.Memory && v.CPUs == w.CPUs &&
		v.Hardware.equal(w.Hardware)
}

// A Host is a machine that runs VMs, as its hypervisor reports it.
type Host struct {
	Name      HostName
	Memory    Bytes     // what VMs may use together
	CPUs      int       // what VMs may use together, after over-commitment
	Link      Bandwidth // the migration network's speed, each way
	Abilities Abilities // what this host can do besides plain pre-copy
	Software  string    // what runs the VMs, for people: "QEMU 7.2.22, kvm"
}

// A Domain is a VM as one host sees it.
type Domain struct {
	VM VM
	// Job is the migration that this domain takes part in, or took part in
	// last. It stays after the end until the domain is released or discarded.
	// What rests, runs or stands under the job that it is the target of has come by
	// it: until then it is Receiving, and when it does not come, Absent. A backend
	// that says otherwise for a moment has the VM started twice.
	Job   JobID
	State DomainState
	// Unresolved says that the migration Job left this domain stopped and that
	// the host alone cannot know whether the other side runs.
	Unresolved bool
	// DirtyRate is what the last finished [MeasureDirtyRate] found: distinct
	// memory written per second. Measured is when; zero when none has finished.
	DirtyRate Bandwidth
	Measured  time.Time
	// Moving is the disk that goes to another image ([MoveDisk]), until that has ended; nil is none.
	Moving *DiskMove `json:",omitempty"`
}

// A DomainState is what a domain does on its host.
type DomainState uint8

// The states of a domain. Only Running, Starting, Stopping and Rebooting
// execute guest instructions.
const (
	// Absent: the host does not know the VM.
	Absent DomainState = iota
	// Shutoff: defined, not running; it may be started.
	Shutoff
	// Starting: on its way to Running.
	Starting
	// Running: executes the guest.
	Running
	// Paused: stopped by an operator or to let a migration converge; its memory
	// is kept and it may be unpaused.
	Paused
	// Stopping: the guest was asked to shut down.
	Stopping
	// Rebooting: the guest was asked to reboot.
	Rebooting
	// Receiving: an incoming domain that holds no complete state yet.
	Receiving
	// Received: holds the complete state of a stopped source; not started.
	Received
	// HandingOver: a source that stopped for the switch-over. It is the last
	// good copy until the target has received everything.
	HandingOver
	// HandedOver: a source whose complete state the target has acknowledged.
	HandedOver
	// Crashed: its memory is lost; it may be started anew from its disks.
	Crashed
)

var domainStates = [...]string{"Absent", "Shutoff", "Starting", "Running", "Paused", "Stopping",
	"Rebooting", "Receiving", "Received", "HandingOver", "HandedOver", "Crashed"}

// String returns the state's name.
func (s DomainState) String() string { return word(domainStates[:], int(s)) }

// Executes reports whether guest instructions may run in this state.
func (s DomainState) Executes() bool {
	return s == Running || s == Starting || s == Stopping || s == Rebooting
}

// Rests reports whether the domain is nothing but a definition and its disks.
func (s DomainState) Rests() bool { return s == Shutoff || s == Crashed }

// HoldsState reports whether the domain's memory is a complete, resumable copy
// of the VM.
func (s DomainState) HoldsState() bool {
	return s.Executes() || s == Paused || s == Received || s == HandingOver || s == HandedOver
}

// A Mode is how a migration moves memory at the moment.
type Mode uint8

// The modes of a transfer.
const (
	// PreCopy: the source runs, changed pages are sent again.
	PreCopy Mode = iota
	// PausedCopy: the source is paused so that the transfer ends.
	PausedCopy
	// PostCopy: the target runs and fetches what it lacks. There is no way back.
	PostCopy
)

var modes = [...]string{"PreCopy", "Paused", "PostCopy"}

// String returns KubeVirt's name of the mode.
func (m Mode) String() string { return word(modes[:], int(m)) }

// A JobStatus is how far a job has come on one host.
type JobStatus uint8

// The statuses of a job. JobSucceeded, JobFailed and JobCancelled are final.
const (
	JobNone      JobStatus = iota // no such job was begun here
	JobSetup                      // connecting
	JobActive                     // memory moves
	JobSwitching                  // the source has stopped, the rest moves
	JobSucceeded                  // the target acknowledged the complete state
	JobFailed                     // ended by an error; the source kept the VM
	JobCancelled                  // ended on request; the source kept the VM
	JobBroken                     // the link or the peer was lost after the source stopped
)

var jobStatuses = [...]string{"None", "Setup", "Active", "Switching", "Succeeded", "Failed",
	"Cancelled", "Broken"}

// String returns the status's name.
func (s JobStatus) String() string { return word(jobStatuses[:], int(s)) }

// Final reports whether the job has ended on this host.
func (s JobStatus) Final() bool {
	return s == JobSucceeded || s == JobFailed || s == JobCancelled
}

// Progress is how a migration goes, as its source sees it. It always names the job that was asked
// for. At a target its Status counts only: neither JobNone nor final while it receives, and
// JobSucceeded when the VM has come. Sent never falls, and Started never changes. When the job has
// succeeded Started, Total and Sent are set, and Iteration is at least 1.
type Progress struct {
	Job       JobID
	Status    JobStatus
	Mode      Mode
	Started   time.Time     // when Migrate was accepted
	Iteration int           // passes over memory so far; the first is 1, and 0 before it
	Total     Bytes         // memory of the guest
	Disks     Bytes         // local disks, as large as the guest sees them: copied before memory
	Sent      Bytes         // on the wire so far, of disks and memory
	Remaining Bytes         // still to send of both, as of the last pass boundary or sample
	DirtyRate Bandwidth     // newly dirtied memory, measured over the last pass
	Bandwidth Bandwidth     // what the wire carries now
	Downtime  time.Duration // downtime so far; final once Status is final
	Throttle  int           // auto-converge: percent of CPU time taken away
	Error     string        // the backend's own words, for people
}

// MarshalText stores a word, so that renumbering cannot corrupt the past.
func (s DomainState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the state's name, and refuses what is none.
func (s *DomainState) UnmarshalText(text []byte) error {
	return parse(s, domainStates[:], "state of a domain", text)
}

// MarshalText stores a word, so that renumbering cannot corrupt the past.
func (s JobStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the status's name, and refuses what is none.
func (s *JobStatus) UnmarshalText(text []byte) error {
	return parse(s, jobStatuses[:], "status of a job", text)
}

// MarshalText stores a word, so that renumbering cannot corrupt the past.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the mode's name, and refuses what is none.
func (m *Mode) UnmarshalText(text []byte) error {
	return parse(m, modes[:], "mode of a transfer", text)
}

// parse sets v to the number of the word that text is.
func parse[T ~uint8](v *T, words []string, what string, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("%q is no %s: want one of %s", text, what, strings.Join(words, ", "))
	}
	*v = T(i)
	return nil
}

// word returns words[i], and says so when i is out of range.
func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return "invalid"
	}
	return words[i]
}
