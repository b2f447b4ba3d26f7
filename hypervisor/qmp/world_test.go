package qmp_test

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A world is one migration, seen from above: two QEMUs, the two processes of ours
// that watch them, what these have written down, and what is on its way between
// them. It is a small value, so that its futures can be enumerated.
//
// A QEMU is what QEMU 7.2 does as far as one can tell from outside, failures at
// every point included. A process of ours does what packages domain and transfer
// do, one indivisible effect after the other: a question to QEMU, a write, a command.
// Anything may happen between two of them.
type world struct {
	source, target host

	link   bool // carries memory
	shut   bool // the target's QEMU has said that it has everything
	packed bool // post-copy: the target's QEMU has what it needs to run the guest
	begun  bool // post-copy was asked of the source's QEMU

	// What is on its way: any number of copies each.
	stopped, stoppedResting, acknowledgment, refusal bool

	// What the cluster knows for sure.
	neverRan bool // the target's host has discarded the job

	// What the laws ask for. Unpaused: an operator has tried. Started: an operator let the
	// held target go on. Early: it was let run before it had what it needs.
	unpaused, started, early bool

	ranAtTarget, mayHaveRun, killedSource, killedTarget, ended, abandoned bool
}

// A host is a QEMU and the process of ours that watches it.
type host struct {
	// QEMU.
	alive      bool
	run        qemu.RunState
	mig        qemu.MigrationStatus
	wasRunning bool // and runs on when the migration fails
	pauses     bool // before the switch-over, and has not yet
	waits      bool // to go on from there

	// Our process. What it holds in memory dies with it.
	up         bool
	todo       [6]effect
	asked      request
	seen       qemu.MigrationStatus // by the question that was asked first
	last       qemu.MigrationStatus // of the last whole look
	lastRun    qemu.RunState
	lived      bool
	announcing bool

	mind
}

// A mind is what a host has written down.
type mind struct {
	known, own, ran, ending, paused, unresolved bool
	doing, rest                                 hypervisor.DomainState
	late                                        bool // patience has ended
	role                                        qmp.Role
	stage                                       qmp.Stage
	status                                      hypervisor.JobStatus
	refused, hold, stopped, resting             bool
	holdSwitchOver, released                    bool
	guestPaused, postCopied, acknowledged       bool
}

// record is what this package keeps of a mind.
func (m mind) record() *qmp.DomainRecord {
	d := &qmp.DomainRecord{Domain: backend.Domain{Ran: m.ran, Unresolved: m.unresolved,
		Doing: m.doing, Job: "job"}, Own: m.own, Ending: m.ending, Paused: m.paused, Rest: m.rest}
	if m.late {
		d.By = now
	}
	return d
}

func (m mind) job() *qmp.Job {
	return &qmp.Job{Job: qmp.BaseJob{ID: "job", Role: m.role, Stage: m.stage, Refused: m.refused,
		Hold: m.hold, GuestPaused: m.guestPaused, PostCopied: m.postCopied,
		Options: hypervisor.TransferOptions{HoldSwitchOver: m.holdSwitchOver, PostCopy: true},
		Last:    hypervisor.Progress{Status: m.status}}, Stopped: m.stopped, Resting: m.resting,
		Released: m.released, Acknowledged: m.acknowledged}
}

// A plan says which migration it is.
type plan struct {
	paused, hold, holdSwitchOver bool
}

// begin is the moment in which the source's QEMU was told to send.
func begin(p plan) world {
	w := world{link: true}
	w.source = host{alive: true, run: qemu.Running, mig: qemu.Setup, up: true,
		pauses: p.holdSwitchOver, mind: mind{known: true, own: true, ran: true, paused: p.paused,
			rest: hypervisor.Shutoff, role: qmp.Source, stage: qmp.Sending,
			holdSwitchOver: p.holdSwitchOver}}
	if p.paused {
		w.source.run = qemu.Paused
	}
	w.target = host{alive: true, run: qemu.InMigrate, mig: qemu.None, up: true,
		mind: mind{known: true, rest: hypervisor.Shutoff, role: qmp.Target,
			stage: qmp.Listening, hold: p.hold, resting: p.paused}}
	return w
}

func (h *host) runs() bool { return h.alive && h.run == qemu.Running }

// stands reports whether the guest of a source was stopped by its QEMU.
func (h *host) stands() bool { return h.run == qemu.FinishMigrate }

// cont is the command of that name, and reports whether QEMU took it.
// Source: QEMU 7.2 monitor/qmp-cmds.c (qmp_cont).
func (h *host) cont() bool {
	if !h.alive || h.run == qemu.FinishMigrate || h.run == qemu.Shutdown {
		return false
	}
	if h.run != qemu.InMigrate { // else it would start by itself; that is not asked here
		h.run = qemu.Running
	}
	return true
}

// holds reports whether the memory of the VM is somewhere as a whole.
func (w *world) holds() bool {
	atTarget := w.target.alive && w.target.mig == qemu.Completed && w.target.run != qemu.InMigrate
	inBoth := w.source.alive && w.target.alive && w.packed
	return w.source.alive && !w.ranAtTarget || atTarget || inBoth
}

// An event is something that QEMU, the link or the guest does.
type event struct {
	name string
	kind string // the fault that it is; "" is none
	when func(*world) bool
	then func(*world)
}

func (e event) Title() string { return e.name }

func (e event) Can(w *world) bool { return e.when(w) }

func (e event) Happen(w world) world { return w.happen(e) }

// receiving reports whether memory can reach the target's QEMU.
func (w *world) receiving() bool {
	return w.link && w.target.alive && w.source.alive && w.target.mig == qemu.Active
}

// precopies reports whether the source's QEMU is in the part of a migration after
// which it takes the guest back when something fails.
func (w *world) precopies() bool {
	switch w.source.mig {
	case qemu.Setup, qemu.Active, qemu.PreSwitchover, qemu.Device:
		return w.source.alive
	}
	return false
}

// precopy is pre-copy as QEMU does it.
// Source: QEMU 7.2 migration/migration.c (migration_completion, migration_maybe_pause,
// process_incoming_migration_bh, migration_iteration_finish).
var precopy = []event{
	{"the QEMUs connect", "", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.Setup && w.link && w.target.alive &&
			w.target.mig == qemu.None
	}, func(w *world) { w.source.mig, w.target.mig = qemu.Active, qemu.Active }},
	{"the source's QEMU stops the guest", "", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.Active && !w.source.stands()
	}, func(w *world) {
		w.source.wasRunning, w.source.run = w.source.run == qemu.Running, qemu.FinishMigrate
	}},
	{"the source's QEMU waits to go on, whether or not it has just been cancelled", "",
		func(w *world) bool {
			s := &w.source
			return s.alive && s.pauses && s.stands() &&
				(s.mig == qemu.Active || s.mig == qemu.Cancelling)
		}, func(w *world) {
			w.source.pauses, w.source.waits = false, true
			if w.source.mig == qemu.Active {
				w.source.mig = qemu.PreSwitchover
			}
		}},
	{"the last memory is loaded", "", func(w *world) bool {
		last := w.source.mig == qemu.Device || w.source.mig == qemu.Active && !w.source.pauses
		return last && w.source.stands() && w.receiving() && w.target.run == qemu.InMigrate
	}, func(w *world) { w.target.run = qemu.Paused }},
	{"the target's QEMU completes", "", func(w *world) bool {
		return w.target.alive && w.target.mig == qemu.Active && w.target.run == qemu.Paused
	}, func(w *world) { w.target.mig, w.shut = qemu.Completed, w.link }},
	{"the source's QEMU completes", "", func(w *world) bool {
		return w.source.alive && w.shut && w.source.stands() && w.precopies()
	}, func(w *world) { w.source.mig = qemu.Completed }},
	{"the source's QEMU comes to rest", "", func(w *world) bool {
		return w.source.alive && w.source.stands() && w.source.mig == qemu.Completed
	}, func(w *world) { w.source.run = qemu.PostMigrate }},
	{"the migration fails", "failure", (*world).precopies,
		func(w *world) { w.source.mig = qemu.Failed }},
	{"the migration fails because the target has gone or hung up", "", func(w *world) bool {
		return w.precopies() && !w.shut && (!w.target.alive || w.target.mig == qemu.Completed)
	}, func(w *world) { w.source.mig = qemu.Failed }},
	{"the source's QEMU takes the guest back", "", func(w *world) bool {
		return w.source.alive && w.source.stands() && (w.source.mig == qemu.Failed ||
			w.source.mig == qemu.Cancelling && !w.source.waits)
	}, func(w *world) {
		w.source.run = qemu.PostMigrate
		if w.source.wasRunning {
			w.source.run = qemu.Running
		}
	}},
	{"the cancel is done", "", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.Cancelling && !w.source.stands()
	}, func(w *world) { w.source.mig = qemu.Cancelled }},
	{"the target's QEMU gives up", "", func(w *world) bool {
		ends := !w.source.alive || w.source.mig == qemu.Failed || w.source.mig == qemu.Cancelled
		return w.target.alive && ends && w.target.run == qemu.InMigrate && !w.packed
	}, func(w *world) { w.target.alive = false }},
}

// postcopy is post-copy as QEMU does it. One that fails while it begins or ends
// never takes the guest back, whatever the target has by then.
// Source: QEMU 7.2 migration/migration.c (postcopy_start, migration_completion,
// migration_detect_error); vm_was_running is not set there.
var postcopy = []event{
	{"the source's QEMU goes over to post-copy", "", func(w *world) bool {
		return w.source.alive && w.begun && w.source.mig == qemu.Active && !w.source.stands()
	}, func(w *world) { w.source.mig = qemu.PostcopyActive }},
	{"the source's QEMU stops the guest for post-copy", "", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.PostcopyActive && !w.source.stands()
	}, func(w *world) { w.source.run = qemu.FinishMigrate }},
	{"the package arrives", "", func(w *world) bool {
		return w.source.mig == qemu.PostcopyActive && w.source.stands() && !w.packed &&
			w.receiving()
	}, func(w *world) { w.packed, w.target.mig = true, qemu.PostcopyActive }},
	{"the package is loaded", "", func(w *world) bool {
		return w.target.alive && w.packed && w.target.run == qemu.InMigrate
	}, func(w *world) { w.target.run = qemu.Paused }},
	{"the last page arrives", "", func(w *world) bool {
		return w.source.alive && w.target.alive && w.link && w.packed &&
			w.source.mig == qemu.PostcopyActive && w.target.mig == qemu.PostcopyActive &&
			w.target.run != qemu.InMigrate
	}, func(w *world) { w.target.mig, w.shut = qemu.Completed, true }},
	{"the source's QEMU completes post-copy", "", func(w *world) bool {
		return w.source.alive && w.shut && w.source.mig == qemu.PostcopyActive
	}, func(w *world) { w.source.mig = qemu.Completed }},
	{"post-copy fails", "failure", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.PostcopyActive && w.source.stands()
	}, func(w *world) { w.source.mig = qemu.Failed }},
	{"the source's QEMU pauses post-copy", "", func(w *world) bool {
		return w.source.alive && w.source.mig == qemu.PostcopyActive && w.packed && !w.shut &&
			(!w.link || !w.target.alive)
	}, func(w *world) { w.source.mig = qemu.PostcopyPaused }},
	{"the target's QEMU pauses post-copy", "", func(w *world) bool {
		return w.target.alive && w.target.mig == qemu.PostcopyActive &&
			(!w.link || !w.source.alive || w.source.mig != qemu.PostcopyActive)
	}, func(w *world) { w.target.mig = qemu.PostcopyPaused }},
	{"post-copy is recovered", "", func(w *world) bool {
		return w.link && w.source.alive && w.target.alive &&
			w.source.mig == qemu.PostcopyPaused && w.target.mig == qemu.PostcopyPaused
	}, func(w *world) { w.source.mig, w.target.mig = qemu.PostcopyActive, qemu.PostcopyActive }},
}

// harm is what hardware, people and guests do.
var harm = []event{
	{"the link is cut", "link", func(w *world) bool { return w.link },
		func(w *world) { w.link = false }},
	{"the link is back", "", func(w *world) bool { return !w.link },
		func(w *world) { w.link = true }},
	{"the source's QEMU is killed", "kill", func(w *world) bool { return w.source.alive },
		func(w *world) { w.source.alive, w.killedSource = false, true }},
	{"the target's QEMU is killed", "kill", func(w *world) bool { return w.target.alive },
		func(w *world) { w.target.alive, w.killedTarget = false, true }},
	{"the guest powers off at the source", "power off",
		func(w *world) bool { return w.source.runs() },
		func(w *world) { w.source.run, w.ended = qemu.Shutdown, true }},
	{"patience ends", "stop", func(w *world) bool {
		return w.source.doing != hypervisor.Absent && !w.source.late
	}, func(w *world) { w.source.late = true }},
	{"the source's process dies", "crash", func(w *world) bool { return w.source.up },
		func(w *world) { w.source.crash() }},
	{"the target's process dies", "crash", func(w *world) bool { return w.target.up },
		func(w *world) { w.target.crash() }},
	{"the source's process is back", "", func(w *world) bool { return !w.source.up },
		func(w *world) { w.source.up = true }},
	{"the target's process is back", "", func(w *world) bool { return !w.target.up },
		func(w *world) { w.target.up = true }},
	{"what the source said is lost", "loss", func(w *world) bool { return w.stopped },
		func(w *world) { w.stopped = false }},
	{"what the target answered is lost", "loss",
		func(w *world) bool { return w.acknowledgment || w.refusal },
		func(w *world) { w.acknowledgment, w.refusal = false, false }},
}

// crash forgets what a process of ours has only in memory.
func (h *host) crash() {
	h.up, h.todo, h.asked, h.announcing = false, [6]effect{}, nothing, false
	h.seen, h.last, h.lastRun, h.lived = "", "", "", false
}
