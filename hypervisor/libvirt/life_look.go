package libvirt

import "github.com/godwit-vm/godwit/hypervisor"

// A Run is what libvirt says that a domain does, and why, in one word: libvirt's
// pairs of state and reason, as far as they make a difference here.
type Run uint8

// What a domain does, by libvirt's name of state and reason.
const (
	// Gone: libvirt does not know the domain.
	Gone Run = iota
	// ShutoffUnknown: shut off, and libvirt has forgotten why: it was started since.
	ShutoffUnknown
	// ShutoffClean: the guest shut down, or was destroyed or saved.
	ShutoffClean
	// ShutoffCrashed: its process died, or could not go on.
	ShutoffCrashed
	// ShutoffFailed: it could not be started.
	ShutoffFailed
	// ShutoffMigrated: libvirt's migration succeeded, and the target has it.
	ShutoffMigrated
	// Runs: guest instructions execute, for any reason not told apart below.
	Runs
	// RunsCancelled: it runs again after a migration that failed or was cancelled.
	RunsCancelled
	// RunsMigrated: it runs here because it was migrated here.
	RunsMigrated
	// RunsPostCopy: an incoming domain that runs and fetches what it lacks.
	RunsPostCopy
	// RunsPostCopyFailed: the same, and the connection is lost.
	RunsPostCopyFailed
	// PausedUser: a client paused it; or it came with the flag that keeps it paused.
	PausedUser
	// PausedMigration: it stands because it moves, or has not come completely.
	PausedMigration
	// PausedPostCopy: a source whose target runs.
	PausedPostCopy
	// PausedPostCopyFailed: the same, and the connection is lost.
	PausedPostCopyFailed
	// PausedStarting: libvirt is starting it.
	PausedStarting
	// PausedUnknown: it stands, and libvirt has forgotten why: it was started since.
	PausedUnknown
	// PausedTrouble: it stands because of an I/O error, a watchdog or a panic.
	PausedTrouble
	// ShuttingDown: the guest is shutting down.
	ShuttingDown
)

var runs = [...]string{"Gone", "ShutoffUnknown", "ShutoffClean", "ShutoffCrashed",
	"ShutoffFailed", "ShutoffMigrated", "Runs", "RunsCancelled", "RunsMigrated", "RunsPostCopy",
	"RunsPostCopyFailed", "PausedUser", "PausedMigration", "PausedPostCopy",
	"PausedPostCopyFailed", "PausedStarting", "PausedUnknown", "PausedTrouble", "ShuttingDown"}

// String returns the word.
func (r Run) String() string {
	if int(r) >= len(runs) {
		return "invalid"
	}
	return runs[r]
}

// Alive reports whether the domain has a process.
func (r Run) Alive() bool { return r >= Runs }

// Executes reports whether guest instructions run.
func (r Run) Executes() bool { return r >= Runs && r <= RunsPostCopyFailed || r == ShuttingDown }

// Rests reports whether the domain is defined and has no process.
func (r Run) Rests() bool { return r >= ShutoffUnknown && r <= ShutoffMigrated }

// Stands reports whether the domain has a process and no CPU of it runs.
func (r Run) Stands() bool { return r >= PausedUser && r <= PausedTrouble }

// A Look is what was seen of a domain in libvirt.
type Look struct {
	Run Run
	// Sends: libvirt is migrating it away. Nothing else is known of a domain that
	// is being received.
	Sends bool
	// Aborted: libvirt has ended the transfer, and is about to tell its target.
	Aborted bool
	// Stood: the guest stood for the switch-over since libvirt was asked; an event told.
	Stood bool
	// Blind: events may have been lost since libvirt was asked.
	Blind bool
	// Stuck: it has stood for the switch-over for longer than that takes.
	Stuck bool
	// Moving: it sends memory of which some has gone.
	Moving bool
	// Job is what godwit's mark in the domain says: the migration that brought, or
	// brings, it. Empty for a domain without a mark.
	Job hypervisor.JobID
	// Cold: the mark says that it rested when it was sent.
	Cold bool
	// Defined: libvirt keeps a definition when the process ends.
	Defined bool
	// LibvirtCall is what has become of the call that asked libvirt to migrate.
	Call LibvirtCall
	// Rebooted: the guest has booted anew since it was asked to.
	Rebooted bool
	// Early: our process, or libvirtd, has just begun. What the process before us has
	// asked may still be on its way.
	Early bool
}

// A Call is what has become of the call that asked libvirt to migrate.
type LibvirtCall uint8

// What becomes of a call.
const (
	// NoCall: there is none: our process began after it, or before.
	NoCall LibvirtCall = iota
	// Calling: it has not returned.
	Calling
	// Succeeded: libvirt answered that the VM has moved.
	Succeeded
	// Refused: libvirt answered that the VM has not moved.
	Refused
	// Broken: the answer, or libvirt's own connection to the target, was lost.
	Broken
)
