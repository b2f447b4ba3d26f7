package qmp_test

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// laws are what holds of every situation: "broken" says when one is.
var laws = []struct {
	name   string
	broken func(situation) bool
}{
	{"a process is reaped if and only if it has ended", func(s situation) bool {
		return (s.due() == qmp.Reap) == s.l.Alive
	}},
	{"a target starts when it has what it needs and its source stopped", func(s situation) bool {
		listens := s.has(qmp.Target, qmp.Listening)
		complete := s.l.Migration == qemu.Completed && s.l.Run != qemu.InMigrate
		told := s.l.Run == qemu.Paused && postCopies(s.l)
		free := s.j != nil && s.j.Stopped && !s.j.Hold && !s.j.Cold && (complete || told)
		again := s.j != nil && s.j.Stage == qmp.Activating && s.l.Run != qemu.Shutdown
		return s.l.Alive && (s.due() == qmp.Activate) != (listens && free || again)
	}},
	{"a cold VM arrives when its source has let go", func(s situation) bool {
		listens := s.has(qmp.Target, qmp.Listening) && s.j.Stopped && !s.j.Hold
		again := s.j != nil && s.j.Stage == qmp.Arrived && s.l.Run == qemu.InMigrate
		return s.due() == qmp.Arrive && !(s.j.Cold && (listens || again))
	}},
	{"no guest is let run in a domain that receives", func(s situation) bool {
		receives := s.has(qmp.Target, qmp.Listening, qmp.Discarded)
		fresh := receives && s.j.Stage == qmp.Discarded &&
			(s.d.Ran || s.d.Doing != hypervisor.Absent) // started since
		runs := s.due() == qmp.Run || s.due() == qmp.Reset
		return receives && !fresh && runs
	}},
	{"a source that stands to move has no life here", func(s situation) bool {
		step := s.due()
		lives := step == qmp.Run || step == qmp.Reset || step == qmp.Quit ||
			step == qmp.Activate
		return s.sends() && !s.j.Cold && s.l.Alive && s.stands() && lives
	}},
	{"after the end a source runs on only when it was resumed", func(s situation) bool {
		ended := s.has(qmp.Source, qmp.Left, qmp.Abandoned) &&
			(s.l.Run == qemu.PostMigrate || s.l.Run == qemu.FinishMigrate)
		return s.l.Alive && ended && s.due() != qmp.Quit
	}},
	{"a resumed source is let run, unless its operator paused it", func(s situation) bool {
		left := s.has(qmp.Source, qmp.Resumed) && s.l.Alive &&
			s.l.Run == qemu.PostMigrate && !s.j.Cold && !s.d.Paused
		return left && s.due() != qmp.Run
	}},
	{"a guest that was reset to reboot is let run", func(s situation) bool {
		return s.j == nil && s.l.Alive && s.d.Doing == hypervisor.Rebooting &&
			s.l.Run == qemu.PreLaunch && s.due() != qmp.Run
	}},
	{"a guest that runs is not said to have stopped", func(s situation) bool {
		return s.due() == qmp.Announce && s.l.Run == qemu.Running && !s.j.Cold
	}},
	{"a source has stopped for good when it completed, or went over to post-copy", func(s situation) bool {
		good := s.l.Migration == qemu.Completed || postCopies(s.l) ||
			s.j != nil && s.j.PostCopied && (s.l.Run == qemu.PostMigrate || s.parked()) &&
				(s.l.Migration == qemu.Failed || s.l.Migration == qemu.Cancelled)
		return s.due() == qmp.Announce && !s.j.Cold && !good
	}},
	{"what was acknowledged is not said again", func(s situation) bool {
		return s.due() == qmp.Announce && s.j.Acknowledged
	}},
	{"a source that completed says so until it is heard", func(s situation) bool {
		return s.has(qmp.Source, qmp.Sending) && s.l.Alive && !s.j.Cold &&
			!s.j.Acknowledged && s.l.Migration == qemu.Completed && !s.free() &&
			s.due() != qmp.Announce
	}},
	{"a VM is kept when its migration ended and its guest is free", func(s situation) bool {
		ended := s.l.Migration == qemu.Failed || s.l.Migration == qemu.Cancelled
		unpaused := s.l.Migration == qemu.Completed && s.free()
		return s.due() == qmp.KeepAtSource && !ended && !unpaused
	}},
	{"a source that post-copy left standing is not kept", func(s situation) bool {
		return s.due() == qmp.KeepAtSource && s.j.PostCopied &&
			(s.l.Run == qemu.PostMigrate || s.l.Run == qemu.FinishMigrate)
	}},
	{"a source is not kept whose target may run, or that may have gone over to post-copy",
		func(s situation) bool {
			return s.due() == qmp.KeepAtSource && s.j.PostCopied && s.ended() && (s.parked() ||
				s.j.Acknowledged && (s.l.Run == qemu.Running || s.l.Run == qemu.Paused))
		}},
	{"a source that post-copy stopped does not seem to be here, unless it never began",
		func(s situation) bool {
			is := s.state()
			return s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
				s.ended() && s.parked() && (is.Executes() || is == hypervisor.Paused)
		}},
	{"a guest that QEMU lets run although its target may run is halted", func(s situation) bool {
		twice := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.j.PostCopied && s.j.Acknowledged && s.l.Run == qemu.Running && s.ended()
		return twice != (s.due() == qmp.Halt)
	}},
	{"QEMU is told of post-copy until it has gone over to it", func(s situation) bool {
		asked := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.j.PostCopied
		return (s.due() == qmp.SwitchToPostCopy) != (asked && s.l.Alive && s.l.Migration == qemu.Active)
	}},
	{"QEMU goes on when the disks are copied and it is not held", func(s situation) bool {
		held := s.j != nil && s.j.Options.HoldSwitchOver && !s.j.Released
		copied := !slices.ContainsFunc(s.l.Mirrors, func(m qemu.Job) bool {
			return m.Status != qemu.JobConcluded || m.Error != ""
		})
		pauses := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.l.Migration == qemu.PreSwitchover
		return (s.due() == qmp.Continue) != (pauses && copied && !held)
	}},
	{"no transfer waits to go on that is being cancelled", func(s situation) bool {
		cancelling := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.l.Migration == qemu.Cancelling
		return (s.due() == qmp.EndWait) != cancelling
	}},
	{"a copy that failed in the switch-over ends it", func(s situation) bool {
		held := s.j != nil && s.j.Options.HoldSwitchOver && !s.j.Released
		failed := slices.ContainsFunc(s.l.Mirrors, func(m qemu.Job) bool {
			return m.Error != "" || m.Status == qemu.JobNull
		})
		return s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive && failed &&
			s.l.Migration == qemu.PreSwitchover && !held && s.due() != qmp.GiveUp
	}},
	{"a guest that its operator paused is not let run after a migration", func(s situation) bool {
		moved := s.has(qmp.Source, qmp.Resumed, qmp.KeptRecord) && s.d.Paused &&
			s.d.Doing == hypervisor.Absent
		return moved && (s.due() == qmp.Run || s.due() == qmp.Reset)
	}},
	{"steps of a source are for sources", func(s situation) bool {
		step := s.due()
		return step >= qmp.Send && !s.sends() && step != qmp.NoStep
	}},
	{"a copy that failed ends what needs it", func(s situation) bool {
		failed := slices.ContainsFunc(s.l.Mirrors, func(m qemu.Job) bool { return m.Error != "" })
		return s.l.Alive && s.has(qmp.Source, qmp.Mirroring) &&
			(s.due() == qmp.GiveUp) != (failed || hasNull(s.l.Mirrors))
	}},
}

// lawsOfWords are about what is said.
var lawsOfWords = []struct {
	name   string
	broken func(situation) bool
}{
	{"executes only what is alive and may run, or starts", func(s situation) bool {
		is := s.state()
		return is.Executes() && !s.l.Alive && is != hypervisor.Starting
	}},
	{"the dead rest, start or were being received", func(s situation) bool {
		is := s.state()
		return !s.l.Alive && is != s.d.Rest && is != hypervisor.Crashed && !s.missed() &&
			is != hypervisor.Starting && is != hypervisor.Receiving && !(s.j != nil && s.j.Cold)
	}},
	{"how a source's transfer ended is told when it is noted", func(s situation) bool {
		told := qmp.Told(s.d, s.j, s.l)
		noted := told == s.status() || told == hypervisor.JobActive
		return !noted || s.sends() && s.l.Alive && !s.j.Cold &&
			(told == hypervisor.JobFailed || told == hypervisor.JobCancelled)
	}},
	{"of a VM that did not come nothing is said", func(s situation) bool {
		return s.missed() && s.state() != hypervisor.Absent
	}},
	{"a VM that ran and has died unasked has crashed", func(s situation) bool {
		receives := s.has(qmp.Target, qmp.Listening)
		cold := s.j != nil && s.j.Cold
		is := s.state()
		return !s.l.Alive && s.d.Ran && !s.d.Ending && !receives && !cold &&
			is != hypervisor.Crashed && is != hypervisor.Starting
	}},
	{"nothing executes that receives", func(s situation) bool {
		return s.has(qmp.Target, qmp.Listening) && s.d.Doing != hypervisor.Starting &&
			s.state() != hypervisor.Receiving && s.state() != hypervisor.Received
	}},
	{"a VM is received when it may start", func(s situation) bool {
		return s.state() == hypervisor.Received && !(s.j.Stopped && s.l.Complete())
	}},
	{"a running guest executes", func(s situation) bool {
		plain := s.j == nil || s.sends() && !s.j.Cold
		return plain && s.l.Alive && s.l.Run == qemu.Running && !s.state().Executes()
	}},
	{"a completed source that was not acknowledged is being handed over", func(s situation) bool {
		done := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.l.Migration == qemu.Completed && !s.free() && !s.j.Acknowledged
		status := s.status()
		return done && (s.state() != hypervisor.HandingOver ||
			status != hypervisor.JobSwitching && status != hypervisor.JobBroken)
	}},
	{"a source whose target knows has handed over", func(s situation) bool {
		done := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.l.Migration == qemu.Completed && !s.free() && s.j.Acknowledged
		return done && (s.state() != hypervisor.HandedOver || s.status() != hypervisor.JobSucceeded)
	}},
	{"a source succeeds when its target knows", func(s situation) bool {
		return s.sends() && s.l.Alive && s.status() == hypervisor.JobSucceeded && !s.j.Acknowledged
	}},
	{"only a job that was begun has a status", func(s situation) bool {
		begun := s.j != nil && s.j.Role != qmp.NoRole && s.j.Stage != qmp.Preparing
		return begun != (s.status() != hypervisor.JobNone)
	}},
	{"a source that stands and failed does not say that it kept the VM", func(s situation) bool {
		stranded := s.has(qmp.Source, qmp.Sending) && !s.j.Cold && s.l.Alive &&
			s.j.PostCopied && s.l.Migration == qemu.Failed && s.l.Run == qemu.PostMigrate
		return stranded && s.status() != hypervisor.JobBroken
	}},
	{"post-copy is said while it lasts", func(s situation) bool {
		return s.j != nil && postCopies(s.l) && qmp.Mode(s.j, s.l) != hypervisor.PostCopy
	}},
	{"that a guest is paused to let it go is said while it is", func(s situation) bool {
		paused := s.j != nil && qmp.Mode(s.j, s.l) == hypervisor.PausedCopy
		return paused && (!s.j.GuestPaused || s.l.Run == qemu.Running)
	}},
	{"a VM that left or was given up does not seem to be here", func(s situation) bool {
		gone := s.has(qmp.Source, qmp.Left, qmp.Abandoned) && s.l.Alive &&
			s.l.Run == qemu.PostMigrate && s.d.Doing != hypervisor.Starting
		is := s.state()
		return gone && (is.Executes() || is == hypervisor.Paused)
	}},
	{"a discarded copy does not seem to run", func(s situation) bool {
		gone := s.has(qmp.Target, qmp.Discarded) && s.l.Alive && !s.d.Ran &&
			s.d.Doing == hypervisor.Absent
		return gone && (s.state() != hypervisor.Receiving || s.due() != qmp.Quit)
	}},
	{"a guest that shut down is at rest soon", func(s situation) bool {
		step := s.due()
		plain := s.j == nil || s.has(qmp.Target, qmp.Activating, qmp.Arrived)
		return plain && s.l.Alive && s.l.Run == qemu.Shutdown && step != qmp.Quit &&
			!(step == qmp.Reset && s.d.Doing == hypervisor.Rebooting)
	}},
}

func postCopies(l qmp.Look) bool {
	return l.Migration == qemu.PostcopyActive || l.Migration == qemu.PostcopyPaused ||
		l.Migration == qemu.PostcopyConnects || l.Migration == qemu.PostcopyRecover
}

// ended reports whether a migration has ended without having been completed.
func (s situation) ended() bool {
	return s.l.Migration == qemu.Failed || s.l.Migration == qemu.Cancelled
}

// parked reports whether a guest stands that was stopped before post-copy, which may have begun.
func (s situation) parked() bool {
	return s.j != nil && !s.j.Parked.IsZero() && s.l.Run == qemu.Paused &&
		s.l.SwitchOver != qmp.SwitchOverNever
}

// stands reports whether the guest of a source was stopped by its QEMU to move.
func (s situation) stands() bool {
	l := s.l
	return l.Run == qemu.FinishMigrate || l.Run == qemu.PostMigrate ||
		l.Run != qemu.Running && (postCopies(l) || l.Migration == qemu.PreSwitchover ||
			l.Migration == qemu.Device || l.Migration == qemu.Completed && !s.free())
}

// free reports whether a guest was not put to rest by a migration of its own. It may be in
// any state when that has not begun, because its disks are copied first.
func (s situation) free() bool {
	switch s.l.Run {
	case qemu.FinishMigrate, qemu.PostMigrate:
		return false
	case qemu.PreLaunch, qemu.InMigrate: // a guest that has moved can be reset
		return s.has(qmp.Source, qmp.Mirroring)
	}
	return true
}

func hasNull(ms []qemu.Job) bool {
	return slices.ContainsFunc(ms, func(m qemu.Job) bool { return m.Status == qemu.JobNull })
}

// lawful checks all laws, and tells which are broken.
func (s situation) lawful(t interface{ Errorf(string, ...any) }) bool {
	ok := true
	for _, law := range slices.Concat(laws, lawsOfWords) {
		if law.broken(s) {
			t.Errorf("not so: %s\n%v", law.name, s)
			ok = false
		}
	}
	return ok
}
