package bench

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A step of oVirt's schedule is taken when more passes than after have been noticed.
type step struct {
	after int
	do    convergence.Action
	limit time.Duration
}

func downtime(after int, limit time.Duration) step {
	return step{after, convergence.SetDowntime, limit * time.Millisecond}
}

// always is a step that follows at the next pass.
const always = -1

// oVirt's schedules.
// Source: oVirt engine 0111fc6303, dbscripts/upgrade/pre_upgrade/0000_config.sql
// (MigrationPolicies).
var (
	ramp = []step{downtime(1, 150), downtime(2, 200), downtime(3, 300), downtime(4, 400),
		downtime(6, 500)}
	giveUp   = step{always, convergence.Abort, 0}
	minimal  = slices.Concat(ramp, []step{giveUp})
	suspend  = slices.Concat(ramp, []step{downtime(always, 5000), giveUp})
	postCopy = slices.Concat(ramp[:2], []step{{always, convergence.StartPostCopy, 0}, giveUp})
)

const (
	ovirtFirst = 100 * time.Millisecond
	// ovirtPulse is how often the source looks.
	// Source: oVirt vdsm lib/vdsm/common/config.py.in (migration_monitor_interval).
	ovirtPulse = 10 * time.Second
)

// What OVirt remembers, in State.Own.
const (
	looked    = iota // milliseconds since the start
	remaining        // bytes, at that look
	passes           // how often what remains has grown from one look to the next
	position         // in the schedule
	size
)

// OVirt takes the next step of a schedule, at most one for each pass that it notices: one
// with more left to send than ten seconds before. There is no time-out.
// Source: oVirt vdsm lib/vdsm/virt/migration.py (monitor_migration, _next_action).
func OVirt(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Decision) {
	s = begin(s, p, now)
	if !active(s, p) {
		return s, convergence.Decision{}
	}
	if len(s.Own) != size {
		s.Own = make([]int64, size)
		s.Own[remaining] = -1
		return s, tune(s, min(ovirtFirst, ceiling(c, ovirtFirst)))
	}
	since := now.Sub(s.Started).Milliseconds()
	if since-s.Own[looked] < ovirtPulse.Milliseconds() {
		return s, convergence.Decision{}
	}
	grown := s.Own[remaining] >= 0 && s.Own[remaining] < int64(p.Remaining)
	s.Own = slices.Clone(s.Own)
	s.Own[looked], s.Own[remaining] = since, int64(p.Remaining)
	if !grown {
		return s, convergence.Decision{}
	}
	s.Own[passes]++
	plan := schedule(c)
	at := int(s.Own[position])
	if at >= len(plan) || plan[at].after >= int(s.Own[passes]) {
		return s, convergence.Decision{}
	}
	s.Own[position]++
	return s, plan[at].verdict(c, s)
}

// schedule returns the policy that goes furthest of what is allowed.
func schedule(c convergence.Config) []step {
	switch {
	case c.AllowPostCopy && !c.VFIO:
		return postCopy
	case c.AllowWorkloadDisruption:
		return suspend
	}
	return minimal
}

// verdict returns what a step asks for. The limits of all but the last steps stay within
// what is allowed.
func (t step) verdict(c convergence.Config, s convergence.State) convergence.Decision {
	switch {
	case t.do == convergence.SetDowntime && t.after != always:
		return tune(s, min(t.limit, ceiling(c, t.limit)))
	case t.do == convergence.SetDowntime:
		return convergence.Decision{Action: t.do, Limit: t.limit, Why: convergence.Stalled}
	}
	return convergence.Decision{Action: t.do, Why: convergence.Stalled}
}
