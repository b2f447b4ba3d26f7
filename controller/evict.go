package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// evict has VMs shut down that are to leave their host and cannot be migrated. One that is to be
// started on another host is shut down only when a host takes it: until then it runs on. It
// returns when to look again; 0 is never.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:148 (a VM that may be killed is evicted, and
// its controller creates it anew); that a host takes it first is godwit's own.
func (c *Controller) evict(ctx context.Context, stops []evacuation.Stop, now time.Time) (
	again time.Duration, err error) {
	for _, stop := range stops {
		g := c.cache.vm(stop.VM)
		if g.rec.Off() || g.rec.ActiveMigration != "" {
			continue
		}
		e := &store.Eviction{Restart: stop.Restart, Grace: stop.Grace}
		if stop.Restart {
			if e.Target, _ = c.shelter(g); e.Target == "" {
				again = c.config.RetryCap
				continue
			}
		}
		next := draft(&c.nextVM, g.rec)
		next.Evicted = e
		stored, err := c.put(ctx, next, now)
		if err != nil {
			return 0, err
		}
		if stored {
			c.recorder.Note(now, "", stop.VM, stop.Why)
		}
	}
	return again, nil
}

// shelter returns a host on which a VM can start that leaves its own, or all that keeps it from
// every host.
func (c *Controller) shelter(g *vmEntry) (hypervisor.HostName, []placement.Reason) {
	if why := bound(g.rec); len(why) > 0 {
		return "", why
	}
	r := c.rebuild(g)
	if d := c.cache.reservations.Decide(&r); d.Outcome == placement.Accepted {
		return d.Host, nil
	}
	own := string(g.rec.Host) + ": "
	return "", slices.DeleteFunc(c.cache.reservations.Why(&r), func(r placement.Reason) bool {
		return strings.HasPrefix(r.Check, own)
	})
}

// promised decides where a VM that is off is to start: where it holds room already, if that host
// still takes it.
func (c *Controller) promised(g *vmEntry, r *placement.Request) (d placement.Decision) {
	c.cache.apart(g, func() {
		if e := g.rec.Evicted; e != nil && e.Target != "" && e.Target != g.rec.Host &&
			len(c.cache.reservations.Check(r, e.Target)) == 0 {
			d = placement.Decision{Outcome: placement.Accepted, Host: e.Target}
			return
		}
		d = c.cache.reservations.Decide(r)
	})
	return d
}

// recall takes shutdowns back whose drain or mark was withdrawn: the VMs start again where they
// are.
func (c *Controller) recall(ctx context.Context, s *hostEntry, now time.Time) error {
	for _, g := range s.evicted() {
		next := draft(&c.nextVM, g.rec)
		next.Evicted = nil
		stored, err := c.put(ctx, next, now)
		if err != nil {
			return err
		}
		if stored {
			c.recorder.Note(now, "", next.VM.ID, "is to run on: "+string(s.name())+
				" need not be empty any more")
		}
	}
	return nil
}

// evicted lists the VMs that are shut down to leave a host, and need not any more.
func (s *hostEntry) evicted() (all []*vmEntry) {
	for _, g := range s.vms {
		if g.rec.Evicted != nil && g.rec.EvacuateFrom != s.name() {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *vmEntry) int { return cmp.Compare(a.rec.VM.ID, b.rec.VM.ID) })
	return all
}
