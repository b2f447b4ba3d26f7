package qmp_test

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// now is the only moment there is.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A request is why a process of ours holds the lock of its domain.
type request uint8

const (
	nothing request = iota // to perform the next steps
	toCancel
	toStartPostCopy
	toPauseGuest
	toSwitchOver
	toPause
	toUnpause
	toStop
	toReboot
	toResume
	toAbandon
	toRelease
	toDiscard
	toActivate
)

// An effect is one indivisible thing that a process of ours does.
type effect uint8

const (
	none effect = iota
	askMigration
	askStatus // and decide what follows
	cont      // when QEMU refuses, the rest is left undone
	stop
	reset
	kill
	migrateCancel
	migrateContinue
	migratePostcopy
	announce
	noteDeath // of the job, before the domain is cleared away
	bury
	noteRan
	noteSettled
	noteEnding
	notePaused
	noteUnpaused
	noteStopping
	noteRebooting
	noteGuestPaused
	notePostCopied
	noteReleased
	noteKept
	noteResumed
	noteAbandoned
	noteActivating
	noteOwn
	noteArrived
	noteRefused
	noteLeft
	noteNotOwn
	vouch // the discard has answered without error
	noteStopped
	answer
	noteAcknowledged
	noteUnresolved
)

// look is what is seen of a QEMU when it was asked for its migration before, and
// is asked for its status now.
func (h *host) look() qmp.Look {
	if !h.alive {
		return qmp.Look{}
	}
	return qmp.Look{Alive: true, Run: h.run, Migration: h.seen}
}

// seenLast is the last whole look of this process of ours.
func (h *host) seenLast() qmp.Look {
	return qmp.Look{Alive: h.lived, Run: h.lastRun, Migration: h.last}
}

func (h *host) plan(effects ...effect) {
	h.todo = [6]effect{}
	copy(h.todo[:], effects)
}

// step does the next effect of what the process has in hand, or looks for a next step.
func (w *world) step(h *host) {
	if h.todo[0] == none {
		h.asked = nothing
		h.plan(askMigration, askStatus)
	}
	next := h.todo[0]
	copy(h.todo[:], h.todo[1:])
	h.todo[len(h.todo)-1] = none
	w.unpaused = w.unpaused || next == noteUnpaused
	switch next {
	case askMigration:
		h.seen = ""
		if h.stage.Live() {
			h.seen = h.mig
		}
	case askStatus:
		w.decide(h)
	default:
		w.affect(h, next)
	}
	if h.todo[0] == none {
		h.asked, h.seen = nothing, ""
	}
}

// affect changes QEMU, or what is on its way; else it is a note.
func (w *world) affect(h *host, e effect) {
	switch e {
	case cont:
		if !h.cont() {
			h.plan()
		}
	case stop:
		if h.runs() {
			h.run = qemu.Paused
		}
	case reset:
		if h.alive && h.run == qemu.Shutdown {
			h.run = qemu.PreLaunch
		}
	case kill:
		h.alive = false
	case migrateCancel:
		if w.precopies() {
			h.waits = h.waits && h.mig != qemu.PreSwitchover
			h.mig = qemu.Cancelling
		}
	case migrateContinue:
		h.waits = false
		if h.alive && h.mig == qemu.PreSwitchover {
			h.mig = qemu.Device
		}
	case migratePostcopy:
		w.begun = w.begun || h.alive && h.mig == qemu.Active
	case announce:
		h.announcing = true
	case noteDeath:
		if h.stage.Live() {
			h.reapJob(h.ran || h.stage.MayHaveRun())
		}
	case bury:
		h.bury()
	case vouch:
		w.neverRan = true
	case answer:
		w.acknowledgment = true
	case noteAbandoned:
		h.stage, h.unresolved, h.announcing, w.abandoned = qmp.Abandoned, false, false, true
	default:
		h.note(e)
	}
}

// note writes something down.
func (h *host) note(e effect) {
	switch e {
	case noteRan:
		h.ran = true
	case noteSettled:
		h.doing, h.late = hypervisor.Absent, false
	case noteEnding:
		h.ending = true
	case notePaused:
		h.paused = true
	case noteUnpaused:
		h.paused, h.guestPaused = false, false
	case noteStopping:
		h.doing, h.late = hypervisor.Stopping, false
	case noteRebooting:
		h.doing, h.late = hypervisor.Rebooting, false
	case noteGuestPaused:
		h.guestPaused = true
	case notePostCopied:
		h.postCopied = true
	case noteReleased:
		h.released = true
	case noteKept:
		h.stage, h.status, h.announcing = qmp.KeptRecord, hypervisor.JobFailed, false
	case noteResumed:
		h.stage, h.unresolved, h.announcing = qmp.Resumed, false, false
		if !h.acknowledged {
			h.status = hypervisor.JobFailed
		}
	case noteActivating:
		h.stage, h.status = qmp.Activating, hypervisor.JobSucceeded
		if !h.seenLast().Complete() {
			h.status = hypervisor.JobActive
		}
	case noteOwn:
		h.own, h.ran, h.paused = true, true, h.resting
	case noteArrived:
		h.stage = qmp.Arrived
	case noteRefused:
		h.refused, h.stage, h.status = true, qmp.Discarded, hypervisor.JobFailed
	case noteLeft:
		h.stage, h.status, h.announcing = qmp.Left, hypervisor.JobSucceeded, false
	case noteNotOwn:
		h.own, h.ran, h.ending = false, false, true
	case noteStopped:
		h.stopped = true
	case noteAcknowledged:
		h.acknowledged, h.unresolved, h.announcing = true, false, false
	case noteUnresolved:
		h.unresolved = true
	}
}

// bury notes what is left of a domain whose process has ended, and whose job says so.
func (h *host) bury() {
	ran := h.ran || h.stage.MayHaveRun()
	h.announcing, h.lived = false, false
	if !ran && !h.own {
		h.known = false
		return
	}
	lost := ran && !h.ending
	h.own, h.ran, h.ending, h.paused, h.doing = true, false, false, false, hypervisor.Absent
	h.rest = hypervisor.Shutoff
	if lost {
		h.rest = hypervisor.Crashed
	}
}

func (h *host) reapJob(ran bool) {
	seen := h.seenLast()
	status, stage := qmp.Status(h.record(), h.job(), seen), qmp.KeptRecord
	late := !seen.Alive || status == hypervisor.JobSwitching || status == hypervisor.JobBroken ||
		qmp.Mode(h.job(), seen) == hypervisor.PostCopy
	if h.stage.MayHaveRun() {
		stage = h.stage
	}
	told := h.announcing || h.acknowledged
	switch {
	case h.stage.MayHaveRun() && status.Final():
	case h.role == qmp.Target && !ran:
		status, stage = hypervisor.JobFailed, qmp.Discarded
	case told && h.role == qmp.Source && status != hypervisor.JobSucceeded:
		status = hypervisor.JobBroken
	case status.Final():
	case late:
		status = hypervisor.JobBroken
	default:
		status = hypervisor.JobFailed
	}
	h.stage, h.status = stage, status
	if status == hypervisor.JobBroken && h.role == qmp.Source {
		h.unresolved = true
	}
}

// decide says what follows from a look: the heart is this package's.
func (w *world) decide(h *host) {
	l := h.look()
	if l.Alive {
		h.last, h.lastRun, h.lived = l.Migration, l.Run, true
	}
	if !h.known {
		if h.asked == toDiscard {
			h.plan(w.discard(h)...)
		}
		return
	}
	if h.asked == nothing || !l.Alive && h.stage.Live() { // what has just died is reaped first
		w.perform(h, qmp.Due(h.record(), h.job(), l, now))
		return
	}
	h.plan(w.obey(h, l)...)
}

// perform plans a next step, as domain.go and transfer.go do.
func (w *world) perform(h *host, s qmp.NextStep) {
	switch s {
	case qmp.Reap:
		if h.ran || h.ending || h.stage.Live() || h.doing != hypervisor.Absent {
			h.plan(noteDeath, bury)
		}
	case qmp.Quit:
		h.plan(noteEnding, kill)
	case qmp.Reset:
		if h.plan(reset); h.lastRun == qemu.Running {
			h.plan(reset, noteSettled)
		}
	case qmp.Run:
		h.plan(noteRan, cont, noteSettled)
	case qmp.Activate:
		if h.resting {
			h.plan(noteActivating, noteOwn, noteArrived)
		} else {
			h.plan(noteActivating, noteOwn, cont, noteArrived)
		}
	case qmp.SwitchToPostCopy:
		h.plan(migratePostcopy)
	case qmp.Continue, qmp.EndWait:
		h.plan(migrateContinue)
	case qmp.Announce:
		if !h.announcing {
			h.plan(announce)
		}
	case qmp.KeepAtSource:
		stands := h.lastRun == qemu.Paused || h.lastRun == qemu.PostMigrate
		if stands && !h.paused {
			h.plan(cont, noteKept)
		} else {
			h.plan(noteKept)
		}
	}
}
