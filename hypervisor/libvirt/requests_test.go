package libvirt_test

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// obey plans what was asked for, if packages action and transfer allow it.
func (w *lifeWorld) obey(i int) []effect {
	h := &w.ours[i]
	state := libvirt.State(h.record(), h.job(), h.seen)
	switch h.asked {
	case toCancel, toPauseGuest:
		return w.adjust(h)
	case toResume, toAbandon, toRelease:
		return w.resolve(h, state)
	case toDiscard:
		return w.discard(h, state)
	case toActivate:
		switch {
		case state != hypervisor.Received:
		case w.resting:
			return []effect{noteCame, noteArrived}
		default:
			return []effect{noteRan, resume, noteCame, noteArrived}
		}
	case toStart:
		moved := h.seen.Run == libvirt.ShutoffMigrated &&
			(h.stage == libvirt.Kept || h.stage == libvirt.Resumed)
		ends := state == hypervisor.Shutoff || state == hypervisor.Crashed
		if ends && !h.unresolved && !moved && !h.stage.Live() {
			return []effect{noteStarting, start, noteStarted}
		}
	}
	return nil
}

// adjust changes a migration under way.
func (w *lifeWorld) adjust(h *host) []effect {
	status := libvirt.Status(h.job(), h.seen)
	if !h.known || status.Final() || status > hypervisor.JobActive {
		return nil
	}
	switch {
	case h.asked == toCancel && h.seen.Sends:
		return []effect{noteCancelled, abortJob}
	case h.asked == toCancel:
		return []effect{noteCancelled}
	case !h.guestPaused && h.seen.Sends && h.seen.Run != libvirt.PausedMigration:
		return []effect{noteGuestPaused, suspend}
	}
	return nil
}

// resolve does at a source what evidence about its target allows.
func (w *lifeWorld) resolve(h *host, state hypervisor.DomainState) []effect {
	stranded := h.stage == libvirt.Stranded
	switch {
	case !h.known:
	case h.stage == libvirt.Resumed && h.asked == toResume && h.unresolved:
		return []effect{noteResolved}
	case h.stage == libvirt.Abandoned && h.asked == toAbandon && h.unresolved:
		return []effect{noteResolved, noteCrashed}
	case h.asked == toResume && stranded && h.seen.Run.Stands() && !h.resting:
		return []effect{resume, noteResumed, noteResolved}
	case h.asked == toResume && stranded:
		return []effect{noteResumed, noteResolved}
	case h.asked == toAbandon && (stranded || h.stage == libvirt.Moved):
		return []effect{destroy, noteAbandoned, noteResolved, noteCrashed}
	case h.asked != toRelease, state.Executes(), state == hypervisor.Paused,
		state == hypervisor.Absent, h.seen.Run.Alive() && !stranded:
	default:
		return []effect{noteLeft, erase, noteGone}
	}
	return nil
}

// discard promises at a target that the job will never run there.
func (w *lifeWorld) discard(h *host, state hypervisor.DomainState) []effect {
	waits := state == hypervisor.Receiving
	deserted := w.s.up && w.s.executes() && (w.aborted ||
		w.phase == idle && (w.rash || w.s.run != libvirt.RunsCancelled))
	switch {
	case h.refused && !waits:
		return []effect{vouch}
	case waits && h.seen.Run == libvirt.Gone:
		return []effect{setTombstone, noteRefused, noteGone, vouch}
	case waits && deserted:
		return []effect{destroy, setTombstone, noteRefused, noteGone, vouch}
	}
	return nil
}

// ask gives a process of ours something to do when it has nothing in hand.
func ask(name, kind string, i int, r request, when func(*lifeWorld) bool) event {
	return event{name, kind, func(w *lifeWorld) bool {
		h := &w.ours[i]
		return h.up && w.side(i).up && h.todo[0] == none && when(w)
	}, func(w *lifeWorld) {
		h := &w.ours[i]
		h.asked = r
		h.plan(w.looks(i)...)
	}}
}

// says is what a host says of its domain at this moment.
func (w *lifeWorld) says(i int) hypervisor.DomainState {
	h := &w.ours[i]
	return libvirt.State(h.record(), h.job(), w.glance(i))
}

// glance is a look at one moment.
func (w *lifeWorld) glance(i int) libvirt.Look {
	h, d := &w.ours[i], w.side(i)
	l := libvirt.Look{Run: d.run, Defined: d.defined, Early: h.early, Call: h.call, Stood: h.stood}
	l.Sends = i == 0 && w.phase != idle && w.s.alive()
	l.Aborted = l.Sends && w.aborted
	if i == 1 && d.run != libvirt.Gone {
		l.Job = "job"
	}
	return l
}

// arrived reports whether the target's host says that the VM is there.
func (w *lifeWorld) arrived() bool {
	is := w.says(1)
	whole := is.Executes() || is == hypervisor.Paused || w.cold && is == hypervisor.Shutoff
	return w.t.up && w.ours[1].up && w.ours[1].stage == libvirt.Arrived && whole
}

// stoppedForGood reports whether the source's host says that libvirt has moved the VM.
// That a source hands over does not prove that it stopped: libvirt may let it run again.
func (w *lifeWorld) stoppedForGood() bool {
	is := w.says(0)
	believed := is == hypervisor.HandedOver || w.credulous && is == hypervisor.HandingOver
	return w.s.up && w.ours[0].up && believed
}

// ours are what our processes do, asked and unasked. Who asks is honest.
var ours = []event{
	{"the source goes on", "", func(w *lifeWorld) bool { return w.busy(0) },
		func(w *lifeWorld) { w.step(0) }},
	{"the target goes on", "", func(w *lifeWorld) bool { return w.busy(1) },
		func(w *lifeWorld) { w.step(1) }},
	{"the source's process dies", "crash", func(w *lifeWorld) bool { return w.ours[0].up },
		func(w *lifeWorld) { w.ours[0].die() }},
	{"the source's process is back", "", func(w *lifeWorld) bool { return !w.ours[0].up },
		func(w *lifeWorld) { w.ours[0].up, w.ours[0].early = true, true }},
	{"the target's process dies", "crash", func(w *lifeWorld) bool { return w.ours[1].up },
		func(w *lifeWorld) { w.ours[1].die() }},
	{"the target's process is back", "",
		func(w *lifeWorld) bool { return !w.ours[1].up && !w.fenced },
		func(w *lifeWorld) { w.ours[1].up, w.ours[1].early = true, true }},
	{"time passes at the source", "", func(w *lifeWorld) bool {
		return w.ours[0].early && w.ours[0].up && w.s.up && !w.waiting && w.ours[0].todo[0] == none
	}, func(w *lifeWorld) { w.ours[0].early = false }},
	{"time passes at the target", "", func(w *lifeWorld) bool {
		return w.ours[1].early && w.ours[1].up && w.t.up && w.ours[1].todo[0] == none
	}, func(w *lifeWorld) { w.ours[1].early = false }},
	ask("a client cancels", "cancel", 0, toCancel, func(w *lifeWorld) bool {
		return w.ours[0].stage == libvirt.Sending && !w.ours[0].cancelled
	}),
	ask("a client pauses the guest to let it end", "pause guest", 0, toPauseGuest,
		func(w *lifeWorld) bool { return w.ours[0].stage == libvirt.Sending && !w.cold }),
	ask("the cluster discards the target", "discard", 1, toDiscard,
		func(w *lifeWorld) bool { return !w.vouch && !w.had }),
	ask("the cluster resumes the source", "", 0, toResume, func(w *lifeWorld) bool {
		return w.vouch && w.ours[0].unresolved
	}),
	ask("the cluster gives up the source", "", 0, toAbandon, func(w *lifeWorld) bool {
		reaped := w.t.up && w.ours[1].stage == libvirt.Arrived && w.t.rests() && !w.cold
		stage := w.ours[0].stage
		open := stage == libvirt.Stranded || stage == libvirt.Moved || w.ours[0].unresolved
		return open && (w.fenced || reaped && w.harmed)
	}),
	ask("the cluster releases the source", "", 0, toRelease, func(w *lifeWorld) bool {
		return w.arrived() && w.ours[0].known && w.ours[0].status.Final() ||
			w.arrived() && w.ours[0].stage == libvirt.Stranded
	}),
	ask("the cluster starts the held target", "", 1, toActivate, func(w *lifeWorld) bool {
		return w.hold && w.stoppedForGood()
	}),
	ask("the operator starts the VM at the source", "start", 0, toStart, func(w *lifeWorld) bool {
		return w.ours[0].known && w.s.rests()
	}),
}

// busy reports whether a process of ours has something in hand, or whether its
// worker has a next step.
func (w *lifeWorld) busy(i int) bool {
	h := &w.ours[i]
	if !h.up || h.todo[0] != none {
		return h.up
	}
	polls := i == 0 && h.known && h.stage.Live() && w.phase != idle
	return w.side(i).up && (polls || libvirt.Due(h.record(), h.job(), w.glance(i), now) != libvirt.NoStep)
}
