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
func (c *Controller) observe(f *flight, o *observation, now time.Time) {
	m, g := f.rec, f.guest
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
	o.VM = g.rec.Guest()
	o.VM.Stopping = o.VM.Stopping && !m.Source.HandedOver
	o.Running = g.site != nil && !g.site.rec.Fenced
	o.Instances = 1
	o.Claim = c.claim(f, g)
	if m.State.Phase == migration.Unset && o.Claim == migration.ClaimedByOther &&
		!c.core.Compatible {
		o.choice = c.inTheWay(f, g)
	}
	o.Replaced = !c.core.Compatible && replaced(g, f)
	if o.Target.Exists && g.rec.Holds.Hotplug {
		o.Attachment = migration.Instance{Exists: m.Attach, Ready: m.Target.Attached,
			Down: m.Target.Detached}
	}
	if want := m.Spec.Target; want != "" && !o.Target.Exists {
		o.Impossible = want == g.rec.Host || c.view.site(want).rec.Version == 0
	}
	if m.State.Phase == migration.Pending && !o.Target.Exists {
		c.observePending(f, g, o, now)
	}
	c.observeChoice(f, g, o, now)
}

// observePending adds what only matters before there is a target.
func (c *Controller) observePending(f *flight, g *guest, o *observation, now time.Time) {
	for _, other := range g.flights {
		if other != f && other.rec.State.Phase.Final() && !Cleared(other.rec, false) &&
			!c.view.site(Remains(other.rec)).rec.Lost {
			o.Instances++
		}
	}
	if f.rec.Spec.By != migration.User && len(g.flights) > 1 {
		o.Backoff = c.core.RetryAt(f.rec.Spec.ID, attempts(g))
	}
	o.Gate = c.view.slots.Admit(c.limits, g.rec.Host)
	o.Queued = f.tries == 0 && Waits(&f.rec.State, &o.Observation)
	if f.overrun {
		o.Trouble = migration.QuotaExceeded
	}
}

// claim says whom the VM names; before the hand-over the VM's oldest unfinished
// migration counts as named. A migration that the VM still names has not been
// settled, even when it has ended: until then nobody knows where the VM is, and
// no other may have it. It only does not keep another from being accepted.
func (c *Controller) claim(f *flight, g *guest) migration.Claim {
	asked := f.rec.State.Phase == migration.Unset
	switch {
	case g.rec.Claim == f.rec.Spec.ID:
		return migration.ClaimedBySelf
	case asked && c.before(g, f) != nil:
		return migration.ClaimedByOther
	case g.rec.Claim == "":
		return migration.Unclaimed
	}
	if named := c.view.flights[g.rec.Claim]; asked && named != nil && named.ended {
		return migration.ClaimedByEnded
	}
	return migration.ClaimedByOther
}

// before returns the unfinished migration that keeps f from being accepted: an older one, or one
// that was accepted before; nil is none. One that f replaces is not in its way.
func (c *Controller) before(g *guest, f *flight) *flight {
	at := slices.Index(g.flights, f)
	for i, other := range g.flights {
		p, older := other.rec.State.Phase, i < at || at < 0
		if i != at && !p.Final() && (older || p > migration.Unset) && // or was accepted before
			(c.core.Compatible || !makesWay(other, f)) {
			return other
		}
	}
	return nil
}

// inTheWay names what keeps a migration from being accepted, and says how to end it.
func (c *Controller) inTheWay(f *flight, g *guest) *placement.Decision {
	id, state := g.rec.Claim, "not known"
	way := "godwit vm release " + string(g.rec.VM.ID) + " takes its claim back"
	other := c.before(g, f)
	if other == nil {
		other = c.view.flights[id]
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
func makesWay(f, to *flight) bool {
	return f.rec.State.Target == "" && f.rec.Options == nil && to.rec.Spec.Replaces(&f.rec.Spec)
}

// replaced reports whether a VM's migration gives way to another of them that has not ended.
func replaced(g *guest, f *flight) bool {
	return f.rec.Spec.By != migration.User && len(g.flights) > 1 &&
		slices.ContainsFunc(g.flights, func(o *flight) bool {
			return !o.rec.State.Phase.Final() && !o.rec.Cancel && makesWay(f, o)
		})
}

// attempts lists a VM's migrations as the core's history.
func attempts(g *guest) []migration.Attempt {
	list := make([]migration.Attempt, 0, len(g.flights))
	for _, f := range g.flights {
		list = append(list, f.rec.Attempt())
	}
	return list
}
