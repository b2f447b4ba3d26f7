package qmp

import "github.com/godwit-vm/godwit/internal/backend"

// What the tests in package qmp_test see of the inside.

type (
	BaseJob      = backend.Job[stage]
	Answer       = handoverAnswer
	Conn         = peerConn
	DomainRecord = domainRecord
	Job          = jobRecord
	Journal      = journal
	Look         = look
	Message      = message
	NextStep     = nextStep
	Prepared     = prepared
	Role         = backend.Role
	Server       = server
	Stage        = stage
	SwitchOver   = switchOver
	Verb         = verb
)

const (
	Abandoned         = stageAbandoned
	Activate          = stepActivate
	Activating        = stageActivating
	Announce          = stepAnnounce
	Arrive            = stepArrive
	Arrived           = stageArrived
	Reap              = stepReap
	Continue          = stepContinue
	Discarded         = stageDiscarded
	EndWait           = stepEndWait
	GiveUp            = stepGiveUp
	SwitchToPostCopy  = stepSwitchToPostCopy
	Halt              = stepHalt
	KeepAtSource      = stepKeepAtSource
	KeptRecord        = stageKept
	Left              = stageLeft
	Listening         = stageListening
	Mirroring         = stageMirroring
	NoRole            = backend.NoRole
	Prepare           = verbPrepare
	Preparing         = stagePreparing
	Press             = stepPress
	PressAgain        = backend.PressAgain
	Quit              = stepQuit
	Reset             = stepReset
	NoStep            = stepNone
	Resumed           = stageResumed
	Run               = stepRun
	Send              = stepSend
	Sending           = stageSending
	Source            = backend.Source
	Stopped           = verbStopped
	SwitchOverAwaited = switchOverAwaited
	SwitchOverNever   = switchOverNever
	SwitchOverUnknown = switchOverUnknown
	Target            = backend.Target
)

var (
	Due           = due
	DueUnanswered = dueUnanswered
	Mode          = modeOf
	NewConn       = newConn
	Open          = openJournal
	Serve         = serve
	State         = stateOf
	Status        = statusOf
	Told          = told
)
