package qmp_test

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// obey plans what was asked for, if packages action and transfer allow it.
func (w *world) obey(h *host, l qmp.Look) []effect {
	state := qmp.State(h.record(), h.job(), l)
	switch h.asked {
	case toCancel, toStartPostCopy, toPauseGuest, toSwitchOver:
		return w.adjust(h, l, state)
	case toResume, toAbandon, toRelease:
		return w.resolve(h, l, state)
	case toDiscard:
		return w.discard(h)
	case toActivate:
		if h.stage == qmp.Listening && state == hypervisor.Received {
			w.started = true
			w.perform(h, qmp.Activate)
			planned := h.todo
			return planned[:]
		}
	}
	return live(h, state)
}

// live is the life of a VM on its host.
func live(h *host, state hypervisor.DomainState) []effect {
	switch {
	case h.asked == toPause && state == hypervisor.Running:
		return []effect{notePaused, stop}
	case h.asked == toUnpause && state == hypervisor.Paused:
		return []effect{noteUnpaused, cont} // QEMU may complete in between
	case h.asked == toStop && (state == hypervisor.Running || state == hypervisor.Rebooting):
		return []effect{noteStopping}
	case h.asked == toReboot && state == hypervisor.Running:
		return []effect{noteRebooting}
	}
	return nil
}

// adjust changes a migration under way.
func (w *world) adjust(h *host, l qmp.Look, state hypervisor.DomainState) []effect {
	status := qmp.Status(h.record(), h.job(), l)
	early := status == hypervisor.JobSetup || status == hypervisor.JobActive
	held := l.Migration == qemu.PreSwitchover && h.holdSwitchOver && !h.released
	switch {
	case h.stage != qmp.Sending:
	case h.asked == toCancel && !h.postCopied && (held || early):
		return []effect{migrateCancel}
	case h.asked == toStartPostCopy && !h.postCopied && status == hypervisor.JobActive &&
		state != hypervisor.Stopping:
		return []effect{notePostCopied, migratePostcopy}
	case h.asked == toPauseGuest && early && !h.postCopied && state == hypervisor.Running &&
		!h.guestPaused:
		return []effect{noteGuestPaused, stop}
	case h.asked == toSwitchOver && h.holdSwitchOver && !h.released:
		return []effect{noteReleased}
	}
	return nil
}

// resolve does at a source what evidence about its target allows.
func (w *world) resolve(h *host, l qmp.Look, state hypervisor.DomainState) []effect {
	stands := state == hypervisor.HandingOver || state == hypervisor.HandedOver
	switch {
	case h.asked == toRelease && !l.Alive && (h.stage == qmp.KeptRecord || h.stage == qmp.Left),
		h.asked == toRelease && stands && l.Migration == qemu.Completed:
		return []effect{noteLeft, noteNotOwn, kill, noteDeath, bury}
	case !stands || h.stage == qmp.Resumed:
	case h.asked == toResume && !h.postCopied && w.neverRan && l.Migration != qemu.Completed:
		return []effect{migrateCancel}
	case h.asked == toResume && !h.postCopied && l.Migration == qemu.Completed && w.neverRan:
		if h.paused {
			return []effect{noteResumed}
		}
		return []effect{noteResumed, cont}
	case h.asked == toAbandon:
		return []effect{noteAbandoned, kill, noteDeath, bury}
	}
	return nil
}

// discard promises at a target that the job will never run there.
func (w *world) discard(h *host) []effect {
	switch {
	case h.stage.MayHaveRun():
		return nil
	case !h.known:
		return []effect{noteRefused, vouch}
	}
	return []effect{noteRefused, noteEnding, kill, noteDeath, bury, vouch}
}

// ask gives a process of ours something to do when it has nothing in hand.
func ask(name, kind string, at func(*world) *host, r request, when func(*world) bool) event {
	return event{name, kind, func(w *world) bool {
		h := at(w)
		return h.up && h.todo[0] == none && when(w)
	}, func(w *world) {
		h := at(w)
		h.asked = r
		h.plan(askMigration, askStatus)
	}}
}

func lifeSource(w *world) *host { return &w.source }

func lifeTarget(w *world) *host { return &w.target }

func always(*world) bool { return true }

// ours is what our processes do, asked and unasked.
var ours = []event{
	{"the source goes on", "", func(w *world) bool { return w.source.busy() },
		func(w *world) { w.step(&w.source) }},
	{"the target goes on", "", func(w *world) bool { return w.target.busy() },
		func(w *world) { w.step(&w.target) }},
	{"the source says that the guest has stopped", "",
		func(w *world) bool { return w.source.up && w.source.announcing && !w.stopped },
		func(w *world) { w.stopped, w.stoppedResting = true, w.source.paused }},
	{"the target hears that the guest has stopped", "", func(w *world) bool {
		return w.stopped && w.target.up && w.target.todo[0] == none
	}, (*world).hear},
	{"the source hears that the target knows", "", func(w *world) bool {
		return w.acknowledgment && w.source.told()
	}, func(w *world) { w.source.plan(noteAcknowledged) }},
	{"the source hears that the target refuses", "", func(w *world) bool {
		return w.refusal && w.source.told() && !w.source.unresolved
	}, func(w *world) { w.source.plan(noteUnresolved) }},
	ask("an operator cancels", "cancel", lifeSource, toCancel, always),
	ask("an operator starts post-copy", "post-copy", lifeSource, toStartPostCopy, always),
	ask("an operator pauses the guest to let it end", "pause guest", lifeSource, toPauseGuest, always),
	ask("an operator lets it switch over", "", lifeSource, toSwitchOver,
		func(w *world) bool { return w.source.holdSwitchOver && !w.source.released }),
	ask("the operator pauses the VM", "pause", lifeSource, toPause, always),
	ask("the operator unpauses the VM", "pause", lifeSource, toUnpause, always),
	ask("the operator unpauses the VM again", "pause", lifeSource, toUnpause,
		func(w *world) bool { return w.unpaused && !w.source.paused }),
	ask("the operator stops the VM", "stop", lifeSource, toStop, always),
	ask("the operator reboots the VM", "stop", lifeSource, toReboot, always),
	ask("the cluster discards the target", "discard", lifeTarget, toDiscard,
		func(w *world) bool { return !w.neverRan && !w.target.stage.MayHaveRun() }),
	ask("the cluster resumes the source", "", lifeSource, toResume,
		func(w *world) bool { return w.neverRan && w.source.stage == qmp.Sending }),
	ask("the cluster gives up the source", "discard", lifeSource, toAbandon, func(w *world) bool {
		return !w.target.alive && w.target.stage.MayHaveRun() &&
			w.source.stage == qmp.Sending
	}),
	ask("the cluster releases the source", "discard", lifeSource, toRelease, func(w *world) bool {
		return w.target.arrived() && w.source.known
	}),
	ask("the cluster starts the held target", "", lifeTarget, toActivate, func(w *world) bool {
		return w.target.hold && w.target.stage == qmp.Listening
	}),
}

// busy reports whether a process of ours has something in hand, or whether
// its worker has a next step.
func (h *host) busy() bool {
	looks := h.known && (h.alive || h.stage.Live() || h.ending || h.ran)
	return h.up && (h.todo[0] != none || looks)
}

// arrived reports whether a target's host says that the VM runs there.
func (h *host) arrived() bool {
	state := qmp.State(h.record(), h.job(), h.glance())
	return h.known && h.alive && (state.Executes() || state == hypervisor.Paused)
}

// came reports whether it is said that the VM has come to a target, and runs, stands or rests
// there.
func (h *host) came() bool {
	switch qmp.State(h.record(), h.job(), h.glance()) {
	case hypervisor.Receiving, hypervisor.Received, hypervisor.Absent:
		return false
	}
	return h.known
}

func (h *host) told() bool {
	return h.up && h.announcing && h.todo[0] == none && h.stage == qmp.Sending
}

// hear is what the target's host does about the word of its source. The message
// may come again.
func (w *world) hear() {
	h := &w.target
	switch {
	case h.stage.MayHaveRun():
		w.acknowledgment = true
	case !h.known || h.stage != qmp.Listening:
		w.refusal = true
	case h.stopped:
		w.acknowledgment = true
	default:
		h.resting = w.stoppedResting
		h.plan(noteStopped, answer)
	}
}
