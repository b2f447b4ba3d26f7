package migration

import "time"

// Step decides what one migration does next: which actions are due, and whether
// it goes one phase forward, fails, or stays. It is total and deterministic, and
// it allocates nothing. It reads its arguments and changes none of them. The
// receiver must be complete: see [Config.Complete].
func (c *Config) Step(m *Spec, s *State, o *Observation) Decision {
	d := Decision{State: *s}
	c.act(m, s, o, &d)
	c.judge(m, s, o, &d)
	return d
}

// judge is the deciding half: the rules, then normal progress.
// Source: KubeVirt v1.9.0 migration.go:528 (updateStatus).
func (c *Config) judge(m *Spec, s *State, o *Observation, d *Decision) {
	table := rules[:]
	if c.Compatible {
		table = kubevirtRules[:]
	}
	if !c.decide(table, s, o, d) {
		c.advance(m, s, o, d)
	}
	d.mirror(PeerBlocked, o.VM.PeerFailure)
	if !c.Compatible && !d.State.Phase.Final() && !d.State.Deadline.IsZero() {
		d.wake(max(0, d.State.Deadline.Sub(o.Now))+time.Millisecond, inFlight)
	}
}

// decide applies the first rule that holds and decides; it reports whether one
// ended the look.
func (c *Config) decide(table []rule, s *State, o *Observation, d *Decision) bool {
	for i := range table {
		r := &table[i]
		if !r.holds(s, o) {
			continue
		}
		switch r.verdict {
		case release:
			d.State.Released = true
		case goOn:
			return false
		case cancel:
			d.State.Conditions = withAbort(d.State.Conditions)
			c.end(Failed, r, o, d)
		case fail:
			c.end(Failed, r, o, d)
		case giveUp:
			if o.Report.Began {
				if s.Conditions.Has(AbortRequested) {
					continue
				}
				c.askToAbort(r, o, d)
				break
			}
			if o.Canceled {
				d.State.Conditions = withAbort(d.State.Conditions)
			}
			c.end(Failed, r, o, d)
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

// end closes the migration. What made it abort earlier stays the cause.
func (c *Config) end(p Phase, r *rule, o *Observation, d *Decision) {
	d.note(r.note)
	d.Rule = r.name
	if d.State.Because == "" {
		d.State.Because = r.name
	}
	d.State.Conditions = d.State.Conditions.Without(OutcomeUnknown)
	c.enter(p, o, d)
}

// askToAbort records the cause and asks the source to keep the VM.
func (c *Config) askToAbort(r *rule, o *Observation, d *Decision) {
	d.State.Conditions = d.State.Conditions.With(AbortRequested)
	d.State.Because = r.name
	d.State.AbortBy = o.Now.Add(c.Timeouts.Abort)
	d.do(RequestAbort)
	d.note(r.note)
	d.Rule = r.name
}

// withAbort records the request unless some record of it is there.
func withAbort(cs Conditions) Conditions {
	if cs.Has(AbortRequested) {
		return cs
	}
	return cs.With(AbortRequested)
}

// enter moves to p, stamps the time and sets the new deadline.
func (c *Config) enter(p Phase, o *Observation, d *Decision) {
	d.State.Phase = p
	d.State.Entered = o.Now
	d.State.Deadline = time.Time{}
	if !p.Final() && !c.Compatible {
		d.State.Deadline = c.deadline(p, &d.State, o.Now)
	}
}

// mirror records a condition as long as something holds elsewhere.
func (d *Decision) mirror(k Condition, on bool) {
	if on {
		d.State.Conditions = d.State.Conditions.With(k)
		return
	}
	d.State.Conditions = d.State.Conditions.Without(k)
}

// advance goes one phase forward when what the next phase needs is there.
// Source: KubeVirt v1.9.0 migration.go:716 (phase switch).
func (c *Config) advance(m *Spec, s *State, o *Observation, d *Decision) {
	switch s.Phase {
	case Unset:
		if o.Claim == ClaimedByOther {
			c.end(Failed, &otherInProgress, o, d)
			return
		}
		c.enter(Pending, o, d)
	case Pending:
		c.leavePending(m, o, d)
	case Scheduling:
		d.State.Conditions = d.State.Conditions.Without(RejectedByQuota)
		if o.Target.Ready && attached(o) {
			c.enter(Scheduled, o, d)
		}
	case Scheduled:
		if o.Claim == ClaimedBySelf && o.Report.TargetNamed {
			c.enter(PreparingTarget, o, d)
		}
	case PreparingTarget:
		if o.Report.TargetNamed && o.Report.Address {
			c.enter(TargetReady, o, d)
		}
	case TargetReady:
		if o.Report.Started {
			c.enter(Running, o, d)
		}
	case Running:
		c.leaveRunning(o, d)
	}
}

// otherInProgress is not in the tables: it only holds at the very beginning.
var otherInProgress = rule{name: "other-in-progress", note: NoteOtherInProgress}

// attached reports whether hot-plugged volumes, if any, are at the target.
func attached(o *Observation) bool {
	return !o.VM.Hotplug || o.Attachment.Exists && o.Attachment.Ready
}

// leavePending goes on to Scheduling unless something holds the migration back.
// Source: KubeVirt v1.9.0 migration.go:1581 (backup), :1665 (utility volumes), :731.
func (c *Config) leavePending(m *Spec, o *Observation, d *Decision) {
	if c.heldByBackup(m, o, d) || c.heldByUtilityVolumes(m, o, d) {
		return
	}
	switch {
	case o.Target.Exists && (attached(o) || !c.Compatible):
		c.enter(Scheduling, o, d)
	case !o.Target.Exists && o.Trouble == QuotaExceeded && !d.State.Conditions.Has(RejectedByQuota):
		d.State.Conditions = d.State.Conditions.With(RejectedByQuota)
	}
}

// heldByBackup waits for a backup; a critical migration asks it, once, to end.
// Source: KubeVirt v1.9.0 migration.go:1581.
func (c *Config) heldByBackup(m *Spec, o *Observation, d *Decision) bool {
	if !o.VM.Backup {
		d.State.Conditions = d.State.Conditions.Without(BlockedByBackup)
		return false
	}
	if m.Priority >= SystemCritical && !d.State.Conditions.Has(BlockedByBackup) {
		d.do(AbortBackup)
		d.note(NoteBackupAborted)
	}
	d.State.Conditions = d.State.Conditions.With(BlockedByBackup)
	d.wake(m.Priority.Requeue(), m.Priority)
	return true
}

// heldByUtilityVolumes waits for volumes that only a tool uses, for a while.
// Source: KubeVirt v1.9.0 migration.go:1665.
func (c *Config) heldByUtilityVolumes(m *Spec, o *Observation, d *Decision) bool {
	if !o.VM.UtilityVolumes {
		d.State.Conditions = d.State.Conditions.Without(BlockedByUtilityVolumes)
		return false
	}
	timeout := or(m.Timeouts.UtilityVolumes, c.Timeouts.UtilityVolumes)
	left := timeout - max(0, o.Now.Sub(m.Created))
	if left <= 0 {
		c.end(Failed, &utilityVolumesExpired, o, d)
		return true
	}
	d.note(NoteUtilityVolumesWaiting)
	d.State.Conditions = d.State.Conditions.With(BlockedByUtilityVolumes)
	d.wake(left, inFlight)
	return true
}

var utilityVolumesExpired = rule{name: "utility-volumes-timeout", note: NoteUtilityVolumesTimeout}

// leaveRunning tells the target that the VM has arrived, and succeeds once
// nothing is left to apply.
// Source: KubeVirt v1.9.0 migration.go:798 (target-ready annotation), :845.
func (c *Config) leaveRunning(o *Observation, d *Decision) {
	if o.Report.Arrived && o.Target.Exists && !o.Target.Told {
		d.do(TellTarget)
	}
	if o.Report.Completed && !o.VM.CPUChange && !o.VM.MemoryChange && !o.VM.MoveRequired {
		d.State.Because = ""
		d.State.Conditions = d.State.Conditions.Without(OutcomeUnknown)
		d.note(NoteSucceeded)
		c.enter(Succeeded, o, d)
	}
}

// or returns the override where there is one.
func or(override *time.Duration, value time.Duration) time.Duration {
	if override != nil {
		return *override
	}
	return value
}
