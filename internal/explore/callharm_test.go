package explore_test

import (
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/store"
)

// harmful is below what something breaks, when chance is above what operators do.
const harmful = 0.02

// intervene lets something happen that is no call of a process, if chance wants it; false is
// that nothing does.
func (w *world) intervene(chance float64, faults *int) bool {
	switch {
	case chance < 0.012:
		w.operate()
	case chance < harmful && *faults > 0:
		*faults--
		w.hurt = true
		w.harm()
	case chance < 0.03:
		w.give()
	case chance < 0.034 && len(w.off) > 0:
		w.powerOn()
	case chance < 0.04 && w.cut:
		w.heal()
	default:
		return false
	}
	w.settle()
	return true
}

// operate does what an operator does now and then.
func (w *world) operate() {
	v := *w.VM(web)
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		if w.moves < 4 {
			w.migrate()
		}
	case 3, 4:
		w.cancel()
	case 5:
		v.Stopped, v.Kill = true, w.rng.IntN(2) == 0
		w.say("* stop, kill %v", v.Kill)
		w.put(&v)
	case 6:
		w.say("* start")
		v.Stopped, v.Kill = false, false
		w.put(&v)
	case 7:
		w.say("* reboot")
		v.Reboots++
		w.put(&v)
	}
}

// cancel cancels every migration.
func (w *world) cancel() {
	for _, m := range w.Migrations(web) {
		if !m.State.Phase.Final() && !m.Cancel {
			w.say("* cancel %s", m.Spec.ID)
			next := *m
			next.Cancel = true
			w.put(&next)
		}
	}
}

// any draws a host.
func (w *world) any() hypervisor.HostName { return w.hosts[w.rng.IntN(len(w.hosts))] }

// harm breaks something.
func (w *world) harm() {
	if copies := w.Copies(web); w.tears && w.fetches() && w.rng.IntN(2) == 0 {
		w.say("! tear the post-copy")
		w.ok(w.ResetLink(copies[0].Host, copies[1].Host))
		return
	}
	h := w.any()
	switch w.rng.IntN(14) {
	case 0, 1:
		w.kill(h)
	case 2:
		w.say("! the guest on %s shuts down", h)
		_ = w.Host(h).Do(ctx, web, hypervisor.Stop{Grace: time.Minute})
	case 3:
		if o := w.any(); o != h {
			w.say("! reset %s %s", h, o)
			w.ok(w.ResetLink(h, o))
		}
	case 4:
		if o := w.any(); o != h && !w.cut {
			w.say("! cut %s %s", h, o)
			w.ok(w.CutLink(h, o))
			w.cut = true
		}
	case 5, 6, 7:
		w.disturb(h)
	case 8, 9:
		w.die()
	case 10:
		if !w.off[h] {
			w.powerOff(h, w.rng.IntN(2) == 0)
		}
	case 11:
		w.double(h)
	case 12, 13:
		p := w.procs[w.rng.IntN(len(w.procs))]
		p.refused = w.rng.IntN(2) == 0
		p.unanswered = !p.refused
		w.say("! the next write of %s is refused: %v, or its answer lost", p.name(), p.refused)
	}
}

// kill ends the guest's process on a host. One that is torn has crashed already by the
// model's word.
func (w *world) kill(h hypervisor.HostName) {
	w.say("! kill the domain on %s", h)
	d, _ := w.Host(h).Domain(ctx, web)
	w.killed[h] = d.Job
	w.ok(w.KillDomain(h, web))
	w.hint(h)
	w.checkVM()
}

// disturb lets one of the next calls to a host's hypervisor go wrong.
func (w *world) disturb(h hypervisor.HostName) {
	how := []fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.LateEffect, fake.LateEffect}
	op := []string{"Receive", "Migrate", "Adjust", "Do", "Start", "Discard", "Resume", "Abandon",
		"Release", "Stop"}
	f := fake.Fault{Host: h, Op: op[w.rng.IntN(len(op))], How: how[w.rng.IntN(len(how))],
		Delay: time.Duration(w.rng.IntN(15000)) * ms}
	w.say("! %v of %s on %s, by %v", f.How, f.Op, h, f.Delay)
	w.ok(w.Inject(f))
}

// die lets a process die before its next call, and another take its place.
func (w *world) die() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	w.say("! %s dies before %q", p.name(), p.at)
	p.kill()
	w.spawn(p.host)
}

// kill ends a process and its coroutine.
func (p *process) kill() {
	p.stop()
	p.dead = true
	p.w.procs = slices.DeleteFunc(p.w.procs, func(o *process) bool { return o == p })
}

// double starts one more agent for a host, which is sound: neither knows anything that the
// store and the hypervisor do not have, every write is on condition that no other process wrote,
// and every call may be repeated. So it is when a daemon is started twice, or started again
// before its predecessor has made its last call.
func (w *world) double(h hypervisor.HostName) {
	if !w.off[h] {
		w.say("! another agent for %s", h)
		w.spawn(h)
	}
}

func (w *world) changeHost(h hypervisor.HostName, how func(*store.Host)) {
	next := *w.HostRecord(h)
	how(&next)
	w.put(&next)
}

// powerOff takes the power from a host. Either it is fenced, so that all know, or it
// is only missed.
func (w *world) powerOff(h hypervisor.HostName, fence bool) {
	w.say("! power off %s, fence %v", h, fence)
	w.off[h] = true
	w.ok(w.CrashHost(h))
	for _, p := range slices.Clone(w.procs) {
		if p.host == h {
			p.kill()
		}
	}
	w.changeHost(h, func(r *store.Host) { r.NotReady, r.Fenced = true, fence })
}

// powerOn brings back every host that has no power.
func (w *world) powerOn() {
	for _, h := range slices.Sorted(maps.Keys(w.off)) {
		w.say("* power on %s", h)
		delete(w.off, h)
		w.ok(w.RestartHost(h))
		w.changeHost(h, func(r *store.Host) { r.NotReady, r.Fenced, r.Fencing = false, false, nil })
		w.spawn(h)
	}
	w.settle()
}

// heal mends every link.
func (w *world) heal() {
	w.say("* heal")
	w.cut = false
	for i, a := range w.hosts {
		for _, b := range w.hosts[i+1:] {
			w.ok(w.HealLink(a, b))
		}
	}
	w.settle()
}

// give gives the VM of a fenced host to another, with the record that says so, as package
// failover does.
func (w *world) give() {
	v := *w.VM(web)
	from := w.HostRecord(v.Host)
	if !from.Fenced || v.ActiveMigration != "" || v.Stopped {
		return
	}
	i := slices.IndexFunc(w.hosts, func(h hypervisor.HostName) bool {
		r := w.HostRecord(h)
		return h != v.Host && !w.off[h] && !r.Fenced && !r.NotReady
	})
	if i < 0 {
		return
	}
	r := &store.Rebuild{VM: web, Source: v.Host, Target: w.hosts[i], Decided: w.Now(),
		Boots: v.Boots, Evidence: from.Proof()}
	w.say("* given to %s", r.Target)
	if old, _ := w.store.Get(ctx, r.Key()); old != nil {
		r.Version = old.RecordVersion()
	}
	w.put(r)
	v.Host, v.EvacuateFrom = r.Target, ""
	w.put(&v)
}
