package controller

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// request is what a migration asks for, with what the VM asks of every host, until it is called
// again. What one migration asks for is never asked for by the next.
func (c *Controller) request(f *migrationEntry, now time.Time) *placement.Request {
	m, g := &f.rec.Spec, f.vm
	r := &c.asked
	*r = placement.Request{VM: c.cache.placed(g), Host: m.Target, Force: m.Force, Compat: m.Compat,
		Source: g.rec.Host}
	rather := []hypervisor.HostName(nil)
	if !c.core.Compatible {
		r.Avoid, rather = c.suspects(f, now)
	}
	if m.Target == "" {
		r.Avoid = append(r.Avoid, rather...)
		if len(g.migrations) > 1 {
			r.Avoid = append(r.Avoid, c.core.Avoid(attempts(g), now)...)
		}
	}
	if vm := c.together(f); vm != nil {
		r.VM = vm
	}
	return r
}

// choose decides about a target. Hosts that failed this VM lately are tried last, those that
// failed any VM only one at a time and after a while, see package migration. A
// tenant that has used up its quota gets none. A limit on what moves at once is a
// queue and refuses no VM: a request for a host that is busy waits.
func (c *Controller) choose(f *migrationEntry, now time.Time) (d placement.Decision) {
	c.cache.apart(f.vm, func() { d = c.chooses(f, now) })
	return d
}

func (c *Controller) chooses(f *migrationEntry, now time.Time) placement.Decision {
	r := c.request(f, now)
	f.waitsOn = wire{}
	if !c.mayTry(f, r) {
		f.overrun = false
		return placement.Decision{Outcome: placement.NoHost}
	}
	d := c.cache.reservations.Decide(r)
	if d.Outcome == placement.NoHost && len(r.Avoid) > 0 && r.Host == "" {
		if r.Avoid = nil; !c.core.Compatible {
			r.Avoid, _ = c.suspects(f, now)
		}
		d = c.cache.reservations.Decide(r)
	}
	f.overrun = false
	if d.Outcome != placement.Accepted {
		return d
	}
	if r.Host != "" && c.cache.reservations.Full(r.Host) {
		return placement.Decision{Outcome: placement.NoHost}
	}
	if d, f.waitsOn = c.uncrowded(f, d, r); d.Outcome != placement.Accepted {
		return d
	}
	if why := c.cache.reservations.Exceeds(r.VM, moveOf(f.rec, d.Host, false)); len(why) > 0 {
		f.overrun = true
		return lacking(r, why)
	}
	return d
}

// accept stores the choice of a target, and what follows from it: from this writing on the
// VM holds the target.
func (c *Controller) accept(ctx context.Context, f *migrationEntry, d *placement.Decision, now time.Time) (
	bool, error) {
	c.cache.setTries(f, 0)
	next := draft(&c.next, f.rec)
	next.State.Source, next.State.Target = f.vm.rec.Host, d.Host
	if f.rec.Spec.Target != "" && (f.rec.Spec.Force != placement.Absent || f.rec.Spec.Compat) {
		next.Decision = new(*d)
	}
	c.observed.Target = next.Instance(c.cache.host(d.Host).rec)
	c.observed.Suspect = c.suspectTarget(d.Host, next.State.Source, now)
	c.core.StepIn(&next.Spec, &next.State, &c.observed.Observation, &c.answer)
	next.State = c.answer.State
	stored, err := c.put(ctx, next, now)
	switch {
	case errors.Is(err, store.Unanswered):
		c.doubt = f.rec
	case stored:
		c.audit(f, placement.StepAccepted, now)
		c.emitEvents(f, migration.Pending, &c.answer, now)
		if d.Action != "" {
			c.recorder.Note(now, "", f.rec.Spec.VM, forcedText(d))
		}
	}
	return stored, err
}

// audit reports a step of the reservations to the [store.Auditor], if there is one.
func (c *Controller) audit(f *migrationEntry, step placement.ReservationStep, now time.Time) {
	auditor, ok := c.recorder.(store.Auditor)
	if g := f.vm; ok && g.rec != nil && f.rec.State.Target != "" {
		auditor.Audit(ledgerEntry(f.rec, placement.AmountOf(c.cache.placed(g)), step, now))
	}
}

// observeChoice adds what is wrong with what was asked for, or with the target that was
// chosen: it is asked once more when it holds room and before the VM is handed over.
// A controller that gave the same room away at the same time is seen by then, by one of the two
// at least: both wrote their choice before they read the other's.
func (c *Controller) observeChoice(f *migrationEntry, g *vmEntry, o *observation, now time.Time) {
	m, s := &f.rec.Spec, &f.rec.State
	switch {
	case c.core.Compatible || s.Phase.HandedOver() || o.Ownership == migration.ClaimedBySelf:
	case s.Target == "" && (o.Impossible || m.Target == "" && m.Force == placement.Yes ||
		m.Force > placement.Yes):
		r := c.request(f, now)
		d := c.cache.reservations.Decide(r)
		if o.Impossible && m.Target != g.rec.Host { // the reservations know of it by this request alone
			d = placement.Decide(&c.config.Placement, r, nil)
		}
		o.refuse(&d)
	case s.Phase == migration.Scheduled && o.Target.Ready:
		r := c.request(f, now)
		r.Avoid = nil
		if why := c.cache.reservations.Confirm(r, s.Target); len(why) > 0 {
			d := placement.Decision{Outcome: placement.Conflict, Why: why}
			o.refuse(&d)
			if m.Target == "" {
				o.Refusal = migration.Outdated
			}
		}
	}
}

// refuse takes a refusal into what the core sees.
func (o *observation) refuse(d *placement.Decision) {
	switch o.choice = d; d.Outcome {
	case placement.Conflict:
		o.Refusal = migration.Conflict
	case placement.BadRequest:
		o.Refusal = migration.BadRequest
	}
}

// Claims lists what each VM holds of which host, and for which move, by VM.
func (c *Controller) Claims() []placement.Reservation { return c.cache.reservations.Claims() }
