package qmp

// This file says what a domain is, and what its next step is, from what the journal
// knows of it and what was seen of its QEMU.
//
//	journal + look ──► stateOf, statusOf, due ──► act ──► look …
//
// Everything that a backend does of its own accord, unasked, is a
// nextStep from here: it follows from what is, and never from an event that might
// have been missed. The caller (1) does one step, (2) looks again. Dying in
// between does no harm.
//
// It does no I/O and reads no clock.

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A look is what was seen of a domain's QEMU.
type look struct {
	Alive     bool // the process is there
	Run       qemu.RunState
	Migration qemu.MigrationStatus
	Mirrors   []qemu.Job // the copies of local disks, if there are any
	Copy      qemu.Job   // of a disk that goes to another image, if one does
	// SwitchOver is whether the transfer came to its switch-over, as QEMU's events told.
	SwitchOver switchOver
}

// A switchOver is what is known of whether a transfer that ended came to its switch-over.
type switchOver uint8

// What is known of a switch-over.
const (
	// switchOverUnknown: it began, or some event may have been missed.
	switchOverUnknown switchOver = iota
	// switchOverAwaited: no event was missed, but the last ones are still to be read.
	switchOverAwaited
	// switchOverNever: QEMU told everything, and the switch-over did not begin.
	switchOverNever
)

// Heard reports whether QEMU has told how the guest is. One that was silent ever since we
// began has not.
func (l look) Heard() bool { return l.Run != "" }

// Complete reports whether an incoming QEMU holds the complete state of the VM.
func (l look) Complete() bool {
	return l.Alive && l.Migration == qemu.Completed && l.Run != qemu.InMigrate
}

// runnable reports whether an incoming QEMU has what it needs to run the guest:
// everything, or, in post-copy, a guest that was told to run.
func (l look) runnable() bool {
	return l.Complete() || l.Alive && l.Run == qemu.Paused && l.inPostCopy()
}

func (l look) inPostCopy() bool {
	return postcopy(l.Migration)
}

func postcopy(s qemu.MigrationStatus) bool { return s == qemu.PostcopyActive || broke(s) }

// broke reports whether a post-copy has lost its connection. One that is being recovered does not go on until both
// sides agree on what is missing.
// Source: QEMU 7.2 migration/migration.c (postcopy_do_resume).
func broke(s qemu.MigrationStatus) bool {
	return s == qemu.PostcopyPaused || s == qemu.PostcopyConnects || s == qemu.PostcopyRecover
}

// sends reports whether d is the source of a transfer under way.
func sends(j *jobRecord) bool {
	return j != nil && j.Role == backend.Source &&
		(j.Stage == stageMirroring || j.Stage == stageSending)
}

// stranded reports whether post-copy failed while it began or ended, or may have:
// QEMU then does not take the guest back, as it does before, and the target may have
// all that it needs. At rest for good the guest is after the migration, not before. One that was
// parked is paused either way, and stays here only if post-copy did not begin.
// Source: QEMU 7.2 migration/migration.c (migration_completion: "If not doing
// postcopy, vm_start() will be called"; postcopy_start).
func stranded(j *jobRecord, l look) bool {
	switch {
	case !j.PostCopied || l.Migration != qemu.Failed && l.Migration != qemu.Cancelled:
		return false
	case l.Run == qemu.Paused:
		return j.Acknowledged || !j.Parked.IsZero() && l.SwitchOver != switchOverNever
	}
	return l.Run == qemu.FinishMigrate || l.Run == qemu.PostMigrate
}

// strandedSource reports whether a source's transfer failed after post-copy began, or may have: QEMU
// sends no more, and the guest stands.
func strandedSource(j *jobRecord, l look) bool { return sends(j) && !j.Cold && stranded(j, l) }

// undecided reports whether QEMU has just ended the transfer of a guest that stands, and is about
// to say more of it.
func undecided(l look) bool {
	return l.Run == qemu.FinishMigrate ||
		l.Run == qemu.Paused && l.SwitchOver == switchOverAwaited
}

func receives(j *jobRecord) bool {
	return j != nil && j.Role == backend.Target && j.Stage == stageListening
}

// stateOf says what the domain is. Job is the one it names, or nil.
func stateOf(d *domainRecord, j *jobRecord, l look) hypervisor.DomainState {
	switch {
	case sends(j) && j.Cold:
		return coldState(j)
	case missed(d, j, l):
		return hypervisor.Absent
	case !l.Alive && d.Doing == hypervisor.Starting:
		return hypervisor.Starting
	case !l.Alive && !receives(j):
		if d.Ran && !d.Ending { // it has just died, and is not reaped yet
			return hypervisor.Crashed
		}
		return d.Rest
	case leftover(d, j, l):
		return leftoverState(d, j)
	case receives(j):
		if j.Stopped && l.Complete() {
			return hypervisor.Received
		}
		return hypervisor.Receiving
	case sends(j) && stoppedToMove(j, l):
		if j.Acknowledged && l.Migration == qemu.Completed {
			return hypervisor.HandedOver
		}
		return hypervisor.HandingOver
	}
	return runs(d, l)
}

// coldState: a VM at rest stays so, and is its host's no longer when the target
// has it.
func coldState(j *jobRecord) hypervisor.DomainState {
	if j.Acknowledged {
		return hypervisor.HandedOver
	}
	return hypervisor.Shutoff
}

// stale reports whether a source's completed migration is not what its job is
// about: QEMU leaves the guest of one that it has sent at rest for good, and it does
// not shut down there, nor fail or sleep; it can be reset. The VM came by it, or was resumed
// after it, and its next one has not begun: its disks are copied first, or we died before; or
// the guest was unpaused just when it completed.
// Source: QEMU 7.2 migration/migration.c (migration_iteration_finish), softmmu/runstate.c
// (runstate_transitions_def: postmigrate leads to running, finish-migrate and prelaunch).
func stale(j *jobRecord, l look) bool {
	switch {
	case l.Migration != qemu.Completed, l.Run == qemu.FinishMigrate, l.Run == qemu.PostMigrate:
		return false
	case j.Stage == stageMirroring: // its memory has not begun to move
		return true
	}
	return l.Heard() && l.Run != qemu.PreLaunch && l.Run != qemu.InMigrate
}

// stoppedToMove reports whether the guest of a source stands for the switch-over, or may.
func stoppedToMove(j *jobRecord, l look) bool {
	switch {
	case !l.Heard():
		return j.Stage == stageSending
	case l.Run == qemu.Running || stale(j, l):
		return false
	case l.Run == qemu.FinishMigrate || l.Run == qemu.PostMigrate || stranded(j, l):
		return true
	case l.Migration == qemu.Active && l.Run == qemu.Paused && !j.Parked.IsZero():
		return true
	}
	switch l.Migration {
	case qemu.PreSwitchover, qemu.Device, qemu.Completed:
		return true
	}
	return l.inPostCopy()
}

// runs says what a domain is that takes part in no migration, or only sends
// memory while it runs.
func runs(d *domainRecord, l look) hypervisor.DomainState {
	switch {
	case d.Doing != hypervisor.Absent:
		return d.Doing
	case l.Run == qemu.Running:
		return hypervisor.Running
	case l.Run == qemu.Shutdown:
		return hypervisor.Stopping
	case !d.Ran:
		return hypervisor.Starting
	}
	return hypervisor.Paused
}

// told is the status of the job that Progress answers: its status, but for an end that is not noted
// yet. Of a source that is about to send QEMU tells how its migration before has ended.
func told(d *domainRecord, j *jobRecord, l look) hypervisor.JobStatus {
	s := statusOf(d, j, l)
	if sends(j) && l.Alive && (s == hypervisor.JobFailed || s == hypervisor.JobCancelled) {
		return hypervisor.JobActive
	}
	return s
}

// statusOf says how far the job has come on this host, by what QEMU tells.
func statusOf(d *domainRecord, j *jobRecord, l look) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == backend.NoRole || j.Stage == stagePreparing:
		return hypervisor.JobNone
	case sends(j) && j.Cold:
		return coldStatus(d, j)
	case j.Stage == stageMirroring && l.Alive:
		return hypervisor.JobActive
	case sends(j) && l.Alive:
		return sourceStatus(d, j, l)
	case receives(j) && l.Alive:
		return targetStatus(j, l)
	case j.Stage.MayHaveRun() && l.Alive:
		return arrivedStatus(j, l)
	}
	return noted(j)
}

// noted is the status that was noted last. A process that has just ended is not
// reaped yet: its job is no longer looked at, but it was begun.
func noted(j *jobRecord) hypervisor.JobStatus {
	switch {
	case j.Last.Status != hypervisor.JobNone:
		return j.Last.Status
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	}
	return hypervisor.JobActive
}

func coldStatus(d *domainRecord, j *jobRecord) hypervisor.JobStatus {
	switch {
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	case d.Unresolved:
		return hypervisor.JobBroken
	}
	return hypervisor.JobActive
}

func sourceStatus(d *domainRecord, j *jobRecord, l look) hypervisor.JobStatus {
	switch {
	case stranded(j, l) && undecided(l):
		return hypervisor.JobSwitching
	case stranded(j, l), broke(l.Migration):
		return hypervisor.JobBroken
	}
	switch l.Migration {
	case qemu.None, qemu.Setup:
		return hypervisor.JobSetup
	case qemu.PreSwitchover, qemu.Device:
		return hypervisor.JobSwitching
	case qemu.PostcopyActive:
		if !j.Acknowledged {
			return hypervisor.JobSwitching
		}
	case qemu.Failed:
		if j.Cancelled {
			return hypervisor.JobCancelled
		}
		return hypervisor.JobFailed
	case qemu.Cancelled:
		return hypervisor.JobCancelled
	case qemu.Completed:
		switch {
		case j.Acknowledged:
			return hypervisor.JobSucceeded
		case stale(j, l): // see dueAtSource
			return hypervisor.JobFailed
		case d.Unresolved:
			return hypervisor.JobBroken
		}
		return hypervisor.JobSwitching
	}
	return hypervisor.JobActive
}

// arrivedStatus: a guest that was let run may still lack memory.
func arrivedStatus(j *jobRecord, l look) hypervisor.JobStatus {
	switch {
	case l.Migration == qemu.PostcopyActive:
		return hypervisor.JobActive
	case broke(l.Migration):
		return hypervisor.JobBroken
	case l.Migration == qemu.Completed:
		return hypervisor.JobSucceeded
	}
	return noted(j)
}

func targetStatus(j *jobRecord, l look) hypervisor.JobStatus {
	switch l.Migration {
	case qemu.None, qemu.Setup, "":
		return hypervisor.JobSetup
	case qemu.Completed:
		if j.Stopped {
			return hypervisor.JobSucceeded
		}
		return hypervisor.JobSwitching
	case qemu.Failed:
		return hypervisor.JobFailed
	}
	return hypervisor.JobActive
}

// modeOf says how memory moves at the moment. That a guest that runs was meant to be paused
// does not help: to have it paused, ask again.
func modeOf(j *jobRecord, l look) hypervisor.Mode {
	switch {
	case j.PostCopied || l.inPostCopy() || j.Last.Mode == hypervisor.PostCopy:
		return hypervisor.PostCopy
	case j.GuestPaused && l.Run != qemu.Running:
		return hypervisor.PausedCopy
	}
	return hypervisor.PreCopy
}

// A nextStep is what the worker of a domain has to do next.
type nextStep uint8

// The steps.
const (
	// stepNone: there is nothing to do.
	stepNone nextStep = iota
	// stepReap: the process has ended. Note what is left.
	stepReap
	// stepQuit: the guest has shut down, or had its time: end the process.
	stepQuit
	// stepReset: the guest has shut down to reboot, or had its time: boot it.
	stepReset
	// stepPress: the guest runs on although it was asked to shut down: press its button again.
	stepPress
	// stepNoteReady: the copy of a disk is complete: note that.
	stepNoteReady
	// stepSwitchDisk: the guest is to go over to a copy: tell QEMU.
	stepSwitchDisk
	// stepNoteSwitched: it has gone over: note that.
	stepNoteSwitched
	// stepFailMove: a disk cannot be copied: note that.
	stepFailMove
	// stepTidyMove: remove what the copying of a disk has left.
	stepTidyMove
	// stepNotePlugged: a resize was cut: note what the QEMU has of it.
	stepNotePlugged
	// stepRun: let the guest run.
	stepRun
	// stepActivate: the target has everything, and its source has stopped: note that
	// the guest may run from now on, and let it.
	stepActivate
	// stepArrive: the target has everything and rests, as its guest did.
	stepArrive
	// stepSend: the disks are copied: begin with the memory.
	stepSend
	// stepFinishMirrors: the guest stands: let the copies of the disks end.
	stepFinishMirrors
	// stepSwitchToPostCopy: post-copy was asked for, and QEMU may not know: tell it.
	stepSwitchToPostCopy
	// stepHalt: QEMU has let the guest of a source run although its target may run: stop it.
	stepHalt
	// stepContinue: go on from pre-switchover.
	stepContinue
	// stepEndWait: the transfer is being cancelled, and may wait before its switch-over: end
	// that. QEMU before 10.0 waits for ever if it was cancelled when it was about to.
	// Source: QEMU 7.2 migration/migration.c (migration_maybe_pause, migrate_fd_cancel and
	// qmp_migrate_continue; one that did not wait forgets before it does what it was told).
	stepEndWait
	// stepAnnounce: tell the target that the guest has stopped for good.
	stepAnnounce
	// stepKeepAtSource: the transfer has ended, and the VM stays here.
	stepKeepAtSource
	// stepGiveUp: the disks cannot be copied, or are not to be: end the transfer.
	stepGiveUp
)

var steps = [...]string{"None", "Reap", "Quit", "Reset", "Press", "NoteReady", "SwitchDisk", "NoteSwitched",
	"FailMove", "TidyMove", "NotePlugged", "Run", "Activate", "Arrive", "Send",
	"FinishMirrors", "SwitchToPostCopy", "Halt", "Continue", "EndWait", "Announce", "KeepAtSource", "GiveUp"}

// String returns the step's name.
func (s nextStep) String() string {
	if int(s) < len(steps) {
		return steps[s]
	}
	return "invalid"
}

// due returns the next step of a domain that has a process, or had one. j is the job that its record
// names, or nil.
func due(d *domainRecord, j *jobRecord, l look, now time.Time) nextStep {
	switch {
	case !l.Alive:
		return stepReap
	case ends(d, j, l):
		return stepQuit
	case receives(j):
		return dueAtTarget(j, l)
	case sends(j):
		if s := dueAtSource(j, l); s != stepNone || !j.Cold && stoppedToMove(j, l) {
			return s // a guest that stands to move has no life here
		}
	case j == nil:
	case j.Stage == stageActivating && l.Run != qemu.Shutdown:
		return stepActivate // we died between noting it and doing it
	case j.Stage == stageArrived && j.Cold && l.Run == qemu.InMigrate:
		return stepArrive // again; one that was started since does not wait to receive
	case j.Stage == stageResumed && !j.Cold && !d.Paused &&
		(l.Run == qemu.PostMigrate || l.Run == qemu.Paused && !j.Parked.IsZero()):
		return stepRun // and again
	}
	return dueVM(d, l, now)
}

// dueVM returns the next step of the VM itself, apart from migrations.
func dueVM(d *domainRecord, l look, now time.Time) nextStep {
	switch {
	case d.Doing == hypervisor.Rebooting && l.Run == qemu.PreLaunch:
		return stepRun // it was reset, however late that was
	case d.Doing == hypervisor.Rebooting && (l.Run == qemu.Shutdown || d.Late(now)):
		return stepReset
	case l.Run == qemu.Shutdown, d.Doing == hypervisor.Stopping && d.Late(now):
		return stepQuit
	case replugs(d, l):
		return stepNotePlugged
	case l.Run == qemu.Running && d.PressUnheard(now):
		return stepPress
	case d.Doing == hypervisor.Starting:
		return stepRun // if it runs, we died, or did not hear it, before that was noted
	}
	if d.Move != nil && l.Heard() {
		return dueDiskMove(d.Move, l.Copy)
	}
	return stepNone
}

// dueDiskMove returns the next step of a disk that moves to another image.
func dueDiskMove(m *backend.DiskMove, j qemu.Job) nextStep {
	failed, ready, ended := mirrors([]qemu.Job{j})
	switch m.Phase {
	case backend.MoveMaking: // we died
		return stepFailMove
	case backend.MoveCopying:
		switch {
		case failed || ended > 0:
			return stepFailMove
		case ready > 0:
			return stepNoteReady
		}
	case backend.MoveReady:
		if failed || ended > 0 {
			return stepFailMove
		}
	case backend.MoveSwitching:
		switch {
		case failed:
			return stepFailMove
		case ended > 0:
			return stepNoteSwitched
		case ready > 0:
			return stepSwitchDisk
		}
	case backend.MoveSwitched, backend.MoveFailed:
		if !m.Tidied {
			return stepTidyMove
		}
	}
	return stepNone
}

// dueAtTarget: the guest starts only when everything is here and its source is
// known to have stopped.
func dueAtTarget(j *jobRecord, l look) nextStep {
	switch {
	case !j.Stopped || j.Hold:
		return stepNone
	case j.Cold:
		return stepArrive
	case !l.runnable():
		return stepNone
	}
	return stepActivate
}

func dueAtSource(j *jobRecord, l look) nextStep {
	failed, ready, ended := mirrors(l.Mirrors)
	locals := len(l.Mirrors)
	switch {
	case j.Stage == stageMirroring && (failed || j.Cancelled):
		return stepGiveUp
	case j.Stage == stageMirroring && j.Cold && ended == locals:
		return stepSend
	case j.Stage == stageMirroring && ready+ended == locals:
		if j.Cold {
			return stepFinishMirrors
		}
		return stepSend
	case j.Stage == stageMirroring:
		return stepNone
	case j.Cold && !j.Acknowledged:
		return stepAnnounce
	case j.Cold:
		return stepQuit // it was needed for the copies only
	}
	switch l.Migration {
	case qemu.None: // we died after noting the job and before QEMU began
		return stepGiveUp
	case qemu.Active:
		if j.PostCopied { // we died between noting it and asking, or QEMU is about to begin
			return stepSwitchToPostCopy
		}
	case qemu.PreSwitchover:
		switch {
		case j.Options.HoldSwitchOver && !j.Released:
			return stepNone
		case failed:
			return stepGiveUp
		case ready > 0:
			return stepFinishMirrors
		case ended < locals:
			return stepNone
		}
		return stepContinue
	case qemu.Cancelling:
		return stepEndWait
	case qemu.Completed:
		switch {
		case j.Acknowledged:
		case stale(j, l):
			return stepKeepAtSource
		default:
			return stepAnnounce
		}
	case qemu.PostcopyActive, qemu.PostcopyPaused, qemu.PostcopyConnects, qemu.PostcopyRecover:
		if !j.Acknowledged && l.Run != qemu.Running {
			return stepAnnounce
		}
	case qemu.Failed, qemu.Cancelled:
		switch {
		case j.PostCopied && j.Acknowledged && l.Run == qemu.Running:
			return stepHalt
		case !stranded(j, l):
			return stepKeepAtSource
		case !j.Acknowledged && !undecided(l):
			return stepAnnounce
		}
	}
	return stepNone
}

// mirrors counts the copies of disks by what has become of them.
func mirrors(jobs []qemu.Job) (failed bool, ready, ended int) {
	for _, m := range jobs {
		switch {
		case m.Error != "" || m.Status == qemu.JobAborting || m.Status == qemu.JobNull:
			failed = true
		case m.Status == qemu.JobReady || m.Status == qemu.JobStandby:
			ready++
		case m.Status == qemu.JobConcluded:
			ended++
		}
	}
	return failed, ready, ended
}
