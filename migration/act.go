package migration

// act returns the actions of this phase, whatever their outcome.
// Source: KubeVirt v1.9.0 migration.go:1761 (sync).
func (c *Config) act(m *Spec, s *State, o *Observation, d *Decision) {
	if !o.VM.Exists || o.VM.Deleting || o.Ownership == ClaimedBySelf && o.Report.Completed {
		return
	}
	if o.Ownership == ClaimedByOther {
		d.Refused = true
		return
	}
	switch s.Phase {
	case Pending:
		c.actPending(m, o, d)
	case Scheduling:
		c.actScheduling(m, o, d)
	case Scheduled:
		c.actScheduled(o, d)
	case PreparingTarget, TargetReady:
		if c.Compatible && (!o.Target.Exists || o.Target.Down) && !o.Report.Started &&
			!o.Report.Completed {
			d.reportFailed(o)
		}
	case Running: // Source: KubeVirt v1.9.0 migration.go:1320 (through the VM's state).
		if c.Compatible && o.Canceled && o.Ownership != Unclaimed && !o.Report.Aborting {
			d.ask(RequestAbort, noteAbortSignaled)
		}
	case Failed:
		if c.Compatible {
			d.reportFailed(o)
		}
	}
}

// tidyUp asks again for what an end, or a request to abort, still lacks.
func (d *Decision) tidyUp(o *Observation) {
	switch t := &o.Target; {
	case d.State.Phase == Failed && t.Exists && !t.Deleting && expendable(o):
		d.do(DeleteTarget)
	case d.State.Phase == Succeeded && t.Exists && !t.Told && o.Report.Arrived:
		d.do(TellTarget)
	case !d.State.Phase.Final() && o.Report.Began && !o.Report.Aborting && !o.Report.Completed &&
		d.State.Conditions.Has(AbortRequested):
		d.do(RequestAbort)
	}
}

// expendable reports whether the target surely does not hold the VM: the source has not begun,
// or has said that it kept the VM.
// Source: godwit; the last good copy is never destroyed.
func expendable(o *Observation) bool {
	return !o.Report.Began || o.Report.Failed && !arrived(nil, o)
}

// actPending creates the target when every gate is open.
// Source: KubeVirt v1.9.0 migration.go:1790 to :1862.
func (c *Config) actPending(m *Spec, o *Observation, d *Decision) {
	if o.Canceled {
		c.deleteTarget(noteCanceledTargetDeleted, o, d)
		return
	}
	if wait := o.Backoff.Sub(o.Now); wait > 0 {
		d.note(noteBackoff)
		d.requeue(wait, inFlight)
		return
	}
	if o.VM.UtilityVolumes || !c.Compatible && o.VM.Backup {
		return
	}
	switch {
	case !o.Target.Exists:
		d.createTarget(m, o)
	case !o.Target.Ready:
		if c.Compatible { // otherwise this look ends in Scheduling
			c.expire(m, o, d)
		}
	case o.VM.Hotplug && !o.Attachment.Exists:
		d.ask(CreateAttachment, noteCreatedAttachment)
	}
}

// createTarget passes the gates in KubeVirt's order: the VM's instances, the cluster, the
// source, and whether the VM runs at all.
// Source: KubeVirt v1.9.0 migration.go:1346 (handleTargetPodCreation).
func (d *Decision) createTarget(m *Spec, o *Observation) {
	switch {
	case !o.Running:
	case o.Instances > 1:
		d.requeue(Priority(100).Requeue(), m.Priority) // one second, whatever the priority
	case o.Gate != Open:
		if o.Gate == NotAsked {
			d.note(noteLimitsNotAsked)
		}
		d.requeue(m.Priority.Requeue(), m.Priority)
	case o.VM.Running:
		d.ask(CreateTarget, noteCreatedTarget)
	}
}

// actScheduling bounds how long the target may take to start.
// Source: KubeVirt v1.9.0 migration.go:1864.
func (c *Config) actScheduling(m *Spec, o *Observation, d *Decision) {
	if o.Canceled {
		c.deleteTarget(noteCanceledTargetDeleted, o, d)
		return
	}
	if !c.Compatible && o.Target.Ready && o.VM.Hotplug && !o.Attachment.Exists {
		d.ask(CreateAttachment, noteCreatedAttachment)
	}
	c.expire(m, o, d)
}

// actScheduled hands the migration over to the hosts.
// Source: KubeVirt v1.9.0 migration.go:1884, :1199 (handleTargetPodHandoff).
func (c *Config) actScheduled(o *Observation, d *Decision) {
	switch {
	case o.Canceled && !handedOff(o):
		c.deleteTarget(noteCanceledTargetDeleted, o, d)
	case o.Ownership == ClaimedBySelf || !o.Target.Ready:
	case o.VM.Hotplug && !o.Attachment.Exists:
		if d.Stuck = c.Compatible; !d.Stuck {
			d.ask(CreateAttachment, noteCreatedAttachment)
		}
	default:
		d.ask(HandOff, noteHandedOff)
	}
}

// expire gives up a target that has not started in time. A target without room is looked at
// again for both bounds.
// Source: KubeVirt v1.9.0 migration.go:1717 (handlePendingPodTimeout).
func (c *Config) expire(m *Spec, o *Observation, d *Decision) {
	if t := &o.Target; !t.Exists || !t.Pending || t.Deleting || t.Created.IsZero() {
		return
	}
	age := max(0, o.Now.Sub(o.Target.Created)) // clocks differ
	if o.Target.Unschedulable {
		d.note(noteTargetUnschedulable)
		left := or(m.Timeouts.Unschedulable, c.Timeouts.Unschedulable) - age
		if left <= 0 {
			c.deleteTarget(noteUnschedulableTimeout, o, d)
			return
		}
		d.requeue(left, inFlight)
	}
	left := or(m.Timeouts.Target, c.Timeouts.Target) - age
	if left <= 0 {
		c.deleteTarget(notePendingTimeout, o, d)
		return
	}
	d.requeue(left, inFlight)
}

func (c *Config) deleteTarget(why Note, o *Observation, d *Decision) {
	if o.Target.Exists && (c.Compatible || expendable(o)) {
		d.ask(DeleteTarget, why)
	}
}

// reportFailed lets the VM's state say that the migration failed. In KubeVirt the write is
// guarded by the state's owner and fails when it is another's.
// Source: KubeVirt v1.9.0 migration.go:1114 (markMigrationFailedOnVMI).
func (d *Decision) reportFailed(o *Observation) {
	switch {
	case o.Ownership == Unclaimed || o.Report.Failed:
	case o.Ownership != ClaimedBySelf:
		d.Stuck = true
	default:
		d.ask(ReportFailed, noteMarkedFailed)
	}
}
