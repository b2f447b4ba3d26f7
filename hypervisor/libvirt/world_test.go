package libvirt_test

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// A world is one migration, seen from above: two libvirtds with a domain each, the two
// processes of ours that watch them, what these have written down, and what is on its
// way. It is a small value, so that its futures can be enumerated.
//
// A libvirtd is what libvirt 9.0 does in a peer-to-peer migration, as far as one
// can tell from outside: Begin, Prepare, Perform, Finish, Confirm, and what it makes of
// an unfinished one when it is started again. A process of ours does what packages
// node and transfer do, one indivisible effect after the other. Anything may happen
// between two of them.
// Source: libvirt 9.0 qemu_migration.c (qemuMigrationSrcPerformPeer2Peer3,
// qemuMigrationSrcConfirmPhase, qemuMigrationDstFinishFresh) and qemu_process.c
// (qemuProcessRecoverMigrationOut, qemuProcessRecoverMigrationIn).
type lifeWorld struct {
	plan
	s, t side

	// The source's libvirtd.
	phase   phase
	waiting bool                // a call of ours has come, and is not begun
	aborted bool                // the transfer has ended, and not well
	cut     bool                // its connection to the target's is broken
	result  libvirt.LibvirtCall // that will be answered when it gives up

	// The target's.
	coming coming
	barred bool
	fenced bool
	reply  lifeReply

	ours   [2]host // who watches the source, and the target
	vouch  bool    // the target's host has answered a discard
	harmed bool    // something that killed a copy of the VM for good

	lost      bool // the reply of Finish, or its question
	had       bool // the target has, or had, all of it
	ran       bool // the target's copy
	byUs      bool // we let a copy run while the other one ran
	activated bool
	remains   bool // a definition, at the target, of a copy that died in Finish
}

// A plan says which migration it is.
type plan struct {
	hold, resting, cold, transient bool
	again                          bool // it ran again after an earlier one
	// hasty: our processes look at the domain first, and only then at the call.
	// Credulous: who hands over is believed to have stopped for good. Rash: a target is
	// ended when its source runs again, whatever it was paused for.
	hasty, credulous, rash bool
}

// A side is a libvirtd and its domain.
type side struct {
	up      bool
	run     libvirt.Run
	defined bool
}

// A phase is how far a source's libvirtd is.
type phase uint8

const (
	idle       phase = iota
	preparing        // it has begun, and asks the target to prepare
	performing       // memory moves
	stopped          // the guest stands
	performed        // everything has been sent
	finishing        // the target was asked to finish
	confirming       // the target has the VM: the domain is ended here
	cancelling       // it has not: the domain may run on here
)

// A coming is what a target's libvirtd has of an incoming domain.
type coming uint8

const (
	nothingComes coming = iota
	prepared
	complete // with all of its memory
	letRun   // Finish is under way
	kept     // and the definition is kept
)

// A reply is what a target's libvirtd has answered to Finish.
type lifeReply uint8

const (
	noReply lifeReply = iota
	hasIt
	hasNot
)

func (s side) executes() bool { return slices.Contains(executing, s.run) }

func (s side) stands() bool { return slices.Contains(standing, s.run) }

func (s side) alive() bool { return s.executes() || s.stands() }

func (s side) rests() bool { return slices.Contains(resting, s.run) }

// end is what is left of a domain whose process has ended.
func (s *side) end(how libvirt.Run) {
	if s.run = how; !s.defined {
		s.run = libvirt.Gone
	}
}

// begin is the moment in which the job was accepted on both sides.
func begin(p plan) lifeWorld {
	w := lifeWorld{plan: p, s: side{up: true, run: libvirt.Runs, defined: !p.transient}}
	w.t.up = true
	switch {
	case p.cold:
		w.s.run = libvirt.ShutoffClean
	case p.resting:
		w.s.run = libvirt.PausedUser
	case p.again:
		w.s.run = libvirt.RunsCancelled
	}
	w.ours = accepted(p)
	return w
}

// An event is something that happens.
type event struct {
	name string
	kind string // the fault that it is; "" is none
	when func(*lifeWorld) bool
	then func(*lifeWorld)
}

func (e event) Title() string { return e.name }

func (e event) Can(w *lifeWorld) bool { return e.when(w) }

func (e event) Happen(w lifeWorld) lifeWorld { return w.happen(e) }

// answer ends the migration at the source's libvirtd, and tells who waits.
func (w *lifeWorld) answer(r libvirt.LibvirtCall) {
	w.phase, w.aborted, w.cut, w.result, w.reply = idle, false, false, libvirt.NoCall, noReply
	if w.ours[0].call == libvirt.Calling {
		w.ours[0].call = r
	}
}

// giveUp is what follows when the source's libvirtd believes that the target has not.
func (w *lifeWorld) giveUp(r libvirt.LibvirtCall) { w.phase, w.result = cancelling, r }

// takeBack lets the guest run again that libvirt has stopped.
func (w *lifeWorld) takeBack() {
	if w.s.run == libvirt.PausedMigration {
		w.s.run = libvirt.RunsCancelled
	}
}

// at reports whether the source's libvirtd is in one of the phases.
func (w *lifeWorld) at(phases ...phase) bool { return w.s.up && slices.Contains(phases, w.phase) }

// comes reports whether the target's libvirtd has such an incoming domain.
func (w *lifeWorld) comes(cs ...coming) bool { return w.t.up && slices.Contains(cs, w.coming) }

// connected reports whether the source's libvirtd holds its connection to the target.
func (w *lifeWorld) connected() bool {
	return w.at(preparing, performing, stopped, performed, finishing) && !w.cut
}

// migration is a migration in which nothing fails, and what follows from a failure.
var migration = []event{
	{"libvirt begins", "", func(w *lifeWorld) bool { return w.waiting && w.at(idle) },
		func(w *lifeWorld) {
			w.waiting = false
			if fit := w.s.alive() && !w.cold || w.s.rests() && w.cold; !fit {
				w.answer(libvirt.Refused)
				return
			}
			w.phase = preparing
		}},
	{"the target prepares", "", func(w *lifeWorld) bool {
		return w.at(preparing) && !w.cut && w.t.up && !w.barred && w.t.run == libvirt.Gone
	}, func(w *lifeWorld) {
		w.coming, w.t.run, w.phase = prepared, libvirt.PausedMigration, performing
		if w.cold {
			w.coming, w.t.run, w.phase = complete, libvirt.ShutoffUnknown, performed
		}
	}},
	{"the target refuses to prepare", "", func(w *lifeWorld) bool {
		return w.at(preparing) && !w.cut && w.t.up && (w.barred || w.t.run != libvirt.Gone)
	}, func(w *lifeWorld) { w.answer(libvirt.Refused) }},
	{"the target cannot be reached", "",
		func(w *lifeWorld) bool { return w.at(preparing) && (w.cut || !w.t.up) },
		func(w *lifeWorld) { w.answer(libvirt.Broken) }},
	{"the guest is stopped", "", func(w *lifeWorld) bool { return w.at(performing) && w.s.alive() },
		func(w *lifeWorld) {
			if w.phase = stopped; w.s.executes() {
				w.s.run = libvirt.PausedMigration
				w.ours[0].stood = w.ours[0].stood || w.ours[0].call == libvirt.Calling
			}
		}},
	{"all memory has come", "", func(w *lifeWorld) bool { return w.at(stopped) && w.comes(prepared) },
		func(w *lifeWorld) { w.phase, w.coming = performed, complete }},
	{"the transfer fails, one of its ends being gone", "", func(w *lifeWorld) bool {
		return w.at(performing, stopped) && (w.cut || !w.comes(prepared) || !w.s.alive())
	}, (*lifeWorld).abort},
	{"the target is asked to finish", "", func(w *lifeWorld) bool {
		return w.at(performed) && w.comes(complete) && !w.cut
	}, func(w *lifeWorld) { w.phase, w.coming = finishing, letRun }},
	{"there is nothing to finish", "", func(w *lifeWorld) bool {
		return w.at(performed) && w.t.up && !w.comes(complete) && !w.cut
	}, func(w *lifeWorld) { w.giveUp(libvirt.Refused) }},
	{"no process is there to finish", "", func(w *lifeWorld) bool {
		return w.at(performed, finishing) && w.cut
	}, func(w *lifeWorld) {
		w.lost = true
		w.giveUp(libvirt.Broken)
	}},
	{"the target keeps the definition", "", func(w *lifeWorld) bool { return w.comes(letRun) },
		func(w *lifeWorld) {
			w.coming, w.t.defined, w.had = kept, !w.transient, w.cold
		}},
	{"the target has it", "", func(w *lifeWorld) bool { return w.comes(kept) }, (*lifeWorld).arrive},
	{"the source hears of it", "", func(w *lifeWorld) bool {
		return w.at(finishing) && !w.cut && w.reply != noReply
	}, func(w *lifeWorld) {
		if w.phase = confirming; w.reply == hasNot {
			w.giveUp(libvirt.Refused)
		}
	}},
	{"the source is ended", "", func(w *lifeWorld) bool { return w.at(confirming) },
		func(w *lifeWorld) {
			if !w.cold && w.s.alive() {
				w.s.end(libvirt.ShutoffMigrated)
			}
			w.answer(libvirt.Succeeded)
		}},
	{"the target hears that it ended", "", func(w *lifeWorld) bool {
		return w.at(cancelling) && w.comes(prepared, complete)
	}, func(w *lifeWorld) { w.coming, w.t.run = nothingComes, libvirt.Gone }},
	{"the source lets it run again", "", func(w *lifeWorld) bool { return w.at(cancelling) },
		func(w *lifeWorld) {
			w.takeBack()
			w.answer(w.result)
		}},
	{"the target notices that nothing is sent", "", func(w *lifeWorld) bool {
		return w.comes(prepared, complete) && !w.connected() && !w.at(cancelling)
	}, func(w *lifeWorld) { w.coming, w.t.run = nothingComes, libvirt.Gone }},
}

func (w *lifeWorld) abort() {
	w.aborted = true
	w.giveUp(libvirt.Refused)
}

// arrive is the end of Finish at a target.
func (w *lifeWorld) arrive() {
	w.coming, w.reply, w.had = nothingComes, hasIt, true
	switch {
	case w.cold:
	case w.hold || w.resting:
		w.t.run = libvirt.PausedUser
	default:
		w.t.run, w.ran = libvirt.RunsMigrated, true
	}
}

// harm is what fails, and what is repaired.
var harm = []event{
	{"the transfer fails", "failure", func(w *lifeWorld) bool { return w.at(performing, stopped) },
		(*lifeWorld).abort},
	{"the target cannot let it run", "failure", func(w *lifeWorld) bool {
		return w.comes(letRun, kept) && !w.cold
	}, func(w *lifeWorld) {
		w.coming, w.reply = nothingComes, hasNot
		w.t.end(libvirt.ShutoffFailed)
	}},
	{"the answer to Prepare is lost", "lost", func(w *lifeWorld) bool {
		return w.at(performing) && w.s.executes()
	}, func(w *lifeWorld) { w.answer(libvirt.Broken) }},
	{"the answer to Finish is lost", "lost", func(w *lifeWorld) bool {
		return w.at(performed, finishing)
	}, func(w *lifeWorld) {
		w.lost = true
		w.giveUp(libvirt.Broken)
	}},
	{"our connection to the source's libvirtd breaks", "break", func(w *lifeWorld) bool {
		return w.s.up && w.ours[0].call == libvirt.Calling
	}, func(w *lifeWorld) { w.ours[0].call, w.ours[0].early = libvirt.Broken, true }},
	{"the source's libvirtd dies", "libvirtd", func(w *lifeWorld) bool { return w.s.up },
		func(w *lifeWorld) {
			w.s.up, w.waiting, w.reply = false, false, noReply
			w.lost = w.lost || w.phase == performed || w.phase == finishing
			if w.ours[0].call == libvirt.Calling {
				w.ours[0].call = libvirt.Broken
			}
		}},
	{"the source's libvirtd is back", "", func(w *lifeWorld) bool { return !w.s.up },
		func(w *lifeWorld) { w.recover(w.phase == cancelling) }},
	{"the source's libvirtd is back, and had not confirmed", "", func(w *lifeWorld) bool {
		return !w.s.up && w.phase == cancelling && !w.aborted
	}, func(w *lifeWorld) { w.recover(false) }},
	{"the target's libvirtd dies", "libvirtd", func(w *lifeWorld) bool { return w.t.up && !w.fenced },
		func(w *lifeWorld) { w.t.up, w.cut = false, w.phase != idle }},
	{"the target's libvirtd is back", "", func(w *lifeWorld) bool { return !w.t.up && !w.fenced },
		func(w *lifeWorld) {
			switch w.coming {
			case prepared, complete:
				w.t.run = libvirt.Gone
			case letRun, kept:
				if w.t.end(libvirt.ShutoffCrashed); w.t.defined && w.cold {
					w.t.run, w.had = libvirt.ShutoffUnknown, true
				}
				w.remains = w.t.defined && !w.cold
			}
			w.t.up, w.coming = true, nothingComes
			w.ours[1].early = true
		}},
	{"the source's QEMU dies", "kill", func(w *lifeWorld) bool { return w.s.up && w.s.alive() },
		func(w *lifeWorld) {
			w.harmed = true
			if w.s.end(libvirt.ShutoffCrashed); w.at(performing, stopped) {
				w.abort()
			}
		}},
	{"the target's QEMU dies", "kill", func(w *lifeWorld) bool { // while nothing is sent: no window
		return w.t.up && w.t.alive() && w.coming <= complete
	}, func(w *lifeWorld) {
		w.harmed = w.harmed || w.coming == nothingComes
		w.t.end(libvirt.ShutoffCrashed)
		w.coming = nothingComes
	}},
	{"the target's host is fenced", "fence", func(w *lifeWorld) bool { return !w.fenced },
		func(w *lifeWorld) {
			w.harmed = w.harmed || w.coming == nothingComes && w.t.run != libvirt.Gone
			w.t, w.coming, w.fenced, w.cut = side{}, nothingComes, true, w.phase != idle
			w.ours[1].die()
		}},
}

// recover is what a source's libvirtd makes of a migration that it finds. It lets the
// guest run again unless the target may have been asked to finish.
func (w *lifeWorld) recover(resume bool) {
	switch w.phase {
	case performing, stopped:
		resume = true
	case confirming:
		if !w.cold && w.s.alive() {
			w.s.end(libvirt.ShutoffCrashed)
		}
	}
	if resume {
		w.takeBack()
	}
	w.s.up, w.ours[0].early = true, true
	w.answer(libvirt.Broken)
}
