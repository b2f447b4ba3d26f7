package migration

import "cmp"

// A Note is something people are told about a migration: an event's identifier.
type Note string

// The notes.
const (
	NoteVMMissing             Note = "vmiMissing"
	NoteVMFinal               Note = "vmiFinal"
	NoteCanceled              Note = "canceled"
	NoteVMStopping            Note = "vmiStopping"
	NoteReplaced              Note = "replaced"
	NoteTargetDown            Note = "targetDown"
	NoteTargetRemoved         Note = "targetRemoved"
	NoteStateCleared          Note = "stateCleared"
	NoteStateTakenOver        Note = "stateTakenOver"
	NoteSourceFailed          Note = "sourceReportedFailed"
	NoteAttachmentDown        Note = "attachmentDown"
	NoteOtherInProgress       Note = "otherInProgress"
	NoteUtilityVolumesTimeout Note = "utilityVolumesTimeout"
	NoteUtilityVolumesWaiting Note = "utilityVolumesWaiting"
	NoteMarkedFailed          Note = "markedFailed"
	NoteSucceeded             Note = "sourceReportedSucceeded"
	NoteTargetUnschedulable   Note = "targetUnschedulable"
	NoteUnschedulableTimeout  Note = "unschedulableTimeout"
	NotePendingTimeout        Note = "pendingTimeout"
	NoteCanceledTargetDeleted Note = "canceledTargetDeleted"
	NoteCreatedTarget         Note = "createdTarget"
	NoteCreatedAttachment     Note = "createdAttachment"
	NoteHandedOff             Note = "handedOff"
	NoteAbortSignaled         Note = "abortSignaled"
	NoteBackoff               Note = "backoff"
	NoteBackupAborted         Note = "backupAborted"
	NoteOverdue               Note = "overdue"
	NoteOutcomeUnknown        Note = "outcomeUnknown"
	NoteTargetImpossible      Note = "targetImpossible"
	NoteBadRequest            Note = "badRequest"
	NoteTargetRefused         Note = "targetRefused"
	// NoteLimitsNotAsked: the caller did not set [Observation.Gate], so that no target is created.
	NoteLimitsNotAsked Note = "limitsNotAsked"
)

// normal gives the reasons of what is no warning, warnings those of warnings that do not tell of
// a failure.
var normal = map[Note]string{
	NoteSucceeded: "SuccessfulMigration", NoteHandedOff: "SuccessfulHandOver",
	NoteUnschedulableTimeout: "SuccessfulDelete", NotePendingTimeout: "SuccessfulDelete",
	NoteCanceledTargetDeleted: "SuccessfulDelete", NoteCreatedTarget: "SuccessfulCreate",
	NoteCreatedAttachment: "SuccessfulCreate", NoteAbortSignaled: "SuccessfulAbortMigration",
	NoteBackupAborted: "BackupAbortedForMigration",
}

var warnings = map[Note]string{
	NoteUtilityVolumesWaiting: "UtilityVolumeMigrationPending", NoteBackoff: "MigrationBackoff",
	NoteTargetUnschedulable: "migrationTargetPodUnschedulable",
	NoteOutcomeUnknown:      "UnknownMigration", NoteLimitsNotAsked: "MigrationLimitsNotAsked",
}

// Reason returns KubeVirt's event reason.
func (n Note) Reason() string { return cmp.Or(normal[n], warnings[n], "FailedMigration") }

// Warning reports whether the note is a warning.
func (n Note) Warning() bool { return normal[n] == "" }

// OnVM reports whether the note is recorded on the VM, not on the migration.
func (n Note) OnVM() bool { return n == NoteMarkedFailed || n == NoteBackoff }
