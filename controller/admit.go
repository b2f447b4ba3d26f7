package controller

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
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
	open := func(source hypervisor.HostName) bool {
		return c.view.slots.Admit(c.limits, source) == migration.Open
	}
	for c.view.slots.Running() < c.limits.PerCluster {
		f := c.view.queue.take(open)
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
	o := c.observe(f, now)
	d := c.core.Step(&f.rec.Spec, &f.rec.State, &o.Observation)
	if !d.Actions.Has(migration.CreateTarget) {
		c.view.dirty.Add(f.rec.Spec.ID)
		return true, nil
	}
	g := c.view.guest(f.rec.Spec.VM)
	target, ok := c.choose(f, g, now)
	if !ok {
		if !f.nowhere {
			f.nowhere = true
			heap.Push(&c.view.nowhere, f)
		}
		if f.tries == 0 {
			c.noter.Note(now, "", f.rec.Spec.VM, "no host fits: "+c.whyNowhere(f, g, now))
		}
		wait := min(c.config.Retry<<min(f.tries, 16), c.config.RetryCap)
		f.tries++
		c.timers.Set(f.rec.Spec.ID, now.Add(wait))
		return false, nil
	}
	f.tries = 0
	next := *f.rec
	next.State.Source, next.State.Target = g.rec.Host, target
	return c.put(ctx, &next, now)
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
		f := heap.Pop(&c.view.nowhere).(*flight)
		f.nowhere = false
		if c.view.flights[f.rec.Spec.ID] == f && f.rec.State.Phase == migration.Pending &&
			f.rec.State.Target == "" {
			c.view.dirty.Add(f.rec.Spec.ID)
			tries++
		}
	}
	return tries > 0
}

// choose returns the target: the requested host, or the best one. Hosts that
// failed this VM lately are tried last.
func (c *Controller) choose(f *flight, g *guest, now time.Time) (hypervisor.HostName, bool) {
	o := c.placementOptions(f, g, now)
	if want := f.rec.Spec.Target; want != "" {
		o.Avoid = nil
		return want, len(c.view.books.Check(g.place, want, o)) == 0
	}
	if host, ok := c.view.books.Best(g.place, o); ok {
		return host, true
	}
	if o.Avoid != nil {
		o.Avoid = nil
		return c.view.books.Best(g.place, o)
	}
	return "", false
}

func (c *Controller) placementOptions(f *flight, g *guest, now time.Time) placement.Options {
	o := placement.Options{Source: g.rec.Host}
	if len(g.flights) > 1 {
		o.Avoid = c.core.Avoid(attempts(g), now)
	}
	return o
}

// whyNowhere says in one line what keeps a VM from every host.
func (c *Controller) whyNowhere(f *flight, g *guest, now time.Time) string {
	o := c.placementOptions(f, g, now)
	if want := f.rec.Spec.Target; want != "" {
		text := string(want)
		for _, r := range c.view.books.Check(g.place, want, o) {
			text += " " + r.String() + ";"
		}
		return text
	}
	text := ""
	for _, n := range c.view.books.Histogram(g.place, o) {
		text += fmt.Sprintf("%s×%d ", n.Check, n.Hosts)
	}
	return text
}

// Why explains why a VM is still where it is: everything that keeps it from
// every host, and what holds its migration up. It is for people and costs a
// look at all hosts.
func (c *Controller) Why(vm hypervisor.VMID, now time.Time) []placement.Reason {
	g := c.view.guests[vm]
	if g == nil || g.rec == nil {
		return []placement.Reason{{Check: "vm", Need: "to be known", Have: "no such VM"}}
	}
	why := c.whyStay(g)
	if id := g.rec.Claim; id != "" && c.view.flights[id] == nil {
		why = append(why, placement.Reason{Check: "claim", Need: "a migration that exists",
			Have: string(id)})
	}
	failed := 0
	for _, f := range g.flights {
		s := &f.rec.State
		switch {
		case s.Phase == migration.Failed:
			failed++
		case s.Phase.Final():
		case s.Phase <= migration.Pending:
			why = append(why, c.whyPending(f, g, now)...)
		case s.Conditions.Has(migration.OutcomeUnknown):
			why = append(why, placement.Reason{Check: "outcome",
				Need: "word of " + string(s.Source) + " and " + string(s.Target), Have: "none"})
		default:
			why = append(why, placement.Reason{Check: "migration", Need: "to end",
				Have: string(f.rec.Spec.ID) + " is " + s.Phase.String()})
		}
	}
	if failed > 0 {
		why = append(why, whyFailed(g, failed))
	}
	return why
}

// whyPending says what a migration waits for that has no target yet.
func (c *Controller) whyPending(f *flight, g *guest, now time.Time) []placement.Reason {
	o := c.observe(f, now)
	is := func(check, need, have string) []placement.Reason {
		return []placement.Reason{{Check: check, Need: need, Have: have}}
	}
	switch gate := c.view.slots.Admit(c.limits, g.rec.Host); {
	case !o.Running:
		return is("host", string(g.rec.Host)+" to be alive", "it was fenced")
	case o.VM.Backup:
		return is("backup", "none in progress", "one in progress")
	case o.VM.UtilityVolumes:
		return is("utility volumes", "none", "some")
	case o.Backoff.After(now):
		return is("back-off", "to wait after a failure", o.Backoff.Sub(now).String()+" left")
	case o.Instances > 1:
		return is("instances", "what an earlier migration left to be gone", "something left")
	case f.tries > 0:
		return c.whyPlace(f, g, now)
	case gate != migration.Open:
		return is("limit", "a free slot", gate.String()+" reached")
	}
	return is("migration", "its turn", "it waits")
}

// whyFailed sums up the migrations of a VM that have failed.
func whyFailed(g *guest, failed int) placement.Reason {
	last := g.flights[0].rec
	for _, f := range g.flights {
		if f.rec.State.Phase == migration.Failed {
			last = f.rec
		}
	}
	have := string(last.Spec.ID) + " failed: " + last.State.Because
	if last.Source.Error != "" {
		have += " (" + last.Source.Error + ")"
	}
	if failed > 1 {
		have = fmt.Sprintf("%d failures that are remembered, the last: %s", failed, have)
	}
	return placement.Reason{Check: "migration", Need: "to succeed", Have: have}
}

// whyStay says why evacuation does not move a VM that is to leave its host.
func (c *Controller) whyStay(g *guest) []placement.Reason {
	if g.moving() {
		return nil // its migration says why
	}
	s := c.view.site(g.rec.Host)
	plan := evacuation.Plan(c.config.Evacuation, s.asHost(), []evacuation.Guest{g.asGuest()},
		c.load(s))
	if len(plan.Stay) == 0 {
		return nil
	}
	return plan.Stay[0].Reasons
}

// whyPlace counts the hosts by check, and gives the details of one host each.
func (c *Controller) whyPlace(f *flight, g *guest, now time.Time) []placement.Reason {
	o := c.placementOptions(f, g, now)
	if want := f.rec.Spec.Target; want != "" {
		return c.view.books.Check(g.place, want, o)
	}
	var why []placement.Reason
	for _, r := range c.view.books.Refusals(g.place, o) {
		for _, reason := range r.Why {
			reason.Check = string(r.Host) + ": " + reason.Check
			why = append(why, reason)
		}
	}
	return why
}
