package migration

// A rule says when a migration stops its normal progress. The first rule that holds and decides,
// decides: the order is the specification.
type rule struct {
	name    string
	holds   func(*State, *Observation) bool
	verdict verdict
	note    Note
}

// A verdict is what a rule comes to. Verdicts are values and not functions, so that a decision
// allocates nothing.
type verdict uint8

const (
	release verdict = iota // lets go of a migration that has ended
	fail                   // ends the migration: the VM stays where it is
	// abort is fail while the source has not begun; afterwards it asks the source, once, to
	// abandon the transfer, and lets the next rule speak.
	abort
	markAborting // records that an abort was asked for and consumes the look
	markUnknown  // records that it is not known how the transfer ended
	skip         // skips the remaining rules
)

// rules is godwit's own table.
var rules = [...]rule{
	{"done", done, release, ""},
	{"arrived", arrived, skip, ""},
	{"source-kept-vm", sourceKeptVM, fail, noteSourceFailed},
	{"vm-missing", vmMissing, abort, noteVMMissing},
	{"vm-ended", vmEnded, abort, noteVMFinal},
	{"canceled", canceled, abort, noteCanceled},
	{vmStopping, toBeStopped, abort, noteVMStopping},
	{replaced, makesWay, abort, noteReplaced},
	{"target-impossible", targetImpossible, abort, noteTargetImpossible},
	{badRequest, badlyRequested, abort, noteBadRequest},
	{conflict, conflicts, abort, noteTargetRefused},
	{"target-outdated", staleTarget, abort, noteTargetRefused},
	{"target-down", targetDown, abort, noteTargetDown},
	{"target-vanished", targetVanished, abort, noteTargetRemoved},
	{"state-cleared", stateCleared, abort, noteStateCleared},
	{"state-taken-over", stateTakenOver, abort, noteStateTakenOver},
	{"attachment-down", attachmentDown, abort, noteAttachmentDown},
	{"overdue", overdue, abort, noteOverdue},
	{"outcome-unknown", unanswered, markUnknown, noteOutcomeUnknown},
	{"other-in-progress", otherInProgress, abort, noteOtherInProgress},
}

// undisturbed reports whether none of the rules holds. It asks what they ask, in one expression:
// a look that finds nothing is nearly every look, and to call each of them costs many times that.
func undisturbed(s *State, o *Observation) bool {
	return !done(s, o) && !arrived(s, o) && !sourceKeptVM(s, o) && !vmMissing(s, o) &&
		!vmEnded(s, o) && !canceled(s, o) && !toBeStopped(s, o) && !makesWay(s, o) && !targetImpossible(s, o) &&
		(o.Refusal == NotRefused || !badlyRequested(s, o) && !conflicts(s, o) && !staleTarget(s, o)) &&
		!targetDown(s, o) && !targetVanished(s, o) && !stateCleared(s, o) &&
		!stateTakenOver(s, o) && !attachmentDown(s, o) && !overdue(s, o) &&
		!unanswered(s, o) && !otherInProgress(s, o)
}

// kubevirtRules is the reference's table, for the compatible mode.
// Source: KubeVirt v1.9.0 migration.go:528 (updateStatus).
var kubevirtRules = [...]rule{
	{"done", done, release, ""},
	{"vm-missing", vmMissing, fail, noteVMMissing},
	{"vm-ended", vmEnded, fail, noteVMFinal},
	{"canceled-before-hand-over", canceledBeforeHandOver, abort, noteCanceled},
	{"target-down", targetDown, fail, noteTargetDown},
	{"target-vanished", targetVanished, fail, noteTargetRemoved},
	{"state-cleared", stateCleared, fail, noteStateCleared},
	{"state-taken-over", stateTakenOver, fail, noteStateTakenOver},
	{"source-reported-failed", sourceReportedFailed, fail, noteSourceFailed},
	{"canceled-after-hand-over", cancelNotYetRecorded, markAborting, ""},
	{"attachment-down", attachmentDown, fail, noteAttachmentDown},
	{"other-in-progress", otherInProgress, fail, noteOtherInProgress},
}

// done: the migration has ended; nothing is decided about it any more.
// Source: KubeVirt v1.9.0 migration.go:541 (updateStatus, IsFinal).
func done(s *State, _ *Observation) bool { return s.Phase.Final() }

// arrived: the target's host has seen the VM run there. Nothing that is wrong with the source,
// the target's helpers or the clock can undo that. A failure that is complete is none: then the
// target has not seen the VM.
// Source: godwit; KubeVirt v1.9.0 migration-target.go:278 (the target's ack).
func arrived(_ *State, o *Observation) bool {
	return o.Report.Began && o.Report.Completed && (o.Report.Arrived || !o.Report.Failed)
}

// sourceKeptVM: the source's host reports that the transfer ended and that the VM stayed: the
// one proof that a transfer that had begun has failed.
// Source: KubeVirt v1.9.0 migration.go:614 (MigrationState.Failed).
func sourceKeptVM(_ *State, o *Observation) bool { return o.Report.Failed }

// sourceReportedFailed is sourceKeptVM where the report may be another's.
// Source: KubeVirt v1.9.0 migration.go:614 (MigrationState.Failed).
func sourceReportedFailed(_ *State, o *Observation) bool {
	return o.Ownership == ClaimedBySelf && o.Report.Failed
}

// vmMissing: there is no such VM any more.
// Source: KubeVirt v1.9.0 migration.go:551 (vmi == nil).
func vmMissing(_ *State, o *Observation) bool { return !o.VM.Exists }

// vmEnded: the guest has shut down or crashed.
// Source: KubeVirt v1.9.0 migration.go:555 (vmi.IsFinal).
func vmEnded(_ *State, o *Observation) bool { return o.VM.Final }

// canceled: the migration is no longer wanted.
// Source: KubeVirt v1.9.0 migration.go:562 (DeletionTimestamp), without its gap between
// hand-over and Running.
func canceled(_ *State, o *Observation) bool { return o.Canceled }

// toBeStopped: the VM is to be shut down, and that need not wait for a transfer that may take
// long: it happens at the source, where the VM still is. Under post-copy, or when the source does
// not know where the VM is, it has to arrive first.
// Source: godwit; KubeVirt v1.9.0 lets the migration of a VMI that is being deleted fail with its
// pod.
func toBeStopped(_ *State, o *Observation) bool {
	return o.VM.Stopping && !o.Report.PostCopy && !o.Report.Unresolved
}

// makesWay: an operator has asked for another migration of the VM in so many words, and this one,
// which the system asked for by itself, has no target yet.
// Source: godwit.
func makesWay(_ *State, o *Observation) bool {
	return o.Replaced && !o.Target.Exists && !handedOff(o) && !o.Report.Began
}

// canceledBeforeHandOver: no host knows of the target yet.
// Source: KubeVirt v1.9.0 migration.go:562 (DeletionTimestamp, !isHandedOff).
func canceledBeforeHandOver(_ *State, o *Observation) bool { return o.Canceled && !handedOff(o) }

// cancelNotYetRecorded: the cancel came after the hand-over.
// Source: KubeVirt v1.9.0 migration.go:620 (MigrationAbortRequested).
func cancelNotYetRecorded(s *State, o *Observation) bool {
	return o.Canceled && !s.Conditions.Has(AbortRequested)
}

// targetImpossible: the host that was asked for is the VM's own, or there is none of that name.
// Source: godwit; KubeVirt lets the target wait for room until its timeout.
func targetImpossible(_ *State, o *Observation) bool { return o.Impossible && !o.Target.Exists }

// badlyRequested: no host at all can do what was asked for.
// Source: Nova compute/api.py (a force without a host is 400).
func badlyRequested(_ *State, o *Observation) bool { return o.Refusal == BadRequest && !handedOff(o) }

// conflicts: the host that was asked for refuses the VM, and it was not forced.
// Source: Nova specification check-destination-on-migrations (status conflict).
func conflicts(_ *State, o *Observation) bool { return o.Refusal == Conflict && !handedOff(o) }

// staleTarget: the host that was chosen was given away twice, or has changed since.
// Source: Nova compute/manager.py (the late check of a claim on the destination).
func staleTarget(_ *State, o *Observation) bool { return o.Refusal == Outdated && !handedOff(o) }

// targetDown: the target has ended. One that is only being deleted is not down.
// Source: KubeVirt v1.9.0 migration.go:577 (PodIsDown).
func targetDown(_ *State, o *Observation) bool { return o.Target.Exists && o.Target.Down }

// targetVanished: the target had been created and is no longer there.
// Source: KubeVirt v1.9.0 migration.go:586 (TargetIsCreated && !podExists).
func targetVanished(s *State, o *Observation) bool {
	return s.Phase.TargetCreated() && !o.Target.Exists
}

// stateCleared: the VM's state, which named this migration, names none.
// Source: KubeVirt v1.9.0 migration.go:598 (IsMigrationSynchronized).
func stateCleared(s *State, o *Observation) bool {
	return s.Phase.HandedOver() && o.Ownership == Unclaimed
}

// stateTakenOver: the VM's state, which named this migration, names another.
// Source: KubeVirt v1.9.0 migration.go:606 (MigrationUID).
func stateTakenOver(s *State, o *Observation) bool {
	return s.Phase.HandedOver() && o.Ownership != ClaimedBySelf && o.Ownership != Unclaimed
}

// attachmentDown: what attaches hot-plugged volumes at the target has ended.
// Source: KubeVirt v1.9.0 migration.go:630 (attachment pod IsDown).
func attachmentDown(_ *State, o *Observation) bool {
	return o.Attachment.Exists && o.Attachment.Down
}

// overdue: the phase has used up its time. Post-copy has no deadline: the source can no longer
// take the VM back. Neither has an outcome that is unknown: no host could answer an abort. What only
// waits for its turn may wait as long as the line is: to fail would send it to its end.
// Source: godwit; KubeVirt v1.9.0 bounds neither Scheduled, PreparingTarget nor TargetReady.
func overdue(s *State, o *Observation) bool {
	return !s.Deadline.IsZero() && o.Now.After(s.Deadline) && !o.Report.PostCopy &&
		!s.Conditions.Has(OutcomeUnknown) && !o.Queued
}

// otherInProgress: the VM's state names another migration, which has not ended.
// Source: KubeVirt v1.9.0 migration.go:716 (phase switch, canMigrateVMI).
func otherInProgress(s *State, o *Observation) bool {
	return s.Phase == Unset && o.Ownership == ClaimedByOther
}

// unanswered: the source was asked to abort and has said nothing in time, or it has said that it
// does not know.
// Source: godwit; an unknown outcome is not a failure.
func unanswered(s *State, o *Observation) bool {
	late := s.Conditions.Has(AbortRequested) && o.Now.After(s.AbortBy)
	return !s.Conditions.Has(OutcomeUnknown) && (late || o.Report.Began && o.Report.Unresolved)
}

// handedOff reports whether the VM's state names this migration, or is about to.
// Source: KubeVirt v1.9.0 migration.go:2647 (isMigrationHandedOff).
func handedOff(o *Observation) bool { return o.Ownership == ClaimedBySelf || o.HandedOff }
