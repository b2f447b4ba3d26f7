package libvirt_test

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

func (s situation) executes() bool { return slices.Contains(executing, s.l.Run) }

func (s situation) rests() bool { return slices.Contains(resting, s.l.Run) }

func (s situation) stands() bool { return slices.Contains(standing, s.l.Run) }

// asked reports whether libvirt was asked to migrate, or may have been.
func (s situation) asked() bool {
	return s.sends() && (s.j.Last.Status != hypervisor.JobNone || s.j.Stopped ||
		s.l.Call != libvirt.NoCall)
}

// moving reports whether libvirt is at it, or may be about to begin.
func (s situation) moving() bool {
	early := s.l.Early && (s.l.Call == libvirt.NoCall || s.l.Call == libvirt.Broken)
	return s.sends() && !s.said() && (s.l.Sends || s.l.Call == libvirt.Calling ||
		early && s.asked())
}

// said reports whether libvirt has said that this job's VM has moved.
func (s situation) said() bool {
	meant := s.sends() && s.l.Call != libvirt.Refused && s.j.Last.Status != hypervisor.JobNone
	return meant && !s.j.Cold && s.l.Run == libvirt.ShutoffMigrated
}

// stopped reports whether a domain looks as one that stopped for the switch-over.
func (s situation) stopped() bool {
	return s.l.Run == libvirt.PausedMigration || s.l.Run == libvirt.PausedPostCopy ||
		s.l.Run == libvirt.PausedPostCopyFailed
}

// stood reports whether a guest may have stood for the switch-over.
func (s situation) stood() bool {
	old := s.j.Again && s.l.Call == libvirt.Broken
	return s.j.Stopped || s.l.Stood || s.l.Run == libvirt.RunsCancelled && !old
}

// certain reports whether the VM is here for sure when libvirt is not at it any more.
func (s situation) certain() bool {
	if !s.sends() || s.said() {
		return false
	}
	never := !s.asked() && !s.l.Sends &&
		(s.j.Cancelled || s.j.Cold != s.rests() || !s.j.Cold && !s.executes() && !s.stands())
	elsewhere := s.j.PostCopied && !s.l.Run.Alive() // it may run there
	refused := s.l.Call == libvirt.Refused && (s.j.Cold || !s.stopped()) && !s.l.Sends && !elsewhere
	unmoved := s.asked() && !s.moving() && !s.j.Cold && s.executes() &&
		s.l.Call != libvirt.Succeeded && (s.j.Aborted || !s.stood())
	aborted := s.l.Sends && s.l.Aborted && s.j.Aborted && s.executes() && !s.j.PostCopied
	return never || refused || unmoved || aborted
}

// complete reports whether an incoming domain is all of the VM. One that rests while it is
// being discarded is what is left of it.
func (s situation) complete() bool {
	marked := s.l.Defined && (s.l.Job == s.j.ID || s.j.Seen)
	return s.executes() || s.l.Run == libvirt.PausedUser || s.l.Run == libvirt.PausedTrouble ||
		s.rests() && marked && !s.j.Refused && (s.j.Cold || s.l.Run != libvirt.ShutoffFailed)
}

// laws are what holds of every situation: "broken" says when one is.
var laws = []struct {
	name   string
	broken func(situation) bool
}{
	{"a VM is kept if and only if it is here for sure", func(s situation) bool {
		return (s.due() == libvirt.KeepAtSource) != s.certain()
	}},
	{"a VM has moved if and only if libvirt says so", func(s situation) bool {
		answered := s.sends() && s.l.Call == libvirt.Succeeded && !s.l.Sends && !s.executes()
		return (s.due() == libvirt.Move) != (s.said() || answered)
	}},
	{"what is neither certain nor under way is stranded", func(s situation) bool {
		over := s.sends() && !s.moving() && s.asked() && !s.certain() && !s.said() &&
			(s.l.Call != libvirt.Succeeded || s.executes())
		broken := s.sends() && s.l.Run == libvirt.PausedPostCopyFailed && s.l.Call != libvirt.Calling &&
			!(s.l.Call == libvirt.NoCall && s.l.Early) && (s.l.Sends || over)
		again := s.has(libvirt.Source, libvirt.Stranded) && s.executes()
		return (s.due() == libvirt.MarkUnresolved) != (over || broken || again)
	}},
	{"nothing is concluded from a call that is not heard of while it may still come",
		func(s situation) bool {
			unheard := s.l.Call == libvirt.NoCall || s.l.Call == libvirt.Broken
			waits := s.sends() && unheard && s.l.Early && s.asked() && !s.said() &&
				!s.l.Sends
			return waits && s.due() != libvirt.NoStep
		}},
	{"libvirt is asked once, when nothing speaks against it", func(s situation) bool {
		fit := s.sends() && !s.asked() && !s.j.Cancelled && !s.l.Sends && !s.said()
		if fit && s.j.Cold {
			fit = s.rests()
		} else if fit {
			fit = s.executes() || s.stands()
		}
		return (s.due() == libvirt.Send) != fit
	}},
	{"only what libvirt is at is aborted, once", func(s situation) bool {
		aborts := s.due() == libvirt.Abort
		return aborts && !(s.sends() && s.j.Cancelled && s.l.Sends && !s.l.Aborted)
	}},
	{"a cancel is heard", func(s situation) bool {
		under := s.sends() && s.l.Sends && !s.l.Aborted && !s.said()
		hears := under && s.j.Cancelled && !s.stopped()
		return hears && s.due() != libvirt.Abort
	}},
	{"libvirt is told of post-copy until it has gone over to it", func(s situation) bool {
		under := s.sends() && !s.said() && s.l.Sends && s.l.Moving && !s.l.Aborted
		own := s.l.Run == libvirt.PausedMigration && s.j != nil && s.j.GuestPaused
		want := under && s.j.PostCopied && !s.j.Cancelled && (!s.stopped() || own)
		return (s.due() == libvirt.SwitchToPostCopy) != want
	}},
	{"a stop is noted when libvirt has stopped the guest", func(s situation) bool {
		own := s.l.Run == libvirt.PausedMigration && s.j != nil && s.j.GuestPaused
		late := s.l.Run == libvirt.PausedPostCopyFailed && s.l.Call != libvirt.Calling &&
			!(s.l.Call == libvirt.NoCall && s.l.Early)
		under := s.sends() && (s.l.Sends || s.l.Call == libvirt.Calling)
		want := under && s.stopped() && !own && !late && !s.j.Stopped
		return (s.due() == libvirt.NoteStop) != want
	}},
	{"the end of a transfer is noted before anything follows from it", func(s situation) bool {
		under := s.sends() && !s.said() && (s.l.Sends || s.l.Call == libvirt.Calling)
		want := under && s.l.Aborted && !s.j.Aborted && !s.j.PostCopied &&
			s.due() != libvirt.NoteStop && s.due() != libvirt.MarkUnresolved
		return (s.due() == libvirt.NoteAbort) != want
	}},
	{"a VM arrives when it is complete, and not held", func(s situation) bool {
		want := s.receives() && s.complete() && !(s.j.Hold && s.stands())
		return (s.due() == libvirt.Arrive) != want
	}},
	{"what lapses was seen, and is gone", func(s situation) bool {
		return (s.due() == libvirt.Lapse) != (s.receives() && s.l.Run == libvirt.Gone && s.j.Seen)
	}},
	{"an arrival is noted once", func(s situation) bool {
		want := s.receives() && !s.j.Seen && (s.executes() || s.stands()) &&
			(!s.complete() || s.j.Hold && s.stands())
		return (s.due() == libvirt.NoteArrival) != want
	}},
	{"a post-copy has recovered when the domain does not need its source",
		func(s situation) bool {
			needs := s.l.Run == libvirt.RunsPostCopy || s.l.Run == libvirt.RunsPostCopyFailed
			want := s.has(libvirt.JobTarget, libvirt.Arrived) && !s.j.Last.Status.Final() && !needs
			return (s.due() == libvirt.Recovered) != want
		}},
	{"only what rests is reaped", func(s situation) bool {
		step := s.due()
		ending := s.d.Doing == hypervisor.Stopping || s.d.Doing == hypervisor.Rebooting
		live := s.sends() || s.receives() || step == libvirt.Recovered
		return !live && (step == libvirt.Reap) != (s.rests() && (s.d.Ran || ending)) ||
			live && step == libvirt.Reap
	}},
	{"force is for what executes, when patience has ended", func(s situation) bool {
		step := s.due()
		late := s.executes() && !s.d.By.IsZero() && !s.sends() && !s.receives()
		return step == libvirt.Force && !(late && s.d.Doing == hypervisor.Stopping) ||
			step == libvirt.Reset && !(late && s.d.Doing == hypervisor.Rebooting)
	}},
	{"a step that is done is not due again", func(s situation) bool {
		_, loops := s.settle()
		return loops
	}},
	{"what has ended is settled", func(s situation) bool {
		after, _ := s.settle()
		live := after.j != nil && after.j.Stage.Live()
		over := s.sends() && !s.l.Sends && s.l.Call > libvirt.Calling && !s.moving()
		return over && live
	}},
	{"a status that is final stays, whatever is done", func(s situation) bool {
		after, _ := s.settle()
		return s.status().Final() && after.status() != s.status() && s.d.Job != ""
	}},
}

// lawsOfWords are about what is said.
var lawsOfWords = []struct {
	name   string
	broken func(situation) bool
}{
	{"what executes is said to, whatever else is known", func(s situation) bool {
		return s.executes() && !s.state().Executes()
	}},
	{"what does not execute is not said to, unless it starts", func(s situation) bool {
		starts := s.state() == hypervisor.Starting && (s.l.Run == libvirt.PausedStarting ||
			s.rests() && s.d.Doing == hypervisor.Starting && s.l.Run != libvirt.ShutoffFailed)
		return !s.executes() && s.state().Executes() && !starts
	}},
	{"absent is what is gone, and is not waited for", func(s situation) bool {
		moves := s.sends() || s.receives() || s.has(libvirt.Source, libvirt.Moved) ||
			s.has(libvirt.Source, libvirt.Stranded)
		return (s.state() == hypervisor.Absent) != (s.l.Run == libvirt.Gone && !moves)
	}},
	{"a VM is handed over when libvirt says that it has moved", func(s situation) bool {
		moved := s.has(libvirt.Source, libvirt.Moved) && (s.rests() || s.l.Run == libvirt.Gone) ||
			s.has(libvirt.Source, libvirt.Left) && s.rests()
		return (s.state() == hypervisor.HandedOver) != (moved || s.said())
	}},
	{"a VM is received when it is complete, stands and is held", func(s situation) bool {
		want := s.receives() && s.j.Hold && s.stands() && s.complete()
		return (s.state() == hypervisor.Received) != want
	}},
	{"a VM is being received while it is not complete", func(s situation) bool {
		return (s.state() == hypervisor.Receiving) != (s.receives() && !s.complete())
	}},
	{"a VM is shut off or crashed when it rests, or left nothing", func(s situation) bool {
		is := s.state()
		ends := is == hypervisor.Shutoff || is == hypervisor.Crashed
		left := s.l.Run == libvirt.Gone && (s.sends() || s.has(libvirt.Source, libvirt.Stranded))
		return ends && !s.rests() && !left
	}},
	{"a VM that arrives stays what it is", func(s situation) bool {
		arrives := s.due() == libvirt.Arrive && s.d.Doing == hypervisor.Absent
		return arrives && s.then(libvirt.Arrive).state() != s.state()
	}},
	{"a VM that lost its memory has crashed", func(s situation) bool {
		lost := s.l.Run == libvirt.ShutoffCrashed && s.j == nil
		return lost && s.state() != hypervisor.Crashed
	}},
	{"what stopped for the switch-over is not offered to an operator", func(s situation) bool {
		held := s.sends() && s.l.Run == libvirt.PausedMigration && s.j.GuestPaused && s.l.Sends &&
			!s.j.Stopped
		return s.stopped() && s.state() == hypervisor.Paused && !held
	}},
	{"a source that is stranded, or left, is not offered to an operator",
		func(s situation) bool {
			is := s.state()
			gone := s.has(libvirt.Source, libvirt.Left) && is == hypervisor.Shutoff
			there := s.has(libvirt.Source, libvirt.Stranded) || s.has(libvirt.Source, libvirt.Left)
			return there && is == hypervisor.Paused || gone
		}},
	{"a broken source stands, or is paused next", func(s situation) bool {
		broken := s.status() == hypervisor.JobBroken && s.j.Role == libvirt.Source
		return broken && s.executes() && s.due() != libvirt.MarkUnresolved
	}},
	{"a job that switches over hands over", func(s situation) bool {
		return s.status() == hypervisor.JobSwitching && s.state() != hypervisor.HandingOver
	}},
	{"a job switches over when libvirt has stopped the guest, not we", func(s situation) bool {
		want := s.sends() && s.l.Run == libvirt.PausedMigration && (!s.j.GuestPaused || s.j.Stopped)
		return s.sends() && (s.status() == hypervisor.JobSwitching) != want
	}},
	{"a VM that moves shut off is shut off", func(s situation) bool {
		return s.sends() && s.j.Cold && s.rests() && s.state() != hypervisor.Shutoff
	}},
	{"a source that is seen to have succeeded has handed over", func(s situation) bool {
		return s.sends() && (s.status() == hypervisor.JobSucceeded) != s.said()
	}},
	{"a source does not say by itself that it kept the VM", func(s situation) bool {
		is := s.status()
		return s.sends() && (is == hypervisor.JobFailed || is == hypervisor.JobCancelled)
	}},
	{"a target succeeds when the VM is complete", func(s situation) bool {
		postcopy := s.l.Run == libvirt.RunsPostCopy || s.l.Run == libvirt.RunsPostCopyFailed
		want := s.receives() && s.complete() && !postcopy
		return s.receives() && (s.status() == hypervisor.JobSucceeded) != want
	}},
	{"a post-copy that lost its connection is broken", func(s situation) bool {
		lost := s.sends() && s.l.Run == libvirt.PausedPostCopyFailed && s.l.Call != libvirt.Calling ||
			s.receives() && s.l.Run == libvirt.RunsPostCopyFailed
		return lost && s.status() != hypervisor.JobBroken
	}},
	{"a post-copy that is being recovered is broken until memory goes again", func(s situation) bool {
		again := s.sends() && s.l.Run == libvirt.PausedPostCopyFailed && s.l.Call == libvirt.Calling &&
			s.j.Last.Status == hypervisor.JobBroken
		return again && (s.status() == hypervisor.JobBroken) == s.l.Flows
	}},
	{"only a job that was begun has a status", func(s situation) bool {
		begun := s.j != nil && s.j.Role != libvirt.NoRole
		return begun != (s.status() != hypervisor.JobNone)
	}},
	{"memory moves when libvirt sends it", func(s situation) bool {
		return s.sends() && s.status() == hypervisor.JobActive && !s.l.Moving &&
			s.l.Run != libvirt.PausedPostCopyFailed
	}},
}

// lawful checks all laws, and tells which are broken.
func (s situation) lawful(t interface{ Errorf(string, ...any) }) bool {
	ok := true
	check := func(name string, broken func(situation) bool) {
		if broken(s) {
			t.Errorf("not so: %s\n%v", name, s)
			ok = false
		}
	}
	for _, law := range laws {
		check(law.name, law.broken)
	}
	for _, law := range lawsOfWords {
		check(law.name, law.broken)
	}
	return ok
}
