package libvirt_test

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A host is a process of ours. What it holds in memory dies with it.
type host struct {
	up    bool
	early bool
	call  libvirt.LibvirtCall
	stood bool // an event told
	todo  [7]effect
	asked request
	seen  libvirt.Look
	mind
}

// A mind is what a host has written down.
type mind struct {
	known, unresolved, ran, crashed bool
	doing                           hypervisor.DomainState

	role                                     libvirt.Role
	stage                                    libvirt.Stage
	ended, again                             bool
	status                                   hypervisor.JobStatus
	refused, hold, cold, seenComing          bool
	resting, stopped, cancelled, guestPaused bool
}

// record is what this package keeps of a mind.
func (m mind) record() *libvirt.DomainRecord {
	if !m.known {
		return nil
	}
	return &libvirt.DomainRecord{Domain: backend.Domain{Unresolved: m.unresolved, Ran: m.ran,
		Doing: m.doing, Job: "job"}, Crashed: m.crashed}
}

func (m mind) job() *libvirt.Job {
	return &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: m.role, Stage: m.stage,
		Refused: m.refused, Hold: m.hold, Cold: m.cold, Cancelled: m.cancelled,
		GuestPaused: m.guestPaused, Last: hypervisor.Progress{Status: m.status}},
		Seen: m.seenComing, Resting: m.resting, Stopped: m.stopped, Aborted: m.ended,
		Again: m.again}
}

// accepted are our processes when both sides have accepted the job.
func accepted(p plan) [2]host {
	source := mind{known: true, ran: !p.cold, role: libvirt.Source, stage: libvirt.Sending,
		cold: p.cold, resting: p.resting, again: p.again}
	target := mind{known: true, role: libvirt.JobTarget, stage: libvirt.Listening, hold: p.hold}
	return [2]host{{up: true, mind: source}, {up: true, mind: target}}
}

// die forgets what is only in memory.
func (h *host) die() { *h = host{mind: h.mind} }

// A request is why a process of ours holds the lock of its domain.
type request uint8

const (
	nothing request = iota // to perform the next steps
	toCancel
	toPauseGuest
	toResume
	toAbandon
	toRelease
	toStart
	toDiscard
	toActivate
)

// An effect is one indivisible thing that a process of ours does.
type effect uint8

const (
	none effect = iota
	// What is looked at. What is last decides.
	askCall
	askJob
	askRun
	// What is done to a libvirtd. What fails leaves the rest undone.
	migrate
	abortJob
	suspend
	resume
	destroy
	start
	erase
	setTombstone
	// What is written down.
	noteSetup
	noteStop
	noteAbort
	noteMoved
	noteRests
	noteKept
	noteResolved
	noteUnresolved
	noteStranded
	noteCancelled
	noteGuestPaused
	noteResumed
	noteAbandoned
	noteCrashed
	noteLeft
	noteStarting
	noteStarted
	noteBuried
	noteComing
	noteCame
	noteArrived
	noteRefused
	noteRan
	noteGone
	vouch
)

// looks are the questions of one look, in the order in which they are safe: a caller that
// finds that a call has returned sees what was so afterwards.
func (p plan) looks(i int) []effect {
	switch {
	case i == 1:
		return []effect{askRun}
	case p.hasty:
		return []effect{askRun, askJob, askCall}
	}
	return []effect{askCall, askJob, askRun}
}

func (h *host) plan(effects ...effect) {
	h.todo = [7]effect{}
	copy(h.todo[:], effects)
}

// side is the libvirtd that a process of ours watches.
func (w *lifeWorld) side(i int) *side {
	if i == 0 {
		return &w.s
	}
	return &w.t
}

// step does the next effect of what a process has in hand, or begins to look.
func (w *lifeWorld) step(i int) {
	h := &w.ours[i]
	if h.todo[0] == none {
		h.plan(w.looks(i)...)
	}
	next := h.todo[0]
	copy(h.todo[:], h.todo[1:])
	h.todo[len(h.todo)-1] = none
	switch {
	case next <= askRun:
		w.look(i, next)
	case next <= setTombstone:
		if !w.side(i).up || !w.affect(i, next) {
			h.plan()
		}
	default:
		w.note(i, next)
	}
	if h.todo[0] == none {
		h.asked, h.seen = nothing, libvirt.Look{}
	}
}

// look asks one question. The last one of a look is followed by a decision.
func (w *lifeWorld) look(i int, e effect) {
	h, d := &w.ours[i], w.side(i)
	if !d.up {
		h.plan()
		return
	}
	switch e {
	case askCall:
		h.seen.Call = h.call
	case askJob:
		h.seen.Sends = i == 0 && w.phase != idle && w.s.alive()
		h.seen.Aborted = h.seen.Sends && w.aborted
	case askRun:
		h.seen.Run, h.seen.Defined = d.run, d.defined
		h.seen.Job, h.seen.Stood = "", h.stood
		if i == 1 && d.run != libvirt.Gone {
			h.seen.Job = "job"
		}
	}
	h.seen.Early = h.early
	if h.todo[0] == none {
		w.decide(i)
	}
}

// decide says what follows from a look: the heart is this package's.
func (w *lifeWorld) decide(i int) {
	h := &w.ours[i]
	if h.asked != nothing {
		h.plan(w.obey(i)...)
		return
	}
	executes := slices.Contains(executing, h.seen.Run)
	switch libvirt.Due(h.record(), h.job(), h.seen, now) {
	case libvirt.Send:
		h.plan(noteSetup, migrate)
	case libvirt.Abort:
		h.plan(abortJob)
	case libvirt.NoteStop:
		h.plan(noteStop)
	case libvirt.NoteAbort:
		h.plan(noteAbort)
	case libvirt.Move:
		h.plan(noteMoved, noteRests)
	case libvirt.KeepAtSource:
		h.plan(noteKept, noteResolved)
	case libvirt.MarkUnresolved:
		if executes {
			h.plan(suspend, noteUnresolved, noteStranded)
			return
		}
		h.plan(noteUnresolved, noteStranded)
	case libvirt.Reap:
		h.plan(noteBuried)
	case libvirt.Settled:
		h.plan(noteStarted)
	case libvirt.NoteArrival:
		h.plan(noteComing)
	case libvirt.Arrive:
		h.plan(noteCame, noteArrived)
	case libvirt.Lapse:
		h.plan(setTombstone, noteRefused, noteGone)
	}
}

// affect does something to a libvirtd, and reports whether that was possible.
func (w *lifeWorld) affect(i int, e effect) bool {
	h, d := &w.ours[i], w.side(i)
	switch e {
	case migrate:
		h.call, w.waiting = libvirt.Calling, true
	case abortJob:
		if !w.at(performing, stopped) {
			return true // it says that there is none to abortJob, and we look again
		}
		w.abort()
	case suspend:
		if !d.executes() {
			return false
		}
		d.run = libvirt.PausedUser
		if i == 0 && w.phase != idle {
			d.run = libvirt.PausedMigration
		}
	case resume:
		return d.stands() && w.letRun(i, libvirt.Runs)
	case start:
		return d.rests() && w.letRun(i, libvirt.Runs)
	case destroy:
		if d.alive() {
			d.end(libvirt.ShutoffClean)
			w.coming = nothingComes
		}
	case erase:
		*d = side{up: true}
	case setTombstone:
		if w.t.run != libvirt.Gone {
			return false
		}
		w.barred = true
	}
	return true
}

// letRun has a domain execute because of us.
func (w *lifeWorld) letRun(i int, as libvirt.Run) bool {
	w.side(i).run = as
	w.ran = w.ran || i == 1
	w.byUs = w.byUs || w.s.executes() && w.t.executes()
	return true
}

// note writes something down.
func (w *lifeWorld) note(i int, e effect) {
	h := &w.ours[i]
	switch e {
	case noteSetup:
		h.status = hypervisor.JobSetup
	case noteStop:
		h.mind.stopped = true
	case noteAbort:
		h.ended = true
	case noteMoved:
		h.stage, h.status = libvirt.Moved, hypervisor.JobSucceeded
	case noteRests:
		h.call, h.ran, h.unresolved, h.crashed = libvirt.NoCall, false, false, false
	case noteKept:
		h.stage, h.status, h.call = libvirt.Kept, hypervisor.JobFailed, libvirt.NoCall
		if h.cancelled {
			h.status = hypervisor.JobCancelled
		}
	case noteResolved:
		h.unresolved = false
	case noteUnresolved:
		h.unresolved = true
	case noteStranded:
		h.stage, h.status = libvirt.Stranded, hypervisor.JobBroken
	case noteCancelled:
		h.cancelled = true
	case noteGuestPaused:
		h.guestPaused = true
	case noteResumed, noteAbandoned:
		h.stage, h.status = libvirt.Resumed, hypervisor.JobFailed
		if e == noteAbandoned {
			h.stage = libvirt.Abandoned
		}
	case noteLeft:
		h.stage, h.status = libvirt.Left, hypervisor.JobSucceeded
	default:
		w.noteDomain(i, e)
	}
}

// noteDomain writes down something of a domain, or at a target.
func (w *lifeWorld) noteDomain(i int, e effect) {
	h := &w.ours[i]
	switch e {
	case noteCrashed:
		h.crashed, h.ran = !h.cold, false
	case noteStarting:
		h.ran, h.doing = true, hypervisor.Starting
	case noteStarted:
		h.doing, h.crashed = hypervisor.Absent, false
	case noteBuried:
		h.crashed = h.seen.Run == libvirt.ShutoffCrashed || h.seen.Run == libvirt.ShutoffUnknown && h.ran
		h.ran, h.doing = false, hypervisor.Absent
	case noteComing:
		h.seenComing = true
	case noteCame:
		h.ran = h.seen.Run.Alive()
		h.crashed = h.seen.Run == libvirt.ShutoffCrashed ||
			h.seen.Run == libvirt.ShutoffUnknown && !w.cold
	case noteArrived:
		h.stage, h.status = libvirt.Arrived, hypervisor.JobSucceeded
	case noteRefused:
		h.refused, h.stage, h.status = true, libvirt.Discarded, hypervisor.JobFailed
	case noteRan:
		h.ran, w.activated = true, true
	case noteGone:
		h.known = false
	case vouch:
		w.vouch = true
	}
}
