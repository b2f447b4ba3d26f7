package libvirt

// This file says what a domain is, and what its next step is, from what the journal
// knows of it and what was seen of it in libvirt.
//
//	journal + look ──► stateOf, statusOf, due ──► act ──► look …
//
// Everything that the backend does of its own accord, unasked, is a
// nextStep from here: it follows from what is, and never from an event that might
// have been missed. The caller (1) does one step, (2) looks again. Dying in
// between does no harm.
//
// Libvirt's states in our words:
//
//	libvirt                         source of a job      target of a job      otherwise
//	no such domain                  HandedOver if moved, Receiving            Absent
//	                                else Crashed
//	shut off (migrated)             HandedOver           –                    Shutoff, Unresolved
//	shut off (crashed)              Crashed              Crashed              Crashed
//	shut off (shutdown, destroyed,  Shutoff              Shutoff              Shutoff
//	  saved, from snapshot)
//	shut off (failed)               Shutoff              Receiving            Shutoff
//	shut off (unknown)              Crashed if it ran,   Crashed if it ran    Crashed if it ran,
//	                                else Shutoff                              else Shutoff
//	running (any reason)            Running              Running              Running
//	running (post-copy failed)    –                    Running              Running
//	paused (user)                   Paused               Received if held     Paused
//	paused (migrating)              HandingOver, Paused  Receiving            HandingOver
//	                                if PauseGuest did it
//	paused (post-copy failed)     HandingOver          –                    HandingOver
//	paused (starting up)            Starting             Receiving            Starting
//	paused (unknown)                HandingOver          Receiving            Paused
//	paused (I/O error, watchdog,    Paused               Paused               Paused
//	  crashed, snapshot, dump)
//	shutdown, in shutdown           Stopping             Stopping             Stopping
//	pmsuspended, blocked            Paused, Running      the same             the same
//
// A source that libvirt says has moved is HandedOver however it rests, and one that is
// stranded HandingOver however it stands: so is what is left when a release was
// interrupted. A target that libvirt has not been told to
// keep, or could not let run, has not come: it is Receiving.
//
// Running, Paused and Shutoff become Starting, Stopping or Rebooting while that is
// what was asked.
//
// It does no I/O and reads no clock.

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// stateOf says what the domain is. Job is the one it names, or nil; d is nil for a
// domain of which nothing is kept.
func stateOf(d *domainRecord, j *jobRecord, l domainLook) hypervisor.DomainState {
	if d == nil {
		d = &domainRecord{}
	}
	switch {
	case j.Receives():
		return receiving(j, l)
	case l.Run == runGone && has(j, backend.Source, stageMoved):
		return hypervisor.HandedOver
	case l.Run == runGone && (j.Sends() || has(j, backend.Source, stageStranded)):
		return hypervisor.Crashed // it left and took its definition along, or was lost
	case l.Run == runGone:
		return hypervisor.Absent
	case l.Run.Rests():
		return resting(d, j, l)
	case l.Run.Stands():
		return standing(d, j, l)
	case l.Run == runShuttingDown:
		if d.Doing == hypervisor.Rebooting {
			return hypervisor.Rebooting
		}
		return hypervisor.Stopping
	case d.Doing != hypervisor.Absent:
		return d.Doing
	}
	return hypervisor.Running
}

// has reports whether j is a job of a role in a stage.
func has(j *jobRecord, r backend.Role, s stage) bool {
	return j != nil && j.Role == r && j.Stage == s
}

// left reports whether libvirt says that a live VM has moved, and may mean this job.
// An operation that godwit did not start, or that libvirt refused, was started by another client.
func left(j *jobRecord, l domainLook) bool {
	return l.Run == runShutoffMigrated && l.Call != callRefused && !j.Cold &&
		j.Last.Status != hypervisor.JobNone
}

// came reports whether the domain is the complete copy that the job has brought.
func came(j *jobRecord, l domainLook) bool {
	switch {
	case !j.Receives():
		return false
	case l.Run.Executes():
		return true
	case !l.Defined && l.Run.Rests(): // a cold one that libvirt has not been told to keep
		return false
	case l.Run == runShutoffFailed && !j.Cold: // libvirt could not let it run, and says so
		return false
	case j.Refused && l.Run.Rests(): // it was destroyed to be discarded, and is still defined
		return false
	case l.Run.Rests():
		return l.Job == j.ID || j.Seen
	}
	return l.Run == runPausedUser || l.Run == runPausedTrouble
}

// receivedAs is what a domain is taken for that is perhaps being received. libvirt says "in shutdown" of an incoming
// domain, too, while it ends the QEMU of one that never ran: that is no arrival. No guest executes in that state; how the
// domain rests, or that it goes, tells what it was.
// Source: libvirt v9.0.0 src/qemu/qemu_process.c (qemuProcessHandleShutdown sets VIR_DOMAIN_SHUTDOWN at QEMU's event SHUTDOWN,
// which SIGTERM causes as well).
func receivedAs(j *jobRecord, r run) run {
	if j.Receives() && r == runShuttingDown {
		return runPausedMigration
	}
	return r
}

// receiving: libvirt makes the domain when its source comes, and takes it away
// itself when it does not come completely.
func receiving(j *jobRecord, l domainLook) hypervisor.DomainState {
	switch {
	case !came(j, l):
		return hypervisor.Receiving
	case l.Run == runShuttingDown:
		return hypervisor.Stopping
	case l.Run.Executes():
		return hypervisor.Running
	case l.Run == runShutoffCrashed, l.Run == runShutoffUnknown && !j.Cold && !l.Cold:
		return hypervisor.Crashed
	case l.Run.Rests():
		return hypervisor.Shutoff
	case j.Hold:
		return hypervisor.Received
	}
	return hypervisor.Paused
}

// resting says what a domain without a process is.
func resting(d *domainRecord, j *jobRecord, l domainLook) hypervisor.DomainState {
	switch {
	case has(j, backend.Source, stageMoved), has(j, backend.Source, stageLeft):
		return hypervisor.HandedOver
	case j.Sends() && left(j, l):
		return hypervisor.HandedOver
	case j.Sends() && j.Cold:
		return hypervisor.Shutoff
	case d.Crashed || l.Run == runShutoffCrashed:
		return hypervisor.Crashed
	case d.Ran && l.Run == runShutoffUnknown:
		return hypervisor.Crashed
	case d.Doing == hypervisor.Starting && l.Run != runShutoffFailed:
		return hypervisor.Starting
	}
	return hypervisor.Shutoff
}

// standing says what a domain is whose CPUs do not run.
func standing(d *domainRecord, j *jobRecord, l domainLook) hypervisor.DomainState {
	switch l.Run {
	case runPausedPostCopy, runPausedPostCopyFailed:
		return hypervisor.HandingOver
	case runPausedMigration:
		if j.Sends() && j.GuestPaused && l.Sends && !j.Stopped {
			return hypervisor.Paused
		}
		return hypervisor.HandingOver
	case runPausedStarting:
		return hypervisor.Starting
	}
	switch {
	case has(j, backend.Source, stageStranded), has(j, backend.Source, stageLeft):
		return hypervisor.HandingOver
	case l.Run == runPausedUnknown && j.Sends():
		return hypervisor.HandingOver
	}
	return hypervisor.Paused
}

// statusOf says how far the job has come on this host.
func statusOf(j *jobRecord, l domainLook) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == backend.NoRole:
		return hypervisor.JobNone
	case j.Last.Status.Final():
		return j.Last.Status
	case j.Role == backend.Source && j.Stage == stageStranded:
		return hypervisor.JobBroken
	case j.Sends():
		return sending(j, l)
	case j.Role == backend.Target:
		return arriving(j, l)
	}
	return hypervisor.JobActive
}

// sending is the status of a job that this host sends.
func sending(j *jobRecord, l domainLook) hypervisor.JobStatus {
	if left(j, l) {
		return hypervisor.JobSucceeded
	}
	switch l.Run {
	case runPausedPostCopyFailed:
		// A source of which the job is noted to be broken is being recovered. Else libvirt is about to give up.
		if l.Call == calling && (j.Last.Status != hypervisor.JobBroken || l.Flows) {
			return hypervisor.JobActive
		}
		return hypervisor.JobBroken
	case runPausedMigration:
		if !j.GuestPaused || j.Stopped {
			return hypervisor.JobSwitching
		}
	}
	if !l.Moving {
		return hypervisor.JobSetup
	}
	return hypervisor.JobActive
}

// arriving is the status of a job that this host receives.
func arriving(j *jobRecord, l domainLook) hypervisor.JobStatus {
	switch {
	case l.Run == runsPostCopy:
		return hypervisor.JobActive
	case l.Run == runsPostCopyFailed:
		return hypervisor.JobBroken
	case j.Stage == stageArrived || came(j, l):
		return hypervisor.JobSucceeded
	case l.Run == runGone:
		return hypervisor.JobSetup
	}
	return hypervisor.JobActive
}

// modeOf says how memory moves. That a guest that runs was meant to be paused does not help:
// to have it paused, ask again.
func modeOf(j *jobRecord, l domainLook) hypervisor.Mode {
	switch {
	case j.PostCopied, j.Last.Mode == hypervisor.PostCopy, l.Run == runPausedPostCopy,
		l.Run == runPausedPostCopyFailed, l.Run == runsPostCopy, l.Run == runsPostCopyFailed:
		return hypervisor.PostCopy
	case j.GuestPaused && !l.Run.Executes():
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
	// stepReap: the domain has ended: note how.
	stepReap
	// stepForce: the guest had its time to shut down: destroy the domain.
	stepForce
	// stepReset: the guest had its time to reboot: reset it.
	stepReset
	// stepPress: the guest runs on although it was asked to shut down or to reboot: ask it again.
	stepPress
	// stepSettled: it runs, and what was asked is done.
	stepSettled
	// stepSend: the job was accepted, and libvirt has not been asked yet.
	stepSend
	// stepAbort: a cancel was asked that libvirt has not heard.
	stepAbort
	// stepSwitchToPostCopy: post-copy was asked for, and libvirt may not know: tell it.
	stepSwitchToPostCopy
	// stepNoteStop: the guest stands for the switch-over. Note it.
	stepNoteStop
	// stepNoteAbort: libvirt has ended the transfer before its end. Note it.
	stepNoteAbort
	// stepAsk: libvirt may have lost its target's answer. Ask the target itself, before
	// libvirt lets the source run again.
	stepAsk
	// stepMove: libvirt says that the target has the VM.
	stepMove
	// stepKeepAtSource: the migration has ended, and the VM stays here.
	stepKeepAtSource
	// stepMarkUnresolved: the migration has ended, and only the target knows how. Whatever runs
	// here is paused.
	stepMarkUnresolved
	// stepNoteArrival: libvirt has begun to receive it.
	stepNoteArrival
	// stepArrive: the VM is here, complete.
	stepArrive
	// stepLapse: libvirt has taken the incoming domain away: it will not come.
	stepLapse
	// stepRecovered: what the target still lacked has come.
	stepRecovered
	// stepNoteReady: the copy of a disk that moves is complete. Note it.
	stepNoteReady
	// stepSwitchDisk: the guest is to go on with the copy of a disk.
	stepSwitchDisk
	// stepNoteSwitched: it has, or the VM will. Note it.
	stepNoteSwitched
	// stepFailMove: the disk stays where it is. Note it.
	stepFailMove
	// stepTidyMove: something of a move of a disk that has ended is left: remove it.
	stepTidyMove
)

var steps = [...]string{"None", "Reap", "Force", "Reset", "Press", "Settled", "Send", "Abort", "SwitchToPostCopy",
	"NoteStop", "NoteAbort", "Ask", "Move", "KeepAtSource", "MarkUnresolved", "NoteArrival", "Arrive", "Lapse",
	"Recovered", "NoteReady", "SwitchDisk", "NoteSwitched", "FailMove", "TidyMove"}

// String returns the step's name.
func (s nextStep) String() string {
	if int(s) >= len(steps) {
		return "invalid"
	}
	return steps[s]
}

// due returns the next step that the backend takes without a command.
func due(d *domainRecord, j *jobRecord, l domainLook, now time.Time) nextStep {
	step := dueVM(d, j, l, now)
	if step == stepNone && d != nil && d.Move != nil && !j.Sends() && !j.Receives() {
		return dueDiskMove(d.Move, l)
	}
	return step
}

// dueVM returns the next step of the VM itself.
func dueVM(d *domainRecord, j *jobRecord, l domainLook, now time.Time) nextStep {
	switch {
	case d == nil:
		return stepNone
	case j.Sends():
		return dueAtSource(j, l)
	case j.Receives():
		return dueAtTarget(j, l)
	case has(j, backend.Source, stageStranded) && l.Run.Executes():
		return stepMarkUnresolved // libvirt let it run again after we had looked
	case has(j, backend.Target, stageArrived) && !j.Last.Status.Final() &&
		l.Run != runsPostCopy && l.Run != runsPostCopyFailed:
		return stepRecovered
	case l.Run.Rests() && (d.Ran || d.Doing == hypervisor.Stopping ||
		d.Doing == hypervisor.Rebooting):
		return stepReap
	case !l.Run.Executes():
		return stepNone
	case d.Doing == hypervisor.Stopping && d.Late(now):
		return stepForce
	case d.Doing == hypervisor.Rebooting && d.Late(now):
		return stepReset
	case d.Doing == hypervisor.Starting, d.Doing == hypervisor.Rebooting && l.Rebooted:
		return stepSettled
	case l.Run != runShuttingDown && d.PressUnheard(now):
		return stepPress
	}
	return stepNone
}

// dueAtSource: while libvirt is at it, it is only helped. What has become of the VM
// afterwards the domain says; what libvirt answered only counts where the domain
// alone does not tell.
func dueAtSource(j *jobRecord, l domainLook) nextStep {
	switch {
	case left(j, l):
		return stepMove
	case l.Call == calling || l.Sends:
		return dueOnTheWay(j, l)
	case l.Call == callNone && j.Last.Status == hypervisor.JobNone && !j.Stopped:
		if j.Cancelled || !ready(j, l) {
			return stepKeepAtSource
		}
		return stepSend
	case (l.Call == callNone || l.Call == callBroken) && l.Early:
		return stepNone
	}
	return verdict(j, l)
}

// ready reports whether a domain is still what its migration is about.
func ready(j *jobRecord, l domainLook) bool {
	if j.Cold {
		return l.Run.Rests()
	}
	return l.Run.Executes() || l.Run.Stands()
}

// dueOnTheWay: the call is under way, or libvirt goes on without it.
func dueOnTheWay(j *jobRecord, l domainLook) nextStep {
	stands := l.Run == runPausedMigration && !j.GuestPaused || l.Run == runPausedPostCopy ||
		l.Run == runPausedPostCopyFailed
	switch {
	case l.Run == runPausedPostCopyFailed && l.Call != calling && !(l.Call == callNone && l.Early):
		return stepMarkUnresolved
	case stands && !j.Stopped:
		return stepNoteStop
	case l.Aborted && !j.Aborted && !j.PostCopied:
		return stepNoteAbort
	case l.Stuck && l.Run == runPausedMigration:
		return stepAsk
	case l.Aborted && l.Run.Executes() && !j.PostCopied:
		return stepKeepAtSource // the target never gets all of it
	case j.Cancelled && l.Sends && !l.Aborted:
		return stepAbort
	case j.PostCopied && l.Moving && !l.Aborted && !stands:
		return stepSwitchToPostCopy // we died between noting it and asking, or QEMU is about to begin
	}
	return stepNone
}

// verdict says how a migration has ended that libvirt has ended.
func verdict(j *jobRecord, l domainLook) nextStep {
	switch {
	case l.Call == callSucceeded: // the definition may have gone with the VM
		if l.Run.Executes() {
			return stepMarkUnresolved // libvirt contradicts itself: ask the target
		}
		return stepMove
	case l.Call == callRefused && j.PostCopied && !l.Run.Alive():
		return stepMarkUnresolved // it died, and may run at the target with what it has of its memory
	case l.Call == callRefused && (j.Cold || !movesOn(l.Run)):
		return stepKeepAtSource // wherever it died or stands
	case l.Run.Executes() && !j.Cold && (j.Aborted || !stood(j, l)):
		return stepKeepAtSource // the target did not get everything
	}
	return stepMarkUnresolved
}

// stood reports whether the guest of a source that runs may have stood for the
// switch-over. libvirt says that it let it run again, but not whether that was now or
// after an earlier migration.
func stood(j *jobRecord, l domainLook) bool {
	anew := l.Run == runsCancelled && !(j.Again && l.Call == callBroken && !l.Blind)
	return j.Stopped || l.Stood || anew
}

// movesOn reports whether a domain looks as while libvirt moves it.
func movesOn(r run) bool {
	return r == runPausedMigration || r == runPausedPostCopy || r == runPausedPostCopyFailed
}

// dueAtTarget: a domain that came is the host's own.
func dueAtTarget(j *jobRecord, l domainLook) nextStep {
	switch {
	case came(j, l) && !(j.Hold && l.Run.Stands()):
		return stepArrive
	case l.Run == runGone && j.Seen:
		return stepLapse
	case l.Run.Alive() && !j.Seen:
		return stepNoteArrival
	}
	return stepNone
}
