package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller/books"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement/choose"
)

// observation is what the core sees, and where the VM is.
type observation struct {
	migration.Observation
	source hypervisor.HostName
	choice *choose.Decision // what was decided about a target that is refused
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
		if other != f && other.rec.State.Phase.Final() && !books.Cleared(other.rec, false) &&
			!c.view.site(books.Remains(other.rec)).rec.Lost {
			o.Instances++
		}
	}
	if f.rec.Spec.By != migration.User && len(g.flights) > 1 {
		o.Backoff = c.core.RetryAt(f.rec.Spec.ID, attempts(g))
	}
	o.Gate = c.view.slots.Admit(c.limits, g.rec.Host)
	o.Queued = f.tries == 0 && books.Waits(&f.rec.State, &o.Observation)
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
	case asked && unfinishedBefore(g, f):
		return migration.ClaimedByOther
	case g.rec.Claim == "":
		return migration.Unclaimed
	}
	if named := c.view.flights[g.rec.Claim]; asked && named != nil && named.ended {
		return migration.ClaimedByEnded
	}
	return migration.ClaimedByOther
}

func unfinishedBefore(g *guest, f *flight) bool {
	at := slices.Index(g.flights, f)
	for i, other := range g.flights {
		p, older := other.rec.State.Phase, i < at || at < 0
		if i != at && !p.Final() && (older || p > migration.Unset) { // or was accepted before
			return true
		}
	}
	return false
}

// attempts lists a VM's migrations as the core's history.
func attempts(g *guest) []migration.Attempt {
	list := make([]migration.Attempt, 0, len(g.flights))
	for _, f := range g.flights {
		list = append(list, f.rec.Attempt())
	}
	return list
}
