package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Of a move of a plan whose migration failed.
const (
	planAttempts    = 3 // so often it is requested for one target
	planRetry       = 10 * time.Second
	planRetryAtMost = 5 * time.Minute
	// planPatience is how long a move waits for another migration of its VM.
	planPatience = 10 * time.Minute
)

// A moveObservation is what is known about one move of a plan.
type moveObservation struct {
	Known bool                // the VM exists
	Host  hypervisor.HostName // that it is on
	Off   string              // why it does not run, or shall not; "" is that it does
	Fixed string              // why it cannot be migrated; "" is that it can
	Other migration.ID        // a migration of it that is not the move's, and has not ended
	// Follows: it is to be on one host with VMs that are on the target, or will be.
	Follows bool
	// Own is the migration that was requested last for the move; nil while there is none.
	Own *store.Migration
}

// A planStep is what is done next about a plan.
type planStep struct {
	// Plan is the plan as it is to be stored before anything else is done, if Changed.
	Plan    store.Plan
	Changed bool
	// Ask are the moves whose migrations are to be requested, in order, and Withdraw those whose
	// migrations are to be cancelled. Either may be repeated.
	Ask, Withdraw []int
	// Again is when to decide again, whatever happens; zero is never.
	Again time.Time
}

// decidePlan decides what is done next about a plan. See tells what is known about a move; it is asked
// only about those whose turn has come. A move is requested when
//
//   - all moves of earlier waves are settled, or late;
//   - its VM runs on its source, can be migrated, and no other migration of it has not ended;
//   - operators let the plan run, or others of its group have gone to the target: a group of which a part has
//     left is not torn apart.
//
// A move whose target does not take the VM, or fails to, is late if it empties a host: when all waves
// are through, its VM goes to any host that takes it. All others are skipped, with the reason.
func decidePlan(p *store.Plan, see func(move int) moveObservation, now time.Time) planStep {
	d := planDecision{now: now, see: see, step: planStep{Plan: *p}, open: map[hypervisor.VMID]bool{}}
	d.plan = &d.step.Plan
	if !p.Ended.IsZero() {
		return d.step
	}
	d.plan.Moves = slices.Clone(p.Moves)
	for d.wave() && d.plan.Wave < d.plan.Waves() {
		d.plan.Wave++
	}
	settled := func(m store.PlannedMove) bool { return m.State.Settled() }
	if !slices.ContainsFunc(d.plan.Moves, func(m store.PlannedMove) bool { return !settled(m) }) {
		d.plan.Ended = now
	}
	d.step.Changed = d.plan.Wave != p.Wave || !d.plan.Ended.Equal(p.Ended) ||
		!slices.Equal(d.plan.Moves, p.Moves)
	return d.step
}

type planDecision struct {
	now  time.Time
	see  func(int) moveObservation
	plan *store.Plan
	step planStep
	open map[hypervisor.VMID]bool // VMs with a move that is not settled
}

// wave decides about every move whose turn has come, and reports whether the next wave may begin. Moves
// that are late have their turn when all waves are through.
func (d *planDecision) wave() (through bool) {
	through = true
	d.step.Ask, d.step.Withdraw, d.step.Again = nil, nil, time.Time{}
	clear(d.open)
	for i := range d.plan.Moves {
		m := &d.plan.Moves[i]
		turn := m.Wave <= d.plan.Wave && (!m.Late || d.plan.Wave >= d.plan.Waves())
		if m.State.Settled() || !turn && m.State == store.MoveWaits && d.plan.Wish != store.AbortPlan {
			through = through && (m.State.Settled() || m.Late || m.Wave > d.plan.Wave)
			continue
		}
		d.move(i, m, turn)
		if !m.State.Settled() {
			d.open[m.VM] = true
			through = through && m.Late && m.State == store.MoveWaits
		}
	}
	return through
}

// move decides about one move whose turn has come, or which is given up before.
func (d *planDecision) move(i int, m *store.PlannedMove, turn bool) {
	s := d.see(i)
	wish := d.plan.Wish
	if turn && s.Follows {
		wish = store.RunPlan
	}
	if m.State != store.MoveWaits && s.Own != nil {
		if d.requested(i, m, s.Own, wish); m.State != store.MoveWaits {
			return
		}
	}
	if why := d.stale(m, &s); why != "" {
		d.skip(m, why)
	}
	switch {
	case m.State.Settled():
	case wish == store.AbortPlan:
		d.skip(m, "the plan was aborted")
	case wish == store.PausePlan:
		m.State = store.MoveWaits
	case m.Late && d.plan.Wave < d.plan.Waves(): // its turn comes after all waves
	case m.Again.After(d.now):
		d.step.Again = workqueue.Earliest(d.step.Again, m.Again)
	case s.Other != "":
		d.inTheWay(m, s.Other)
	case d.open[m.VM]:
		m.State, m.Because = store.MoveWaits, "another move of the plan has not ended"
	default:
		if m.State != store.MoveAsked { // else it was not requested yet
			m.State, m.Asked, m.Because = store.MoveAsked, m.Asked+1, d.late(m)
			m.Again, m.Since = time.Time{}, time.Time{}
		}
		d.step.Ask = append(d.step.Ask, i)
	}
}

// inTheWay lets a move wait for another migration of its VM, but not for ever: one that waits for room
// would hold up the plan.
func (d *planDecision) inTheWay(m *store.PlannedMove, other migration.ID) {
	if m.State = store.MoveWaits; m.Since.IsZero() {
		m.Since = d.now
	}
	until, why := m.Since.Add(planPatience), fmt.Sprintf("migration %s has not ended", other)
	if until.After(d.now) {
		d.step.Again = workqueue.Earliest(d.step.Again, until)
		if !m.Late {
			m.Because = why
		}
		return
	}
	m.Since = time.Time{}
	if d.put(m, why) != "" {
		d.skip(m, why)
	}
}

// late keeps the reason why a move does not go to the target that was planned.
func (d *planDecision) late(m *store.PlannedMove) string {
	if m.Late {
		return m.Because
	}
	return ""
}

// stale returns why a move makes no sense any more, or settles it as done; "" is that it still does.
func (d *planDecision) stale(m *store.PlannedMove, s *moveObservation) string {
	switch {
	case !s.Known:
		return "the VM does not exist"
	case s.Host == m.Target && !m.Late, s.Host != m.Source && m.Late && !d.empties(s.Host):
		d.done(m, s.Host)
	case s.Host != m.Source && d.empties(s.Host):
		m.Source = s.Host // it must leave this one as well
		if !m.Late {
			return d.put(m, fmt.Sprintf("the VM is on %s", s.Host))
		}
	case s.Host != m.Source:
		return fmt.Sprintf("the VM is on %s, not on %s", dashed(s.Host), m.Source)
	case s.Off != "":
		return s.Off
	case s.Fixed != "":
		return "the VM cannot be migrated: " + s.Fixed
	}
	return ""
}

func dashed(h hypervisor.HostName) hypervisor.HostName {
	if h == "" {
		return "no host"
	}
	return h
}

// empties reports whether the plan empties a host.
func (d *planDecision) empties(h hypervisor.HostName) bool { return slices.Contains(d.plan.Hosts, h) }

// put lets a move be late, or returns why it is skipped instead.
func (d *planDecision) put(m *store.PlannedMove, why string) string {
	if m.Late || d.plan.Strict || !d.empties(m.Source) {
		return why
	}
	m.Late, m.Failed, m.State, m.Again, m.Because = true, 0, store.MoveWaits, time.Time{}, why
	return ""
}

func (d *planDecision) skip(m *store.PlannedMove, why string) {
	m.State, m.Because, m.Again = store.MoveSkipped, why, time.Time{}
}

func (d *planDecision) done(m *store.PlannedMove, on hypervisor.HostName) {
	m.State, m.Host, m.Again = store.MoveDone, on, time.Time{}
}

// requested decides about a move whose migration exists.
func (d *planDecision) requested(i int, m *store.PlannedMove, own *store.Migration, wish store.PlanWish) {
	switch phase := own.State.Phase; {
	case phase == migration.Succeeded:
		d.done(m, own.State.Target)
	case phase.Final():
		d.failed(m, own)
	case phase.HandedOver() || own.Cancel: // it ends by itself
	case wish != store.RunPlan || m.State == store.MoveWithdrawn:
		m.State = store.MoveWithdrawn
		d.step.Withdraw = append(d.step.Withdraw, i)
	}
}

// failed decides about a move whose migration has failed.
func (d *planDecision) failed(m *store.PlannedMove, own *store.Migration) {
	why := own.State.Because
	if own.Decision != nil {
		why += because(own.Decision)
	}
	switch {
	case m.State == store.MoveWithdrawn:
		m.State, m.Because = store.MoveWaits, ""
		return
	case own.Cancel:
		d.skip(m, "an operator cancelled its migration")
		return
	}
	m.Failed++
	if slices.Contains(refusedBy, own.State.Because) || m.Failed >= planAttempts {
		if why := d.put(m, why); why != "" {
			d.skip(m, why)
		}
		return
	}
	m.State, m.Because = store.MoveWaits, why
	m.Again = own.State.Entered.Add(workqueue.Backoff(planRetry, planRetryAtMost, m.Failed-1))
}

// refusedBy are the rules that end a migration whose target does not take the VM, or is not there.
// Source: package migration (step.go, rules.go).
var refusedBy = []string{"conflict", "bad-request", "target-impossible"}
