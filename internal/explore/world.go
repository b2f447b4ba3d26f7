package explore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Epoch is when every world begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a scene that is being played. What is in it beyond state is only changed
// together with touched, so that it can be brought back.
type World struct {
	Scene   *Scene
	config  controller.Config
	agents  agent.Config
	wrong   Judge
	limits  migration.Limits
	Network *fake.Network
	Store   *store.Memory
	ctx     context.Context
	lines   []*line
	phones  []*phone

	State
	Look    LookStep // the one under way
	Broken  *Violation
	Touched uint                // parts that have changed since it was cleared
	backup  []store.Record      // what was stored in the beginning
	saved   store.Revision      // the last one then
	copies  [maxVMs][]fake.Copy // scratch
	Tell    func(string)        // is told what happens; nil is none
}

// State is what of a world is copied as it is.
type State struct {
	Now    time.Time
	Procs  [1 + maxHosts]Process // the controller, then the agents
	Script int                   // how much of the script was done
	Waits  bool                  // operators wait until nothing else is to be done
	Faults int                   // how many more there may be
	Odd    int                   // how many more steps may be other than usual; below 0 all
	hurt   bool                  // there was one
	Cut    uint                  // links that are cut, by pair
	Since  time.Time             // when something was last broken, or put off
	Older  [maxVMs]sim.Past
	// Orphans are the VMs, by host, that ran on there when an operator's word that the host is
	// off was found to be wrong.
	Orphans [1 + maxHosts]uint
	Empty   uint // hosts whose agents have an empty directory
	Back    bool // the store was set back
	Ledgers [1 + maxHosts]Pages
	Gate
	listed
}

// Process is a participant's process.
type Process struct {
	Brain Reconciler // nil while it is dead
	Told  bool       // something has changed since it looked
	Hints uint       // the VMs that something may have happened to
	Wake  time.Time  // when it wants to look; zero is never
	Seen  store.Revision
	Off   bool // its host has no power
	Hung  bool // it does nothing
	Gone  bool // it was refused its host's name, and has ended
	born       // of all processes in its place
}

// born counts starts.
type born struct{ starts, boots int }

// A Reconciler is a controller or an agent.
type Reconciler interface {
	Reconcile(context.Context, time.Time) (time.Time, error)
}

// The parts of a world that change apart: the processes by number, then these.
const (
	theFabric = 1 + maxHosts + iota
	theStore
	Parts
	theClock = Parts // of the hypervisors: no part, but where TheFabric keeps the time
)

// newModel builds a scene. It panics on one that does not check.
func newModel(s *Scene, faults int) *World {
	w := &World{Scene: s, ctx: context.Background(), Store: store.NewMemory()}
	w.History.Cluster = cluster
	w.configure(s)
	w.limits = w.config.Limits()
	w.Now, w.Faults = Epoch, faults
	w.Network = fake.NewNetwork(Epoch, fake.QEMU())
	w.lines = append(w.lines, &line{w: w})
	w.phones = append(w.phones, nil)
	for i, h := range s.Hosts {
		room := max(h.Room, 0)
		if room == 0 {
			room = len(s.VMs)
		}
		host := hypervisor.Host{Name: h.Name, CPUs: 16, Link: 1250 * 1000 * 1000,
			Memory: memory * hypervisor.Bytes(room)}
		real, err := w.Network.AddHost(host)
		must(err)
		if h.As == "" {
			w.put(&store.Host{Host: host})
		}
		w.lines = append(w.lines, &line{w: w, p: i + 1})
		w.phones = append(w.phones, &phone{w: w, real: real})
	}
	for _, v := range s.VMs {
		vm := hypervisor.VM{ID: v.Name, Memory: memory, CPUs: 1}
		load := fake.Workload{}
		if v.Busy {
			load = fake.Workload{Rate: 4 * hypervisor.Bandwidth(memory), Hot: memory}
		}
		must(w.Network.Host(v.Host).Boot(vm, load))
		stored := &store.VM{VM: vm, Host: v.Host, Migratable: true,
			Strategy: evacuation.LiveMigrate}
		if s.Backup {
			stored.Life, stored.Moves = life(0), 1
		}
		w.put(stored)
	}
	for p := range w.Procs[:len(w.lines)] {
		if !w.second(p) {
			w.spawn(p)
			w.claimed(p)
		}
	}
	for p := 1; p < len(w.lines) && s.Marks; p++ {
		if w.record(uint8(p)).Unadmitted() {
			w.admit(p)
		}
	}
	w.settle(-1)
	if s.Backup {
		all, _ := w.Store.Changes(w.ctx, store.Everything, 0) // memory does not fail
		w.backup, w.saved = all.Records, w.revision()
	}
	return w
}

// configure says by what the controller and the agents decide.
func (w *World) configure(s *Scene) {
	cluster := migration.DefaultCluster()
	for _, l := range []struct{ field, value *int }{
		{&cluster.ParallelMigrationsPerCluster, &s.PerCluster},
		{&cluster.ParallelOutboundMigrationsPerNode, &s.PerSource},
		{&cluster.ParallelInboundMigrationsPerNode, &s.PerTarget}} {
		if *l.value > 0 {
			*l.field = *l.value
		}
	}
	if s.PostCopy {
		cluster.AllowPostCopy, cluster.CompletionTimeoutPerGiB = true, hurry
	}
	w.config = controller.Config{Cluster: &cluster}
	if s.Configure != nil {
		w.wrong = s.Configure(&w.config, &w.agents)
	}
	w.config = w.config.Complete()
}

func must(err error) {
	if err != nil {
		panic("explore: the scene cannot be built: " + err.Error())
	}
}

// put stores what operators write, and what was read at this very moment.
func (w *World) put(r store.Record) {
	before, _ := w.Store.Get(w.ctx, r.Key())
	stored, err := w.Store.Put(w.ctx, r)
	must(err)
	w.wrote(before, stored)
}

// hostOf returns a process's host; "" is the controller's.
func (w *World) hostOf(p int) hypervisor.HostName {
	if p == 0 {
		return ""
	}
	return cmp.Or(w.Scene.Hosts[p-1].As, w.Scene.Hosts[p-1].Name)
}

// machine returns the machine on which a process is.
func (w *World) machine(p int) hypervisor.HostName { return w.Scene.Hosts[p-1].Name }

// spawn starts a process that knows nothing, and wants to look at once.
func (w *World) spawn(p int) {
	proc := &w.Procs[p]
	*proc = Process{Wake: w.Now, Off: proc.Off, born: proc.born}
	proc.starts++
	switch {
	case p == 0:
		proc.Brain = controller.New(w.config, w.lines[0], w)
	case w.Scene.Claims:
		proc.Brain = w.claimant(p)
	default:
		proc.Brain = agent.New(w.hostOf(p), w.agentConfig(p), w.phones[p], w.lines[p], w)
	}
	w.touch(p)
}

// kill ends a process. What it kept in memory is gone.
func (w *World) kill(p int) {
	w.Procs[p] = Process{Off: w.Procs[p].Off, born: w.Procs[p].born}
	if p == 0 && w.Unmarked { // it keeps a mark once it has heard all
		w.Marks[0] = store.Mark{}
	}
	w.touch(p)
}

func (w *World) touch(part int) { w.Touched |= 1 << part }

// Note implements store.EventRecorder.
func (w *World) Note(_ time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	if w.Tell == nil {
		return
	}
	if who == "" {
		who = "controller"
	}
	w.Tell(string(who) + ": " + string(vm) + " " + what)
}

// LookStep is how a participant looks.
type LookStep struct {
	fate    WriteResult
	at      int  // which write or command the fate is for
	stale   bool // it sees nothing new in the store
	Effects int  // writes and commands so far
	died    bool
}

// effect counts a write or a command, and says what becomes of it.
func (w *World) effect() WriteResult {
	w.Look.Effects++
	switch {
	case w.Look.died:
		return Dies
	case w.Look.fate == Well || w.Look.Effects-1 != w.Look.at:
		return Well
	case w.Look.fate == Dies:
		w.Look.died = true
	}
	return w.Look.fate
}

// due reports whether a process may look without time going on.
func (w *World) due(p int) bool {
	proc := &w.Procs[p]
	late := !proc.Wake.IsZero() && !proc.Wake.After(w.Now)
	return proc.Brain != nil && !proc.Hung && (proc.Told || late)
}

// takeLook lets a process look once; time goes on to when it wants to unless it is due.
// It reports whether the fate was met.
func (w *World) takeLook(p int, how LookStep) bool {
	proc := &w.Procs[p]
	if !w.due(p) && !proc.Wake.IsZero() {
		w.advance(proc.Wake)
	}
	if a := agentIn(proc.Brain); a != nil {
		for i := range w.Scene.VMs {
			if proc.Hints>>i&1 == 1 {
				a.Hint(w.Scene.VMs[i].Name)
			}
		}
	}
	proc.Hints, proc.Wake, proc.Told = 0, time.Time{}, proc.Told && how.stale
	w.Look = how
	wake := w.reconcile(proc.Brain)
	w.touch(p)
	if w.Look.died {
		w.kill(p)
	} else if !wake.IsZero() {
		proc.Wake = wake
		if wake.Before(w.Now) {
			proc.Wake = w.Now
		}
	}
	w.doubted()
	w.settle(p)
	w.claims(p)
	w.settle(-1) // a process that is to hear of that hears of it in this step, from whichever state it is taken
	return how.fate == Well || w.Look.Effects > how.at
}

// reconcile lets a participant look, and says when it wants to look again, which it does after
// an error, too. A panic is a violation.
func (w *World) reconcile(who Reconciler) (wake time.Time) {
	defer func() {
		if r := recover(); r != nil {
			w.violate("no-panic", fmt.Errorf("%v", r))
		}
		w.judge()
	}()
	wake, _ = who.Reconcile(w.ctx, w.Now)
	return wake
}

// advance lets modelled time go on, and the hypervisors with it. Until something happens in
// one only the time changes there.
func (w *World) advance(to time.Time) {
	w.touch(theClock)
	for {
		next, ok := w.Network.Next()
		if !ok || next.After(to) {
			break
		}
		w.touch(theFabric)
		w.Network.AdvanceTo(next)
		w.Now = next
		w.settle(-1)
	}
	w.Network.AdvanceTo(to)
	if to.After(w.Now) {
		w.Now = to
	}
}

// settle passes on what has changed, and checks the VMs that it has happened to. A participant that
// has written is not told of it: to look once more for that is a fault like any other.
func (w *World) settle(writer int) {
	for _, h := range w.Network.Hints() {
		p := w.Scene.hostIndex(string(h.Host)) + 1
		if proc := &w.Procs[p]; proc.Brain != nil {
			proc.Told = true
			proc.Hints |= 1 << w.Scene.vmIndex(string(h.VM))
		}
	}
	for _, f := range w.Store.Changed() {
		p := w.Scene.hostIndex(string(f.Host)) + 1
		for ; p < len(w.lines); p++ {
			proc := &w.Procs[p]
			if !f.Leases && p != writer && proc.Brain != nil && w.hostOf(p) == f.Host {
				proc.Told = true
			}
		}
	}
	for _, vm := range w.Network.Touched() {
		w.checkVM(vm)
	}
}

// Len returns how many processes there are.
func (w *World) Len() int { return len(w.lines) }

// Part returns what a part of the world consists of, a pointer; nil is a process that is
// dead, or none.
func (w *World) Part(part int) any {
	switch {
	case part == theFabric:
		return w.Network
	case part == theStore:
		return w.Store
	case part >= len(w.lines) || w.Procs[part].Brain == nil:
		return nil
	}
	return w.Procs[part].Brain
}
