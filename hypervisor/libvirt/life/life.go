// Package life says what a domain is, and what is due next, from what the journal
// knows of it and what was seen of it in libvirt.
//
//	journal + look ──► [State], [Status], [Due] ──► act ──► look …
//
// Everything that the backend does of its own accord, with nobody asking, is a
// [Step] from here: it follows from what is, and never from an event that might
// have been missed. Whoever acts (1) does one step, (2) looks again. Dying in
// between does no harm.
//
// # Libvirt's states in our words
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
//	running (post-copy [failed])    –                    Running              Running
//	paused (user)                   Paused               Received if held     Paused
//	paused (migrating)              HandingOver, Paused  Receiving            HandingOver
//	                                if PauseGuest did it
//	paused (post-copy [failed])     HandingOver          –                    HandingOver
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
package life

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
)

// State says what the domain is. Job is the one it names, or nil; d is nil for a
// domain of which nothing is kept.
func State(d *journal.Domain, j *journal.Job, l Look) hypervisor.DomainState {
	if d == nil {
		d = &journal.Domain{}
	}
	switch {
	case j.Receives():
		return receiving(j, l)
	case l.Run == Gone && has(j, journal.Source, journal.Moved):
		return hypervisor.HandedOver
	case l.Run == Gone && (j.Sends() || has(j, journal.Source, journal.Stranded)):
		return hypervisor.Crashed // it left and took its definition along, or was lost
	case l.Run == Gone:
		return hypervisor.Absent
	case l.Run.Rests():
		return resting(d, j, l)
	case l.Run.Stands():
		return standing(d, j, l)
	case l.Run == ShuttingDown:
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
func has(j *journal.Job, r journal.Role, s journal.Stage) bool {
	return j != nil && j.Role == r && j.Stage == s
}

// left reports whether libvirt says that a live VM has moved, and may mean this job.
// What it was not asked, or has refused, somebody else asked of it.
func left(j *journal.Job, l Look) bool {
	return l.Run == ShutoffMigrated && l.Call != Refused && !j.Cold &&
		j.Last.Status != hypervisor.JobNone
}

// Came reports whether the domain is the complete copy that the job has brought.
func Came(j *journal.Job, l Look) bool {
	switch {
	case !j.Receives():
		return false
	case l.Run.Executes():
		return true
	case !l.Defined && l.Run.Rests(): // a cold one that libvirt has not been told to keep
		return false
	case l.Run == ShutoffFailed && !j.Cold: // libvirt could not let it run, and says so
		return false
	case j.Refused && l.Run.Rests(): // it was destroyed to be discarded, and is still defined
		return false
	case l.Run.Rests():
		return l.Job == j.ID || j.Seen
	}
	return l.Run == PausedUser || l.Run == PausedTrouble
}

// receiving: libvirt makes the domain when its source comes, and takes it away
// itself when it does not come completely.
func receiving(j *journal.Job, l Look) hypervisor.DomainState {
	switch {
	case !Came(j, l):
		return hypervisor.Receiving
	case l.Run == ShuttingDown:
		return hypervisor.Stopping
	case l.Run.Executes():
		return hypervisor.Running
	case l.Run == ShutoffCrashed, l.Run == ShutoffUnknown && !j.Cold && !l.Cold:
		return hypervisor.Crashed
	case l.Run.Rests():
		return hypervisor.Shutoff
	case j.Hold:
		return hypervisor.Received
	}
	return hypervisor.Paused
}

// resting says what a domain without a process is.
func resting(d *journal.Domain, j *journal.Job, l Look) hypervisor.DomainState {
	switch {
	case has(j, journal.Source, journal.Moved), has(j, journal.Source, journal.Left):
		return hypervisor.HandedOver
	case j.Sends() && left(j, l):
		return hypervisor.HandedOver
	case j.Sends() && j.Cold:
		return hypervisor.Shutoff
	case d.Crashed || l.Run == ShutoffCrashed:
		return hypervisor.Crashed
	case d.Ran && l.Run == ShutoffUnknown:
		return hypervisor.Crashed
	case d.Doing == hypervisor.Starting && l.Run != ShutoffFailed:
		return hypervisor.Starting
	}
	return hypervisor.Shutoff
}

// standing says what a domain is whose CPUs do not run.
func standing(d *journal.Domain, j *journal.Job, l Look) hypervisor.DomainState {
	switch l.Run {
	case PausedPostCopy, PausedPostCopyFailed:
		return hypervisor.HandingOver
	case PausedMigration:
		if j.Sends() && j.GuestPaused && l.Sends && !j.Stopped {
			return hypervisor.Paused
		}
		return hypervisor.HandingOver
	case PausedStarting:
		return hypervisor.Starting
	}
	switch {
	case has(j, journal.Source, journal.Stranded), has(j, journal.Source, journal.Left):
		return hypervisor.HandingOver
	case l.Run == PausedUnknown && j.Sends():
		return hypervisor.HandingOver
	}
	return hypervisor.Paused
}

// Status says how far the job has come on this host.
func Status(j *journal.Job, l Look) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == journal.NoRole:
		return hypervisor.JobNone
	case j.Last.Status.Final():
		return j.Last.Status
	case j.Role == journal.Source && j.Stage == journal.Stranded:
		return hypervisor.JobBroken
	case j.Sends():
		return sending(j, l)
	case j.Role == journal.Target:
		return arriving(j, l)
	}
	return hypervisor.JobActive
}

// sending is the status of a job that this host sends.
func sending(j *journal.Job, l Look) hypervisor.JobStatus {
	if left(j, l) {
		return hypervisor.JobSucceeded
	}
	switch l.Run {
	case PausedPostCopyFailed:
		if l.Call == Calling { // it is being recovered, or libvirt is about to give up
			return hypervisor.JobActive
		}
		return hypervisor.JobBroken
	case PausedMigration:
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
func arriving(j *journal.Job, l Look) hypervisor.JobStatus {
	switch {
	case l.Run == RunsPostCopy:
		return hypervisor.JobActive
	case l.Run == RunsPostCopyFailed:
		return hypervisor.JobBroken
	case j.Stage == journal.Arrived || Came(j, l):
		return hypervisor.JobSucceeded
	case l.Run == Gone:
		return hypervisor.JobSetup
	}
	return hypervisor.JobActive
}

// Mode says how memory moves. That a guest that runs was meant to be paused helps nobody:
// whoever wants it paused has to ask again.
func Mode(j *journal.Job, l Look) hypervisor.Mode {
	switch {
	case j.PostCopied, j.Last.Mode == hypervisor.PostCopy, l.Run == PausedPostCopy,
		l.Run == PausedPostCopyFailed, l.Run == RunsPostCopy, l.Run == RunsPostCopyFailed:
		return hypervisor.PostCopy
	case j.GuestPaused && !l.Run.Executes():
		return hypervisor.PausedCopy
	}
	return hypervisor.PreCopy
}

// A Step is something that is due.
type Step uint8

// The steps.
const (
	// Rest: nothing is due.
	Rest Step = iota
	// Bury: the domain has ended: note how.
	Bury
	// Force: the guest had its time to shut down: destroy the domain.
	Force
	// Reset: the guest had its time to reboot: reset it.
	Reset
	// Press: the guest runs on although it was asked to shut down or to reboot: ask it again.
	Press
	// Settled: it runs, and what was asked is done.
	Settled
	// Send: the job was accepted, and libvirt has not been asked yet.
	Send
	// Abort: a cancel was asked that libvirt has not heard.
	Abort
	// GoOver: post-copy was asked for, and libvirt may not know: tell it.
	GoOver
	// NoteStop: the guest stands for the switch-over. Note it.
	NoteStop
	// NoteAbort: libvirt has ended the transfer before its end. Note it.
	NoteAbort
	// Ask: libvirt may have lost its target's answer. Ask the target itself, before
	// libvirt lets the source run again.
	Ask
	// Move: libvirt says that the target has the VM.
	Move
	// Keep: the migration has ended, and the VM stays here.
	Keep
	// Strand: the migration has ended, and only the target knows how. Whatever runs
	// here is paused.
	Strand
	// NoteArrival: libvirt has begun to receive it.
	NoteArrival
	// Arrive: the VM is here, complete.
	Arrive
	// Lapse: libvirt has taken the incoming domain away: it will not come.
	Lapse
	// Recovered: what the target still lacked has come.
	Recovered
)

var steps = [...]string{"Rest", "Bury", "Force", "Reset", "Press", "Settled", "Send", "Abort", "GoOver",
	"NoteStop", "NoteAbort", "Ask", "Move", "Keep", "Strand", "NoteArrival", "Arrive", "Lapse",
	"Recovered"}

// String returns the step's name.
func (s Step) String() string {
	if int(s) >= len(steps) {
		return "invalid"
	}
	return steps[s]
}

// Due says what the backend has to do of its own accord.
func Due(d *journal.Domain, j *journal.Job, l Look, now time.Time) Step {
	switch {
	case d == nil:
		return Rest
	case j.Sends():
		return dueAtSource(j, l)
	case j.Receives():
		return dueAtTarget(j, l)
	case has(j, journal.Source, journal.Stranded) && l.Run.Executes():
		return Strand // libvirt let it run again after we had looked
	case has(j, journal.Target, journal.Arrived) && !j.Last.Status.Final() &&
		l.Run != RunsPostCopy && l.Run != RunsPostCopyFailed:
		return Recovered
	case l.Run.Rests() && (d.Ran || d.Doing == hypervisor.Stopping ||
		d.Doing == hypervisor.Rebooting):
		return Bury
	case !l.Run.Executes():
		return Rest
	case d.Doing == hypervisor.Stopping && !d.By.IsZero() && !now.Before(d.By):
		return Force
	case d.Doing == hypervisor.Rebooting && !d.By.IsZero() && !now.Before(d.By):
		return Reset
	case d.Doing == hypervisor.Starting, d.Doing == hypervisor.Rebooting && l.Rebooted:
		return Settled
	case l.Run != ShuttingDown && Unheard(d, now):
		return Press
	}
	return Rest
}

// PressAgain is how long a guest is given before its power button is pressed once more. One that
// boots, or whose driver is not loaded yet, does not see the button, and libvirt does not tell.
// Source: OpenStack Nova nova/virt/libvirt/driver.py (_clean_shutdown, retry_interval).
const PressAgain = 10 * time.Second

// Unheard reports whether a guest was asked to shut down so long ago that it may not have heard.
func Unheard(d *journal.Domain, now time.Time) bool {
	asked := d.Doing == hypervisor.Stopping || d.Doing == hypervisor.Rebooting
	return asked && !d.Asked.IsZero() && now.Sub(d.Asked) >= PressAgain
}

// dueAtSource: while libvirt is at it, it is only helped. What has become of the VM
// afterwards the domain says; what libvirt answered only counts where the domain
// alone does not tell.
func dueAtSource(j *journal.Job, l Look) Step {
	switch {
	case left(j, l):
		return Move
	case l.Call == Calling || l.Sends:
		return dueOnTheWay(j, l)
	case l.Call == NoCall && j.Last.Status == hypervisor.JobNone && !j.Stopped:
		if j.Cancelled || !ready(j, l) {
			return Keep
		}
		return Send
	case (l.Call == NoCall || l.Call == Broken) && l.Early:
		return Rest
	}
	return verdict(j, l)
}

// ready reports whether a domain is still what its migration is about.
func ready(j *journal.Job, l Look) bool {
	if j.Cold {
		return l.Run.Rests()
	}
	return l.Run.Executes() || l.Run.Stands()
}

// dueOnTheWay: the call is under way, or libvirt goes on without it.
func dueOnTheWay(j *journal.Job, l Look) Step {
	stands := l.Run == PausedMigration && !j.GuestPaused || l.Run == PausedPostCopy ||
		l.Run == PausedPostCopyFailed
	switch {
	case l.Run == PausedPostCopyFailed && l.Call != Calling && !(l.Call == NoCall && l.Early):
		return Strand
	case stands && !j.Stopped:
		return NoteStop
	case l.Aborted && !j.Aborted && !j.PostCopied:
		return NoteAbort
	case l.Stuck && l.Run == PausedMigration:
		return Ask
	case l.Aborted && l.Run.Executes() && !j.PostCopied:
		return Keep // the target never gets all of it
	case j.Cancelled && l.Sends && !l.Aborted:
		return Abort
	case j.PostCopied && l.Moving && !l.Aborted && !stands:
		return GoOver // we died between noting it and asking, or QEMU is about to begin
	}
	return Rest
}

// verdict says how a migration has ended that libvirt has ended.
func verdict(j *journal.Job, l Look) Step {
	switch {
	case l.Call == Succeeded: // the definition may have gone with the VM
		if l.Run.Executes() {
			return Strand // libvirt contradicts itself: ask the target
		}
		return Move
	case l.Call == Refused && (j.Cold || !movesOn(l.Run)):
		return Keep // wherever it died or stands
	case l.Run.Executes() && !j.Cold && (j.Aborted || !stood(j, l)):
		return Keep // the target did not get everything
	}
	return Strand
}

// stood reports whether the guest of a source that runs may have stood for the
// switch-over. libvirt says that it let it run again, but not whether that was now or
// after an earlier migration.
func stood(j *journal.Job, l Look) bool {
	anew := l.Run == RunsCancelled && !(j.Again && l.Call == Broken && !l.Blind)
	return j.Stopped || l.Stood || anew
}

// movesOn reports whether a domain looks as while libvirt moves it.
func movesOn(r Run) bool {
	return r == PausedMigration || r == PausedPostCopy || r == PausedPostCopyFailed
}

// dueAtTarget: a domain that came is the host's own.
func dueAtTarget(j *journal.Job, l Look) Step {
	switch {
	case Came(j, l) && !(j.Hold && l.Run.Stands()):
		return Arrive
	case l.Run == Gone && j.Seen:
		return Lapse
	case l.Run.Alive() && !j.Seen:
		return NoteArrival
	}
	return Rest
}
