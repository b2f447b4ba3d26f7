package sim

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

type (
	// Maintain has the controller carry out a run of maintenance, as an operator starts it.
	Maintain struct{ Run store.Maintenance }
	// WishMaintenance pauses, resumes or aborts a run, or lets it go on after it has stopped.
	WishMaintenance struct {
		Name string
		Wish store.PlanWish
	}
	// Answer says what has become of a hook or of a check.
	Answer struct {
		Run    string
		Answer store.ServiceAnswer
	}
	// RunHooks runs the hooks of a run as the command of an operator does: each reboots its host. It looks
	// again and again until the run has ended.
	RunHooks struct {
		Run string
		// Takes is how long a host is away. Default: a minute.
		Takes func(hypervisor.HostName) time.Duration
		// Begins is called when a hook begins; nil is nothing.
		Begins func(host hypervisor.HostName, executing []hypervisor.VMID)
	}
	// Reboot cuts a host from power on purpose, and gives it back after For: it is no fault.
	Reboot struct {
		Host hypervisor.HostName
		For  time.Duration
	}
)

func (e Maintain) happen(w *World) {
	w.say("", "", "maintenance "+e.Run.Name)
	e.Run.Version, e.Run.Created = 0, w.now
	w.put(&e.Run)
}

// Maintenance returns the record of a run; nil when there is none.
func (w *World) Maintenance(name string) *store.Maintenance {
	m, _ := store.MaintenanceNamed(w.ctx, w.store, name) // memory does not fail
	return m
}

func (e WishMaintenance) happen(w *World) {
	m := w.Maintenance(e.Name)
	if m == nil {
		return
	}
	w.say("", "", e.Wish.String()+" maintenance "+e.Name)
	next := *m
	if next.Wish = e.Wish; e.Wish == store.RunPlan {
		next.Resumes++
	}
	w.put(&next)
}

func (e Answer) happen(w *World) {
	if m := w.Maintenance(e.Run); m != nil {
		w.say(e.Answer.Host, "", "the hook "+e.Answer.State.String())
		w.put(m.Answered(e.Answer))
	}
}

func (e Reboot) happen(w *World) {
	if w.machine(e.Host) == nil || w.down(e.Host) {
		return
	}
	w.say(e.Host, "", "host reboots")
	w.powerOff(e.Host)
	w.breaks(powerOf(e.Host), e.For, func(w *World) {
		if w.down(e.Host) {
			w.powerOn(e.Host)
		}
	})
}

func (e RunHooks) happen(w *World) {
	const every = 5 * time.Second
	m := w.Maintenance(e.Run)
	if m == nil || !m.Ended.IsZero() {
		return
	}
	if h, is := m.HookDue(w.now); is && w.HostRecord(h.Name) != nil {
		e.begin(w, m, &h)
	}
	w.At(workqueue.Later(w.Now(), every), e)
}

// begin begins the hook of a host. That it has begun is stored first.
func (e RunHooks) begin(w *World, m *store.Maintenance, h *store.ServicedHost) {
	takes := time.Minute
	if e.Takes != nil {
		takes = e.Takes(h.Name)
	}
	if e.Begins != nil {
		e.Begins(h.Name, w.executing(h.Name))
	}
	a := store.ServiceAnswer{Host: h.Name, Hook: h.Hooks, State: store.HookBegan, By: "the hook runner", Began: w.now,
		Session: w.HostRecord(h.Name).Session}
	w.put(m.Answered(a))
	w.At(w.Now(), Reboot{Host: h.Name, For: takes})
	a.State = store.HookDone
	w.At(workqueue.Later(w.Now(), takes), Answer{Run: e.Run, Answer: a})
}

// executing lists the VMs that execute on a host.
func (w *World) executing(host hypervisor.HostName) (vms []hypervisor.VMID) {
	for _, vm := range w.VMs() {
		for _, c := range w.network.Copies(vm) {
			if c.Host == host && c.State.Executes() {
				vms = append(vms, vm)
			}
		}
	}
	return vms
}
