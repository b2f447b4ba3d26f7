package sim

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// Faults. Each says when it ends; until the last one has ended nothing is
// promised about when migrations end.
type (
	// CrashController ends the controller's process; CrashAgent a host's
	// agent's. It starts again after For. With After it dies in the middle of
	// its work, when it attempts the write after so many.
	CrashController struct {
		For   time.Duration
		After *int
	}
	// CrashAgent is CrashController for the agent of a host.
	CrashAgent struct {
		Host  hypervisor.HostName
		For   time.Duration
		After *int
	}
	// DropNotifications lets a participant ("" is the controller) miss hints and
	// notifications.
	DropNotifications struct {
		Host hypervisor.HostName
		For  time.Duration
	}
	// Repeat tells a participant of everything twice: it looks for no reason.
	Repeat struct{ Host hypervisor.HostName }
	// StaleReads lets a participant see the store as it is now, for a while.
	StaleReads struct {
		Host hypervisor.HostName
		For  time.Duration
	}
	// Conflict rewrites the unfinished migrations of a VM, unchanged: a participant that
	// has read one loses the race.
	Conflict struct{ VM hypervisor.VMID }
	// DropAnswers lets so many writes of a participant take effect without an answer.
	DropAnswers struct {
		Host  hypervisor.HostName
		Times int
	}
	// FullStore lets the store take no writes from participants.
	FullStore struct{ For time.Duration }
	// CrashHypervisor ends a host's hypervisor daemon: its VMs run on, and
	// it cannot be reached.
	CrashHypervisor struct {
		Host hypervisor.HostName
		For  time.Duration
	}
	// Break lets calls to a host's hypervisor go wrong.
	Break struct{ Fault fake.Fault }
	// CutLink drops everything between two hosts; after For it heals. Zero is
	// for ever.
	CutLink struct {
		A, B hypervisor.HostName
		For  time.Duration
	}
	// ResetLink closes every connection between two hosts.
	ResetLink struct{ A, B hypervisor.HostName }
	// KillVM ends the hypervisor process of a VM on a host.
	KillVM struct {
		Host hypervisor.HostName
		VM   hypervisor.VMID
	}
	// CrashHost cuts a host from power; it comes back after For, its agent with
	// it. Zero is never.
	CrashHost struct {
		Host hypervisor.HostName
		For  time.Duration
	}
	// Fence cuts a host from power and makes that known for sure.
	Fence struct{ Host hypervisor.HostName }
	// Return brings back a host that crashed or was fenced.
	Return struct{ Host hypervisor.HostName }
	// Skew sets a participant's clock ahead, or back.
	Skew struct {
		Host hypervisor.HostName
		By   time.Duration
	}
)

// fault notes that something breaks.
func (w *World) fault(host hypervisor.HostName, what string) {
	w.say(host, "", what)
	w.watch.faulty = true
}

// later lets a fault end.
func (w *World) later(after time.Duration, how func(*World)) {
	w.At(workqueue.Later(w.Now(), after), ending(how))
}

// A breakage is what a fault breaks for a while.
type breakage struct {
	what string
	of   hypervisor.HostName // "" is the controller, or the store
	to   hypervisor.HostName // of a link
}

// breaks lets something be broken for a while. Of several faults that break it the one counts that lasts
// longest: it is mended once, when the last has ended.
func (w *World) breaks(b breakage, lasts time.Duration, mend func(*World)) {
	w.broken[b] = max(w.broken[b], workqueue.Later(w.Now(), lasts))
	w.later(lasts, func(w *World) {
		if until, is := w.broken[b]; is && until <= w.Now() {
			delete(w.broken, b)
			mend(w)
		}
	})
}

// breaksForGood lets something be broken for ever, unless it is mended in another way.
func (w *World) breaksForGood(b breakage) { w.broken[b] = hypervisor.Forever }

// process is what breaks when a participant's process dies.
func process(host hypervisor.HostName) breakage { return breakage{what: "process", of: host} }

// powerOf is what breaks when a host is cut from power.
func powerOf(host hypervisor.HostName) breakage { return breakage{what: "power", of: host} }

// noHost traces that there is no such host.
func (w *World) noHost(host hypervisor.HostName) {
	w.say("", "", "there is no host "+string(host))
}

// known reports whether there is such a host, and traces it if there is none.
func (w *World) known(host hypervisor.HostName) bool {
	there := w.HostRecord(host) != nil
	if !there {
		w.noHost(host)
	}
	return there
}

// person returns a participant; nil, and traced, is that there is no such host.
func (w *World) person(host hypervisor.HostName) *participant {
	p := w.people[host]
	if p == nil {
		w.noHost(host)
	}
	return p
}

// machine returns the agent of a host as person does; the controller's is none.
func (w *World) machine(host hypervisor.HostName) *participant {
	if host == "" {
		w.noHost(host)
		return nil
	}
	return w.person(host)
}

type ending func(*World)

func (e ending) happen(w *World) { e(w) }

func (e CrashController) happen(w *World) { w.crash("", "controller", e.For, e.After) }
func (e CrashAgent) happen(w *World)      { w.crash(e.Host, "agent", e.For, e.After) }

func (w *World) crash(host hypervisor.HostName, who string, lasts time.Duration, after *int) {
	p := w.person(host)
	if p == nil {
		return
	}
	if p.brain == nil {
		if after == nil {
			w.staysDead(p, who, lasts)
		}
		return
	}
	if after != nil {
		w.fault(host, fmt.Sprintf("%s will die after %d writes", who, *after))
		p.line.Dies, p.line.After, p.lasts = true, *after, lasts
		return
	}
	w.fault(host, who+" crashes")
	w.kill(p)
	w.watchLease(p)
	delete(w.broken, process(host)) // it has lived since an earlier crash
	w.deadFor(p, who, lasts)
}

// deadFor lets a process that has died start again after a while.
func (w *World) deadFor(p *participant, who string, lasts time.Duration) {
	w.breaks(process(p.host), lasts, func(w *World) {
		if p.brain == nil && !w.down(p.host) {
			w.say(p.host, "", who+" restarts")
			w.spawn(p)
			w.hears(p)
		}
	})
}

// staysDead lets a process that is dead be so for a while at least.
func (w *World) staysDead(p *participant, who string, lasts time.Duration) {
	if !p.reborn {
		if _, crashed := w.broken[process(p.host)]; crashed {
			w.deadFor(p, who, lasts)
		}
		return
	}
	if until := w.now.Add(lasts); p.back.Before(until) {
		w.backAt(p, until)
	}
}

// backAt lets a process that died at a write start again.
func (w *World) backAt(p *participant, at time.Time) {
	w.wakes.Drop(&p.alarm)
	w.wakes.Set(&p.alarm, at)
	p.reborn, p.back = true, at
}

// watchLease calls a host lost when its agent has been silent for too long.
func (w *World) watchLease(p *participant) {
	if p.host == "" || p.as != "" || w.config.Beside != nil {
		return
	}
	died := w.now
	w.later(w.config.Lease, func(w *World) {
		if p.brain == nil && !p.since.After(died) {
			w.say(p.host, "", "lost: its agent is not heard")
			w.changeHost(p.host, func(h *store.Host) { h.NotReady = true })
		}
	})
}

// hears renews the lease of a host whose process has started again. One that claims its name is
// heard when it has it.
func (w *World) hears(p *participant) {
	if p.claim == nil {
		w.heard(p)
	}
}

// heard renews the lease of a host whose agent runs again.
func (w *World) heard(p *participant) {
	h := w.HostRecord(p.host)
	switch {
	case h == nil || w.config.Beside != nil || p.as != "":
	case h.Fenced && h.ByOperator() && h.Refuted() == "" && !w.down(p.host):
		w.say(p.host, "", "lives although "+h.Fencing.By+" says that it is off")
		w.changeHost(p.host, func(h *store.Host) {
			fencing := *h.Fencing
			fencing.Error = "the same start of the machine sends heartbeats"
			h.Fencing = &fencing
		})
	case h.NotReady && !h.Fenced:
		w.changeHost(p.host, func(h *store.Host) { h.NotReady = false })
	}
}

func (e DropNotifications) happen(w *World) {
	p := w.person(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, "hears nothing")
	if until := w.now.Add(e.For); p.dropsUntil.Before(until) {
		p.dropsUntil = until
	}
}

func (e Repeat) happen(w *World) {
	p := w.person(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, "is told everything twice")
	w.wake(p, w.now)
}

func (e StaleReads) happen(w *World) {
	p := w.person(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, "sees a stale store")
	p.line.StaleReads = true
	w.breaks(breakage{what: "view", of: e.Host}, e.For, func(w *World) {
		p.line.StaleReads = false
		w.wake(p, w.now)
	})
}

func (e Conflict) happen(w *World) {
	w.fault("", "another process writes the migrations of "+string(e.VM))
	for _, m := range w.unfinished(e.VM) {
		next := *m
		w.put(&next)
	}
}

func (e DropAnswers) happen(w *World) {
	p := w.person(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, fmt.Sprintf("%d writes will not be answered", e.Times))
	p.line.DropAnswers = e.Times
}

func (e FullStore) happen(w *World) {
	w.fault("", "the store is full")
	w.setFull(true)
	w.breaks(breakage{what: "store"}, e.For, func(w *World) {
		w.say("", "", "the store has room again")
		w.setFull(false)
	})
}

func (w *World) setFull(full bool) {
	for _, p := range w.people {
		p.line.Full = full
	}
}

func (e CrashHypervisor) happen(w *World) {
	p := w.machine(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, "hypervisor daemon dies")
	p.phone.Dead = true
	w.breaks(breakage{what: "daemon", of: e.Host}, e.For, func(w *World) {
		w.say(e.Host, "", "hypervisor daemon restarts")
		p.phone.Dead = false
		w.wake(p, w.now)
	})
}

func (e Break) happen(w *World) {
	w.fault(e.Fault.Host, fmt.Sprintf("calls will go wrong: %s %s", e.Fault.How, e.Fault.Op))
	if err := w.network.Inject(e.Fault); err != nil {
		w.say(e.Fault.Host, "", "cannot break: "+err.Error())
	}
}

func (e CutLink) happen(w *World) {
	w.fault("", fmt.Sprintf("link %s–%s is cut", e.A, e.B))
	w.tried(w.network.CutLink(e.A, e.B))
	link := breakage{"link", min(e.A, e.B), max(e.A, e.B)}
	if e.For <= 0 {
		w.breaksForGood(link)
		return
	}
	w.breaks(link, e.For, func(w *World) {
		w.say("", "", fmt.Sprintf("link %s–%s heals", e.A, e.B))
		w.tried(w.network.HealLink(e.A, e.B))
	})
}

func (e ResetLink) happen(w *World) {
	w.fault("", fmt.Sprintf("connections %s–%s are reset", e.A, e.B))
	w.tried(w.network.ResetLink(e.A, e.B))
}

func (e KillVM) happen(w *World) {
	w.fault(e.Host, "hypervisor process of "+string(e.VM)+" is killed")
	w.tried(w.network.KillDomain(e.Host, e.VM))
}

func (e CrashHost) happen(w *World) {
	_, crashed := w.broken[powerOf(e.Host)]
	switch {
	case w.machine(e.Host) == nil:
		return
	case !w.down(e.Host):
		w.fault(e.Host, "host loses power")
		w.powerOff(e.Host)
	case !crashed:
		return // it was fenced, and stays so
	}
	if e.For <= 0 {
		w.breaksForGood(powerOf(e.Host))
		return
	}
	w.breaks(powerOf(e.Host), e.For, func(w *World) { Return{e.Host}.happen(w) })
}

// cutOff is a host that a device cuts from power. One that has none already comes back as it would.
type cutOff CrashHost

func (e cutOff) happen(w *World) {
	if !w.down(e.Host) {
		CrashHost(e).happen(w)
	}
}

func (e Fence) happen(w *World) {
	if w.machine(e.Host) == nil {
		return
	}
	w.fault(e.Host, "fenced")
	if !w.down(e.Host) {
		w.powerOff(e.Host)
	}
	w.changeHost(e.Host, func(h *store.Host) {
		if w.config.Beside != nil {
			h.ConfirmedDownBy = "an operator" // the word counts, and the rest follows from it
			return
		}
		h.Fenced, h.NotReady = true, true
	})
}

func (w *World) powerOff(host hypervisor.HostName) {
	w.watch.powerless[host] = true
	w.tried(w.network.CrashHost(host))
	p := w.people[host]
	p.boots++
	w.kill(p)
	w.watchLease(p)
}

func (e Return) happen(w *World) {
	if w.machine(e.Host) == nil || !w.down(e.Host) {
		return
	}
	w.fault(e.Host, "host returns")
	w.powerOn(e.Host)
}

func (w *World) powerOn(host hypervisor.HostName) {
	delete(w.watch.powerless, host)
	delete(w.broken, powerOf(host))
	w.tried(w.network.RestartHost(host))
	w.unfence(host)
	w.spawn(w.people[host])
}

// unfence takes back that a host is off. Without a failover controller, which does so when it hears the host,
// operators do what they have recorded by hand.
func (w *World) unfence(host hypervisor.HostName) {
	if w.config.Beside == nil {
		w.changeHost(host, func(h *store.Host) {
			h.Fenced, h.NotReady, h.Fencing, h.ConfirmedDownBy = false, false, nil, ""
		})
	}
}

func (e Skew) happen(w *World) {
	p := w.person(e.Host)
	if p == nil {
		return
	}
	w.fault(e.Host, "clock is off by "+e.By.String())
	p.skew = e.By
}

// tried traces a fault that could not be brought about.
func (w *World) tried(err error) {
	if err != nil {
		w.say("", "", "nothing to break: "+err.Error())
	}
}
