package explore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A process looks again and again. It stands before each of its calls until it may go on.
type process struct {
	w     *world
	host  hypervisor.HostName // "" is the controller
	brain interface {
		Reconcile(context.Context, time.Time) (time.Time, error)
	}

	next  func() (string, bool) // lets it make the call that it stands before
	stop  func()
	yield func(string) bool
	at    string // the call that it stands before; "" is that it does not look
	dead  bool

	told  bool      // something has changed in the store
	hints bool      // something has happened to the VM on its host
	wake  time.Time // when it wants to look

	refused, unanswered bool // what becomes of its next write
}

// spawn starts a process that knows nothing.
func (w *world) spawn(host hypervisor.HostName) {
	p := &process{w: w, host: host, told: true}
	records := line{p, w.mistake.store(w.store)}
	if host == "" {
		p.brain = controller.New(w.config, records, w)
	} else {
		hands := w.mistake.hypervisor(torn{w.Host(host), w, host})
		p.brain = agent.New(host, agent.Config{}, phone{p, hands}, records, w)
	}
	p.next, p.stop = iter.Pull(p.run)
	w.procs = append(w.procs, p)
	p.next()
}

// run looks whenever it may.
func (p *process) run(yield func(string) bool) {
	p.yield = yield
	for p.pass("") {
		if a, is := p.brain.(*agent.Agent); is && p.hints {
			a.Hint(web)
		}
		p.told, p.hints, p.wake = false, false, time.Time{}
		p.wake, _ = p.brain.Reconcile(ctx, p.w.Now()) // it asks for another look if it fails
	}
}

// pass stands before a call until it may be made; false is that it is not, because the
// process has died.
func (p *process) pass(call string) bool {
	if p.dead {
		return false
	}
	p.at = call
	p.dead = !p.yield(call)
	return !p.dead
}

// due reports whether the process has something to do now.
func (p *process) due() bool {
	return p.at != "" || p.told || !p.wake.IsZero() && !p.wake.After(p.w.Now())
}

// name is the host's, with a stroke for each other agent there that is older.
func (p *process) name() string {
	if p.host == "" {
		return "controller"
	}
	older := 0
	for _, o := range p.w.procs {
		if o == p {
			break
		}
		if o.host == p.host {
			older++
		}
	}
	return string(p.host) + strings.Repeat("'", older)
}

// line is a process's connection to the store.
type line struct {
	p    *process
	real store.Store
}

func (l line) fail(op string, key store.Key, kind store.StoreKind) error {
	return &store.StoreError{Op: op, Key: key, Kind: kind, Err: errors.New("it is not reached")}
}

// Get implements [store.Store].
func (l line) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if !l.p.pass("Get " + key.Name) {
		return nil, l.fail("Get", key, store.Unavailable)
	}
	return l.real.Get(ctx, key)
}

// Put implements [store.Store].
func (l line) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record,
	error) {
	if !l.p.pass("Put " + sketch(r)) {
		return nil, l.fail("Put", r.Key(), store.Unavailable)
	}
	w, refused, unanswered := l.p.w, l.p.refused, l.p.unanswered
	l.p.refused, l.p.unanswered = false, false
	if refused {
		w.say("    it is refused")
		return nil, l.fail("Put", r.Key(), store.Unavailable)
	}
	before, _ := w.store.Get(ctx, r.Key())
	stored, err := l.real.Put(ctx, r, while...)
	if err != nil {
		w.say("    %v", err)
		return nil, err
	}
	w.wrote(before, stored)
	if unanswered {
		w.say("    the answer is lost")
		return nil, l.fail("Put", r.Key(), store.Unanswered)
	}
	return stored, nil
}

// Delete implements [store.Store].
func (l line) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	if !l.p.pass("Delete " + r.Key().Name) {
		return l.fail("Delete", r.Key(), store.Unavailable)
	}
	return l.real.Delete(ctx, r, while...)
}

// Changes implements [store.Store].
func (l line) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes,
	error) {
	if !l.p.pass("Changes") {
		return store.Changes{}, l.fail("Changes", store.Key{}, store.Unavailable)
	}
	return l.real.Changes(ctx, f, since)
}

// sketch says what of a record people want to know.
func sketch(r store.Record) string {
	switch r := r.(type) {
	case *store.Migration:
		s, t := r.Source, r.Target
		words := []string{string(r.Spec.ID), r.State.Phase.String()}
		for _, f := range []struct {
			is   bool
			word string
		}{{s.Began, "began"}, {s.Started, "started"}, {s.HandedOver, "handed-over"},
			{s.Failed, "failed"}, {s.Unresolved, "unresolved"}, {s.Ceded, "ceded"},
			{s.Aborting, "aborting"}, {s.Released, "released"}, {t.Ready, "ready"},
			{t.Address != "", "listens"}, {t.Completed, "completed"}, {t.Lost, "lost"},
			{t.Down, "down"}, {t.Discarded, "discarded"},
			{r.State.Conditions.Has(migration.AbortRequested), "abort-requested"}} {
			if f.is {
				words = append(words, f.word)
			}
		}
		return strings.Join(words, " ")
	case *store.VM:
		return fmt.Sprintf("vm at %s claim %q boots %d doing %q ended %v stopped %v", r.Host,
			r.ActiveMigration, r.Boots, r.Operation, r.Ended, r.Stopped)
	case *store.Host:
		return fmt.Sprintf("host %s fenced %v", r.Host.Name, r.Fenced)
	}
	return r.Key().Name
}
