package migration_test

import (
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// A law is what every decision keeps, whatever is seen.
type law struct {
	name  string
	holds func(*situation, *migration.Decision) bool
}

// breach returns the first law that a decision breaks; "" is none.
func breach(s *situation, d *migration.Decision) string {
	own := defaultLaws
	if s.config.Compatible {
		own = compatibleLaws
	}
	for _, laws := range [...][]law{commonLaws, actionLaws, own} {
		for i := range laws {
			if !laws[i].holds(s, d) {
				return laws[i].name
			}
		}
	}
	return ""
}

// failsNow reports whether this decision ends the migration without success.
func failsNow(s *situation, d *migration.Decision) bool {
	return s.state.Phase != migration.Failed && d.State.Phase == migration.Failed
}

var commonLaws = []law{
	{"what has ended stays as it ended", func(s *situation, d *migration.Decision) bool {
		return !s.state.Phase.Final() || d.State.Phase == s.state.Phase && d.State.Released
	}},
	{"only a migration that has ended is released", func(s *situation, d *migration.Decision) bool {
		return s.state.Phase.Final() || d.State.Released == s.state.Released
	}},
	{"one look goes one phase forward, or fails", func(s *situation, d *migration.Decision) bool {
		from, to := s.state.Phase, d.State.Phase
		return to == from || to == from+1 && from <= migration.Running || failsNow(s, d)
	}},
	{"the hosts and the budget are the caller's", func(s *situation, d *migration.Decision) bool {
		return d.State.Source == s.state.Source && d.State.Target == s.state.Target &&
			d.State.Budget == s.state.Budget
	}},
	{"the phase and when it was entered change together",
		func(s *situation, d *migration.Decision) bool {
			if d.State.Phase == s.state.Phase {
				return d.State.Entered == s.state.Entered
			}
			return d.State.Entered == s.seen.Now
		}},
	{"no note and no wake is lost", func(_ *situation, d *migration.Decision) bool {
		return len(d.Notes()) < migration.MaxNotes && len(d.Requeues()) < migration.MaxWakes
	}},
	{"every wake lies ahead", func(_ *situation, d *migration.Decision) bool {
		for _, w := range d.Requeues() {
			if w.After <= 0 {
				return false
			}
		}
		return true
	}},
	{"a failure has a rule, a cause and a note", func(s *situation, d *migration.Decision) bool {
		return !failsNow(s, d) || d.Rule != "" && d.State.Because != "" && len(d.Notes()) > 0
	}},
	{"success needs a report", func(s *situation, d *migration.Decision) bool {
		return d.State.Phase != migration.Succeeded || s.state.Phase == migration.Succeeded ||
			s.seen.Report.Completed
	}},
	{"a request to abort is never forgotten", func(s *situation, d *migration.Decision) bool {
		return !s.state.Conditions.Has(migration.AbortRequested) ||
			d.State.Conditions.Has(migration.AbortRequested)
	}},
	{"an unreachable peer is shown as long as it lasts",
		func(s *situation, d *migration.Decision) bool {
			return d.State.Conditions.Has(migration.PeerBlocked) == s.seen.VM.PeerFailure
		}},
}

// only builds a law: an action is asked for only where allowed holds.
func only(a migration.Action, when string, allowed func(*situation) bool) law {
	return law{a.String() + " is only asked for " + when,
		func(s *situation, d *migration.Decision) bool { return !d.Actions.Has(a) || allowed(s) }}
}

var actionLaws = []law{
	only(migration.CreateTarget, "in Pending, with every gate open", func(s *situation) bool {
		o := &s.seen
		return s.state.Phase == migration.Pending && o.Gate == migration.Open && o.Running &&
			o.Instances <= 1 && o.VM.Exists && o.VM.Running && !o.VM.UtilityVolumes &&
			!o.Target.Exists && !o.Canceled && !o.Backoff.After(o.Now) &&
			o.Ownership != migration.ClaimedByOther
	}),
	only(migration.CreateAttachment, "for a ready target of volumes that lack one",
		func(s *situation) bool {
			return s.seen.VM.Hotplug && s.seen.Target.Ready && !s.seen.Attachment.Exists &&
				s.state.Phase >= migration.Pending && s.state.Phase <= migration.Scheduled
		}),
	only(migration.DeleteTarget, "of a target that exists", func(s *situation) bool {
		return s.seen.Target.Exists
	}),
	only(migration.HandOff, "in Scheduled, once, with a ready target", func(s *situation) bool {
		return s.state.Phase == migration.Scheduled && s.seen.Target.Ready &&
			s.seen.Ownership != migration.ClaimedBySelf && s.seen.Ownership != migration.ClaimedByOther
	}),
	only(migration.RequestAbort, "until it is passed on", func(s *situation) bool {
		return !s.seen.Report.Aborting && !s.state.Phase.Final()
	}),
	only(migration.TellTarget, "until it knows, when the VM has arrived",
		func(s *situation) bool {
			return (s.state.Phase == migration.Running || s.state.Phase == migration.Succeeded) &&
				s.seen.Report.Arrived && s.seen.Target.Exists && !s.seen.Target.Told
		}),
	only(migration.AbortBackup, "once, for a critical migration", func(s *situation) bool {
		return s.state.Phase == migration.Pending && s.seen.VM.Backup &&
			s.spec.Priority >= migration.SystemCritical &&
			!s.state.Conditions.Has(migration.BlockedByBackup)
	}),
}

var compatibleLaws = []law{
	{"KubeVirt has no deadlines", func(s *situation, d *migration.Decision) bool {
		return d.State.AbortBy == s.state.AbortBy &&
			(d.State.Deadline.IsZero() || d.State.Deadline == s.state.Deadline)
	}},
	{"KubeVirt has no unknown outcome", func(s *situation, d *migration.Decision) bool {
		return s.state.Conditions.Has(migration.OutcomeUnknown) ||
			!d.State.Conditions.Has(migration.OutcomeUnknown)
	}},
	only(migration.ReportFailed, "where the VM names this migration", func(s *situation) bool {
		return s.seen.Ownership == migration.ClaimedBySelf && !s.seen.Report.Failed
	}),
}

var defaultLaws = []law{
	{"a look is undisturbed exactly when no rule holds",
		func(s *situation, _ *migration.Decision) bool {
			return migration.Undisturbed(&s.state, &s.seen) !=
				migration.RuleHolds(&s.state, &s.seen)
		}},
	{"once the source has begun, only its report makes a migration fail",
		func(s *situation, d *migration.Decision) bool {
			return !failsNow(s, d) || !s.seen.Report.Began || s.seen.Report.Failed
		}},
	{"a VM that the source kept has not arrived", func(s *situation, d *migration.Decision) bool {
		return d.State.Phase != migration.Succeeded || s.state.Phase == migration.Succeeded ||
			!s.seen.Report.Failed || s.seen.Report.Arrived
	}},
	{"a target that may hold the VM is not deleted",
		func(s *situation, d *migration.Decision) bool {
			r := &s.seen.Report
			return !d.Actions.Has(migration.DeleteTarget) || !r.Began || r.Failed &&
				!(r.Completed && r.Arrived)
		}},
	{"a cancel works at once until the source has begun",
		func(s *situation, d *migration.Decision) bool {
			return !s.seen.Canceled || s.seen.Report.Began || d.State.Phase.Final()
		}},
	{"what ends in this look is not acted on", func(s *situation, d *migration.Decision) bool {
		return !failsNow(s, d) ||
			d.Actions&^migration.Actions(0).With(migration.DeleteTarget) == 0
	}},
	{"a failed migration's target is withdrawn", func(s *situation, d *migration.Decision) bool {
		return !failsNow(s, d) || !s.seen.Target.Exists || s.seen.Target.Deleting ||
			s.seen.Report.Began || d.Actions.Has(migration.DeleteTarget)
	}},
	{"an abort is only requested once the source has begun",
		func(s *situation, d *migration.Decision) bool {
			return !d.Actions.Has(migration.RequestAbort) || s.seen.Report.Began &&
				d.State.Conditions.Has(migration.AbortRequested)
		}},
	{"nothing is ever stuck, and no VM is told of a failure",
		func(_ *situation, d *migration.Decision) bool {
			return !d.Stuck && !d.Actions.Has(migration.ReportFailed)
		}},
	{"the first cause stays the cause, if it had time to be one",
		func(s *situation, d *migration.Decision) bool {
			early := s.seen.Report.Began && !s.seen.Report.Aborting && !s.seen.Canceled
			return s.state.Because == "" || d.State.Because == s.state.Because ||
				d.State.Phase == migration.Succeeded || d.State.Phase == migration.Failed && early
		}},
	{"a phase is entered with its time ahead, an end without any",
		func(s *situation, d *migration.Decision) bool {
			switch {
			case d.State.Phase == s.state.Phase:
				return true
			case d.State.Phase.Final() || d.State.Phase == migration.Pending:
				return d.State.Deadline.IsZero()
			}
			return !d.State.Deadline.Before(s.seen.Now)
		}},
	{"a migration that only waits for its turn is never overdue, and every other has a deadline",
		func(s *situation, d *migration.Decision) bool {
			if s.state.Phase == migration.Pending && s.seen.Queued {
				return d.Rule != "overdue"
			}
			return s.state.Phase == migration.Unset || d.State.Phase.Final() ||
				!d.State.Deadline.IsZero()
		}},
	{"an outcome is unknown only when no host answers, or no host knows",
		func(s *situation, d *migration.Decision) bool {
			return s.state.Conditions.Has(migration.OutcomeUnknown) ||
				!d.State.Conditions.Has(migration.OutcomeUnknown) ||
				s.state.Conditions.Has(migration.AbortRequested) &&
					s.seen.Now.After(s.state.AbortBy) ||
				s.seen.Report.Began && s.seen.Report.Unresolved
		}},
	{"what waits for time is woken by time", wokenInTime},
}

// wokenInTime: a bound that lies ahead comes with a wake just behind it, or, for one in the
// next centuries, as late as a wake can say.
func wokenInTime(s *situation, d *migration.Decision) bool {
	bound := d.State.Deadline
	if d.State.Conditions.Has(migration.AbortRequested) {
		bound = d.State.AbortBy
	}
	if d.State.Phase.Final() || d.State.Conditions.Has(migration.OutcomeUnknown) ||
		bound.Before(s.seen.Now) {
		return true
	}
	for _, w := range d.Requeues() {
		if w.After == bound.Add(time.Millisecond).Sub(s.seen.Now) {
			return true
		}
	}
	return false
}
