package sim

import (
	"errors"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// participant is the process of a controller or of an agent: it runs, is dead,
// or is about to die, and its clock may be wrong.
type participant struct {
	host       hypervisor.HostName // "" is the controller; the machine's name
	as         hypervisor.HostName // the host whose name a second agent claims; "" is its own
	copy       bool                // its directory is a copy of the other's
	line       FlakyStore          // its connection to the store
	phone      flakyHypervisor     // an agent's connection to its hypervisor
	real       *fake.Host          // what is at its other end
	brain      store.Participant   // nil while the process is dead
	aside      store.Participant   // what Config.Beside has made; nil is nothing
	claim      *store.LeaseClaim   // to the host's name; nil is none
	empty      bool                // it came with an empty directory
	ended      bool                // it is not started any more
	count      int                 // how often it was started
	boots      int                 // how often its host was cut from power
	skew       time.Duration       // how far its clock is ahead
	dropsUntil time.Time           // until when it misses hints and notifications
	busy       time.Time           // until when a call keeps it waiting
	since      time.Time           // when the process died
	lasts      time.Duration       // how long it will be dead that dies at a write

	pages  [2]pages   // the ledger in its directory, and in the one that was emptied
	reborn bool       // it starts again when it is woken
	back   time.Time  // when, then
	mark   store.Mark // what it has seen of the store, on its disk
	born   time.Time  // when the process started
	alarm  workqueue.Alarm[*participant]
}

// join connects a new participant, and lets it start.
func (w *World) join(host hypervisor.HostName, real *fake.Host) {
	p := &participant{host: host, real: real}
	p.line.Real, p.alarm.Of = w.store, p
	p.phone.Real, p.phone.Store = real, &p.line
	w.people[host] = p
	w.store.Know(store.Feed{Host: host}, p)
	w.network.Know(host, p)
	w.spawn(p)
}

// spawn starts a process that knows nothing.
func (w *World) spawn(p *participant) {
	p.line.Dies, p.line.Died, p.busy, p.reborn, p.born = false, false, time.Time{}, false, w.now
	var store store.Store = &p.line
	if w.config.Store != nil {
		store = w.config.Store(p.host, store)
	}
	if w.config.Marks {
		store = &remembering{store, w, p}
	}
	if p.host == "" {
		w.boss = controller.New(w.config.Controller, store, w)
		p.brain = w.boss
	} else {
		config := w.config.Agent
		if w.config.Claims {
			p.claim = w.claimFor(p, store)
			config.Session, config.Admission = p.session(), w.config.Marks
			if w.config.Marks {
				config.Ledger, config.Epoch = agentLedger{p}, func() uint64 { return p.mark.Epoch }
			}
		}
		p.brain = agent.New(p.name(), config, &p.phone, store, w)
	}
	if w.config.Beside != nil {
		p.aside = w.config.Beside(w, p.host, p.boots, store)
	}
	w.wake(p, w.now)
}

// kill ends a process. What it kept in memory is gone.
func (w *World) kill(p *participant) {
	p.brain, p.reborn, p.since = nil, false, w.now
	w.wakes.Drop(&p.alarm)
}

// run lets a participant look once.
func (w *World) run(p *participant) {
	if p.busy.After(w.now) {
		w.wake(p, p.busy)
		return
	}
	p.line.Unanswered = false
	now := workqueue.Shift(w.now, p.skew)
	next, err := p.brain.Reconcile(w.ctx, now)
	if p.claim != nil && !p.line.Died {
		again, wrong := p.claim.Reconcile(w.ctx, now)
		next, err = workqueue.Earliest(next, again), errors.Join(err, wrong)
		if w.refusedName(p, wrong) {
			return
		}
		w.admit()
	}
	if p.aside != nil && !p.line.Died {
		again, wrong := p.aside.Reconcile(w.ctx, now)
		next, err = workqueue.Earliest(next, again), errors.Join(err, wrong)
	}
	if p.line.Died {
		w.say(p.host, "", "process died in the middle of its work")
		w.kill(p)
		if p.lasts > w.config.Lease {
			w.watchLease(p)
		}
		w.backAt(p, w.now.Add(p.lasts))
		return
	}
	if err != nil && w.config.Verbose {
		w.say(p.host, "", "error: "+err.Error())
	}
	if p.real != nil {
		if lost := p.real.Busy(); lost > 0 {
			p.busy = w.now.Add(lost)
		}
	}
	if !next.IsZero() {
		w.wake(p, workqueue.Shift(next, -p.skew))
	}
}

// answered reports whether p knows of every change that was made when it last ran: no other process
// has written for it, and no answer was lost.
func (p *participant) answered() bool {
	return p.aside == nil && p.claim == nil && !p.line.Unanswered
}

// wake asks a participant that lives to look, not before now and not while it is busy.
func (w *World) wake(p *participant, at time.Time) {
	if p.brain == nil {
		return
	}
	if at.Before(w.now) {
		at = w.now
	}
	w.wakes.Set(&p.alarm, at)
}
