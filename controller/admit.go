package controller

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// admit gives free slots to those who wait, first in line first. KubeVirt ignores who sends.
func (c *Controller) admit(ctx context.Context, now time.Time) (bool, error) {
	admitted := false
	link := func(f *flight, source hypervisor.HostName) SourceState {
		switch {
		case c.view.slots.Admit(c.limits, source) != migration.Open || !c.paced(f, source) ||
			!c.maySend(f, source, now):
			return Shut
		case f.rec.Spec.By == migration.Evacuation && !c.core.Compatible &&
			Fills(c.view.slots.From(source), c.config.Cluster.BandwidthPerMigration,
				c.view.site(source).rec.Host.Link):
			return Sending
		}
		return Resting
	}
	for {
		sure, err := c.ascertain(ctx, now)
		if err != nil || !sure || c.behind() || c.view.slots.Running() >= c.limits.PerCluster {
			return admitted, err
		}
		f := c.view.queue.Take(link)
		if f == nil {
			return admitted, nil
		}
		created, err := c.createTarget(ctx, f, now)
		if admitted = admitted || created; err != nil {
			return admitted, err
		}
	}
}

// ascertain reports whether all slots that were given away are known. The migration whose
// choice of a target was not answered may hold one, and what tells of changes may lag. It
// holds none if what we know of it can be stored again.
func (c *Controller) ascertain(ctx context.Context, now time.Time) (sure bool, err error) {
	m := c.doubt
	if m == nil || c.view.flights[m.Spec.ID] == nil || c.view.flights[m.Spec.ID].rec != m {
		return true, nil
	}
	return c.put(ctx, Draft(&c.next, m), now)
}

// createTarget asks the core once more, chooses a host and stores the choice: the target's agent
// does the rest. It reports whether there is more to do now. A VM that fits nowhere does not
// hold a slot; it asks again later, and later still each time.
func (c *Controller) createTarget(ctx context.Context, f *flight, now time.Time) (bool, error) {
	c.view.latest = f
	o, d := c.see(f, now)
	if !d.Actions.Has(migration.CreateTarget) {
		c.view.dirty.Add(f)
		return true, nil
	}
	choice := c.choose(f, now)
	ends := Ends(&f.rec.Spec, &choice)
	switch {
	case choice.Outcome == placement.Accepted:
		return c.accept(ctx, f, &choice, now)
	case f.waitsOn.kind != noWire:
		c.waitForLink(f, f.waitsOn, now)
		return false, nil
	case ends:
		o.refuse(new(choice))
	case f.tries == 0:
		why := c.view.books.Nowhere(c.request(f, now), &choice, f.overrun)
		c.noter.Note(now, "", f.rec.Spec.VM, "no host fits: "+why)
		o.Queued = false
	}
	if ends || f.tries == 0 {
		*d = c.core.Step(&f.rec.Spec, &f.rec.State, &o.Observation)
		if err := c.carryOut(ctx, f, now); err != nil || ends {
			return ends, err
		}
	}
	if !f.nowhere {
		f.nowhere = true
		c.view.nowhere.Push(f)
	}
	wait := due.Backoff(c.config.Retry, c.config.RetryCap, int(f.tries))
	c.view.setTries(f, min(f.tries+1, 16))
	c.timers.Set(&f.alarm, now.Add(wait))
	return false, nil
}

// retry lets some of those that fit nowhere try again when room has appeared, first in line
// first; the others wait for their time. It reports whether anybody tries.
func (c *Controller) retry() bool {
	tries := 0
	for c.view.room && tries < 4 && c.view.nowhere.Len() > 0 {
		f := c.view.nowhere.Pop()
		f.nowhere = false
		if !f.gone && f.rec.State.Phase == migration.Pending && f.rec.State.Target == "" {
			c.view.dirty.Add(f)
			tries++
		}
	}
	c.view.room = false
	return tries > 0
}
