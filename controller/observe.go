package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// observation is what the core sees, and where the VM is.
type observation struct {
	migration.Observation
	source hypervisor.HostName
	choice *placement.Decision // what was decided about a target that is refused
}

// observe puts together, in o, all that is known about one migration.
func (c *Controller) observe(f *migrationEntry, o *observation, now time.Time) {
	m, g := f.rec, f.vm
	*o = observation{}
	o.Now, o.Canceled, o.Report = now, m.Cancel, m.Report()
	if f.target != nil {
		o.Target = m.Instance(f.target.rec)
		o.Suspect = m.State.Phase < migration.TargetReady &&
			c.suspectTarget(m.State.Target, m.State.Source, now)
	}
	if g.rec == nil {
		return
	}
	o.source = g.rec.Host
	o.VM = g.rec.Status()
	o.VM.Stopping = o.VM.Stopping && !m.Source.HandedOver
	o.Running = g.host != nil && !g.host.rec.Fenced
	o.Instances = 1
	o.Ownership = c.claim(f, g)
	if m.State.Phase == migration.Unset && o.Ownership == migration.ClaimedByOther &&
		!c.core.Compatible {
		o.choice = c.inTheWay(f, g)
	}
	o.Replaced = !c.core.Compatible && replaced(g, f)
	if o.Target.Exists && g.rec.Blockers.Hotplug {
		o.Attachment = migration.Instance{Exists: m.Attach, Ready: m.Target.Attached,
			Down: m.Target.Detached}
	}
	if want := m.Spec.Target; want != "" && !o.Target.Exists {
		o.Impossible = want == g.rec.Host || c.cache.host(want).rec.Version == 0
	}
	if m.State.Phase == migration.Pending && !o.Target.Exists {
		c.observePending(f, g, o, now)
	}
	c.observeChoice(f, g, o, now)
}

// observePending adds what only matters before there is a target.
func (c *Controller) observePending(f *migrationEntry, g *vmEntry, o *observation, now time.Time) {
	for _, other := range g.migrations {
		if other != f && other.rec.State.Phase.Final() && !cleared(other.rec, false) &&
			!c.cache.host(remains(other.rec)).rec.NotReady {
			o.Instances++
		}
	}
	if f.rec.Spec.By != migration.User && len(g.migrations) > 1 {
		o.Backoff = c.core.RetryAt(f.rec.Spec.ID, attempts(g))
	}
	o.Gate = c.cache.slots.Admit(c.limitsOf(g.rec.Host), g.rec.Host)
	o.Queued = f.tries == 0 && waitsForRoom(&f.rec.State, &o.Observation)
	if f.overrun {
		o.TargetError = migration.QuotaExceeded
	}
}

// claim says which migration the VM names; before the hand-over the VM's oldest unfinished
// migration counts as named. A migration that the VM still names has not been
// settled, even when it has ended: until then it is not known where the VM is, and
// no other may have it. It only does not keep another from being accepted.
func (c *Controller) claim(f *migrationEntry, g *vmEntry) migration.Ownership {
	asked := f.rec.State.Phase == migration.Unset
	switch {
	case g.rec.ActiveMigration == f.rec.Spec.ID:
		return migration.ClaimedBySelf
	case asked && c.before(g, f) != nil:
		return migration.ClaimedByOther
	case g.rec.ActiveMigration == "":
		return migration.Unclaimed
	}
	if named := c.cache.migrations[g.rec.ActiveMigration]; asked && named != nil && named.ended {
		return migration.ClaimedByEnded
	}
	return migration.ClaimedByOther
}

// before returns the unfinished migration that keeps f from being accepted: an older one, or one
// that was accepted before; nil is none. One that f replaces is not in its way.
func (c *Controller) before(g *vmEntry, f *migrationEntry) *migrationEntry {
	at := slices.Index(g.migrations, f)
	for i, other := range g.migrations {
		p, older := other.rec.State.Phase, i < at || at < 0
		if i != at && !p.Final() && (older || p > migration.Unset) && // or was accepted before
			(c.core.Compatible || !makesWay(other, f)) {
			return other
		}
	}
	return nil
}

// inTheWay names what keeps a migration from being accepted, and says how to end it.
func (c *Controller) inTheWay(f *migrationEntry, g *vmEntry) *placement.Decision {
	id, state := g.rec.ActiveMigration, "not known"
	way := "godwit vm release " + string(g.rec.VM.ID) + " takes its claim back"
	other := c.before(g, f)
	if other == nil {
		other = c.cache.migrations[id]
	}
	if other != nil {
		id, state = other.rec.Spec.ID, other.rec.State.Phase.String()
		way = "cancel " + string(id) + " ends it"
	}
	return &placement.Decision{Outcome: placement.Conflict, Why: []placement.Reason{{
		Check: "migrations", Need: "no other that has not ended",
		Have: string(id) + " is " + state + ": " + way}}}
}

// makesWay reports whether a migration without a target gives way to another.
func makesWay(f, to *migrationEntry) bool {
	return f.rec.State.Target == "" && f.rec.Options == nil && to.rec.Spec.Replaces(&f.rec.Spec)
}

// replaced reports whether a VM's migration gives way to another of them that has not ended.
func replaced(g *vmEntry, f *migrationEntry) bool {
	return f.rec.Spec.By != migration.User && len(g.migrations) > 1 &&
		slices.ContainsFunc(g.migrations, func(o *migrationEntry) bool {
			return !o.rec.State.Phase.Final() && !o.rec.Cancel && makesWay(f, o)
		})
}

// attempts lists a VM's migrations as the core's history.
func attempts(g *vmEntry) []migration.Attempt {
	list := make([]migration.Attempt, 0, len(g.migrations))
	for _, f := range g.migrations {
		list = append(list, f.rec.Attempt())
	}
	return list
}
