package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// startsWithin is how long a host has to start a VM that was given to it, before that counts as
// a failure of the host.
const startsWithin = time.Minute

// decide chooses a host for a VM that is to be started. Hosts that lately have not started VMs
// that were given to them get one at a time, and after a while: see package migration.
// Hosts that migrations have failed are the last choice.
func (w *FailoverController) decide(r *placement.Request, starts *migration.TargetHealth, now time.Time) placement.Decision {
	var idle []hypervisor.HostName // do not start what they are given
	for _, host := range starts.Hosts() {
		t, is := starts.Receiving(host, r.Source, now)
		if is && (now.Before(t.Again) || w.cache.starting(host, now)) {
			idle = append(idle, host)
		}
	}
	r.Avoid = slices.Clone(idle)
	for _, host := range w.cache.health.Hosts() {
		if _, is := w.cache.health.Receiving(host, r.Source, now); is {
			r.Avoid = append(r.Avoid, host)
		}
	}
	if m, holds := w.cache.saved(r.VM.ID); holds {
		defer w.cache.freed(r.VM.ID)()
		if !slices.Contains(r.Avoid, m.Target) && len(w.cache.reservations.Check(r, m.Target)) == 0 {
			return placement.Decision{Outcome: placement.Accepted, Host: m.Target}
		}
	}
	d := w.cache.reservations.Decide(r)
	if d.Outcome == placement.NoHost && len(r.Avoid) > len(idle) {
		r.Avoid = idle
		d = w.cache.reservations.Decide(r)
	}
	return d
}

// saved returns where a VM holds room that was shut down to start there.
func (v *failoverCache) saved(id hypervisor.VMID) (reservedMove, bool) {
	if g := v.vms[id]; g != nil {
		return restarts(g.rec)
	}
	return reservedMove{}, false
}

// freed takes back the room that a VM holds where it is to start, which would be in its own way, until
// what it returns is called.
func (v *failoverCache) freed(id hypervisor.VMID) (again func()) {
	v.bare = true
	v.updateReservation(id, v.vms[id])
	return func() {
		v.bare = false
		v.updateReservation(id, v.vms[id])
	}
}

// starts adds up how hosts have started the VMs that were rebuilt there, as far as that is known.
func (v *failoverCache) starts(now time.Time) *migration.TargetHealth {
	l := &migration.TargetHealth{}
	if len(v.rebuilds) == 0 {
		return l
	}
	ends := make([]migration.TransferOutcome, 0, len(v.rebuilds))
	for _, r := range v.rebuilds {
		if o, known := v.start(r, now); known {
			ends = append(ends, o)
		}
	}
	slices.SortFunc(ends, func(a, b migration.TransferOutcome) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.VM, b.VM), cmp.Compare(a.Source, b.Source))
	})
	for i := range ends {
		l.Add(&ends[i])
	}
	return l
}

// start says how a host has started a VM that was rebuilt there. It reports false while nothing
// is known of it.
func (v *failoverCache) start(r *store.Rebuild, now time.Time) (migration.TransferOutcome, bool) {
	o := migration.TransferOutcome{VM: r.VM, Source: r.Source, Target: r.Target, At: r.Decided}
	g := v.vms[r.VM]
	switch {
	case g == nil || g.rec == nil || g.rec.Host != r.Target || g.rec.Off() || g.rec.ActiveMigration != "":
		return o, false
	case r.Done(g.rec):
		o.Succeeded = true
	case g.rec.Trouble != "":
		o.Fault, o.Why = migration.Preparing, g.rec.Trouble
	case now.Sub(r.Decided) >= startsWithin:
		o.Fault, o.Why, o.At = migration.Preparing, "the start hangs", r.Decided.Add(startsWithin)
	default:
		return o, false
	}
	return o, true
}

// starting reports whether a host has lately been given a VM of which it has not said whether it
// starts. What was decided far in the future, before a clock was set back, is not lately.
func (v *failoverCache) starting(host hypervisor.HostName, now time.Time) bool {
	for _, r := range v.rebuilds {
		if age := now.Sub(r.Decided); r.Target != host || max(age, -age) >= startsWithin {
			continue
		}
		g := v.vms[r.VM]
		if g != nil && g.rec != nil && g.rec.Host == host && !r.Done(g.rec) && g.rec.Trouble == "" {
			return true
		}
	}
	return false
}

// whyUnhealthy says which hosts get no VM now because they have not started others.
func whyUnhealthy(r *placement.Request, starts *migration.TargetHealth, now time.Time) (why []placement.Reason) {
	for _, host := range starts.Hosts() {
		if t, is := starts.Receiving(host, r.Source, now); is && slices.Contains(r.Avoid, host) {
			why = append(why, placement.Reason{Check: string(host) + ": health",
				Need: "to start VMs", Have: t.String(now)})
		}
	}
	return why
}
