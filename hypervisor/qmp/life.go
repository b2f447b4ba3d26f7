package qmp

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/monitor"
)

// A Look is what was seen of a domain's QEMU.
type Look struct {
	Alive     bool // the process is there
	Run       monitor.RunState
	Migration monitor.MigrationStatus
	Mirrors   []monitor.Job // the copies of local disks, if there are any
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
	return l.Alive && l.Migration == monitor.Completed && l.Run != monitor.InMigrate
}

// runnable reports whether an incoming QEMU has what it needs to run the guest:
// everything, or, in post-copy, a guest that was told to run.
func (l Look) runnable() bool {
	return l.Complete() || l.Alive && l.Run == monitor.Paused && l.inPostCopy()
}

func (l Look) inPostCopy() bool {
	switch l.Migration {
	case monitor.PostcopyActive, monitor.PostcopyPaused, monitor.PostcopyRecover:
		return true
	}
	return false
}

// sends reports whether d is the source of a transfer under way.
func sends(j *Job) bool {
	return j != nil && j.Role == Source &&
		(j.Stage == Mirroring || j.Stage == Sending)
}

// stranded reports whether post-copy failed while it began or ended, or may have:
// QEMU then does not take the guest back, as it does before, and the target may have
// all that it needs. At rest for good the guest is after the migration, not before. One that was
// parked is paused either way, and stays here only if post-copy did not begin.
// Source: QEMU 7.2 migration/migration.c (migration_completion: "If not doing
// postcopy, vm_start() will be called"; postcopy_start).
func stranded(j *Job, l Look) bool {
	switch {
	case !j.PostCopied || l.Migration != monitor.Failed && l.Migration != monitor.Cancelled:
		return false
	case l.Run == monitor.Paused:
		return j.Acknowledged || !j.Parked.IsZero() && l.SwitchOver != SwitchOverNever
	}
	return l.Run == monitor.FinishMigrate || l.Run == monitor.PostMigrate
}

// Stranded reports whether a source's transfer failed after post-copy began, or may have: QEMU
// sends no more, and the guest stands.
func Stranded(j *Job, l Look) bool { return sends(j) && !j.Cold && stranded(j, l) }

// undecided reports whether QEMU has just ended the transfer of a guest that stands, and is about
// to say more of it.
func undecided(l Look) bool {
	return l.Run == monitor.FinishMigrate ||
		l.Run == monitor.Paused && l.SwitchOver == SwitchOverAwaited
}

func receives(j *Job) bool {
	return j != nil && j.Role == Target && j.Stage == Listening
}

// State says what the domain is. Job is the one it names, or nil.
func State(d *DomainRecord, j *Job, l Look) hypervisor.DomainState {
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
		if j.Acknowledged && l.Migration == monitor.Completed {
			return hypervisor.HandedOver
		}
		return hypervisor.HandingOver
	}
	return runs(d, l)
}

// coldState: a VM at rest stays so, and is its host's no longer when the target
// has it.
func coldState(j *Job) hypervisor.DomainState {
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
func stale(j *Job, l Look) bool {
	switch {
	case l.Migration != monitor.Completed, l.Run == monitor.FinishMigrate, l.Run == monitor.PostMigrate:
		return false
	case j.Stage == Mirroring: // its memory has not begun to move
		return true
	}
	return l.Heard() && l.Run != monitor.PreLaunch && l.Run != monitor.InMigrate
}

// stoppedToMove reports whether the guest of a source stands for the switch-over, or may.
func stoppedToMove(j *Job, l Look) bool {
	switch {
	case !l.Heard():
		return j.Stage == Sending
	case l.Run == monitor.Running || stale(j, l):
		return false
	case l.Run == monitor.FinishMigrate || l.Run == monitor.PostMigrate || stranded(j, l):
		return true
	case l.Migration == monitor.Active && l.Run == monitor.Paused && !j.Parked.IsZero():
		return true
	}
	switch l.Migration {
	case monitor.PreSwitchover, monitor.Device, monitor.Completed:
		return true
	}
	return l.inPostCopy()
}

// runs says what a domain is that takes part in no migration, or only sends
// memory while it runs.
func runs(d *DomainRecord, l Look) hypervisor.DomainState {
	switch {
	case d.Doing != hypervisor.Absent:
		return d.Doing
	case l.Run == monitor.Running:
		return hypervisor.Running
	case l.Run == monitor.Shutdown:
		return hypervisor.Stopping
	case !d.Ran:
		return hypervisor.Starting
	}
	return hypervisor.Paused
}

// Told is what is said of the job to who asks: its status, but for an end that is not noted
// yet. Of a source that is about to send QEMU tells how its migration before has ended.
func Told(d *DomainRecord, j *Job, l Look) hypervisor.JobStatus {
	s := Status(d, j, l)
	if sends(j) && l.Alive && (s == hypervisor.JobFailed || s == hypervisor.JobCancelled) {
		return hypervisor.JobActive
	}
	return s
}

// Status says how far the job has come on this host, by what QEMU tells.
func Status(d *DomainRecord, j *Job, l Look) hypervisor.JobStatus {
	switch {
	case j == nil || j.Role == NoRole || j.Stage == Preparing:
		return hypervisor.JobNone
	case sends(j) && j.Cold:
		return coldStatus(d, j)
	case j.Stage == Mirroring && l.Alive:
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
func noted(j *Job) hypervisor.JobStatus {
	switch {
	case j.Last.Status != hypervisor.JobNone:
		return j.Last.Status
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	}
	return hypervisor.JobActive
}

func coldStatus(d *DomainRecord, j *Job) hypervisor.JobStatus {
	switch {
	case j.Acknowledged:
		return hypervisor.JobSucceeded
	case d.Unresolved:
		return hypervisor.JobBroken
	}
	return hypervisor.JobActive
}

func sourceStatus(d *DomainRecord, j *Job, l Look) hypervisor.JobStatus {
	switch {
	case stranded(j, l) && undecided(l):
		return hypervisor.JobSwitching
	case stranded(j, l):
		return hypervisor.JobBroken
	}
	switch l.Migration {
	case monitor.None, monitor.Setup:
		return hypervisor.JobSetup
	case monitor.PreSwitchover, monitor.Device:
		return hypervisor.JobSwitching
	case monitor.PostcopyActive, monitor.PostcopyRecover:
		if !j.Acknowledged {
			return hypervisor.JobSwitching
		}
	case monitor.PostcopyPaused:
		return hypervisor.JobBroken
	case monitor.Failed:
		if j.Cancelled {
			return hypervisor.JobCancelled
		}
		return hypervisor.JobFailed
	case monitor.Cancelled:
		return hypervisor.JobCancelled
	case monitor.Completed:
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
func arrivedStatus(j *Job, l Look) hypervisor.JobStatus {
	switch l.Migration {
	case monitor.PostcopyActive, monitor.PostcopyRecover:
		return hypervisor.JobActive
	case monitor.PostcopyPaused:
		return hypervisor.JobBroken
	case monitor.Completed:
		return hypervisor.JobSucceeded
	}
	return noted(j)
}

func targetStatus(j *Job, l Look) hypervisor.JobStatus {
	switch l.Migration {
	case monitor.None, monitor.Setup, "":
		return hypervisor.JobSetup
	case monitor.Completed:
		if j.Stopped {
			return hypervisor.JobSucceeded
		}
		return hypervisor.JobSwitching
	case monitor.Failed:
		return hypervisor.JobFailed
	}
	return hypervisor.JobActive
}

// Mode says how memory moves at the moment. That a guest that runs was meant to be paused
// does not help: to have it paused, ask again.
func Mode(j *Job, l Look) hypervisor.Mode {
	switch {
	case j.PostCopied || l.inPostCopy() || j.Last.Mode == hypervisor.PostCopy:
		return hypervisor.PostCopy
	case j.GuestPaused && l.Run != monitor.Running:
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
func (s NextStep) String() string {
	if int(s) < len(steps) {
		return steps[s]
	}
	return "invalid"
}

// Due says what is to be done next with a domain that has a process, or had one.
// Job is the one it names, or nil.
func Due(d *DomainRecord, j *Job, l Look, now time.Time) NextStep {
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
	case j.Stage == Activating && l.Run != monitor.Shutdown:
		return Activate // we died between noting it and doing it
	case j.Stage == Arrived && j.Cold && l.Run == monitor.InMigrate:
		return Arrive // again; one that was started since does not wait to receive
	case j.Stage == Resumed && !j.Cold && !d.Paused &&
		(l.Run == monitor.PostMigrate || l.Run == monitor.Paused && !j.Parked.IsZero()):
		return Run // and again
	}
	return dueInLife(d, l, now)
}

// dueInLife is what is due of the guest's own life.
func dueInLife(d *DomainRecord, l Look, now time.Time) NextStep {
	switch {
	case d.Doing == hypervisor.Rebooting && l.Run == monitor.PreLaunch:
		return Run // it was reset, however late that was
	case d.Doing == hypervisor.Rebooting && (l.Run == monitor.Shutdown || late(d, now)):
		return Reset
	case l.Run == monitor.Shutdown, d.Doing == hypervisor.Stopping && late(d, now):
		return Quit
	case l.Run == monitor.Running && Unheard(d, now):
		return Press
	case d.Doing == hypervisor.Starting:
		return Run // if it runs, we died, or did not hear it, before that was noted
	}
	return Rest
}

// PressAgain is how long a guest is given before its power button is pressed once more. One that
// boots, or whose driver is not loaded yet, does not see the button, and QEMU does not tell.
// Source: OpenStack Nova nova/virt/libvirt/driver.py (_clean_shutdown, retry_interval).
const PressAgain = 10 * time.Second

// Unheard reports whether a guest was asked to shut down so long ago that it may not have heard.
func Unheard(d *DomainRecord, now time.Time) bool {
	asked := d.Doing == hypervisor.Stopping || d.Doing == hypervisor.Rebooting
	return asked && !d.Asked.IsZero() && now.Sub(d.Asked) >= PressAgain
}

// late reports whether what a guest was asked for should have happened by now.
func late(d *DomainRecord, now time.Time) bool { return !d.By.IsZero() && !now.Before(d.By) }

// dueAtTarget: the guest starts only when everything is here and its source is
// known to have stopped.
func dueAtTarget(j *Job, l Look) NextStep {
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

func dueAtSource(j *Job, l Look) NextStep {
	failed, ready, ended := mirrors(l.Mirrors)
	locals := len(l.Mirrors)
	switch {
	case j.Stage == Mirroring && (failed || j.Cancelled):
		return GiveUp
	case j.Stage == Mirroring && j.Cold && ended == locals:
		return Send
	case j.Stage == Mirroring && ready+ended == locals:
		if j.Cold {
			return FinishMirrors
		}
		return Send
	case j.Stage == Mirroring:
		return Rest
	case j.Cold && !j.Acknowledged:
		return Announce
	case j.Cold:
		return Quit // it was needed for the copies only
	}
	switch l.Migration {
	case monitor.None: // we died after noting the job and before QEMU began
		return GiveUp
	case monitor.Active:
		if j.PostCopied { // we died between noting it and asking, or QEMU is about to begin
			return GoOver
		}
	case monitor.PreSwitchover:
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
	case monitor.Cancelling:
		return EndWait
	case monitor.Completed:
		switch {
		case j.Acknowledged:
		case stale(j, l):
			return Keep
		default:
			return Announce
		}
	case monitor.PostcopyActive, monitor.PostcopyPaused, monitor.PostcopyRecover:
		if !j.Acknowledged && l.Run != monitor.Running {
			return Announce
		}
	case monitor.Failed, monitor.Cancelled:
		switch {
		case j.PostCopied && j.Acknowledged && l.Run == monitor.Running:
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
func mirrors(jobs []monitor.Job) (failed bool, ready, ended int) {
	for _, m := range jobs {
		switch {
		case m.Error != "" || m.Status == monitor.JobAborting || m.Status == monitor.JobNull:
			failed = true
		case m.Status == monitor.JobReady || m.Status == monitor.JobStandby:
			ready++
		case m.Status == monitor.JobConcluded:
			ended++
		}
	}
	return failed, ready, ended
}
