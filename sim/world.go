package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Config configures a World. A zero field takes the default that it names.
type Config struct {
	Controller controller.Config
	Agent      agent.Config
	// Model is what the hypervisors cost. Default: [fake.QEMU].
	Model *fake.Model
	// Chooser makes the free choices. Default: Seeded(1).
	Chooser Chooser
	// Trace is told every entry of the trace. Default: none.
	Trace func(Entry)
	// Watch is told every change of a migration once it is stored, and when: before has
	// only a Spec when the migration is new. Neither may be changed. Default: none.
	Watch func(at time.Duration, before, after *store.Migration)
	// WatchVM is told every change of a VM once it is stored, and when. Default: none.
	WatchVM func(at time.Duration, before, after *store.VM)
	// Beside makes what runs in a process besides its controller ("") or its host's agent, to
	// send heartbeats or to watch for them. boot says how often the host was cut from power.
	// The world then leaves it to them who is lost, and who is fenced. Default: nothing.
	Beside func(w *World, host hypervisor.HostName, boot int, s store.Store) store.Participant
	// Claims lets every agent claim its host's name before it acts, and keep it by signs of
	// life, as in production: that takes an event every few seconds for each host. What people
	// do wrong with agents and their directories shows only then. Default: agents have theirs.
	Claims bool
	// Marks lets every process remember the newest moment of the store that it has seen, agents keep
	// ledgers, and a leader admit agents before they act, as in production. It needs Claims. Default: no process
	// remembers, and the store is never set back.
	Marks bool
	// Store stands between a process ("" is the controller's, the others are agents') and the
	// records: a store of one's own, or one that does something wrong. It is asked for one
	// whenever a process starts; what the one before kept is gone. Default: the records.
	Store func(host hypervisor.HostName, records store.Store) store.Store
	// After is called after every event, once all that follows from it at that moment is
	// done; when it answers false the world stops. It changes nothing. Default: go on.
	After func(*World) bool
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
	// Quiet is how long nothing may happen before a world has come to rest. While a VM starts
	// or shuts down, or a disk is copied, it has not.
	// Default: 20m; but 70m, longer than any agent waits before it looks at
	// everything again, once something has been broken; and 5m longer than
	// controllers are configured to wait: a back-off, the timeout of a phase.
	Quiet time.Duration
	// Futile is how long only the same migrations may fail, again and again,
	// before a world is given up. Default: 6h.
	Futile time.Duration
}

// Validate returns every reason why c cannot be meant.
func (c Config) Validate() error {
	return errors.Join(c.Controller.Validate(), c.Agent.Validate(), workqueue.CheckSpans("sim.Config",
		workqueue.Span{Name: "Delay", Value: c.Delay}, workqueue.Span{Name: "Lease", Value: c.Lease},
		workqueue.Span{Name: "Quiet", Value: c.Quiet}, workqueue.Span{Name: "Futile", Value: c.Futile}))
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
		{&c.Futile, 6 * time.Hour}} {
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
	config  Config
	ctx     context.Context
	now     time.Time
	since   time.Duration // the same, since Epoch
	network *fake.Network
	store   *store.Memory
	boss    *controller.Controller

	people map[hypervisor.HostName]*participant
	order  []hypervisor.HostName // agents, as they were added
	wakes  workqueue.Alarms[*participant]
	plans  eventQueue[Event]
	broken map[breakage]time.Duration // until when, by faults that have an end or are for good

	watch      watch
	past       past
	invariants invariantView
	laws       laws
	limits     migration.Limits
	zero       map[hypervisor.VMID]int                  // memory never written, in parts per thousand
	host       store.Host                               // scratch of AddHost: the store keeps a copy
	vm         store.VM                                 // scratch of AddVM
	size       *store.Size                              // of the VM that was added last
	added      map[hypervisor.HostName]hypervisor.Bytes // what was added to hosts
	steps      int                                      // events so far
	changed    time.Time                                // when something last happened
	halted     bool                                     // Config.After said so
	ticked     bool                                     // Config.Tick said so in this run
	ticks      int                                      // how often Config.Tick was asked in it
	rests      time.Duration                            // until when nothing more happens, since Epoch
	stirs      time.Time                                // when something happens on the network next; zero is never
	waits      time.Duration                            // the longest that controllers wait before they go on, and a margin
}

// New returns an empty world with a controller. It panics when [Config.Validate] refuses the
// configuration.
func New(config Config) *World {
	if err := config.Validate(); err != nil {
		panic("sim: " + err.Error())
	}
	config.Controller = config.Controller.Complete()
	w := &World{config: config.complete(), ctx: context.Background(), now: Epoch,
		store: store.NewMemory(), people: map[hypervisor.HostName]*participant{},
		zero: map[hypervisor.VMID]int{}, changed: Epoch,
		added: map[hypervisor.HostName]hypervisor.Bytes{}, broken: map[breakage]time.Duration{}}
	w.past.history.Cluster, w.waits = cluster, longestWait(&config.Controller)
	w.network, w.limits = fake.NewNetwork(Epoch, *w.config.Model), config.Controller.Limits()
	w.network.Spare() // agents keep no list
	w.watch, w.invariants, w.laws = newWatch(w), invariantView{World: w}, sortedLaws()
	w.store.Watch(w.watch.stored)
	w.join("", nil)
	return w
}

// Expect makes room for so many VMs, before there are any. Without it worlds grow as they go.
func (w *World) Expect(vms int) {
	w.store.Grow(vms)
	w.network.Grow(vms)
	w.watch.Grow(vms)
}

// AddHost adds a host and its agent. Where its facts name a rack, moves between racks
// share the racks' up-links.
func (w *World) AddHost(h store.Host) error {
	real, err := w.network.AddHost(h.Host)
	if err != nil {
		return err
	}
	if f := h.Facts; f != nil && f.Rack != "" {
		if err := w.network.Place(h.Host.Name, f.Rack, f.Uplink); err != nil {
			return err
		}
	}
	w.host = h
	if _, err := w.store.Put(w.ctx, &w.host); err != nil {
		return err
	}
	w.order = append(w.order, h.Host.Name)
	w.join(h.Host.Name, real)
	if p := w.people[h.Host.Name]; p.claim != nil { // it is no new host
		_, err = p.claim.Reconcile(w.ctx, w.now)
		if w.config.Marks {
			w.changeHost(h.Host.Name, func(h *store.Host) { h.Admitted = h.Session })
		}
	}
	return err
}

// AddVM adds a VM that runs on its host.
func (w *World) AddVM(v store.VM, load fake.Workload) error {
	if host := w.network.Host(v.Host); host == nil {
		return fmt.Errorf("VM %s: there is no host %q", v.VM.ID, v.Host)
	} else if err := host.Boot(v.VM, load); err != nil {
		return err
	}
	if load.Zero > 0 {
		w.zero[v.VM.ID] = load.Zero
	}
	v.Size = w.sizeOf(v.VM) // as if its agent had started it
	w.vm = v
	if _, err := w.store.Put(w.ctx, &w.vm); err != nil {
		return err
	}
	w.added[v.Host] += w.vm.Place().Demand()
	if h := w.HostRecord(v.Host); h != nil && w.added[v.Host] > h.Host.Memory {
		w.watch.overbooked[v.Host] = true
	}
	return nil
}

// sizeOf returns the size of a VM. Many are alike, and share it.
func (w *World) sizeOf(vm hypervisor.VM) *store.Size {
	if s := w.size; s == nil || vm.Hardware != nil || s.Disks != nil || !s.Is(vm) {
		w.size = store.SizeOf(vm)
	}
	return w.size
}

// Now returns the virtual time since the beginning.
func (w *World) Now() time.Duration { return w.since }

// Network returns the modelled hypervisors.
func (w *World) Network() *fake.Network { return w.network }

// Store returns the records. A writer of them is an operator.
func (w *World) Store() *store.Memory { return w.store }

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
	Stopped                // Tick or After said so
)

// String says why a run ended.
func (e Ending) String() string {
	return humanize.String(e, endings[:])
}

var endings = [...]string{"at rest", "futile", "time is up", "stopped"}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (e Ending) MarshalText() ([]byte, error) { return humanize.Text(e, endings[:], "ending") }

// UnmarshalText reads a word that MarshalText wrote.
func (e *Ending) UnmarshalText(text []byte) error {
	return humanize.Parse(e, endings[:], "ending", text)
}

// Run takes events until nothing more is to be learned or the virtual time until
// has come.
func (w *World) Run(until time.Duration) Ending {
	end := Epoch.Add(until)
	w.rests = 0
	w.settle(nil) // what was done since it last ran
	w.ticks, w.ticked = 0, false
	for {
		next, ok := w.next()
		switch {
		case w.stops():
			return Stopped
		case w.plans.Len() == 0 && (!ok || w.atRest(next)):
			w.rests = until
			return AtRest
		case w.plans.Len() == 0 && w.futile(next):
			return Futile
		case next.After(end):
			w.advance(end)
			return TimeIsUp
		}
		w.step(next)
	}
}

// atRest reports whether nothing more happens that is worth waiting for, when the next look is at that time.
func (w *World) atRest(next time.Time) bool {
	return workqueue.Between(w.changed, next) > w.quiet() && !w.network.Busy()
}

// quiet returns how long nothing must have happened in a world at rest.
func (w *World) quiet() time.Duration {
	quiet := 20 * time.Minute
	switch {
	case w.config.Quiet > 0:
		return w.config.Quiet
	case w.watch.faulty:
		quiet = 70 * time.Minute
	}
	return max(quiet, w.waits)
}

// futile reports whether all that has happened for long is that the same migrations fail again. What is under way
// on the network is to end first, and to be seen.
func (w *World) futile(next time.Time) bool {
	if workqueue.Between(Epoch, next)-w.watch.News <= max(w.config.Futile, w.waits) {
		return false
	}
	if w.network.Busy() {
		w.watch.News = w.Now()
		return false
	}
	return true
}

// margin is how much longer than a participant waits nothing must have happened.
const margin = 5 * time.Minute

// longestWait returns the longest that a controller waits before it goes on with what has begun, and a margin. A migration that
// finds no target waits for a day, and that is rest.
func longestWait(c *controller.Config) time.Duration {
	m := &c.Migration
	backoff, t := m.BackoffCap, &m.Timeouts
	if m.Compatible { // it has no cap, and doubles with each failure that is kept
		backoff = workqueue.Backoff(m.BackoffBase, math.MaxInt64, max(0, m.Keep-1))
	}
	return workqueue.Later(margin, max(backoff, m.AvoidFor, c.RetryCap, t.Unschedulable, t.Target, t.HandOver,
		t.Prepare, t.Begin, t.Abort, t.UtilityVolumes))
}

// next returns when something happens next.
func (w *World) next() (time.Time, bool) {
	w.stirs, _ = w.network.Next()
	at := workqueue.Earliest(w.wakes.Next(), w.stirs)
	if t, ok := w.plans.Next(); ok {
		at = workqueue.Earliest(at, Epoch.Add(t))
	}
	return at, !at.IsZero()
}

// stops reports whether After or Tick said that the world is to stop.
func (w *World) stops() bool {
	if n := w.steps / 4096; n != w.ticks && w.config.Tick != nil {
		w.ticks = n
		w.ticked = !w.config.Tick(w)
	}
	return w.halted || w.ticked
}

// step takes everything that happens at one moment: first what was planned,
// then the network, then the participants that are to look. It stops on the way when After or Tick says so: at one
// moment more may happen than ever ends.
func (w *World) step(at time.Time) {
	w.advance(at)
	for !w.stops() {
		what, ok := w.plans.Take(w.Now())
		if !ok {
			break
		}
		w.steps++
		what.happen(w)
		w.changed, w.watch.News = w.now, w.Now()
		w.settle(nil)
	}
	for !w.stops() {
		p, ok := w.wakes.Pop(w.now)
		if !ok {
			break
		}
		w.steps++
		if p.reborn {
			p.reborn = false
			w.say(p.host, "", "process restarts")
			w.spawn(p)
			w.hears(p)
			w.settle(nil)
			continue
		}
		w.run(p)
		w.settle(p)
	}
}

// advance moves time, lets the network catch up, and passes on what happens there, if
// anything does.
func (w *World) advance(at time.Time) {
	if at.After(w.now) {
		w.now, w.since = at, workqueue.Between(Epoch, at)
	}
	w.network.AdvanceTo(w.now)
	if !w.stirs.IsZero() && !w.stirs.After(w.now) {
		w.settle(nil)
	}
}

// settle passes on what changed, and checks the invariants. Who has written all of it, and got
// every answer, is not woken: no process needs to be told of what it has done itself.
func (w *World) settle(writer *participant) {
	for _, h := range w.network.Hints() {
		w.steps++
		if h.What != fake.PassFinished {
			w.changed = w.now
		}
		p := h.Reader.(*participant)
		if a, ok := p.brain.(*agent.Agent); ok && !p.dropsUntil.After(w.now) && a.Hint(h.VM) {
			w.wake(p, w.now.Add(w.late()))
		}
	}
	for _, news := range w.store.News() {
		if news.Feed.Leases {
			continue // its observer looks by itself
		}
		w.changed = w.now
		p, _ := news.Reader.(*participant)
		switch {
		case p == nil || p.brain == nil || p.dropsUntil.After(w.now):
		case p != writer || !p.answered():
			w.wake(p, w.now.Add(w.late()))
		}
	}
	w.watch.check()
	w.halted = w.halted || w.config.After != nil && !w.config.After(w)
}

// late returns how late a message is.
func (w *World) late() time.Duration {
	ms := max(1, int(w.config.Delay/time.Millisecond))
	return time.Duration(1+w.config.Chooser.Choose("delay", ms)) * time.Millisecond
}
