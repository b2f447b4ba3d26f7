package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// atOnce is how many VMs get a host in one look: heartbeats are read in between.
const atOnce = 64

// place gives a host to every VM that has none, or whose own is known to be off: the
// most important first. What does not fit waits, and says why.
func (w *FailoverController) place(ctx context.Context, now time.Time) error {
	w.planned, w.retry = true, time.Time{}
	placed, starts := 0, w.cache.starts(now)
	for _, v := range w.waiting(now) {
		if placed == atOnce {
			w.planned, w.wake = false, now
			break
		}
		r := request(w.cache.vms[v.VM.ID])
		d := w.decide(&r, starts, now)
		if d.Outcome != placement.Accepted {
			w.retry = now.Add(w.config.Retry)
			w.say(v, "fits nowhere: "+reasonsText(reasons(&r, &d, starts, now)), now)
			continue
		}
		stored, err := w.give(ctx, v, d.Host, now)
		if err != nil || !stored {
			w.planned = false
			w.wakeAt(now.Add(w.config.Poll))
		}
		if err != nil {
			return err
		}
		placed++
	}
	return nil
}

// waiting lists the VMs that are to get a host now, the most important first; of those
// the largest, which find room least easily.
// Source: Masakari (recovery order: HA instances first); VMware HA restart priority;
// Ganeti htools IAlloc (largest first packs best).
func (w *FailoverController) waiting(now time.Time) []*store.VM {
	var all []*store.VM
	for host, guests := range w.cache.on {
		if len(guests) == 0 || host != "" && !w.ready(host, now) {
			continue
		}
		for id := range guests {
			v := w.cache.vms[id].rec
			if why := stays(&w.config, v); len(why) == 0 {
				all = append(all, v)
			} else if host != "" && !v.Off() && !v.Ended {
				w.say(v, "stays on "+string(host)+", which is off: "+reasonsText(why), now)
			}
		}
	}
	slices.SortFunc(all, func(a, b *store.VM) int {
		return cmp.Or(cmp.Compare(w.config.Priority(b), w.config.Priority(a)),
			cmp.Compare(b.Now().Memory, a.Now().Memory), cmp.Compare(a.VM.ID, b.VM.ID))
	})
	return all
}

// proved reports whether nothing runs on a host, by all that is known.
func (w *FailoverController) proved(host hypervisor.HostName, now time.Time) bool {
	h := w.cache.hosts[host]
	if h == nil || !h.Fenced || !trusted(h) {
		return false
	}
	s := w.observation(host, now)
	return decideHost(&w.config, &s) == verdictLeave && s.Silence >= w.config.Grace
}

// ready reports whether the VMs of a host may be given to others now. A host that is
// fenced will be, when its silence has been listened to for long enough.
func (w *FailoverController) ready(host hypervisor.HostName, now time.Time) bool {
	if w.proved(host, now) {
		return true
	}
	if h := w.cache.hosts[host]; h != nil && h.Fenced {
		w.retry = now.Add(w.config.Retry)
	}
	return false
}

// request asks for a host for a VM that is to be started anew.
func request(g *failoverVM) placement.Request {
	return placement.Request{VM: g.place, Source: g.rec.Host, Rebuild: true}
}

// reasons returns what keeps a VM from all hosts.
func reasons(r *placement.Request, d *placement.Decision, starts *migration.TargetHealth, now time.Time,
) []placement.Reason {
	if why := append(slices.Clip(d.Why), whyUnhealthy(r, starts, now)...); len(why) > 0 {
		return why
	}
	return []placement.Reason{{Check: "hosts", Need: "a host for " + string(r.VM.ID),
		Have: "none"}}
}

// say notes what has become of a VM that waits, unless that was the last that was said.
func (w *FailoverController) say(v *store.VM, text string, now time.Time) {
	if w.told[v.VM.ID] != text {
		w.told[v.VM.ID] = text
		w.recorder.Note(now, v.Host, v.VM.ID, text)
	}
}

// give gives a VM to a host. The proof that its old host is off is stored first; the VM
// changes hosts only while that proof, and all that it is made of, still stands, and
// while the new host is as it was when it was chosen.
func (w *FailoverController) give(ctx context.Context, v *store.VM, target hypervisor.HostName,
	now time.Time) (bool, error) {
	while, text := []store.Record{w.cache.hosts[target]}, "is placed on "+string(target)
	if v.Host != "" {
		proof, err := w.recordEvidence(ctx, v, target, now)
		if err != nil || proof == nil {
			return false, err
		}
		while = append(while, w.cache.hosts[v.Host], w.leases.lease(v.Host), proof)
		text = "is rebuilt on " + string(target) + ": " + string(v.Host) + " is off, says " +
			proof.Evidence.By
	}
	next := *v
	next.MoveTo(target)
	next.Forced, next.Evicted = nil, nil // a choice without force pays all debts
	if next.EvacuateFrom == v.Host {
		next.EvacuateFrom = ""
	}
	stored, err := w.put(ctx, &next, while...)
	if stored {
		delete(w.told, v.VM.ID)
		w.recorder.Note(now, target, v.VM.ID, text)
	}
	return stored, err
}

// recordEvidence stores that a VM is about to be rebuilt, and why it may be; nil when something
// of that is no longer so.
func (w *FailoverController) recordEvidence(ctx context.Context, v *store.VM, target hypervisor.HostName,
	now time.Time) (*store.Rebuild, error) {
	host := w.cache.hosts[v.Host]
	next := &store.Rebuild{VM: v.VM.ID, Source: v.Host, Target: target,
		Evidence: host.Proof(), Decided: now, Boots: v.Boots}
	if old := w.cache.rebuilds[next.Key()]; old != nil {
		next.Version = old.Version // of a crash in between, or of an earlier time
	}
	stored, err := w.put(ctx, next, v, host, w.leases.lease(v.Host))
	if err != nil || !stored {
		return nil, err
	}
	return w.cache.rebuilds[next.Key()], nil
}

// tidy removes the records of rebuilds that have nothing more to say: the agent has
// cleaned up, the VM is gone, or it never changed hosts because its own came back.
func (w *FailoverController) tidy(ctx context.Context) error {
	var errs []error
	for _, key := range slices.SortedFunc(maps.Keys(w.cache.rebuilds), byName) {
		r := w.cache.rebuilds[key]
		while := w.obsolete(r)
		if while == nil {
			continue
		}
		switch err := w.store.Delete(ctx, r, while...); {
		case err == nil:
			w.cache.forget(key)
		case errors.Is(err, store.Stale):
			w.again()
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func byName(a, b store.Key) int { return cmp.Compare(a.Name, b.Name) }

// obsolete returns what makes the record of a rebuild superfluous as long as it is so;
// nil when it is not.
func (w *FailoverController) obsolete(r *store.Rebuild) []store.Record {
	g := w.cache.vms[r.VM]
	switch {
	case g == nil || g.rec == nil:
		return []store.Record{&store.VM{VM: hypervisor.VM{ID: r.VM}}}
	case g.rec.Host != r.Source && r.Cleaned:
		return []store.Record{g.rec}
	case g.rec.Host == r.Source:
		if h := w.cache.hosts[r.Source]; h != nil && !h.Fenced {
			return []store.Record{g.rec, h}
		}
	}
	return nil
}

// Why explains what keeps a VM from getting a host after its own fell silent, or from
// getting its first; none when nothing does. It is for people.
func (w *FailoverController) Why(vm hypervisor.VMID, now time.Time) []placement.Reason {
	g := w.cache.vms[vm]
	if g == nil || g.rec == nil {
		return []placement.Reason{{Check: "vm", Need: "to be known", Have: "no such VM"}}
	}
	if host := g.rec.Host; host != "" {
		h := w.cache.hosts[host]
		switch {
		case h == nil:
			return []placement.Reason{{Check: "host", Need: "a record", Have: "none of " +
				string(host)}}
		case !h.NotReady && !h.Fenced:
			return nil
		case !w.proved(host, now):
			return w.whyUnproved(h, now)
		}
	}
	if why := stays(&w.config, g.rec); len(why) > 0 {
		return why
	}
	r := request(g)
	starts := w.cache.starts(now)
	d := w.decide(&r, starts, now)
	switch d.Outcome {
	case placement.Accepted:
		return nil
	case placement.NoHost: // the decision only counts the refusals
		each := w.cache.reservations.Why(&r)
		d.Why = slices.DeleteFunc(slices.Clone(each), avoided)
	}
	return reasons(&r, &d, starts, now)
}

// whyUnproved says what is missing until a lost host is known to be off.
func (w *FailoverController) whyUnproved(h *store.Host, now time.Time) []placement.Reason {
	have := "its agent is silent for " + w.leases.silence(h.Host.Name, now).
		Round(time.Second).String()
	if f := h.Fencing; f != nil && f.Error != "" {
		have = f.Error
	} else if f != nil && !h.Fenced {
		have = "it is being fenced"
	}
	why := []placement.Reason{{Check: "evidence", Need: "proof that " + string(h.Host.Name) +
		" is off", Have: have}}
	if w.storm {
		why = append(why, placement.Reason{Check: "storm", Need: "most hosts to be heard",
			Have: "too many are silent: no host is fenced"})
	}
	return why
}
