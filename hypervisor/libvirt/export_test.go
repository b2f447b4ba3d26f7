package libvirt

import "github.com/godwit-vm/godwit/internal/backend"

// What the tests in package libvirt_test see of the inside.

type (
	BaseJob       = backend.Job[stage]
	DomainRecord  = domainRecord
	Job           = jobRecord
	Journal       = journal
	LibvirtCall   = libvirtCall
	Look          = domainLook
	NextStep      = nextStep
	Role          = backend.Role
	Run           = run
	Stage         = stage
	TargetAddress = targetAddress
)

// Unsure and Continues are about memory that was saved.
const Unsure = unsure

var Continues = continues

// Reconnect is reconnect.
var Reconnect = reconnect

const (
	Abandoned            = stageAbandoned
	Abort                = stepAbort
	Arrive               = stepArrive
	Arrived              = stageArrived
	Broken               = callBroken
	Reap                 = stepReap
	Calling              = calling
	Discarded            = stageDiscarded
	Force                = stepForce
	SwitchToPostCopy     = stepSwitchToPostCopy
	Gone                 = runGone
	JobTarget            = backend.Target
	KeepAtSource         = stepKeepAtSource
	Kept                 = stageKept
	Lapse                = stepLapse
	Left                 = stageLeft
	Listening            = stageListening
	Move                 = stepMove
	Moved                = stageMoved
	NoCall               = callNone
	NoRole               = backend.NoRole
	NoteAbort            = stepNoteAbort
	NoteArrival          = stepNoteArrival
	NoteStop             = stepNoteStop
	PausedMigration      = runPausedMigration
	PausedPostCopy       = runPausedPostCopy
	PausedPostCopyFailed = runPausedPostCopyFailed
	PausedStarting       = runPausedStarting
	PausedTrouble        = runPausedTrouble
	PausedUnknown        = runPausedUnknown
	PausedUser           = runPausedUser
	Press                = stepPress
	PressAgain           = backend.PressAgain
	Recovered            = stepRecovered
	Refused              = callRefused
	Reset                = stepReset
	NoStep               = stepNone
	Resumed              = stageResumed
	Runs                 = runsNormally
	RunsCancelled        = runsCancelled
	RunsMigrated         = runsMigrated
	RunsPostCopy         = runsPostCopy
	RunsPostCopyFailed   = runsPostCopyFailed
	Send                 = stepSend
	Sending              = stageSending
	Settled              = stepSettled
	ShutoffClean         = runShutoffClean
	ShutoffCrashed       = runShutoffCrashed
	ShutoffFailed        = runShutoffFailed
	ShutoffMigrated      = runShutoffMigrated
	ShutoffUnknown       = runShutoffUnknown
	ShuttingDown         = runShuttingDown
	Source               = backend.Source
	MarkUnresolved       = stepMarkUnresolved
	Stranded             = stageStranded
	Succeeded            = callSucceeded
	TidyMove             = stepTidyMove
)

var (
	Due          = due
	Mode         = modeOf
	Open         = openJournal
	ParseAddress = parseAddress
	State        = stateOf
	Status       = statusOf
)
