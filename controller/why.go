package controller

import (
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Why explains why a VM is still where it is: everything that keeps it from every host, and
// what holds its migration up. It is for people and costs a look at all hosts.
func (c *Controller) Why(vm hypervisor.VMID, now time.Time) []placement.Reason {
	g := c.cache.vms[vm]
	if g == nil || g.rec == nil {
		return []placement.Reason{{Check: "vm", Need: "to be known", Have: "no such VM"}}
	}
	why := c.whyOff(g)
	if why == nil {
		why = c.whyStay(g, now)
	}
	if id := g.rec.ActiveMigration; id != "" && c.cache.migrations[id] == nil {
		why = append(why, c.whyClaimed(g))
	}
	failed, last := 0, (*store.Migration)(nil)
	for _, f := range g.migrations {
		s := &f.rec.State
		switch {
		case s.Phase == migration.Failed && !migration.Withdrawn(s.Because):
			failed, last = failed+1, f.rec
		case s.Phase == migration.Succeeded:
			failed = 0 // what went wrong before does not keep it here
		case s.Phase.Final():
		case s.Phase <= migration.Pending:
			why = append(why, c.whyPending(f, g, now)...)
		default:
			why = append(why, underWayReason(f.rec))
		}
	}
	if failed > 0 {
		why = append(why, failedReason(last, failed))
	}
	return why
}

// whyClaimed says what becomes of a claim that names a migration which is not there.
func (c *Controller) whyClaimed(g *vmEntry) placement.Reason {
	have := string(g.rec.ActiveMigration) + ", which is not known"
	switch r := g.rec.Release; {
	case r == nil || r.Claim != g.rec.ActiveMigration:
		have += ": godwit vm release takes the claim back"
	case g.rec.Trouble != "":
		have += ": " + r.By + " has asked for its release; " + g.rec.Trouble
	default:
		have += ": " + r.By + " has asked for its release, which " + string(g.rec.Host) +
			" has not confirmed yet"
	}
	return placement.Reason{Check: "claim", Need: "a migration that exists", Have: have}
}

// whyPending says what a migration waits for that has no target yet.
func (c *Controller) whyPending(f *migrationEntry, g *vmEntry, now time.Time) []placement.Reason {
	var o observation
	c.observe(f, &o, now)
	unhealthy := c.whyUnhealthy(f, now)
	switch why := inTheWay(&o.Observation, g.rec.Host); {
	case why != nil:
		return append(why, unhealthy...)
	case f.tries > 0 && f.overrun:
		r := c.request(f, now)
		if why := c.cache.reservations.Exceeds(r.VM, moveOf(f.rec, g.rec.Host, false)); why != nil {
			return why
		}
		fallthrough
	case f.tries > 0:
		var why []placement.Reason
		c.cache.apart(g, func() { why = c.cache.reservations.Why(c.request(f, now)) })
		why = append(c.whyTogether(f), slices.DeleteFunc(why, avoided)...)
		return append(unhealthy, why...)
	case len(unhealthy) > 0:
		return unhealthy
	}
	if c.cache.slots.Admit(c.limitsOf(g.rec.Host), g.rec.Host) == migration.Open {
		if why := c.whyCrowded(f); why != nil {
			return why
		}
	}
	return gateReasons(c.cache.slots.Admit(c.limitsOf(g.rec.Host), g.rec.Host))
}

// avoided reports whether a reason says no more than that a host is avoided.
func avoided(r placement.Reason) bool { return strings.HasSuffix(r.Check, ": avoided") }

// whyStay says why evacuation does not move a VM that is to leave its host.
func (c *Controller) whyStay(g *vmEntry, now time.Time) []placement.Reason {
	if g.moving() {
		return nil // its migration says why
	}
	s := c.cache.host(g.rec.Host)
	plan := evacuation.Plan(c.config.Evacuation, s.asHost(), []evacuation.VM{g.asVM()},
		c.load(s, now))
	if len(plan.Stay) == 0 {
		return nil
	}
	why := plan.Stay[0].Reasons
	if len(plan.Stop) > 0 && plan.Stop[0].Restart {
		_, nowhere := c.shelter(g)
		why = append(why, nowhere...)
	}
	return why
}
