package controller

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Nowhere says in one line what keeps a VM from every host; overrun is that its tenant's
// quota does.
func (b *reservations) Nowhere(r *placement.Request, d *placement.Decision, overrun bool) string {
	switch {
	case overrun || d.Outcome == placement.BadRequest:
		return reasonsText(d.Why)
	case r.Host != "":
		return string(r.Host) + ": " + reasonsText(b.Check(r, r.Host))
	}
	var checks []string
	for _, n := range b.Histogram(r) {
		checks = append(checks, fmt.Sprintf("%s×%d", n.Check, n.Hosts))
	}
	return strings.Join(checks, " ")
}

// failedReason sums up how often a VM's migrations have failed that are remembered, and how the last
// of them did.
func failedReason(last *store.Migration, times int) placement.Reason {
	have := string(last.Spec.ID)
	if last.State.Target != "" {
		have += " to " + string(last.State.Target)
	}
	have += " failed: " + last.State.Because
	if last.Source.Error != "" {
		have += " (" + last.Source.Error + ")"
	}
	if times > 1 {
		have = fmt.Sprintf("%d failures that are remembered, the last: %s", times, have)
	}
	return placement.Reason{Check: "migration", Need: "to succeed", Have: have}
}

// underWayReason says what a migration waits for that has a target.
func underWayReason(m *store.Migration) placement.Reason {
	if s := &m.State; s.Conditions.Has(migration.OutcomeUnknown) {
		return placement.Reason{Check: "outcome",
			Need: "word of " + string(s.Source) + " and " + string(s.Target), Have: "none"}
	}
	need := "to end"
	if host, what := m.State.NextStep(); host != "" {
		need = "the agent of " + string(host) + " " + what
	}
	return placement.Reason{Check: "migration", Need: need,
		Have: string(m.Spec.ID) + " is " + m.State.Phase.String()}
}

// inTheWay says what keeps a migration from getting a target besides limits and room; nil is
// nothing.
func inTheWay(o *migration.Observation, source hypervisor.HostName) []placement.Reason {
	switch {
	case !o.Running:
		return one("host", string(source)+" to be alive", "it was fenced")
	case o.VM.Backup:
		return one("backup", "none in progress", "one in progress")
	case o.VM.UtilityVolumes:
		return one("utility volumes", "none", "some")
	case o.Backoff.After(o.Now):
		return one("back-off", "to wait after a failure", o.Backoff.Sub(o.Now).String()+" left")
	case o.Instances > 1:
		return one("instances", "what an earlier migration left to be gone", "something left")
	}
	return nil
}

// gateReasons says what a migration waits for that could have a target.
func gateReasons(gate migration.Gate) []placement.Reason {
	if gate != migration.Open {
		return one("limit", "a free slot", gate.String()+" reached")
	}
	return one("migration", "its turn", "it waits")
}

func one(check, need, have string) []placement.Reason {
	return []placement.Reason{{Check: check, Need: need, Have: have}}
}

// waitsForRoom reports whether a limit alone keeps a migration from its target.
func waitsForRoom(s *migration.State, o *migration.Observation) bool {
	return s.Phase == migration.Pending && !o.Target.Exists && !o.Canceled && o.VM.Running && !o.VM.Deleting &&
		o.Ownership != migration.ClaimedByOther && inTheWay(o, s.Source) == nil
}
