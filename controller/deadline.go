package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// watchDeadline looks whether a drain ends in time, stores how it goes, and takes what remedies its operator
// has allowed.
func (c *Controller) watchDeadline(ctx context.Context, host hypervisor.HostName, now time.Time) error {
	e := c.cache.hosts[host]
	if e == nil || e.rec.DrainBy == nil || !e.drains {
		return nil
	}
	s := c.drainSight(e)
	if s.VMs > 0 {
		c.cache.paces.Set(host, now.Add(evacuation.PaceEvery))
	}
	before := evacuation.Pace{}
	if e.rec.DrainPace != nil {
		before = *e.rec.DrainPace
	}
	next, say := e.rec.DrainBy.Watch(before, &s, now)
	if next == before {
		return nil
	}
	rec := *e.rec
	rec.DrainPace = &next
	stored, err := c.put(ctx, &rec, now)
	if err == nil && stored && say != "" {
		c.recorder.Note(now, "", "", "drain of "+string(host)+": "+say)
	}
	return err
}

// drainSight returns what has been measured of a drain.
func (c *Controller) drainSight(e *hostEntry) evacuation.DrainSight {
	s := evacuation.DrainSight{Link: e.rec.Host.Link, Limits: c.limits}
	var waiting []*vmEntry
	for _, g := range e.vms {
		if g.rec.Off() && g.rec.Ended {
			continue
		}
		left, begun := g.rec.Weight(), false
		for _, f := range g.migrations {
			if !f.rec.State.Phase.Final() && f.rec.Source.Began {
				left, begun = max(0, left-f.rec.Source.Sent), true
			}
		}
		if s.VMs++; !begun {
			s.Waiting++
			waiting = append(waiting, g)
		}
		s.Left += left
	}
	if s.VMs > 0 {
		s.Fixed = c.plan(e, time.Time{}).Warn
		s.Reorders = c.reorders(e, waiting)
	}
	return s
}

// reorders reports whether VMs leave in another order when those go first that take longest.
func (c *Controller) reorders(e *hostEntry, waiting []*vmEntry) bool {
	if c.config.Evacuation.Policy != nil || c.config.Evacuation.Compatible {
		return false
	}
	sizes := make([]evacuation.VM, len(waiting))
	for i, g := range waiting {
		sizes[i] = c.asMember(g)
	}
	for i := range sizes {
		for j := range sizes[:i] {
			a, b := sizes[i].Memory, sizes[j].Memory
			x, y := c.expected(e, waiting[i], a), c.expected(e, waiting[j], b)
			if cmp.Compare(x, y) != 0 && cmp.Compare(x, y) != cmp.Compare(a, b) {
				return true
			}
		}
	}
	return false
}

// longer returns what a migration that waits goes by before others out of its host: nothing, unless the drain of that is
// late.
func (c *Controller) longer(f *migrationEntry) hypervisor.Bytes {
	if f.vm.rec == nil || f.vm.host == nil || !f.vm.host.longestFirst() {
		return 0
	}
	return c.expected(f.vm.host, f.vm, f.vm.rec.Weight())
}

// longestFirst reports whether those VMs leave a host first that take longest.
func (s *hostEntry) longestFirst() bool {
	return s.rec.DrainPace != nil && s.rec.DrainPace.LongestFirst
}

// expected returns how much the migration of a VM sends, by how fast its guest writes, where that was measured. It
// is what the VM is ordered by, and no more: a prediction errs on the long side.
func (c *Controller) expected(e *hostEntry, g *vmEntry, size hypervisor.Bytes) hypervisor.Bytes {
	speed := e.rec.Host.Link
	if most := c.config.Cluster.BandwidthPerMigration; most > 0 && (speed == 0 || most < speed) {
		speed = most
	}
	d := g.rec.Dirtied
	if d == nil || speed <= 0 {
		return size
	}
	const longest = 1000 * time.Hour // of what does not converge
	took := convergence.Predict(size, d.Rate, speed, c.config.Cluster.MaxDowntime).Left
	return speed.In(min(took, longest))
}

// limitsOf returns the limits for migrations out of a host.
func (c *Controller) limitsOf(source hypervisor.HostName) migration.Limits {
	if !c.cache.hurried[source] {
		return c.limits
	}
	return c.cache.host(source).rec.DrainPace.Raised(c.limits)
}

// perCluster returns how many migrations run at once at most, whatever their source.
func (c *Controller) perCluster() int {
	most := c.limits.PerCluster
	for host := range c.cache.hurried {
		most = max(most, c.limitsOf(host).PerCluster)
	}
	return most
}

// hurry allows a migration what a drain that is late was allowed. The methods of KubeVirt switch to post-copy only
// where the workload may be disrupted, too, which follows from post-copy as it does in policies.
func hurry(m *store.Migration, p *evacuation.Pace) {
	if p == nil || m.Options == nil || !p.AutoConverge && !p.PostCopy {
		return
	}
	options := *m.Options
	options.AllowAutoConverge = options.AllowAutoConverge || p.AutoConverge
	options.AllowPostCopy = options.AllowPostCopy || p.PostCopy
	if p.PostCopy && slices.Contains([]convergence.Method{convergence.Legacy, convergence.Stall}, options.Method()) {
		options.AllowWorkloadDisruption = true
	}
	m.Options = &options
}

// learnPace takes in that a drain has a deadline, or what was done about it.
func (v *cache) learnPace(old, h *store.Host) {
	name := h.Host.Name
	if raised := h.DrainPace != nil && (h.DrainPace.PerSource > 0 || h.DrainPace.PerCluster > 0); raised != v.hurried[name] {
		if v.hurried == nil {
			v.hurried = map[hypervisor.HostName]bool{}
		}
		if v.hurried[name] = raised; !raised {
			delete(v.hurried, name)
		}
	}
	if h.DrainPace != nil && (old.DrainPace == nil || *old.DrainPace != *h.DrainPace) {
		v.capacityFreed = true
		v.queue.Freed(name)
		if h.DrainPace.LongestFirst && (old.DrainPace == nil || !old.DrainPace.LongestFirst) {
			v.queue.Reorder(name)
		}
	}
	if h.DrainBy != nil && (old.DrainBy == nil || *old.DrainBy != *h.DrainBy) {
		v.late.Add(name)
	}
}
