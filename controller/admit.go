package controller

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/controller/books"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement/choose"
)

// waits reports whether a limit alone keeps a migration from its target.
func waits(f *flight, o *observation) bool {
	return f.rec.State.Phase == migration.Pending && !o.Target.Exists && !o.Canceled &&
		o.VM.Running && o.Instances <= 1 && !o.Backoff.After(o.Now) && !o.VM.Backup &&
		!o.VM.UtilityVolumes && o.Claim != migration.ClaimedByOther
}

// admit gives free slots to those who wait, first in line first.
func (c *Controller) admit(ctx context.Context, now time.Time) (bool, error) {
	admitted := false
	open := func(f *flight, source hypervisor.HostName) bool {
		return c.view.slots.Admit(c.limits, source) == migration.Open && c.paced(f, source)
	}
	for c.view.slots.Running() < c.limits.PerCluster {
		f := c.view.queue.Take(open)
		if f == nil {
			break
		}
		created, err := c.createTarget(ctx, f, now)
		if err != nil {
			return admitted, err
		}
		admitted = admitted || created
	}
	return admitted, nil
}

// createTarget asks the core once more, chooses a host and stores the choice:
// the target's agent does the rest. It reports whether there is more to do now.
// A VM that fits nowhere does not hold a slot; it asks again later, and later
// still each time.
func (c *Controller) createTarget(ctx context.Context, f *flight, now time.Time) (bool, error) {
	o, d := c.see(f, now)
	if !d.Actions.Has(migration.CreateTarget) {
		c.view.dirty.Add(f)
		return true, nil
	}
	choice := c.choose(f, now)
	switch {
	case choice.Outcome == choose.Accepted:
		return c.accept(ctx, f, &choice, now)
	case books.Ends(&f.rec.Spec, &choice):
		o.refuse(&choice)
		*d = c.core.Step(&f.rec.Spec, &f.rec.State, &o.Observation)
		return true, c.carryOut(ctx, f, now)
	}
	if !f.nowhere {
		f.nowhere = true
		c.view.nowhere.Push(f)
	}
	if f.tries == 0 {
		r := c.request(f, now)
		why := c.view.books.Nowhere(&r, &choice, f.overrun)
		c.noter.Note(now, "", f.rec.Spec.VM, "no host fits: "+why)
	}
	wait := min(c.config.Retry<<min(f.tries, 16), c.config.RetryCap)
	f.tries++
	c.timers.Set(&f.alarm, now.Add(wait))
	return false, nil
}

// retry lets some of those that fit nowhere try again when room has appeared,
// first in line first; the others wait for their time. It reports whether anybody
// tries.
func (c *Controller) retry() bool {
	if !c.view.room {
		return false
	}
	c.view.room = false
	tries := 0
	for tries < 4 && c.view.nowhere.Len() > 0 {
		f := c.view.nowhere.Pop()
		f.nowhere = false
		if !f.gone && f.rec.State.Phase == migration.Pending &&
			f.rec.State.Target == "" {
			c.view.dirty.Add(f)
			tries++
		}
	}
	return tries > 0
}
