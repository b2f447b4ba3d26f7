package migration

import "cmp"

// A Note is something people are told about a migration: an event's identifier.
type Note string

// The notes.
const (
	noteVMMissing             Note = "vmiMissing"
	noteVMFinal               Note = "vmiFinal"
	noteCanceled              Note = "canceled"
	noteVMStopping            Note = "vmiStopping"
	noteReplaced              Note = "replaced"
	noteTargetDown            Note = "targetDown"
	noteTargetRemoved         Note = "targetRemoved"
	noteStateCleared          Note = "stateCleared"
	noteStateTakenOver        Note = "stateTakenOver"
	noteSourceFailed          Note = "sourceReportedFailed"
	noteAttachmentDown        Note = "attachmentDown"
	noteOtherInProgress       Note = "otherInProgress"
	noteUtilityVolumesTimeout Note = "utilityVolumesTimeout"
	noteUtilityVolumesWaiting Note = "utilityVolumesWaiting"
	noteMarkedFailed          Note = "markedFailed"
	noteSucceeded             Note = "sourceReportedSucceeded"
	noteTargetUnschedulable   Note = "targetUnschedulable"
	noteUnschedulableTimeout  Note = "unschedulableTimeout"
	notePendingTimeout        Note = "pendingTimeout"
	noteCanceledTargetDeleted Note = "canceledTargetDeleted"
	noteCreatedTarget         Note = "createdTarget"
	noteCreatedAttachment     Note = "createdAttachment"
	noteHandedOff             Note = "handedOff"
	noteAbortSignaled         Note = "abortSignaled"
	noteBackoff               Note = "backoff"
	noteBackupAborted         Note = "backupAborted"
	noteOverdue               Note = "overdue"
	noteOutcomeUnknown        Note = "outcomeUnknown"
	noteTargetImpossible      Note = "targetImpossible"
	noteBadRequest            Note = "badRequest"
	noteTargetRefused         Note = "targetRefused"
	// noteLimitsNotAsked: the caller did not set [Observation.Gate], so that no target is created.
	noteLimitsNotAsked Note = "limitsNotAsked"
)

// normal gives the reasons of what is no warning, warnings those of warnings that do not tell of
// a failure.
var normal = map[Note]string{
	noteSucceeded: "SuccessfulMigration", noteHandedOff: "SuccessfulHandOver",
	noteUnschedulableTimeout: "SuccessfulDelete", notePendingTimeout: "SuccessfulDelete",
	noteCanceledTargetDeleted: "SuccessfulDelete", noteCreatedTarget: "SuccessfulCreate",
	noteCreatedAttachment: "SuccessfulCreate", noteAbortSignaled: "SuccessfulAbortMigration",
	noteBackupAborted: "BackupAbortedForMigration",
}

var warnings = map[Note]string{
	noteUtilityVolumesWaiting: "UtilityVolumeMigrationPending", noteBackoff: "MigrationBackoff",
	noteTargetUnschedulable: "migrationTargetPodUnschedulable",
	noteOutcomeUnknown:      "UnknownMigration", noteLimitsNotAsked: "MigrationLimitsNotAsked",
}

// Reason returns KubeVirt's event reason.
func (n Note) Reason() string { return cmp.Or(normal[n], warnings[n], "FailedMigration") }

// Warning reports whether the note is a warning.
func (n Note) Warning() bool { return normal[n] == "" }
