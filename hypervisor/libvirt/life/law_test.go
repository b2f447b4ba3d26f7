package life_test

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/life"
)

func (s situation) executes() bool { return slices.Contains(executing, s.l.Run) }

func (s situation) rests() bool { return slices.Contains(resting, s.l.Run) }

func (s situation) stands() bool { return slices.Contains(standing, s.l.Run) }

// asked reports whether libvirt was asked to migrate, or may have been.
func (s situation) asked() bool {
	return s.sends() && (s.j.Last.Status != hypervisor.JobNone || s.j.Stopped ||
		s.l.Call != life.NoCall)
}

// moving reports whether libvirt is at it, or may be about to begin.
func (s situation) moving() bool {
	early := s.l.Early && (s.l.Call == life.NoCall || s.l.Call == life.Broken)
	return s.sends() && !s.said() && (s.l.Sends || s.l.Call == life.Calling ||
		early && s.asked())
}

// said reports whether libvirt has said that this job's VM has moved.
func (s situation) said() bool {
	meant := s.sends() && s.l.Call != life.Refused && s.j.Last.Status != hypervisor.JobNone
	return meant && !s.j.Cold && s.l.Run == life.ShutoffMigrated
}

// stopped reports whether a domain looks as one that stopped for the switch-over.
func (s situation) stopped() bool {
	return s.l.Run == life.PausedMigration || s.l.Run == life.PausedPostCopy ||
		s.l.Run == life.PausedPostCopyFailed
}

// stood reports whether a guest may have stood for the switch-over.
func (s situation) stood() bool {
	old := s.j.Again && s.l.Call == life.Broken
	return s.j.Stopped || s.l.Stood || s.l.Run == life.RunsCancelled && !old
}

// certain reports whether the VM is here for sure when libvirt is not at it any more.
func (s situation) certain() bool {
	if !s.sends() || s.said() {
		return false
	}
	never := !s.asked() && !s.l.Sends &&
		(s.j.Cancelled || s.j.Cold != s.rests() || !s.j.Cold && !s.executes() && !s.stands())
	refused := s.l.Call == life.Refused && (s.j.Cold || !s.stopped()) && !s.l.Sends
	unmoved := s.asked() && !s.moving() && !s.j.Cold && s.executes() &&
		s.l.Call != life.Succeeded && (s.j.Aborted || !s.stood())
	aborted := s.l.Sends && s.l.Aborted && s.j.Aborted && s.executes() && !s.j.PostCopied
	return never || refused || unmoved || aborted
}

// complete reports whether an incoming domain is all of the VM. One that rests while it is
// being discarded is what is left of it.
func (s situation) complete() bool {
	marked := s.l.Defined && (s.l.Job == s.j.ID || s.j.Seen)
	return s.executes() || s.l.Run == life.PausedUser || s.l.Run == life.PausedTrouble ||
		s.rests() && marked && !s.j.Refused && (s.j.Cold || s.l.Run != life.ShutoffFailed)
}

// laws are what holds of every situation: "broken" says when one is.
var laws = []struct {
	name   string
	broken func(situation) bool
}{
	{"a VM is kept if and only if it is here for sure", func(s situation) bool {
		return (s.due() == life.Keep) != s.certain()
	}},
	{"a VM has moved if and only if libvirt says so", func(s situation) bool {
		answered := s.sends() && s.l.Call == life.Succeeded && !s.l.Sends && !s.executes()
		return (s.due() == life.Move) != (s.said() || answered)
	}},
	{"what is neither certain nor under way is stranded", func(s situation) bool {
		over := s.sends() && !s.moving() && s.asked() && !s.certain() && !s.said() &&
			(s.l.Call != life.Succeeded || s.executes())
		broken := s.sends() && s.l.Run == life.PausedPostCopyFailed && s.l.Call != life.Calling &&
			!(s.l.Call == life.NoCall && s.l.Early) && (s.l.Sends || over)
		again := s.has(journal.Source, journal.Stranded) && s.executes()
		return (s.due() == life.Strand) != (over || broken || again)
	}},
	{"nothing is concluded from a call that is not heard of while it may still come",
		func(s situation) bool {
			unheard := s.l.Call == life.NoCall || s.l.Call == life.Broken
			waits := s.sends() && unheard && s.l.Early && s.asked() && !s.said() &&
				!s.l.Sends
			return waits && s.due() != life.Rest
		}},
	{"libvirt is asked once, when nothing speaks against it", func(s situation) bool {
		fit := s.sends() && !s.asked() && !s.j.Cancelled && !s.l.Sends && !s.said()
		if fit && s.j.Cold {
			fit = s.rests()
		} else if fit {
			fit = s.executes() || s.stands()
		}
		return (s.due() == life.Send) != fit
	}},
	{"only what libvirt is at is aborted, once", func(s situation) bool {
		aborts := s.due() == life.Abort
		return aborts && !(s.sends() && s.j.Cancelled && s.l.Sends && !s.l.Aborted)
	}},
	{"a cancel is heard", func(s situation) bool {
		under := s.sends() && s.l.Sends && !s.l.Aborted && !s.said()
		hears := under && s.j.Cancelled && !s.stopped()
		return hears && s.due() != life.Abort
	}},
	{"libvirt is told of post-copy until it has gone over to it", func(s situation) bool {
		under := s.sends() && !s.said() && s.l.Sends && s.l.Moving && !s.l.Aborted
		own := s.l.Run == life.PausedMigration && s.j != nil && s.j.GuestPaused
		want := under && s.j.PostCopied && !s.j.Cancelled && (!s.stopped() || own)
		return (s.due() == life.GoOver) != want
	}},
	{"a stop is noted when libvirt has stopped the guest", func(s situation) bool {
		own := s.l.Run == life.PausedMigration && s.j != nil && s.j.GuestPaused
		late := s.l.Run == life.PausedPostCopyFailed && s.l.Call != life.Calling &&
			!(s.l.Call == life.NoCall && s.l.Early)
		under := s.sends() && (s.l.Sends || s.l.Call == life.Calling)
		want := under && s.stopped() && !own && !late && !s.j.Stopped
		return (s.due() == life.NoteStop) != want
	}},
	{"the end of a transfer is noted before anything follows from it", func(s situation) bool {
		under := s.sends() && !s.said() && (s.l.Sends || s.l.Call == life.Calling)
		want := under && s.l.Aborted && !s.j.Aborted && !s.j.PostCopied &&
			s.due() != life.NoteStop && s.due() != life.Strand
		return (s.due() == life.NoteAbort) != want
	}},
	{"a VM arrives when it is complete, and not held", func(s situation) bool {
		want := s.receives() && s.complete() && !(s.j.Hold && s.stands())
		return (s.due() == life.Arrive) != want
	}},
	{"what lapses was seen, and is gone", func(s situation) bool {
		return (s.due() == life.Lapse) != (s.receives() && s.l.Run == life.Gone && s.j.Seen)
	}},
	{"an arrival is noted once", func(s situation) bool {
		want := s.receives() && !s.j.Seen && (s.executes() || s.stands()) &&
			(!s.complete() || s.j.Hold && s.stands())
		return (s.due() == life.NoteArrival) != want
	}},
	{"a post-copy has recovered when the domain does not need its source",
		func(s situation) bool {
			needs := s.l.Run == life.RunsPostCopy || s.l.Run == life.RunsPostCopyFailed
			want := s.has(journal.Target, journal.Arrived) && !s.j.Last.Status.Final() && !needs
			return (s.due() == life.Recovered) != want
		}},
	{"only what rests is buried", func(s situation) bool {
		step := s.due()
		ending := s.d.Doing == hypervisor.Stopping || s.d.Doing == hypervisor.Rebooting
		live := s.sends() || s.receives() || step == life.Recovered
		return !live && (step == life.Bury) != (s.rests() && (s.d.Ran || ending)) ||
			live && step == life.Bury
	}},
	{"force is for what executes, when patience has ended", func(s situation) bool {
		step := s.due()
		late := s.executes() && !s.d.By.IsZero() && !s.sends() && !s.receives()
		return step == life.Force && !(late && s.d.Doing == hypervisor.Stopping) ||
			step == life.Reset && !(late && s.d.Doing == hypervisor.Rebooting)
	}},
	{"a step that is done is not due again", func(s situation) bool {
		_, loops := s.settle()
		return loops
	}},
	{"what has ended is settled", func(s situation) bool {
		after, _ := s.settle()
		live := after.j != nil && after.j.Stage.Live()
		over := s.sends() && !s.l.Sends && s.l.Call > life.Calling && !s.moving()
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
		starts := s.state() == hypervisor.Starting && (s.l.Run == life.PausedStarting ||
			s.rests() && s.d.Doing == hypervisor.Starting && s.l.Run != life.ShutoffFailed)
		return !s.executes() && s.state().Executes() && !starts
	}},
	{"absent is who is gone, and nobody waits for", func(s situation) bool {
		moves := s.sends() || s.receives() || s.has(journal.Source, journal.Moved) ||
			s.has(journal.Source, journal.Stranded)
		return (s.state() == hypervisor.Absent) != (s.l.Run == life.Gone && !moves)
	}},
	{"handed over is who libvirt says has moved", func(s situation) bool {
		moved := s.has(journal.Source, journal.Moved) && (s.rests() || s.l.Run == life.Gone) ||
			s.has(journal.Source, journal.Left) && s.rests()
		return (s.state() == hypervisor.HandedOver) != (moved || s.said())
	}},
	{"received is who is complete, stands and is held", func(s situation) bool {
		want := s.receives() && s.j.Hold && s.stands() && s.complete()
		return (s.state() == hypervisor.Received) != want
	}},
	{"receiving is who is not complete", func(s situation) bool {
		return (s.state() == hypervisor.Receiving) != (s.receives() && !s.complete())
	}},
	{"shut off or crashed is who rests, or left nothing", func(s situation) bool {
		is := s.state()
		ends := is == hypervisor.Shutoff || is == hypervisor.Crashed
		left := s.l.Run == life.Gone && (s.sends() || s.has(journal.Source, journal.Stranded))
		return ends && !s.rests() && !left
	}},
	{"a VM that arrives stays what it is", func(s situation) bool {
		arrives := s.due() == life.Arrive && s.d.Doing == hypervisor.Absent
		return arrives && s.then(life.Arrive).state() != s.state()
	}},
	{"a VM that lost its memory has crashed", func(s situation) bool {
		lost := s.l.Run == life.ShutoffCrashed && s.j == nil
		return lost && s.state() != hypervisor.Crashed
	}},
	{"what stopped for the switch-over is not offered to an operator", func(s situation) bool {
		held := s.sends() && s.l.Run == life.PausedMigration && s.j.GuestPaused && s.l.Sends &&
			!s.j.Stopped
		return s.stopped() && s.state() == hypervisor.Paused && !held
	}},
	{"a source that is stranded, or left, is not offered to an operator",
		func(s situation) bool {
			is := s.state()
			gone := s.has(journal.Source, journal.Left) && is == hypervisor.Shutoff
			there := s.has(journal.Source, journal.Stranded) || s.has(journal.Source, journal.Left)
			return there && is == hypervisor.Paused || gone
		}},
	{"a broken source stands, or is paused next", func(s situation) bool {
		broken := s.status() == hypervisor.JobBroken && s.j.Role == journal.Source
		return broken && s.executes() && s.due() != life.Strand
	}},
	{"a job that switches over hands over", func(s situation) bool {
		return s.status() == hypervisor.JobSwitching && s.state() != hypervisor.HandingOver
	}},
	{"a job switches over when libvirt has stopped the guest, not we", func(s situation) bool {
		want := s.sends() && s.l.Run == life.PausedMigration && (!s.j.GuestPaused || s.j.Stopped)
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
		postcopy := s.l.Run == life.RunsPostCopy || s.l.Run == life.RunsPostCopyFailed
		want := s.receives() && s.complete() && !postcopy
		return s.receives() && (s.status() == hypervisor.JobSucceeded) != want
	}},
	{"a post-copy that lost its connection is broken", func(s situation) bool {
		lost := s.sends() && s.l.Run == life.PausedPostCopyFailed && s.l.Call != life.Calling ||
			s.receives() && s.l.Run == life.RunsPostCopyFailed
		return lost && s.status() != hypervisor.JobBroken
	}},
	{"only a job that was begun has a status", func(s situation) bool {
		begun := s.j != nil && s.j.Role != journal.NoRole
		return begun != (s.status() != hypervisor.JobNone)
	}},
	{"memory moves when libvirt sends it", func(s situation) bool {
		return s.sends() && s.status() == hypervisor.JobActive && !s.l.Moving &&
			s.l.Run != life.PausedPostCopyFailed
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
