package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// learnOutcome takes in how a migration ended. What failed is tried again by time: see
// [Controller.watchTroubled].
func (v *cache) learnOutcome(f *migrationEntry) {
	o, ended := f.rec.Outcome()
	if !ended || v.forgiving {
		return
	}
	f.hosts = o.Fault != migration.NoFault && o.Fault != migration.Sending
	v.health.Add(&o)
	if o.Fault != migration.NoFault {
		v.failed = append(v.failed, o.Source, o.Target)
	}
}

// forgetOutcome takes out a migration whose record is gone.
func (v *cache) forgetOutcome(f *migrationEntry) {
	if o, ended := f.rec.Outcome(); ended && o.Fault != migration.NoFault {
		v.health.Forget(&o)
	}
}

// recallOutcomes makes the health records anew from all migrations: the store does not list
// them in the order in which they ended.
func (v *cache) recallOutcomes() {
	v.failed = nil
	if v.forgiving {
		return
	}
	all := make([]*store.Migration, 0, len(v.migrations))
	for _, f := range v.migrations {
		all = append(all, f.rec)
	}
	v.health = *store.Health(all)
	v.failed = v.health.Hosts()
}

// watchTroubled sets the timers of hosts that have failed just now: their queues are looked at
// again when one migration may try.
func (c *Controller) watchTroubled(now time.Time) {
	for _, host := range c.cache.failed {
		c.tryLater(host, now)
	}
	c.cache.failed = c.cache.failed[:0]
}

// tryLater sets the timer of a host that is in trouble.
func (c *Controller) tryLater(host hypervisor.HostName, now time.Time) {
	if at := c.cache.health.Next(host, now); !at.IsZero() {
		c.probes.Set(host, at)
	}
}

// probe lets the migrations try that wait for a host that may be tried again, or whose failures are forgotten: then they
// wait no longer for the one that tries it, which may never end.
func (c *Controller) probe(now time.Time) {
	for host, due := c.probes.Pop(now); due; host, due = c.probes.Pop(now) {
		c.cache.capacityFreed = true
		c.cache.queue.Freed(host)
		c.tryLater(host, now)
	}
}

// suspects lists the hosts that a migration must not try now because they have failed others:
// those whose back-off is not over, and those that another one tries. A migration that an
// operator has asked for since the last failure need not wait for the back-off. Where the
// source is in trouble, targets to which nothing but its own transfers broke are only rather
// not tried: see rather.
func (c *Controller) suspects(f *migrationEntry, now time.Time) (all, rather []hypervisor.HostName) {
	source := f.vm.rec.Host
	for _, host := range c.cache.health.Hosts() {
		t, is := c.cache.health.Receiving(host, source, now)
		if !is || !c.waitsFor(f, &t, c.cache.slots.To(host), now) {
			continue
		}
		if _, blamed := c.cache.health.Sending(source, now); blamed && t.Way {
			rather = append(rather, host)
		} else {
			all = append(all, host)
		}
	}
	return all, rather
}

// waitsFor reports whether a migration waits for a troubled host to which, or from which, so
// many are under way.
func (c *Controller) waitsFor(f *migrationEntry, t *migration.HealthProblem, underWay int, now time.Time) bool {
	asked := f.rec.Spec.Target == t.Host && f.rec.Spec.Created.After(t.Last)
	return underWay > 0 || now.Before(t.Again) && !asked
}

// suspectTarget reports whether a target has failed lately.
func (c *Controller) suspectTarget(target, source hypervisor.HostName, now time.Time) bool {
	if c.core.Compatible {
		return false
	}
	_, is := c.cache.health.Receiving(target, source, now)
	return is
}

// mayTry reports whether the target that a migration asks for may be tried now.
func (c *Controller) mayTry(f *migrationEntry, r *placement.Request) bool {
	return r.Host == "" || f.rec.Spec.Force >= placement.Yes || !slices.Contains(r.Avoid, r.Host)
}

// maySend reports whether a source has failed so lately that a migration must not leave it now.
func (c *Controller) maySend(f *migrationEntry, source hypervisor.HostName, now time.Time) bool {
	if c.core.Compatible {
		return true
	}
	t, is := c.cache.health.Sending(source, now)
	return !is || !c.waitsFor(f, &t, c.cache.slots.From(source), now)
}

// HealthProblems lists the hosts that have failed migrations lately, as targets and then as sources,
// by name.
func (c *Controller) HealthProblems(now time.Time) []migration.HealthProblem {
	return c.cache.health.Problems(now)
}

// whyUnhealthy says for which troubled hosts a migration waits.
func (c *Controller) whyUnhealthy(f *migrationEntry, now time.Time) (why []placement.Reason) {
	source := f.vm.rec.Host
	if t, is := c.cache.health.Sending(source, now); is && !c.maySend(f, source, now) {
		why = append(why, unhealthy("to send", &t, now))
	}
	suspects, _ := c.suspects(f, now)
	for _, host := range suspects {
		if f.rec.Spec.Target == "" || f.rec.Spec.Target == host {
			t, _ := c.cache.health.Receiving(host, source, now)
			why = append(why, unhealthy("to receive", &t, now))
		}
	}
	return why
}

func unhealthy(need string, t *migration.HealthProblem, now time.Time) placement.Reason {
	return placement.Reason{Check: string(t.Host) + ": health", Need: need, Have: t.String(now)}
}
