package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// applied are the plans in the cache that have not ended.
type applied struct {
	plans map[string]*store.Plan
	vms   map[hypervisor.VMID][]int // of the plan that is carried out, with their moves
	dirty bool                      // something has changed that matters to it
	again time.Time                 // when to look at it again
}

// learn takes in a plan as it is stored.
func (a *applied) learn(p *store.Plan) {
	if old := a.plans[p.Name]; old != nil && old.Version >= p.Version {
		return
	}
	if a.dirty = true; !p.Ended.IsZero() {
		a.forget(p.Name)
		return
	}
	if a.plans == nil {
		a.plans = map[string]*store.Plan{}
	}
	if a.plans[p.Name] == nil {
		a.vms = nil // it may be this one's turn
	}
	a.plans[p.Name] = p
}

func (a *applied) forget(name string) {
	if a.plans[name] != nil {
		a.dirty, a.vms = true, nil
		delete(a.plans, name)
	}
}

// changePlans changes which plans there are, or how far they are: VMs that are to be with others hold room
// where a plan takes these, see [cache.saved].
func (v *cache) changePlans(change func(*applied)) {
	before := v.applied.first()
	change(&v.applied)
	after := v.applied.first()
	v.reserveMoves(after)
	if before != nil && (after == nil || !slices.EqualFunc(before.Moves, after.Moves, sameVM)) {
		v.reserveMoves(before)
	}
}

func sameVM(a, b store.PlannedMove) bool { return a.VM == b.VM }

// reserveMoves updates the reservations of the VMs of a plan that are to be with others; nil is no plan.
func (v *cache) reserveMoves(p *store.Plan) {
	if p == nil {
		return
	}
	for i := range p.Moves {
		if g := v.vms[p.Moves[i].VM]; g != nil && g.rec != nil && g.binds() {
			v.reserve(string(g.rec.VM.ID), g)
		}
	}
}

// moved takes in that something about a VM has changed.
func (a *applied) moved(vm hypervisor.VMID) {
	if a.vms[vm] != nil {
		a.dirty = true
	}
}

// moves returns the move of the plan that is carried out that takes a VM from one host to another, and
// is not settled; nil is that there is none.
func (a *applied) moves(vm hypervisor.VMID, from, to hypervisor.HostName) *store.PlannedMove {
	p := a.first()
	if p == nil {
		return nil
	}
	a.watch(p)
	for _, i := range a.vms[vm] {
		if m := &p.Moves[i]; !m.State.Settled() && m.Source == from && m.Target == to {
			return m
		}
	}
	return nil
}

// first returns the plan that is carried out: the oldest.
func (a *applied) first() (first *store.Plan) {
	for _, p := range a.plans {
		if first == nil || p.Created.Before(first.Created) ||
			p.Created.Equal(first.Created) && p.Name < first.Name {
			first = p
		}
	}
	return first
}

// apply carries out the next step of the plan whose turn it is. What it requests is stored in the plan
// first, under names that follow from it: after a crash the same is requested, and nothing twice.
func (c *Controller) apply(ctx context.Context, now time.Time) error {
	a := &c.cache.applied
	a.dirty, a.again = false, time.Time{}
	p := a.first()
	if p == nil {
		return nil
	}
	a.watch(p)
	d := decidePlan(p, func(move int) moveObservation { return c.observeMove(p, move) }, now)
	a.again = d.Again
	done, err := c.step(ctx, p, &d, now)
	if err != nil || !done {
		a.again = workqueue.Earliest(a.again, now.Add(c.config.Retry))
	}
	return err
}

// watch lets changes of the VMs of a plan be looked at.
func (a *applied) watch(p *store.Plan) {
	if a.vms != nil {
		return
	}
	a.vms = make(map[hypervisor.VMID][]int, len(p.Moves))
	for i := range p.Moves {
		a.vms[p.Moves[i].VM] = append(a.vms[p.Moves[i].VM], i)
	}
}

// step stores what was decided about a plan, and then does it. It reports false when another process has
// written one of the records meanwhile.
func (c *Controller) step(ctx context.Context, p *store.Plan, d *planStep, now time.Time) (bool, error) {
	if d.Changed {
		if stored, err := c.put(ctx, &d.Plan, now); err != nil || !stored {
			return false, err
		}
		c.notePlan(p, &d.Plan, now)
		if p = c.cache.applied.plans[p.Name]; p == nil {
			return true, nil // it has ended
		}
	}
	all := true
	for _, move := range d.Withdraw {
		f := c.cache.migrations[p.Migration(move)]
		if f == nil {
			continue
		}
		next := *f.rec
		next.Cancel = true
		stored, err := c.put(ctx, &next, now)
		if err != nil {
			return false, err
		}
		all = all && stored
	}
	for _, move := range d.Ask {
		stored, err := c.requestMove(ctx, p, move, now)
		if err != nil {
			return false, err
		}
		all = all && stored
	}
	return all, nil
}

// observeMove returns what is known about a move.
func (c *Controller) observeMove(p *store.Plan, move int) moveObservation {
	m := &p.Moves[move]
	g := c.cache.vms[m.VM]
	if g == nil || g.rec == nil {
		return moveObservation{}
	}
	s := moveObservation{Known: true, Host: g.rec.Host, Off: whyNotRunning(g.rec), Follows: c.cache.follows(g, m.Target)}
	if can, why := g.rec.CanMigrate(); !can {
		s.Fixed = cmp.Or(why, "its record does not say why")
	}
	own := migration.ID("")
	if m.State != store.MoveWaits {
		own = p.Migration(move)
	}
	for _, f := range g.migrations {
		switch {
		case f.rec.Spec.ID == own:
			s.Own = f.rec
		case !f.rec.State.Phase.Final() && f.rec.Spec.By == migration.User:
			s.Other = f.rec.Spec.ID
		case !f.rec.State.Phase.Final() && (f.rec.State.Target != "" || f.rec.Options != nil):
			s.Other = f.rec.Spec.ID // one of the system's that has no target gives way
		}
	}
	if s.Own == nil && s.Other == "" && g.rec.ActiveMigration != "" && g.rec.ActiveMigration != own {
		s.Other = g.rec.ActiveMigration // it has not been settled
	}
	return s
}

// whyNotRunning returns why a VM is not to be moved while it runs; "" is that it runs.
func whyNotRunning(v *store.VM) string {
	switch {
	case v.Evicted != nil:
		return "the VM is shut down to leave its host"
	case v.Off():
		return "the VM is stopped"
	case v.Ended:
		return "the VM is off"
	}
	return ""
}

// requestMove requests the migration of a move: as an operator's, so that no drain takes it back, and
// with a target that is asked once more and must not be forced.
func (c *Controller) requestMove(ctx context.Context, p *store.Plan, move int, now time.Time) (bool, error) {
	m := &p.Moves[move]
	g := c.cache.vm(m.VM)
	created := now.Add(time.Duration(move)) // the first shall be the oldest
	if n := len(g.migrations); n > 0 && !created.After(g.migrations[n-1].rec.Spec.Created) {
		created = g.migrations[n-1].rec.Spec.Created.Add(1)
	}
	r := &store.Migration{Spec: migration.Spec{ID: p.Migration(move), VM: m.VM, Created: created,
		By: migration.User}}
	if !m.Late {
		r.Spec.Target, r.Spec.Force = m.Target, placement.No
	}
	return c.put(ctx, r, now, p)
}

// notePlan notes what has become of moves.
func (c *Controller) notePlan(before, after *store.Plan, now time.Time) {
	for i := range after.Moves {
		was, is := &before.Moves[i], &after.Moves[i]
		switch name := "plan " + after.Name + ": "; {
		case was.State != is.State && is.State == store.MoveSkipped:
			c.recorder.Note(now, "", is.VM, name+"skipped: "+is.Because)
		case !was.Late && is.Late:
			c.recorder.Note(now, "", is.VM, name+"goes to another host than "+string(is.Target)+": "+is.Because)
		}
	}
}
