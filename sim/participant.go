package sim

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// reconciler is what the controller and the agents have in common.
type reconciler interface {
	Reconcile(context.Context, time.Time) (time.Time, error)
}

// participant is the process of a controller or of an agent: it runs, is dead,
// or is about to die, and its clock may be wrong.
type participant struct {
	host  hypervisor.HostName // "" is the controller
	line  *line               // its connection to the store
	phone *phone              // an agent's connection to its hypervisor
	brain reconciler          // nil while the process is dead
	skew  time.Duration       // how far its clock is ahead
	deaf  time.Time           // until when it misses hints and notifications
	busy  time.Time           // until when a call keeps it waiting
	since time.Time           // when the process died
}

// spawn starts a process that knows nothing.
func (w *World) spawn(p *participant) {
	p.line.dieAfter = -1
	p.busy = time.Time{}
	if p.host == "" {
		w.boss = controller.New(w.config.Controller, p.line, w)
		p.brain = w.boss
	} else {
		p.brain = agent.New(p.host, w.config.Agent, p.phone, p.line, w)
	}
	w.wake(p, w.now)
}

// kill ends a process. What it kept in memory is gone.
func (w *World) kill(p *participant) {
	p.brain = nil
	p.since = w.now
	w.wakes.Drop(p.host)
}

// run lets a participant look once.
func (w *World) run(p *participant) {
	if p.brain == nil {
		return
	}
	if p.busy.After(w.now) {
		w.wake(p, p.busy)
		return
	}
	next, err := p.brain.Reconcile(w.ctx, w.now.Add(p.skew))
	if p.line.died {
		p.line.died = false
		w.say(p.host, "", "process died in the middle of its work")
		w.kill(p)
		w.wakes.Set(p.host, w.now.Add(w.config.RestartAfter))
		w.reborn[p.host] = true
		return
	}
	if err != nil && w.config.Verbose {
		w.say(p.host, "", "error: "+err.Error())
	}
	if p.phone != nil && p.phone.real != nil {
		if lost := p.phone.real.Busy(); lost > 0 {
			p.busy = w.now.Add(lost)
		}
	}
	if !next.IsZero() {
		w.wake(p, next.Add(-p.skew))
	}
}

// wake asks for a participant to look, not before now and not while it is busy.
func (w *World) wake(p *participant, at time.Time) {
	if at.Before(w.now) {
		at = w.now
	}
	w.wakes.Set(p.host, at)
}

// line is a participant's connection to the store, with what can go wrong on it.
type line struct {
	world    *World
	dieAfter int // the process dies when it attempts so many more writes; -1 never
	died     bool
	full     bool                           // the store takes no writes
	mute     int                            // so many writes take effect without an answer
	frozen   map[record.Feed]record.Changes // a stale view: what is answered meanwhile
}

// Get implements record.Store.
func (l *line) Get(ctx context.Context, key record.Key) (record.Record, error) {
	if l.died {
		return nil, &record.StoreError{Op: "Get", Key: key, Kind: record.Unavailable}
	}
	return l.world.store.Get(ctx, key)
}

// Put implements record.Store.
func (l *line) Put(ctx context.Context, r record.Record) (record.Record, error) {
	if err := l.refuse("Put", r.Key()); err != nil {
		return nil, err
	}
	stored, err := l.world.store.Put(ctx, r)
	if m, ok := stored.(*record.Migration); ok {
		l.world.watch.migration(m) // every writing counts, not only the last
	}
	if err == nil && l.mute > 0 {
		l.mute--
		return nil, &record.StoreError{Op: "Put", Key: r.Key(), Kind: record.Unanswered}
	}
	return stored, err
}

// Delete implements record.Store.
func (l *line) Delete(ctx context.Context, r record.Record) error {
	if err := l.refuse("Delete", r.Key()); err != nil {
		return err
	}
	return l.world.store.Delete(ctx, r)
}

// Changes implements record.Store.
func (l *line) Changes(ctx context.Context, f record.Feed, since record.Revision) (record.Changes,
	error) {
	if l.frozen != nil && since != 0 {
		return record.Changes{Next: since}, nil
	}
	return l.world.store.Changes(ctx, f, since)
}

// refuse lets the process die, or the store be full.
func (l *line) refuse(op string, key record.Key) error {
	if l.dieAfter == 0 {
		l.died = true
	}
	if l.dieAfter > 0 {
		l.dieAfter--
	}
	if l.died || l.full {
		return &record.StoreError{Op: op, Key: key, Kind: record.Unavailable}
	}
	return nil
}
