package libvirt

import "github.com/godwit-vm/godwit/hypervisor"

// A run is what libvirt says that a domain does, and why, in one word: libvirt's
// pairs of state and reason, as far as they make a difference here.
type run uint8

// What a domain does, by libvirt's name of state and reason.
const (
	// runGone: libvirt does not know the domain.
	runGone run = iota
	// runShutoffUnknown: shut off, and libvirt has forgotten why: it was started since.
	runShutoffUnknown
	// runShutoffClean: the guest shut down, or was destroyed or saved.
	runShutoffClean
	// runShutoffCrashed: its process died, or could not go on.
	runShutoffCrashed
	// runShutoffFailed: it could not be started.
	runShutoffFailed
	// runShutoffMigrated: libvirt's migration succeeded, and the target has it.
	runShutoffMigrated
	// runsNormally: guest instructions execute, for any reason not told apart below.
	runsNormally
	// runsCancelled: it runs again after a migration that failed or was cancelled.
	runsCancelled
	// runsMigrated: it runs here because it was migrated here.
	runsMigrated
	// runsPostCopy: an incoming domain that runs and fetches what it lacks.
	runsPostCopy
	// runsPostCopyFailed: the same, and the connection is lost.
	runsPostCopyFailed
	// runPausedUser: a client paused it; or it came with the flag that keeps it paused.
	runPausedUser
	// runPausedMigration: it stands because it moves, or has not come completely.
	runPausedMigration
	// runPausedPostCopy: a source whose target runs.
	runPausedPostCopy
	// runPausedPostCopyFailed: the same, and the connection is lost.
	runPausedPostCopyFailed
	// runPausedStarting: libvirt is starting it.
	runPausedStarting
	// runPausedUnknown: it stands, and libvirt has forgotten why: it was started since.
	runPausedUnknown
	// runPausedTrouble: it stands because of an I/O error, a watchdog or a panic.
	runPausedTrouble
	// runShuttingDown: the guest is shutting down.
	runShuttingDown
)

var runs = [...]string{"Gone", "ShutoffUnknown", "ShutoffClean", "ShutoffCrashed",
	"ShutoffFailed", "ShutoffMigrated", "Runs", "RunsCancelled", "RunsMigrated", "RunsPostCopy",
	"RunsPostCopyFailed", "PausedUser", "PausedMigration", "PausedPostCopy",
	"PausedPostCopyFailed", "PausedStarting", "PausedUnknown", "PausedTrouble", "ShuttingDown"}

// String returns the word.
func (r run) String() string {
	if int(r) >= len(runs) {
		return "invalid"
	}
	return runs[r]
}

// Alive reports whether the domain has a process.
func (r run) Alive() bool { return r >= runsNormally }

// Executes reports whether guest instructions run.
func (r run) Executes() bool {
	return r >= runsNormally && r <= runsPostCopyFailed || r == runShuttingDown
}

// Rests reports whether the domain is defined and has no process.
func (r run) Rests() bool { return r >= runShutoffUnknown && r <= runShutoffMigrated }

// Stands reports whether the domain has a process and no CPU of it runs.
func (r run) Stands() bool { return r >= runPausedUser && r <= runPausedTrouble }

// A domainLook is what was seen of a domain in libvirt.
type domainLook struct {
	Run run
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
	// Flows: memory has gone since libvirt was asked, by its figures. Of a post-copy that was recovered they tell it
	// when libvirt itself does not.
	Flows bool
	// Job is what godwit's mark in the domain says: the migration that brought, or
	// brings, it. Empty for a domain without a mark.
	Job hypervisor.JobID
	// Cold: the mark says that it rested when it was sent.
	Cold bool
	// Defined: libvirt keeps a definition when the process ends.
	Defined bool
	// LibvirtCall is what has become of the call that asked libvirt to migrate.
	Call libvirtCall
	// Copy is what is seen of the copy of a disk that moves.
	Copy diskCopy
	// Rebooted: the guest has booted anew since it was asked to.
	Rebooted bool
	// Early: our process, or libvirtd, has just begun. What the process before us has
	// asked may still be on its way.
	Early bool
}

// A Call is what has become of the call that asked libvirt to migrate.
type libvirtCall uint8

// What becomes of a call.
const (
	// callNone: there is none: our process began after it, or before.
	callNone libvirtCall = iota
	// calling: it has not returned.
	calling
	// callSucceeded: libvirt answered that the VM has moved.
	callSucceeded
	// callRefused: libvirt answered that the VM has not moved.
	callRefused
	// callBroken: the answer, or libvirt's own connection to the target, was lost.
	callBroken
)
