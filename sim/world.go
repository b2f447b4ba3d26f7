package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/lease"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/agenda"
	"github.com/godwit-vm/godwit/sim/flaky"
)

// Config configures a World. A zero field takes the default that it names.
type Config struct {
	Controller controller.Config
	Agent      agent.Config
	// Model is what the hypervisors cost. Default: [fake.QEMU].
	Model *fake.Model
	// Chooser makes the free choices. Default: Seeded(1).
	Chooser Chooser
	// Trace is told every entry of the trace. Default: nobody.
	Trace func(Entry)
	// Watch is told every change of a migration once it is stored, and when: before has
	// only a Spec when the migration is new. Neither may be changed. Default: nobody.
	Watch func(at time.Duration, before, after *record.Migration)
	// Beside makes what runs in a process besides its controller ("") or its host's agent, to
	// give signs of life or to watch for them. boot says how often the host was cut from power.
	// The world then leaves it to them who is lost, and who is fenced. Default: nothing.
	Beside func(w *World, host hypervisor.HostName, boot int, s record.Store) lease.Participant
	// Tick is called every few thousand events; when it answers false the world
	// stops. Default: go on.
	Tick func(*World) bool
	// Verbose traces the errors that participants meet, too.
	Verbose bool
	// Delay bounds how late participants hear of a change. Default: 10ms.
	Delay time.Duration
	// Lease is how long an agent may be silent before its host counts as lost.
	// Default: 30s.
	Lease time.Duration
	// RestartAfter is how long a process that died stays dead. Default: 5s.
	RestartAfter time.Duration
	// Quiet is how long nothing may happen before a world has come to rest.
	// Default: 20m; but 70m, longer than any agent waits before it looks at
	// everything again, once something has been broken.
	Quiet time.Duration
	// Futile is how long only the same migrations may fail, again and again,
	// before a world is given up. Default: 6h.
	Futile time.Duration
}

func (c Config) complete() Config {
	if c.Model == nil {
		m := fake.QEMU()
		c.Model = &m
	}
	if c.Chooser == nil {
		c.Chooser = Seeded(1)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Delay, 10 * time.Millisecond}, {&c.Lease, 30 * time.Second},
		{&c.RestartAfter, 5 * time.Second}, {&c.Futile, 6 * time.Hour}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c
}

// Epoch is when every world begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a cluster in virtual time.
type World struct {
	config Config
	ctx    context.Context
	now    time.Time
	fabric *fake.Fabric
	store  *record.Memory
	boss   *controller.Controller

	people map[hypervisor.HostName]*participant
	order  []hypervisor.HostName // agents, as they were added
	wakes  due.Timers[*participant]
	plans  agenda.Agenda[Event]

	watch   watch
	sight   sight
	limits  migration.Limits
	zero    map[hypervisor.VMID]int // memory never written, in parts per thousand
	steps   int                     // events so far
	changed time.Time               // when something last happened
}

// New returns an empty world with a controller.
func New(config Config) *World {
	config.Controller = config.Controller.Complete()
	w := &World{config: config.complete(), ctx: context.Background(), now: Epoch,
		store: record.NewMemory(), people: map[hypervisor.HostName]*participant{},
		zero: map[hypervisor.VMID]int{}, changed: Epoch}
	w.fabric = fake.NewFabric(Epoch, *w.config.Model)
	w.watch, w.sight = newWatch(w), sight{World: w}
	w.limits = config.Controller.Limits()
	boss := &participant{line: w.connect()}
	w.people[""] = boss
	w.spawn(boss)
	return w
}

// connect returns a new connection to the store. Every writing of a migration is
// watched, not only the last before somebody looks.
func (w *World) connect() *flaky.Store {
	return &flaky.Store{Real: w.store, Wrote: func(r record.Record) {
		if m, ok := r.(*record.Migration); ok {
			w.watch.migration(m)
		}
	}}
}

// AddHost adds a host and its agent. Where its facts name a rack, moves between racks
// share the racks' up-links.
func (w *World) AddHost(h record.Host) error {
	real, err := w.fabric.AddHost(h.Host)
	if err != nil {
		return err
	}
	if f := h.Facts; f != nil && f.Rack != "" {
		if err := w.fabric.Place(h.Host.Name, f.Rack, f.Uplink); err != nil {
			return err
		}
	}
	if _, err := w.store.Put(w.ctx, &h); err != nil {
		return err
	}
	l := w.connect()
	p := &participant{host: h.Host.Name, line: l, real: real,
		phone: &flaky.Hypervisor{Real: real, Store: l}}
	w.people[p.host] = p
	w.order = append(w.order, p.host)
	w.spawn(p)
	return nil
}

// AddVM adds a VM that runs on its host.
func (w *World) AddVM(v record.VM, load fake.Workload) error {
	host := w.fabric.Host(v.Host)
	if host == nil {
		return fmt.Errorf("VM %s: there is no host %q", v.VM.ID, v.Host)
	}
	if err := host.Boot(v.VM, load); err != nil {
		return err
	}
	if load.Zero > 0 {
		w.zero[v.VM.ID] = load.Zero
	}
	v.Size = record.SizeOf(v.VM) // as if its agent had started it
	_, err := w.store.Put(w.ctx, &v)
	return err
}

// Now returns the virtual time since the beginning.
func (w *World) Now() time.Duration { return w.now.Sub(Epoch) }

// Fabric returns the modelled hypervisors.
func (w *World) Fabric() *fake.Fabric { return w.fabric }

// Store returns the records. Whoever writes them is an operator.
func (w *World) Store() *record.Memory { return w.store }

// At schedules something: what it does happens at the virtual time t, or now
// when t has passed.
func (w *World) At(t time.Duration, what Event) {
	w.plans.Add(max(t, w.Now()), what)
}

// An Ending is why a run ended.
type Ending uint8

// The endings.
const (
	AtRest   Ending = iota // nothing happens any more
	Futile                 // all that happens is that the same migrations fail again
	TimeIsUp               // the time that was asked for has come
	Stopped                // Tick said so
)

// String says why a run ended.
func (e Ending) String() string {
	return [...]string{"at rest", "futile", "time is up", "stopped"}[e]
}

// Run takes events until nothing more is to be learned or the virtual time until
// has come.
func (w *World) Run(until time.Duration) Ending {
	end := Epoch.Add(until)
	for ticks := 0; ; {
		next, ok := w.next()
		if n := w.steps / 4096; n != ticks && w.config.Tick != nil {
			ticks = n
			if !w.config.Tick(w) {
				return Stopped
			}
		}
		switch {
		case w.plans.Len() == 0 && (!ok || next.Sub(w.changed) > w.quiet()):
			return AtRest
		case w.plans.Len() == 0 && next.Sub(w.watch.news) > w.config.Futile:
			return Futile
		case next.After(end):
			w.advance(end)
			return TimeIsUp
		}
		w.step(next)
	}
}

// quiet returns how long nothing must have happened in a world at rest.
func (w *World) quiet() time.Duration {
	switch {
	case w.config.Quiet > 0:
		return w.config.Quiet
	case w.watch.faulty:
		return 70 * time.Minute
	}
	return 20 * time.Minute
}

// next returns when something happens next.
func (w *World) next() (time.Time, bool) {
	at := w.wakes.Next()
	if t, ok := w.fabric.Next(); ok {
		at = due.Earliest(at, t)
	}
	if t, ok := w.plans.Next(); ok {
		at = due.Earliest(at, Epoch.Add(t))
	}
	return at, !at.IsZero()
}

// step takes everything that happens at one moment: first what was planned,
// then the fabric, then who is to look.
func (w *World) step(at time.Time) {
	w.advance(at)
	for what, ok := w.plans.Take(w.Now()); ok; what, ok = w.plans.Take(w.Now()) {
		w.steps++
		what.happen(w)
		w.changed, w.watch.news = w.now, w.now
		w.settle()
	}
	for p, ok := w.wakes.Pop(w.now); ok; p, ok = w.wakes.Pop(w.now) {
		w.steps++
		if p.reborn {
			p.reborn = false
			w.say(p.host, "", "process restarts")
			w.spawn(p)
			continue
		}
		w.run(p)
		w.settle()
	}
}

// advance moves time, lets the fabric catch up, and passes its hints on.
func (w *World) advance(at time.Time) {
	if at.After(w.now) {
		w.now = at
	}
	w.fabric.AdvanceTo(w.now)
	w.settle()
}

// settle passes on what changed, and checks the invariants.
func (w *World) settle() {
	for _, h := range w.fabric.Hints() {
		w.steps++
		if h.What != fake.PassFinished {
			w.changed = w.now
		}
		p := w.people[h.Host]
		if a, ok := p.brain.(*agent.Agent); ok && !p.deaf.After(w.now) {
			a.Hint(h.VM)
			w.wake(p, w.now.Add(w.late()))
		}
	}
	for _, f := range w.store.Changed() {
		if f.Signs {
			continue // whoever watches for them looks by itself
		}
		w.changed = w.now
		if p := w.people[f.Host]; p != nil && p.brain != nil && !p.deaf.After(w.now) {
			w.wake(p, w.now.Add(w.late()))
		}
	}
	w.watch.look()
}

// late returns how late a message is.
func (w *World) late() time.Duration {
	ms := max(1, int(w.config.Delay/time.Millisecond))
	return time.Duration(1+w.config.Chooser.Choose("delay", ms)) * time.Millisecond
}
