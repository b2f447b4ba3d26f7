package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

const (
	web = hypervisor.VMID("web")
	ms  = time.Millisecond
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A world is three hosts at most, one VM, and what happens.
type world struct {
	*fake.Network
	t       *testing.T
	store   *store.Memory
	mistake mistake
	config  controller.Config
	rng     *rand.Rand
	hosts   []hypervisor.HostName
	procs   []*process

	off    map[hypervisor.HostName]bool // has no power
	cut    bool                         // a link is
	hurt   bool                         // something has been broken
	moves  int                          // that were asked for
	tears  bool                         // see torn
	stuck  bool                         // an operator had to kill a guest that was torn
	killed map[hypervisor.HostName]hypervisor.JobID

	pasts  sim.Pasts
	log    []string
	broken error // the first violation
}

// play plays a world from its beginning to its rest.
func play(t *testing.T, seed uint64, m mistake) *world {
	t.Helper()
	w := &world{t: t, store: store.NewMemory(), mistake: m, rng: rand.New(rand.NewPCG(seed, 7)),
		off: map[hypervisor.HostName]bool{}, killed: map[hypervisor.HostName]hypervisor.JobID{}}
	defer w.end()
	w.populate()
	w.migrate()
	w.happen(900)
	w.rest()
	return w
}

// end ends every coroutine, also when the test fails or a participant panics.
func (w *world) end() {
	for len(w.procs) > 0 {
		w.procs[0].kill()
	}
}

// populate draws a world, and lets its processes start.
func (w *world) populate() {
	w.Network = fake.NewNetwork(epoch, fake.Model{SetUp: 100 * ms, SwitchOver: 100 * ms,
		Acknowledge: 100 * ms, BootTime: 3 * time.Second, ShutdownTime: time.Second})
	cluster := migration.DefaultCluster()
	if w.rng.IntN(2) == 0 {
		cluster.AllowPostCopy, cluster.CompletionTimeoutPerGiB = true, 2*time.Second
	}
	w.tears = cluster.AllowPostCopy && w.rng.IntN(2) == 0
	w.config = controller.Config{Cluster: &cluster}.Complete()
	w.hosts = []hypervisor.HostName{"n1", "n2", "n3"}[:2+w.rng.IntN(2)]
	link := []hypervisor.Bandwidth{hypervisor.Gbit, 10 * hypervisor.Gbit}[w.rng.IntN(2)]
	for _, n := range w.hosts {
		h := hypervisor.Host{Name: n, CPUs: 16, Memory: 64 * hypervisor.GiB, Link: link}
		_, err := w.AddHost(h)
		w.ok(err)
		w.put(&store.Host{Host: h})
	}
	load := fake.Workload{}
	if w.tears || w.rng.IntN(2) == 0 {
		load = fake.Workload{Rate: 4 * hypervisor.Bandwidth(hypervisor.GiB), Hot: hypervisor.GiB}
	}
	vm := hypervisor.VM{ID: web, Memory: hypervisor.GiB, CPUs: 1}
	w.ok(w.Host("n1").Boot(vm, load))
	w.put(&store.VM{VM: vm, Host: "n1", Migratable: true, Strategy: evacuation.LiveMigrate})
	w.say("hosts %v, the guest writes %v, post-copy is allowed: %v, and goes on when torn: %v",
		w.hosts, load.Rate, cluster.AllowPostCopy, w.tears)
	w.spawn("")
	for _, n := range w.hosts {
		w.spawn(n)
	}
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// put stores what operators write.
func (w *world) put(r store.Record) {
	w.t.Helper()
	_, err := w.store.Put(ctx, r)
	w.ok(err)
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%10v ", w.Now().Sub(epoch))+fmt.Sprintf(format, args...))
}

// Note implements [store.EventRecorder].
func (w *world) Note(_ time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	w.say("    note %s: %s %s", who, vm, what)
}

// step makes the call that a process stands before, and lets it go on to the next.
func (w *world) step(p *process) {
	what := p.at
	if what == "" {
		what = "looks"
	}
	w.say("%s %s", p.name(), what)
	p.next()
	w.settle()
}

// settle passes on what has happened, and checks it.
func (w *world) settle() {
	for _, h := range w.Hints() {
		w.hint(h.Host)
	}
	for _, f := range w.store.Changed() {
		for _, p := range w.procs {
			p.told = p.told || !f.Leases && p.host == f.Host
		}
	}
	if len(w.Touched()) > 0 {
		w.checkVM()
	}
}

// hint tells the agents of a host that something has happened to the VM.
func (w *world) hint(h hypervisor.HostName) {
	for _, p := range w.procs {
		if p.host == h {
			p.told, p.hints = true, true
		}
	}
}

// wait lets modelled time go on to the next thing that happens; false is that nothing will.
func (w *world) wait() bool {
	at, some := w.Next()
	for _, p := range w.procs {
		if !p.wake.IsZero() && p.wake.After(w.Now()) && (!some || p.wake.Before(at)) {
			at, some = p.wake, true
		}
	}
	if some {
		w.AdvanceTo(at)
		w.settle()
	}
	return some
}

// ready lists the processes that have something to do now.
func (w *world) ready() (list []*process) {
	for _, p := range w.procs {
		if p.due() {
			list = append(list, p)
		}
	}
	return list
}

// happen lets so many things happen. How often others get in between, how fast time passes,
// and how much goes wrong, is drawn once for a world: some are calm, and in some nothing ever
// comes to its end undisturbed.
func (w *world) happen(steps int) {
	faults := w.rng.IntN(7)
	sticky := []float64{0.3, 0.8, 0.95}[w.rng.IntN(3)]
	hasty := []float64{0.02, 0.1, 0.4}[w.rng.IntN(3)]
	often := []float64{1, 1, 3, 6}[w.rng.IntN(4)]
	var last *process
	for i := 0; i < steps && w.broken == nil; i++ {
		x := w.rng.Float64() / often
		if faults > 0 && (w.tense() && w.rng.IntN(12) == 0 ||
			w.tears && w.fetches() && w.rng.IntN(4) == 0) {
			x = harmful - 0.001
		}
		if w.intervene(x, &faults) {
			continue
		}
		list := w.ready()
		if len(list) == 0 || w.rng.Float64() < hasty && w.soon() {
			w.wait()
			continue
		}
		if !slices.Contains(list, last) || w.rng.Float64() > sticky {
			last = list[w.rng.IntN(len(list))]
		}
		w.step(last)
	}
}

// tense reports whether the VM is between two hosts, or off: what breaks then matters most.
func (w *world) tense() bool {
	copies := w.Network.Copies(web)
	return !slices.ContainsFunc(copies, func(c fake.Copy) bool {
		return c.State == hypervisor.Running || c.State == hypervisor.Paused
	}) || len(copies) > 1 && w.rng.IntN(4) == 0
}

// fetches reports whether the VM runs at its target and lacks memory.
func (w *world) fetches() bool {
	copies := w.Copies(web)
	in := func(s hypervisor.DomainState) bool {
		return slices.ContainsFunc(copies, func(c fake.Copy) bool { return c.State == s })
	}
	return len(copies) == 2 && in(hypervisor.HandingOver) && in(hypervisor.Running)
}

// soon reports whether what happens next happens soon.
func (w *world) soon() bool {
	at, some := w.Next()
	return some && at.Sub(w.Now()) < 10*time.Second
}

// rest lets a world come to rest: nothing breaks any more, everything is mended that was
// broken, and an operator kills a guest that cannot go on and does not end by itself.
func (w *world) rest() {
	if w.broken != nil {
		return
	}
	w.say("now nothing breaks any more")
	w.ClearFaults()
	w.heal()
	w.powerOn()
	for _, p := range w.procs {
		p.refused, p.unanswered = false, false
	}
	w.calm(10 * time.Minute)
	for _, h := range w.hosts {
		if w.isTorn(h) {
			w.stuck = true
			w.kill(h)
		}
	}
	w.calm(3 * time.Hour)
	w.checkAtRest()
}

// calm lets time pass. Every process that is ready gets its turn.
func (w *world) calm(d time.Duration) {
	until := w.Now().Add(d)
	for i := 0; w.broken == nil; i++ {
		if i > 50000 {
			w.violate("comes-to-rest", fmt.Errorf("%d calls in %v", i, d))
		}
		if list := w.ready(); len(list) > 0 {
			w.step(list[i%len(list)])
		} else if w.Now().After(until) || !w.wait() {
			return
		}
	}
}

// migrate asks for one more migration.
func (w *world) migrate() {
	w.moves++
	w.say("* migrate")
	w.put(&store.Migration{Spec: migration.Spec{Created: w.Now(), VM: web,
		ID: migration.ID(fmt.Sprintf("web#%d", w.moves))}})
	w.settle()
}
