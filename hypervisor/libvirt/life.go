package libvirt

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// State says what the domain is. Job is the one it names, or nil; d is nil for a
// domain of which nothing is kept.
func State(d *DomainRecord, j *Job, l Look) hypervisor.DomainState {
	if d == nil {
		d = &DomainRecord{}
	}
	switch {
	case j.Receives():
		return receiving(j, l)
	case l.Run == Gone && has(j, Source, Moved):
		return hypervisor.HandedOver
	case l.Run == Gone && (j.Sends() || has(j, Source, Stranded)):
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
func has(j *Job, r Role, s Stage) bool {
	return j != nil && j.Role == r && j.Stage == s
}

// left reports whether libvirt says that a live VM has moved, and may mean this job.
// An operation that godwit did not start, or that libvirt refused, was started by another client.
func left(j *Job, l Look) bool {
	return l.Run == ShutoffMigrated && l.Call != Refused && !j.Cold &&
		j.Last.Status != hypervisor.JobNone
}

// Came reports whether the domain is the complete copy that the job has brought.
func Came(j *Job, l Look) bool {
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
func receiving(j *Job, l Look) hypervisor.DomainState {
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
func resting(d *DomainRecord, j *Job, l Look) hypervisor.DomainState {
	switch {
	case has(j, Source, Moved), has(j, Source, Left):
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
func standing(d *DomainRecord, j *Job, l Look) hypervisor.DomainState {
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
	case has(j, Source, Stranded), has(j, Source, Left):
		return hypervisor.HandingOver
	case l.Run == PausedUnknown && j.Sends():
		return hypervisor.HandingOver
	}
	return hypervisor.Paused
}

// Status says how far the job has come on this host.
func Status(j *Job, l Look) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == NoRole:
		return hypervisor.JobNone
	case j.Last.Status.Final():
		return j.Last.Status
	case j.Role == Source && j.Stage == Stranded:
		return hypervisor.JobBroken
	case j.Sends():
		return sending(j, l)
	case j.Role == JobTarget:
		return arriving(j, l)
	}
	return hypervisor.JobActive
}

// sending is the status of a job that this host sends.
func sending(j *Job, l Look) hypervisor.JobStatus {
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
func arriving(j *Job, l Look) hypervisor.JobStatus {
	switch {
	case l.Run == RunsPostCopy:
		return hypervisor.JobActive
	case l.Run == RunsPostCopyFailed:
		return hypervisor.JobBroken
	case j.Stage == Arrived || Came(j, l):
		return hypervisor.JobSucceeded
	case l.Run == Gone:
		return hypervisor.JobSetup
	}
	return hypervisor.JobActive
}

// Mode says how memory moves. That a guest that runs was meant to be paused does not help:
// to have it paused, ask again.
func Mode(j *Job, l Look) hypervisor.Mode {
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
type NextStep uint8

// The steps.
const (
	// Rest: nothing is due.
	Rest NextStep = iota
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
func (s NextStep) String() string {
	if int(s) >= len(steps) {
		return "invalid"
	}
	return steps[s]
}

// Due says what the backend has to do of its own accord.
func Due(d *DomainRecord, j *Job, l Look, now time.Time) NextStep {
	switch {
	case d == nil:
		return Rest
	case j.Sends():
		return dueAtSource(j, l)
	case j.Receives():
		return dueAtTarget(j, l)
	case has(j, Source, Stranded) && l.Run.Executes():
		return Strand // libvirt let it run again after we had looked
	case has(j, JobTarget, Arrived) && !j.Last.Status.Final() &&
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
func Unheard(d *DomainRecord, now time.Time) bool {
	asked := d.Doing == hypervisor.Stopping || d.Doing == hypervisor.Rebooting
	return asked && !d.Asked.IsZero() && now.Sub(d.Asked) >= PressAgain
}

// dueAtSource: while libvirt is at it, it is only helped. What has become of the VM
// afterwards the domain says; what libvirt answered only counts where the domain
// alone does not tell.
func dueAtSource(j *Job, l Look) NextStep {
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
func ready(j *Job, l Look) bool {
	if j.Cold {
		return l.Run.Rests()
	}
	return l.Run.Executes() || l.Run.Stands()
}

// dueOnTheWay: the call is under way, or libvirt goes on without it.
func dueOnTheWay(j *Job, l Look) NextStep {
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
func verdict(j *Job, l Look) NextStep {
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
func stood(j *Job, l Look) bool {
	anew := l.Run == RunsCancelled && !(j.Again && l.Call == Broken && !l.Blind)
	return j.Stopped || l.Stood || anew
}

// movesOn reports whether a domain looks as while libvirt moves it.
func movesOn(r Run) bool {
	return r == PausedMigration || r == PausedPostCopy || r == PausedPostCopyFailed
}

// dueAtTarget: a domain that came is the host's own.
func dueAtTarget(j *Job, l Look) NextStep {
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
