package controller

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// admit gives free slots to those who wait, first in line first. KubeVirt ignores who sends.
func (c *Controller) admit(ctx context.Context, now time.Time) (bool, error) {
	admitted := false
	link := func(f *migrationEntry, source hypervisor.HostName) sourceState {
		switch {
		case c.cache.slots.Admit(c.limitsOf(source), source) != migration.Open || !c.paced(f, source) ||
			!c.maySend(f, source, now):
			return sourceBlocked
		case f.rec.Spec.By == migration.Evacuation && !c.core.Compatible &&
			fills(c.cache.slots.From(source), c.config.Cluster.BandwidthPerMigration,
				c.cache.host(source).rec.Host.Link):
			return sourceBusy
		}
		return sourceIdle
	}
	for {
		sure, err := c.resolveUncertainWrite(ctx, now)
		if err != nil || !sure || c.behind() || c.cache.slots.Running() >= c.perCluster() {
			return admitted, err
		}
		f := c.cache.queue.Take(link)
		if f == nil {
			return admitted, nil
		}
		created, err := c.createTarget(ctx, f, now)
		if admitted = admitted || created; err != nil {
			return admitted, err
		}
	}
}

// resolveUncertainWrite reports whether all slots that were given away are known. The migration whose
// choice of a target was not answered may hold one, and what tells of changes may lag. It
// holds none if what we know of it can be stored again.
func (c *Controller) resolveUncertainWrite(ctx context.Context, now time.Time) (sure bool, err error) {
	m := c.doubt
	if m == nil || c.cache.migrations[m.Spec.ID] == nil || c.cache.migrations[m.Spec.ID].rec != m {
		return true, nil
	}
	return c.put(ctx, draft(&c.next, m), now)
}

// createTarget asks the core once more, chooses a host and stores the choice: the target's agent
// does the rest. It reports whether there is more to do now. A VM that fits nowhere does not
// hold a slot; it asks again later, and later still each time.
func (c *Controller) createTarget(ctx context.Context, f *migrationEntry, now time.Time) (bool, error) {
	c.cache.latest = f
	o, d := c.decide(f, now)
	if !d.Actions.Has(migration.CreateTarget) {
		c.cache.dirty.Add(f)
		return true, nil
	}
	choice := c.choose(f, now)
	ends := ends(&f.rec.Spec, &choice)
	switch {
	case choice.Outcome == placement.Accepted:
		return c.accept(ctx, f, &choice, now)
	case f.waitsOn.kind != noWire:
		c.waitForLink(f, f.waitsOn, now)
		return false, nil
	case ends:
		o.refuse(new(choice))
	case f.tries == 0:
		why := c.cache.reservations.Nowhere(c.request(f, now), &choice, f.overrun)
		c.recorder.Note(now, "", f.rec.Spec.VM, "no host fits: "+why)
		o.Queued = false
	}
	if ends || f.tries == 0 {
		*d = c.core.Step(&f.rec.Spec, &f.rec.State, &o.Observation)
		if err := c.carryOut(ctx, f, now); err != nil || ends {
			return ends, err
		}
	}
	if !f.unschedulable {
		f.unschedulable = true
		c.cache.unschedulable.Push(f)
	}
	wait := workqueue.Backoff(c.config.Retry, c.config.RetryCap, int(f.tries))
	c.cache.setTries(f, min(f.tries+1, 16))
	c.timers.Set(&f.alarm, now.Add(wait))
	return false, nil
}

// retry lets some of those that fit nowhere try again when room has appeared, first in line
// first; the others wait for their time. It reports whether any migration tries.
func (c *Controller) retry() bool {
	tries := 0
	for c.cache.capacityFreed && tries < 4 && c.cache.unschedulable.Len() > 0 {
		f := c.cache.unschedulable.Pop()
		f.unschedulable = false
		if !f.gone && f.rec.State.Phase == migration.Pending && f.rec.State.Target == "" {
			c.cache.dirty.Add(f)
			tries++
		}
	}
	c.cache.capacityFreed = false
	return tries > 0
}
