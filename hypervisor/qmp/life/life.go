// Package life says what a domain is, and what is due next, from what the journal
// knows of it and what was seen of its QEMU.
//
//	journal + look ──► [State], [Status], [Due] ──► act ──► look …
//
// Everything that a backend does of its own accord, with nobody asking, is a
// [Step] from here: it follows from what is, and never from an event that might
// have been missed. Whoever acts (1) does one step, (2) looks again. Dying in
// between does no harm.
//
// It does no I/O and reads no clock.
package life

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// A Look is what was seen of a domain's QEMU.
type Look struct {
	Alive     bool // the process is there
	Run       qapi.RunState
	Migration qapi.MigrationStatus
	Mirrors   []qapi.Job // the copies of local disks, if there are any
	// SwitchOver is whether the transfer came to its switch-over, as QEMU's events told.
	SwitchOver SwitchOver
}

// A SwitchOver is what is known of whether a transfer that ended came to its switch-over.
type SwitchOver uint8

// What is known of a switch-over.
const (
	// SwitchOverUnknown: it began, or some event may have been missed.
	SwitchOverUnknown SwitchOver = iota
	// SwitchOverAwaited: no event was missed, but the last ones are still to be read.
	SwitchOverAwaited
	// SwitchOverNever: QEMU told everything, and the switch-over did not begin.
	SwitchOverNever
)

// Heard reports whether QEMU has told how the guest is. One that was silent ever since we
// began has not.
func (l Look) Heard() bool { return l.Run != "" }

// Complete reports whether an incoming QEMU holds the complete state of the VM.
func (l Look) Complete() bool {
	return l.Alive && l.Migration == qapi.Completed && l.Run != qapi.InMigrate
}

// runnable reports whether an incoming QEMU has what it needs to run the guest:
// everything, or, in post-copy, a guest that was told to run.
func (l Look) runnable() bool {
	return l.Complete() || l.Alive && l.Run == qapi.Paused && l.inPostCopy()
}

func (l Look) inPostCopy() bool {
	switch l.Migration {
	case qapi.PostcopyActive, qapi.PostcopyPaused, qapi.PostcopyRecover:
		return true
	}
	return false
}

// sends reports whether d is the source of a transfer under way.
func sends(j *journal.Job) bool {
	return j != nil && j.Role == journal.Source &&
		(j.Stage == journal.Mirroring || j.Stage == journal.Sending)
}

// stranded reports whether post-copy failed while it began or ended, or may have:
// QEMU then does not take the guest back, as it does before, and the target may have
// all that it needs. At rest for good the guest is after the migration, not before. One that was
// parked is paused either way, and stays here only if post-copy did not begin.
// Source: QEMU 7.2 migration/migration.c (migration_completion: "If not doing
// postcopy, vm_start() will be called"; postcopy_start).
func stranded(j *journal.Job, l Look) bool {
	switch {
	case !j.PostCopied || l.Migration != qapi.Failed && l.Migration != qapi.Cancelled:
		return false
	case l.Run == qapi.Paused:
		return j.Acknowledged || !j.Parked.IsZero() && l.SwitchOver != SwitchOverNever
	}
	return l.Run == qapi.FinishMigrate || l.Run == qapi.PostMigrate
}

// Stranded reports whether a source's transfer failed after post-copy began, or may have: QEMU
// sends no more, and the guest stands.
func Stranded(j *journal.Job, l Look) bool { return sends(j) && !j.Cold && stranded(j, l) }

// undecided reports whether QEMU has just ended the transfer of a guest that stands, and is about
// to say more of it.
func undecided(l Look) bool {
	return l.Run == qapi.FinishMigrate ||
		l.Run == qapi.Paused && l.SwitchOver == SwitchOverAwaited
}

func receives(j *journal.Job) bool {
	return j != nil && j.Role == journal.Target && j.Stage == journal.Listening
}

// State says what the domain is. Job is the one it names, or nil.
func State(d *journal.Domain, j *journal.Job, l Look) hypervisor.DomainState {
	switch {
	case sends(j) && j.Cold:
		return coldState(j)
	case Missed(d, j, l):
		return hypervisor.Absent
	case !l.Alive && d.Doing == hypervisor.Starting:
		return hypervisor.Starting
	case !l.Alive && !receives(j):
		if d.Ran && !d.Ending { // it has just died, and is not buried yet
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
		if j.Acknowledged && l.Migration == qapi.Completed {
			return hypervisor.HandedOver
		}
		return hypervisor.HandingOver
	}
	return runs(d, l)
}

// coldState: a VM at rest stays so, and is its host's no longer when the target
// has it.
func coldState(j *journal.Job) hypervisor.DomainState {
	if j.Acknowledged {
		return hypervisor.HandedOver
	}
	return hypervisor.Shutoff
}

// stale reports whether a source's completed migration is not what its job is
// about: QEMU leaves the guest of one that it has sent at rest for good, and it does
// not shut down there, nor fail or sleep; it can be reset. The VM came by it, or was resumed
// after it, and its next one has not begun: its disks are copied first, or we died before; or
// somebody unpaused the guest just when it completed.
// Source: QEMU 7.2 migration/migration.c (migration_iteration_finish), softmmu/runstate.c
// (runstate_transitions_def: postmigrate leads to running, finish-migrate and prelaunch).
func stale(j *journal.Job, l Look) bool {
	switch {
	case l.Migration != qapi.Completed, l.Run == qapi.FinishMigrate, l.Run == qapi.PostMigrate:
		return false
	case j.Stage == journal.Mirroring: // its memory has not begun to move
		return true
	}
	return l.Heard() && l.Run != qapi.PreLaunch && l.Run != qapi.InMigrate
}

// stoppedToMove reports whether the guest of a source stands for the switch-over, or may.
func stoppedToMove(j *journal.Job, l Look) bool {
	switch {
	case !l.Heard():
		return j.Stage == journal.Sending
	case l.Run == qapi.Running || stale(j, l):
		return false
	case l.Run == qapi.FinishMigrate || l.Run == qapi.PostMigrate || stranded(j, l):
		return true
	case l.Migration == qapi.Active && l.Run == qapi.Paused && !j.Parked.IsZero():
		return true
	}
	switch l.Migration {
	case qapi.PreSwitchover, qapi.Device, qapi.Completed:
		return true
	}
	return l.inPostCopy()
}

// runs says what a domain is that takes part in no migration, or only sends
// memory while it runs.
func runs(d *journal.Domain, l Look) hypervisor.DomainState {
	switch {
	case d.Doing != hypervisor.Absent:
		return d.Doing
	case l.Run == qapi.Running:
		return hypervisor.Running
	case l.Run == qapi.Shutdown:
		return hypervisor.Stopping
	case !d.Ran:
		return hypervisor.Starting
	}
	return hypervisor.Paused
}

// Told is what is said of the job to who asks: its status, but for an end that is not noted
// yet. Of a source that is about to send QEMU tells how its migration before has ended.
func Told(d *journal.Domain, j *journal.Job, l Look) hypervisor.JobStatus {
	s := Status(d, j, l)
	if sends(j) && l.Alive && (s == hypervisor.JobFailed || s == hypervisor.JobCancelled) {
		return hypervisor.JobActive
	}
	return s
}

// Status says how far the job has come on this host, by what QEMU tells.
func Status(d *journal.Domain, j *journal.Job, l Look) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == journal.NoRole || j.Stage == journal.Preparing:
		return hypervisor.JobNone
	case sends(j) && j.Cold:
		return coldStatus(d, j)
	case j.Stage == journal.Mirroring && l.Alive:
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
// buried yet: its job is no longer looked at, but it was begun.
func noted(j *journal.Job) hypervisor.JobStatus {
	switch {
	case j.Last.Status != hypervisor.JobNone:
		return j.Last.Status
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	}
	return hypervisor.JobActive
}

func coldStatus(d *journal.Domain, j *journal.Job) hypervisor.JobStatus {
	switch {
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	case d.Unresolved:
		return hypervisor.JobBroken
	}
	return hypervisor.JobActive
}

func sourceStatus(d *journal.Domain, j *journal.Job, l Look) hypervisor.JobStatus {
	switch {
	case stranded(j, l) && undecided(l):
		return hypervisor.JobSwitching
	case stranded(j, l):
		return hypervisor.JobBroken
	}
	switch l.Migration {
	case qapi.None, qapi.Setup:
		return hypervisor.JobSetup
	case qapi.PreSwitchover, qapi.Device:
		return hypervisor.JobSwitching
	case qapi.PostcopyActive, qapi.PostcopyRecover:
		if !j.Acknowledged {
			return hypervisor.JobSwitching
		}
	case qapi.PostcopyPaused:
		return hypervisor.JobBroken
	case qapi.Failed:
		if j.Cancelled {
			return hypervisor.JobCancelled
		}
		return hypervisor.JobFailed
	case qapi.Cancelled:
		return hypervisor.JobCancelled
	case qapi.Completed:
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
func arrivedStatus(j *journal.Job, l Look) hypervisor.JobStatus {
	switch l.Migration {
	case qapi.PostcopyActive, qapi.PostcopyRecover:
		return hypervisor.JobActive
	case qapi.PostcopyPaused:
		return hypervisor.JobBroken
	case qapi.Completed:
		return hypervisor.JobSucceeded
	}
	return noted(j)
}

func targetStatus(j *journal.Job, l Look) hypervisor.JobStatus {
	switch l.Migration {
	case qapi.None, qapi.Setup, "":
		return hypervisor.JobSetup
	case qapi.Completed:
		if j.Stopped {
			return hypervisor.JobSucceeded
		}
		return hypervisor.JobSwitching
	case qapi.Failed:
		return hypervisor.JobFailed
	}
	return hypervisor.JobActive
}

// Mode says how memory moves at the moment. That a guest that runs was meant to be paused
// helps nobody: whoever wants it paused has to ask again.
func Mode(j *journal.Job, l Look) hypervisor.Mode {
	switch {
	case j.PostCopied || l.inPostCopy() || j.Last.Mode == hypervisor.PostCopy:
		return hypervisor.PostCopy
	case j.GuestPaused && l.Run != qapi.Running:
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
	// Bury: the process has ended. Note what is left.
	Bury
	// Quit: the guest has shut down, or had its time: end the process.
	Quit
	// Reset: the guest has shut down to reboot, or had its time: boot it.
	Reset
	// Press: the guest runs on although it was asked to shut down: press its button again.
	Press
	// Run: let the guest run.
	Run
	// Activate: the target has everything, and its source has stopped: note that
	// the guest may run from now on, and let it.
	Activate
	// Arrive: the target has everything and rests, as its guest did.
	Arrive
	// Send: the disks are copied: begin with the memory.
	Send
	// FinishMirrors: the guest stands: let the copies of the disks end.
	FinishMirrors
	// GoOver: post-copy was asked for, and QEMU may not know: tell it.
	GoOver
	// Halt: QEMU has let the guest of a source run although its target may run: stop it.
	Halt
	// Continue: go on from pre-switchover.
	Continue
	// EndWait: the transfer is being cancelled, and may wait before its switch-over: end
	// that. QEMU before 10.0 waits for ever if it was cancelled when it was about to.
	// Source: QEMU 7.2 migration/migration.c (migration_maybe_pause, migrate_fd_cancel and
	// qmp_migrate_continue; one that did not wait forgets before it does what it was told).
	EndWait
	// Announce: tell the target that the guest has stopped for good.
	Announce
	// Keep: the transfer has ended, and the VM stays here.
	Keep
	// GiveUp: the disks cannot be copied, or are not to be: end the transfer.
	GiveUp
)

var steps = [...]string{"Rest", "Bury", "Quit", "Reset", "Press", "Run", "Activate", "Arrive", "Send",
	"FinishMirrors", "GoOver", "Halt", "Continue", "EndWait", "Announce", "Keep", "GiveUp"}

// String returns the step's name.
func (s Step) String() string {
	if int(s) < len(steps) {
		return steps[s]
	}
	return "invalid"
}

// Due says what is to be done next with a domain that has a process, or had one.
// Job is the one it names, or nil.
func Due(d *journal.Domain, j *journal.Job, l Look, now time.Time) Step {
	switch {
	case !l.Alive:
		return Bury
	case d.Ending || leftover(d, j, l):
		return Quit
	case receives(j):
		return dueAtTarget(j, l)
	case sends(j):
		if s := dueAtSource(j, l); s != Rest || !j.Cold && stoppedToMove(j, l) {
			return s // a guest that stands to move has no life here
		}
	case j == nil:
	case j.Stage == journal.Activating && l.Run != qapi.Shutdown:
		return Activate // we died between noting it and doing it
	case j.Stage == journal.Arrived && j.Cold && l.Run == qapi.InMigrate:
		return Arrive // again; one that was started since does not wait to receive
	case j.Stage == journal.Resumed && !j.Cold && !d.Paused &&
		(l.Run == qapi.PostMigrate || l.Run == qapi.Paused && !j.Parked.IsZero()):
		return Run // and again
	}
	return dueInLife(d, l, now)
}

// dueInLife is what is due of the guest's own life.
func dueInLife(d *journal.Domain, l Look, now time.Time) Step {
	switch {
	case d.Doing == hypervisor.Rebooting && l.Run == qapi.PreLaunch:
		return Run // it was reset, however late that was
	case d.Doing == hypervisor.Rebooting && (l.Run == qapi.Shutdown || late(d, now)):
		return Reset
	case l.Run == qapi.Shutdown, d.Doing == hypervisor.Stopping && late(d, now):
		return Quit
	case l.Run == qapi.Running && Unheard(d, now):
		return Press
	case d.Doing == hypervisor.Starting:
		return Run // if it runs, we died, or did not hear it, before that was noted
	}
	return Rest
}

// PressAgain is how long a guest is given before its power button is pressed once more. One that
// boots, or whose driver is not loaded yet, does not see the button, and nobody tells.
// Source: OpenStack Nova nova/virt/libvirt/driver.py (_clean_shutdown, retry_interval).
const PressAgain = 10 * time.Second

// Unheard reports whether a guest was asked to shut down so long ago that it may not have heard.
func Unheard(d *journal.Domain, now time.Time) bool {
	asked := d.Doing == hypervisor.Stopping || d.Doing == hypervisor.Rebooting
	return asked && !d.Asked.IsZero() && now.Sub(d.Asked) >= PressAgain
}

// late reports whether what a guest was asked for should have happened by now.
func late(d *journal.Domain, now time.Time) bool { return !d.By.IsZero() && !now.Before(d.By) }

// dueAtTarget: the guest starts only when everything is here and its source is
// known to have stopped.
func dueAtTarget(j *journal.Job, l Look) Step {
	switch {
	case !j.Stopped || j.Hold:
		return Rest
	case j.Cold:
		return Arrive
	case !l.runnable():
		return Rest
	}
	return Activate
}

func dueAtSource(j *journal.Job, l Look) Step {
	failed, ready, ended := mirrors(l.Mirrors)
	locals := len(l.Mirrors)
	switch {
	case j.Stage == journal.Mirroring && (failed || j.Cancelled):
		return GiveUp
	case j.Stage == journal.Mirroring && j.Cold && ended == locals:
		return Send
	case j.Stage == journal.Mirroring && ready+ended == locals:
		if j.Cold {
			return FinishMirrors
		}
		return Send
	case j.Stage == journal.Mirroring:
		return Rest
	case j.Cold && !j.Acknowledged:
		return Announce
	case j.Cold:
		return Quit // it was needed for the copies only
	}
	switch l.Migration {
	case qapi.None: // we died after noting the job and before QEMU began
		return GiveUp
	case qapi.Active:
		if j.PostCopied { // we died between noting it and asking, or QEMU is about to begin
			return GoOver
		}
	case qapi.PreSwitchover:
		switch {
		case j.Options.HoldSwitchOver && !j.Released:
			return Rest
		case failed:
			return GiveUp
		case ready > 0:
			return FinishMirrors
		case ended < locals:
			return Rest
		}
		return Continue
	case qapi.Cancelling:
		return EndWait
	case qapi.Completed:
		switch {
		case j.Acknowledged:
		case stale(j, l):
			return Keep
		default:
			return Announce
		}
	case qapi.PostcopyActive, qapi.PostcopyPaused, qapi.PostcopyRecover:
		if !j.Acknowledged && l.Run != qapi.Running {
			return Announce
		}
	case qapi.Failed, qapi.Cancelled:
		switch {
		case j.PostCopied && j.Acknowledged && l.Run == qapi.Running:
			return Halt
		case !stranded(j, l):
			return Keep
		case !j.Acknowledged && !undecided(l):
			return Announce
		}
	}
	return Rest
}

// mirrors counts the copies of disks by what has become of them.
func mirrors(jobs []qapi.Job) (failed bool, ready, ended int) {
	for _, m := range jobs {
		switch {
		case m.Error != "" || m.Status == qapi.JobAborting || m.Status == qapi.JobNull:
			failed = true
		case m.Status == qapi.JobReady || m.Status == qapi.JobStandby:
			ready++
		case m.Status == qapi.JobConcluded:
			ended++
		}
	}
	return failed, ready, ended
}
