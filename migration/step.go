package migration

import "time"

// Step decides what one migration does next: which actions are due, and whether it goes one
// phase forward, fails, or stays. It is total and deterministic, and it allocates nothing. It
// reads its arguments and changes none of them.
func (c *Config) Step(m *Spec, s *State, o *Observation) (d Decision) {
	c.StepIn(m, s, o, &d)
	return d
}

// StepIn is Step in memory of the caller's. What is there is overwritten; s is not part of it.
func (c *Config) StepIn(m *Spec, s *State, o *Observation, d *Decision) {
	c = c.completed()
	d.State = *s
	d.Actions, d.Rule, d.Refused, d.Stuck, d.nNotes, d.nRequeues = 0, "", false, false, 0, 0
	if c.Compatible {
		c.act(m, s, o, d) // KubeVirt acts even on what it is about to end
	}
	c.judge(m, s, o, d)
}

// judge is the deciding half: the rules, then normal progress.
// Source: KubeVirt v1.9.0 migration.go:528 (updateStatus).
func (c *Config) judge(m *Spec, s *State, o *Observation, d *Decision) {
	if !c.decide(s, o, d) {
		if !c.Compatible {
			c.act(m, s, o, d)
		}
		c.advance(m, s, o, d)
	}
	d.mirror(PeerBlocked, o.VM.PeerFailure)
	if c.Compatible {
		return
	}
	inLine := d.State.Phase == Pending && (s.Phase != Pending || o.Queued) // as long as the line is
	if d.State.Deadline.IsZero() && !inLine {
		d.State.Deadline = c.deadline(m, &d.State, o)
	}
	d.tidyUp(o)
	d.wakeInTime(o.Now)
}

// decide applies the first rule that holds and decides; it reports whether one ended the look.
func (c *Config) decide(s *State, o *Observation, d *Decision) bool {
	table := rules[:]
	switch {
	case c.Compatible:
		table = kubevirtRules[:]
	case undisturbed(s, o): // as nearly always
		return false
	}
	for i := range table {
		r := &table[i]
		if !r.holds(s, o) {
			continue
		}
		switch r.verdict {
		case release:
			d.State.Released = true
		case skip:
			return false
		case fail:
			d.end(r, o)
		case abort:
			if !c.giveUp(r, o, d) {
				continue
			}
		case markAborting:
			d.State.Conditions = d.State.Conditions.With(AbortRequested)
			d.Rule = r.name
		case markUnknown:
			d.State.Conditions = d.State.Conditions.With(OutcomeUnknown)
			d.note(r.note)
			d.Rule = r.name
		}
		return true
	}
	return false
}

// giveUp ends the migration while the source has not begun; afterwards it records the cause and
// asks the source to keep the VM. It reports false when the source has been asked before.
func (c *Config) giveUp(r *rule, o *Observation, d *Decision) bool {
	asked := d.State.Conditions.Has(AbortRequested)
	if c.Compatible || !o.Report.Began {
		if o.Canceled && !asked {
			d.State.Conditions = d.State.Conditions.With(AbortRequested)
		}
		d.end(r, o)
		return true
	}
	if asked {
		return false
	}
	d.State.Conditions = d.State.Conditions.With(AbortRequested)
	d.State.Because, d.State.AbortBy = r.name, o.Now.Add(c.Timeouts.Abort)
	d.note(r.note)
	d.Rule = r.name
	return true
}

// end lets the migration fail. What made it abort earlier stays the cause, unless the transfer
// ended before the source had acted on that.
func (d *Decision) end(r *rule, o *Observation) {
	d.note(r.note)
	d.Rule = r.name
	if d.State.Because == "" || o.Report.Began && !o.Report.Aborting && !o.Canceled {
		d.State.Because = r.name
	}
	d.State.Conditions = d.State.Conditions.Without(OutcomeUnknown)
	d.enter(Failed, o.Now)
}

// enter moves to p. Its deadline is set when the look ends.
func (d *Decision) enter(p Phase, now time.Time) {
	d.State.Phase, d.State.Entered, d.State.Deadline = p, now, time.Time{}
}

// mirror records a condition as long as something holds elsewhere.
func (d *Decision) mirror(k Condition, on bool) {
	d.State.Conditions = d.State.Conditions.Without(k)
	if on {
		d.State.Conditions = d.State.Conditions.With(k)
	}
}

// wakeInTime asks for a look when time alone changes the answer. A bound that has passed without
// a decision waits for news.
func (d *Decision) wakeInTime(now time.Time) {
	at := d.State.Deadline
	if d.State.Conditions.Has(AbortRequested) {
		at = d.State.AbortBy
	}
	waits := !d.State.Phase.Final() && !d.State.Conditions.Has(OutcomeUnknown)
	if left := at.Sub(now); waits && !at.IsZero() && left >= 0 {
		d.requeue(max(left, left+time.Millisecond), inFlight) // the longest wait stays as it is
	}
}

// advance goes one phase forward when what the next phase needs is there.
// Source: KubeVirt v1.9.0 migration.go:716 (phase switch).
func (c *Config) advance(m *Spec, s *State, o *Observation, d *Decision) {
	switch s.Phase {
	case Unset:
		d.enter(Pending, o.Now)
	case Pending:
		c.leavePending(m, o, d)
	case Scheduling:
		d.State.Conditions = d.State.Conditions.Without(RejectedByQuota)
		switch {
		case !c.Compatible && d.Actions.Has(DeleteTarget):
			c.giveUp(&targetExpired, o, d)
		case o.Target.Ready && attached(o):
			d.enter(Scheduled, o.Now)
		}
	case Scheduled:
		if o.Ownership == ClaimedBySelf && o.Report.TargetNamed {
			d.enter(PreparingTarget, o.Now)
		}
	case PreparingTarget:
		if o.Report.TargetNamed && o.Report.Address {
			d.enter(TargetReady, o.Now)
		}
	case TargetReady:
		if o.Report.Started || !c.Compatible && arrived(s, o) { // the start's report may be lost
			d.enter(Running, o.Now)
		}
	case Running:
		d.leaveRunning(o)
	}
}

// The words in [State.Because] of a request for a host that was refused.
const badRequest, conflict = "bad-request", "conflict"

// MemoryLost is the [State.Because] of a migration whose VM arrived and had to start anew.
const MemoryLost = "memory-lost"

// vmStopping is the [State.Because] of a migration that gave way to a shutdown of its VM.
const vmStopping = "vm-stopping"

// replaced is the [State.Because] of a migration that gave way to one that an operator asked for.
const replaced = "replaced"

// Withdrawn reports whether a migration that failed, by its [State.Because], was taken back by
// its operator, or for one. Nothing went wrong then.
func Withdrawn(because string) bool {
	return because == "canceled" || because == vmStopping || because == replaced
}

// These rules are not in the tables: they only hold where progress looks.
var (
	targetExpired         = rule{name: "target-expired", note: noteOverdue}
	utilityVolumesExpired = rule{name: "utility-volumes-timeout", note: noteUtilityVolumesTimeout}
)

// attached reports whether hot-plugged volumes, if any, are at the target.
func attached(o *Observation) bool {
	return !o.VM.Hotplug || o.Attachment.Exists && o.Attachment.Ready
}

// leavePending goes on to Scheduling unless something holds the migration back.
// Source: KubeVirt v1.9.0 migration.go:1581 (backup), :1665 (utility volumes), :731.
func (c *Config) leavePending(m *Spec, o *Observation, d *Decision) {
	if d.heldByBackup(m, o) || c.heldByUtilityVolumes(m, o, d) {
		return
	}
	switch {
	case o.Target.Exists && (attached(o) || !c.Compatible):
		d.enter(Scheduling, o.Now)
	case !o.Target.Exists && o.TargetError == QuotaExceeded && !d.State.Conditions.Has(RejectedByQuota):
		d.State.Conditions = d.State.Conditions.With(RejectedByQuota)
	}
}

// heldByBackup waits for a backup; a critical migration asks it, once, to end.
// Source: KubeVirt v1.9.0 migration.go:1581.
func (d *Decision) heldByBackup(m *Spec, o *Observation) bool {
	if o.VM.Backup {
		if m.Priority >= SystemCritical && !d.State.Conditions.Has(BlockedByBackup) {
			d.ask(AbortBackup, noteBackupAborted)
		}
		d.requeue(m.Priority.Requeue(), m.Priority)
	}
	d.mirror(BlockedByBackup, o.VM.Backup)
	return o.VM.Backup
}

// heldByUtilityVolumes waits for volumes that only a tool uses, for a while.
// Source: KubeVirt v1.9.0 migration.go:1665.
func (c *Config) heldByUtilityVolumes(m *Spec, o *Observation, d *Decision) bool {
	if !o.VM.UtilityVolumes {
		d.mirror(BlockedByUtilityVolumes, false)
		return false
	}
	since := m.Created
	if !c.Compatible && o.Backoff.After(since) {
		since = o.Backoff // a retry has not asked before it may
	}
	left := or(m.Timeouts.UtilityVolumes, c.Timeouts.UtilityVolumes) - max(0, o.Now.Sub(since))
	if left <= 0 {
		c.giveUp(&utilityVolumesExpired, o, d)
		return true
	}
	d.note(noteUtilityVolumesWaiting)
	d.mirror(BlockedByUtilityVolumes, true)
	d.requeue(left, inFlight)
	return true
}

// leaveRunning tells the target that the VM has arrived, and succeeds once nothing is left to
// apply.
// Source: KubeVirt v1.9.0 migration.go:798 (target-ready annotation), :845.
func (d *Decision) leaveRunning(o *Observation) {
	if o.Report.Arrived && o.Target.Exists && !o.Target.Told {
		d.do(TellTarget)
	}
	if o.Report.Completed && !o.VM.CPUChange && !o.VM.MemoryChange && !o.VM.MoveRequired {
		if d.State.Because = ""; o.Report.Lost {
			d.State.Because = MemoryLost
		}
		d.State.Conditions = d.State.Conditions.Without(OutcomeUnknown)
		d.note(noteSucceeded)
		d.enter(Succeeded, o.Now)
	}
}

// or returns the bound that holds for one migration: its own where it has one. What is negative
// has passed.
func or(override *time.Duration, value time.Duration) time.Duration {
	if override != nil {
		value = *override
	}
	return max(0, value)
}
