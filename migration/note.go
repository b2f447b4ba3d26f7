package migration

// A Note is something people are told about a migration: an event.
type Note uint8

// The notes.
const (
	NoteVMMissing Note = iota
	NoteVMFinal
	NoteCanceled
	NoteTargetDown
	NoteTargetRemoved
	NoteStateCleared
	NoteStateTakenOver
	NoteSourceFailed
	NoteAttachmentDown
	NoteOtherInProgress
	NoteUtilityVolumesTimeout
	NoteUtilityVolumesWaiting
	NoteMarkedFailed
	NoteSucceeded
	NoteTargetUnschedulable
	NoteUnschedulableTimeout
	NotePendingTimeout
	NoteCanceledTargetDeleted
	NoteCreatedTarget
	NoteCreatedAttachment
	NoteHandedOff
	NoteAbortSignaled
	NoteBackoff
	NoteBackupAborted
	NoteOverdue
	NoteOutcomeUnknown
)

// notes gives each note its identifier, KubeVirt's event reason, whether it is
// a warning, and whether it is recorded on the VM.
var notes = [...]struct {
	id, reason    string
	warning, onVM bool
}{
	NoteVMMissing:             {"vmiMissing", "FailedMigration", true, false},
	NoteVMFinal:               {"vmiFinal", "FailedMigration", true, false},
	NoteCanceled:              {"canceled", "FailedMigration", true, false},
	NoteTargetDown:            {"targetDown", "FailedMigration", true, false},
	NoteTargetRemoved:         {"targetRemoved", "FailedMigration", true, false},
	NoteStateCleared:          {"stateCleared", "FailedMigration", true, false},
	NoteStateTakenOver:        {"stateTakenOver", "FailedMigration", true, false},
	NoteSourceFailed:          {"sourceReportedFailed", "FailedMigration", true, false},
	NoteAttachmentDown:        {"attachmentDown", "FailedMigration", true, false},
	NoteOtherInProgress:       {"otherInProgress", "FailedMigration", true, false},
	NoteUtilityVolumesTimeout: {"utilityVolumesTimeout", "FailedMigration", true, false},
	NoteUtilityVolumesWaiting: {"utilityVolumesWaiting", "UtilityVolumeMigrationPending", true,
		false},
	NoteMarkedFailed:          {"markedFailed", "FailedMigration", true, true},
	NoteSucceeded:             {"sourceReportedSucceeded", "SuccessfulMigration", false, false},
	NoteTargetUnschedulable:   {"targetUnschedulable", "migrationTargetPodUnschedulable", true, false},
	NoteUnschedulableTimeout:  {"unschedulableTimeout", "SuccessfulDelete", false, false},
	NotePendingTimeout:        {"pendingTimeout", "SuccessfulDelete", false, false},
	NoteCanceledTargetDeleted: {"canceledTargetDeleted", "SuccessfulDelete", false, false},
	NoteCreatedTarget:         {"createdTarget", "SuccessfulCreate", false, false},
	NoteCreatedAttachment:     {"createdAttachment", "SuccessfulCreate", false, false},
	NoteHandedOff:             {"handedOff", "SuccessfulHandOver", false, false},
	NoteAbortSignaled:         {"abortSignaled", "SuccessfulAbortMigration", false, false},
	NoteBackoff:               {"backoff", "MigrationBackoff", true, true},
	NoteBackupAborted:         {"backupAborted", "BackupAbortedForMigration", false, false},
	NoteOverdue:               {"overdue", "FailedMigration", true, false},
	NoteOutcomeUnknown:        {"outcomeUnknown", "UnknownMigration", true, false},
}

// String returns the note's identifier.
func (n Note) String() string { return notes[n].id }

// Reason returns KubeVirt's event reason.
func (n Note) Reason() string { return notes[n].reason }

// Warning reports whether the note is a warning.
func (n Note) Warning() bool { return notes[n].warning }

// OnVM reports whether the note is recorded on the VM, not on the migration.
func (n Note) OnVM() bool { return notes[n].onVM }
