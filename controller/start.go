package controller

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// startElsewhere gives a VM that is off and is to run to a host that takes it, when its own does
// not. Otherwise it is its own host's agent that starts it.
// Source: Proxmox VE HA (a stopped service is moved off a node in maintenance before it starts);
// Kubernetes v1.34.1 (a new pod goes to no cordoned node).
func (c *Controller) startElsewhere(ctx context.Context, vm hypervisor.VMID, now time.Time) error {
	g := c.cache.vms[vm]
	c.restart.Drop(vm)
	if g == nil || g.rec == nil || !g.rec.Startable() || !c.homeless(g) || g.moving() {
		delete(c.tried, vm)
		return nil
	}
	if why := staysPut(g.rec, c.config.Evacuation.Strategy); len(why) > 0 {
		return nil // a change of its record, or of its host's, is looked at
	}
	r := c.rebuild(g)
	d := c.promised(g, &r)
	if d.Outcome == placement.Accepted {
		stored, err := c.give(ctx, g, d.Host, now)
		if err != nil || !stored {
			c.restart.Set(vm, now.Add(c.config.Retry))
		}
		return err
	}
	tries := c.tried[vm]
	if tries == 0 {
		c.recorder.Note(now, "", vm, "no host fits to start on: "+c.cache.reservations.Nowhere(&r, &d, false))
	}
	c.restart.Set(vm, now.Add(min(c.config.Retry<<tries, c.config.RetryCap)))
	c.tried[vm] = min(tries+1, 16)
	return nil
}

// homeless reports whether the host of a VM that is off does not start it. That the host is full
// its agent says, which knows best: it tells its trouble only when it does not start a VM.
func (c *Controller) homeless(g *vmEntry) bool {
	return g.host != nil && (!c.cache.takes(g.host) || g.rec.Trouble != "" || g.rec.Evicted != nil)
}

// rebuild asks for a host on which a VM that is off is to start.
func (c *Controller) rebuild(g *vmEntry) placement.Request {
	return placement.Request{VM: c.cache.placed(g), Source: g.rec.Host, Rebuild: true}
}

// staysPut returns what keeps a VM that is off from starting on another host; none is nothing. A
// VM that cannot migrate may be bound to its host by what its record does not say: it is started
// elsewhere only where its strategy allows it to be shut down, which comes to the same.
func staysPut(v *store.VM, cluster evacuation.Strategy) []placement.Reason {
	if why := bound(v); len(why) > 0 {
		return why
	}
	if can, _ := v.CanMigrate(); !can && v.Evicted == nil &&
		v.Strategy.Or(cluster) != evacuation.LiveMigrateIfPossible {
		have := "it cannot migrate"
		if _, why := v.CanMigrate(); why != "" {
			have += ": " + why
		}
		return []placement.Reason{{Check: "migratable", Need: "a VM that another host can start",
			Have: have}}
	}
	return nil
}

// bound returns what binds a VM to its host even when it is off.
func bound(v *store.VM) []placement.Reason {
	if disks := v.VM.LocalDisks(); len(disks) > 0 {
		return []placement.Reason{{Check: "local disks", Need: "disks that other hosts reach",
			Have: disks[0].Name + " is on " + string(v.Host)}}
	}
	return nil
}

// give gives a VM that is off to another host. The word of its old host's agent that it is off
// is stored first; then the VM changes hosts, while that stands and the new host is as it was
// when it was chosen. From this writing on the VM holds room there.
func (c *Controller) give(ctx context.Context, g *vmEntry, target hypervisor.HostName,
	now time.Time) (bool, error) {
	word, err := c.evidenceRecord(ctx, g.rec, target, now)
	if err != nil || word == nil {
		return false, err
	}
	old := g.rec.Host
	next := draft(&c.nextVM, g.rec)
	next.MoveTo(target)
	next.Ended, next.Trouble, next.Forced, next.Evicted = false, "", nil, nil
	if next.EvacuateFrom == old {
		next.EvacuateFrom = ""
	}
	stored, err := c.put(ctx, next, now, word, c.cache.host(target).rec)
	if stored {
		delete(c.tried, g.rec.VM.ID)
		c.recorder.Note(now, target, g.rec.VM.ID, "is to start here: "+string(old)+" does not take it")
	}
	return stored, err
}

// evidenceRecord stores that a VM that is off is about to start on another host; nil when the VM was
// written meanwhile.
func (c *Controller) evidenceRecord(ctx context.Context, v *store.VM, target hypervisor.HostName,
	now time.Time) (*store.Rebuild, error) {
	next := &store.Rebuild{VM: v.VM.ID, Source: v.Host, Target: target, Decided: now,
		Boots: v.Boots, Evidence: hypervisor.Evidence{Proof: hypervisor.ProcessReaped,
			VM: v.VM.ID, Host: v.Host, By: "agent/" + string(v.Host)}}
	old, err := c.store.Get(ctx, next.Key())
	if err != nil {
		return nil, err
	}
	if old != nil {
		next.Version = old.RecordVersion() // of a crash in between, or of an earlier time
	}
	stored, err := c.store.Put(ctx, next, v)
	switch {
	case errors.Is(err, store.Stale):
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.unread++
	return stored.(*store.Rebuild), nil
}

// tidy removes the records of VMs that were started elsewhere, once nothing of them is left on
// the host where they were off.
func (c *Controller) tidy(ctx context.Context) error {
	var errs []error
	for _, r := range c.cache.begun {
		g := c.cache.vms[r.VM]
		if g == nil || g.rec == nil || g.rec.Host == r.Source {
			continue
		}
		if err := c.store.Delete(ctx, r, g.rec); err != nil && !errors.Is(err, store.Stale) {
			errs = append(errs, err)
		}
	}
	c.cache.begun = c.cache.begun[:0]
	return errors.Join(errs...)
}

// whyOff says why a VM that is off, and is to run, has not started.
func (c *Controller) whyOff(g *vmEntry) []placement.Reason {
	if !g.rec.Startable() || !c.homeless(g) {
		return nil
	}
	why := []placement.Reason{{Check: "start", Need: "a host that takes it", Have: c.refusal(g)}}
	if stays := staysPut(g.rec, c.config.Evacuation.Strategy); len(stays) > 0 {
		return append(why, stays...)
	}
	r := c.rebuild(g)
	return append(why, c.cache.reservations.Why(&r)...)
}

// refusal says why the host of a VM that is off does not start it.
func (c *Controller) refusal(g *vmEntry) string {
	host, h := string(g.host.name()), g.host.rec
	switch {
	case h.Version == 0:
		return host + " is not known"
	case h.Fenced:
		return host + " was fenced"
	case h.NotReady:
		return host + " is lost"
	case g.host.drains:
		return host + " is drained"
	case h.Cordoned:
		return host + " is closed"
	case g.rec.Evicted != nil:
		return "it was shut down to leave " + host
	}
	return g.rec.Trouble
}
