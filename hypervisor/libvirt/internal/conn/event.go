package conn

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Event is something that happened to a domain.
type Event struct {
	Domain string // its name
	UUID   string
	What   What
	// Detail says why, in libvirt's words; "" when there is no reason or libvirt
	// gave one that is newer than this package.
	Detail Detail
	// Iteration is the pass over memory that began, of an Iterated.
	Iteration int
	// Job is what a JobCompleted says of the job; nil otherwise.
	Job *JobStats
	// Device is the alias of the device, of a DeviceRemoved or DeviceKept.
	Device string
}

// What is a sort of event.
type What uint8

// The sorts of events. libvirt has none for a measurement of the dirty rate that
// ended: look at the domain's statistics.
const (
	// Other: an event of a newer libvirt. It says to look at the domain.
	Other What = iota
	// Defined: the definition is new or changed.
	Defined
	// Undefined: the definition was removed.
	Undefined
	// Started: the domain has a process.
	Started
	// Suspended: the guest's CPUs stopped.
	Suspended
	// Resumed: the guest's CPUs run.
	Resumed
	// Stopped: the domain has no process any more.
	Stopped
	// ShutDown: the guest has shut down; Stopped follows.
	ShutDown
	// Asleep: the guest put itself to sleep.
	Asleep
	// Crashed: the guest's kernel panicked.
	Crashed
	// Rebooted: the guest rebooted.
	Rebooted
	// Iterated: a migration began a pass over memory.
	Iterated
	// JobCompleted: a job, such as a migration, ended. libvirt says nothing of most
	// jobs that failed, migrations among them.
	JobCompleted
	// DeviceRemoved: the guest let a device go.
	DeviceRemoved
	// DeviceKept: the guest refused to let a device go.
	DeviceKept
)

var whats = [...]string{"other", "defined", "undefined", "started", "suspended", "resumed",
	"stopped", "shut down", "asleep", "crashed", "rebooted", "iterated", "job completed",
	"device removed", "device kept"}

// String returns the sort's name.
func (w What) String() string { return word(whats[:], int(w)) }

// A Detail says why something happened.
type Detail string

// The details that a migration is told from.
const (
	// Booted: started from its disks.
	Booted Detail = "booted"
	// Migrated: started to receive, suspended to be handed over, resumed after it
	// was received, or stopped because it moved.
	Migrated Detail = "migrated"
	// PostCopy: suspended or resumed because memory follows after the switch-over.
	PostCopy Detail = "post-copy"
	// PostCopyFailed: suspended or resumed with memory missing.
	PostCopyFailed Detail = "post-copy failed"
	// Paused: suspended on request.
	Paused Detail = "paused"
	// Unpaused: resumed on request.
	Unpaused Detail = "unpaused"
	// IOError: suspended because a disk failed.
	IOError Detail = "I/O error"
	// APIError: suspended because libvirt failed at something.
	APIError Detail = "API error"
	// Shutdown: stopped because the guest shut down.
	Shutdown Detail = "shutdown"
	// Destroyed: stopped by force, on request.
	Destroyed Detail = "destroyed"
	// ProcessCrashed: stopped because the process died.
	ProcessCrashed Detail = "crashed"
	// Failed: stopped because it did not start, or did not come.
	Failed Detail = "failed"
)

// JobStats is how a job of a domain goes or went. A zero field was not told.
type JobStats struct {
	Type      JobType
	Operation Operation
	Elapsed   time.Duration
	Downtime  time.Duration // expected; how long it was once the job has ended
	// DowntimeNet is Downtime without the time that the hosts need to tell each
	// other, if their clocks agree.
	DowntimeNet time.Duration
	Setup       time.Duration

	MemoryTotal     hypervisor.Bytes
	MemoryProcessed hypervisor.Bytes
	MemoryRemaining hypervisor.Bytes
	MemoryBandwidth hypervisor.Bandwidth
	DirtyRate       hypervisor.Bandwidth // newly dirtied memory
	PageSize        hypervisor.Bytes
	Iteration       int // passes over memory; the first is 1

	DiskTotal     hypervisor.Bytes
	DiskProcessed hypervisor.Bytes
	DiskRemaining hypervisor.Bytes
	DiskBandwidth hypervisor.Bandwidth

	PostCopyRequests int64 // pages that the target asked for
	Throttle         int   // auto-converge: percent of CPU time taken away
	Error            string
}

// A JobType says whether a job is under way, and how it ended.
type JobType uint8

// The types of jobs.
const (
	NoJob        JobType = iota // none is under way
	JobBounded                  // under way, with a known end
	JobUnbounded                // under way
	JobDone                     // ended well
	JobFailed                   // ended by an error
	JobCancelled                // ended on request
)

var jobTypes = [...]string{"none", "bounded", "unbounded", "completed", "failed", "cancelled"}

// String returns the type's name.
func (t JobType) String() string { return word(jobTypes[:], int(t)) }

// An Operation is what a job does.
type Operation uint8

// The operations, in libvirt's order.
const (
	UnknownOperation Operation = iota
	Start
	Save
	Restore
	MigrationIn
	MigrationOut
	Snapshot
	SnapshotRevert
	Dump
	Backup
	SnapshotDelete
)

var operations = [...]string{"unknown", "start", "save", "restore", "migration in",
	"migration out", "snapshot", "snapshot revert", "dump", "backup", "snapshot delete"}

// String returns the operation's name.
func (o Operation) String() string { return word(operations[:], int(o)) }

// word returns words[i], and says so when i is out of range.
func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return "invalid"
	}
	return words[i]
}
