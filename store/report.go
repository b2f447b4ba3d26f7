package store

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Report puts the agents' reports into the core's terms. A post-copy that broke, or
// is through, has a deadline again: when it is not reported how it ended, its outcome is
// unknown.
func (m *Migration) Report() migration.Report {
	return migration.Report{
		TargetNamed: m.Options != nil,
		Address:     m.Target.Address != "",
		Began:       m.Source.Began,
		Started:     m.Source.Started,
		Completed:   m.Target.Completed,
		Arrived:     m.Target.Completed,
		Unresolved:  m.Source.Unresolved,
		Lost:        m.Target.Lost,
		Failed:      m.Source.Failed || m.bothDead(),
		Aborting:    m.Source.Aborting,
		PostCopy: m.Source.Mode == hypervisor.PostCopy && !m.Source.Unresolved &&
			!m.Source.HandedOver,
	}
}

// bothDead reports whether there is evidence that neither copy runs: the source's
// host is dead, and the target never had the VM. It rests where it was.
func (m *Migration) bothDead() bool {
	if m.Target.Completed || !m.Dead(m.State.Source) {
		return false
	}
	return m.Target.Discarded || m.Dead(m.State.Target)
}

// Instance puts what is known about the target into the core's terms; host is the target's
// record, which counts as lost when there is none. A target whose host is not heard of is
// given up while nothing has begun; afterwards only its fencing counts.
func (m *Migration) Instance(host *Host) migration.Instance {
	gone := m.State.Phase.Final() && (m.Target.Discarded || m.Target.Address == "")
	return migration.Instance{
		Exists:  !gone,
		Pending: !m.Target.Ready,
		Ready:   m.Target.Ready,
		Told:    m.Target.Completed,
		Created: m.State.Entered,
		Down: !m.Target.Completed && (m.Target.Down || len(m.Target.Refused) > 0 ||
			host.Fenced || host.NotReady && !m.Source.Began),
	}
}

// Attempt puts a migration into the core's terms as a part of its VM's history.
func (m *Migration) Attempt() migration.Attempt {
	a := migration.Attempt{ID: m.Spec.ID, By: m.Spec.By, Created: m.Spec.Created,
		Phase: m.State.Phase, Target: m.State.Target, Because: m.State.Because,
		ReportedFailed: m.Source.Failed, ReportedCompleted: m.Target.Completed}
	if m.State.Phase == migration.Failed {
		a.FailedAt = m.State.Entered
	}
	return a
}

// Outcome puts an end into the terms of what speaks against hosts. It reports false while there
// is none.
func (m *Migration) Outcome() (migration.TransferOutcome, bool) {
	if !m.State.Phase.Final() {
		return migration.TransferOutcome{}, false
	}
	o := migration.TransferOutcome{ID: m.Spec.ID, VM: m.Spec.VM, Source: m.State.Source,
		Target: m.State.Target, At: m.State.Entered,
		Succeeded: m.State.Phase == migration.Succeeded}
	if !o.Succeeded {
		o.Fault, o.Why = m.fault()
	}
	return o, true
}

// Health adds up what migrations say of hosts, in the order in which they ended.
func Health(all []*Migration) *migration.TargetHealth {
	l := &migration.TargetHealth{}
	failed := func(m *Migration) bool { return m.State.Phase == migration.Failed }
	if !slices.ContainsFunc(all, failed) {
		return l // as nearly always: nothing has to be sorted
	}
	ends := slices.DeleteFunc(slices.Clone(all), func(m *Migration) bool {
		return !m.State.Phase.Final()
	})
	slices.SortFunc(ends, func(a, b *Migration) int {
		return cmp.Or(a.State.Entered.Compare(b.State.Entered), cmp.Compare(a.Spec.ID, b.Spec.ID))
	})
	for _, m := range ends {
		o, _ := m.Outcome()
		l.Add(&o)
	}
	return l
}

// fault returns what the failure of a migration speaks against, and how for people. What the
// operator, the VM or the controller ended speaks against no host, and neither does a guest that
// dirties its memory too fast. A host that is dead is known to be.
func (m *Migration) fault() (migration.Fault, string) {
	t := &m.Target
	switch because := m.State.Because; {
	case m.State.Target == "" || t.Refused != nil || len(m.Evidence) > 0 ||
		!migration.HostsFault(because):
		return migration.NoFault, ""
	case m.Source.Began:
		return m.transferFault()
	case t.Down && t.Address == "":
		return migration.Refusing, "receive refused"
	case t.Address != "" && !t.Down && because == migration.Overdue:
		return migration.Beginning, "send does not begin"
	case !t.Ready:
		return migration.Preparing, "no answer"
	case t.Error != "":
		return migration.Preparing, "receive fails: " + t.Error
	case t.Address == "":
		return migration.Preparing, "receive hangs"
	}
	return migration.Preparing, "the target ended"
}

// transferFault is fault for a transfer that was announced.
func (m *Migration) transferFault() (migration.Fault, string) {
	s := &m.Source
	switch {
	case s.GaveUp != convergence.NoReason && s.GaveUp != convergence.Stuck:
		return migration.NoFault, ""
	case s.GaveUp == convergence.Stuck:
		return migration.Sending, "no data moves"
	case m.State.Because == migration.Overdue && s.Started && s.Sent > 0:
		return migration.NoFault, "" // it used up its budget
	case m.State.Because == migration.Overdue && !s.Started:
		return migration.Sending, "send hangs"
	}
	if s.Error != "" {
		return migration.Sending, "the transfer broke: " + s.Error
	}
	return migration.Sending, "the transfer broke"
}

// Status puts a VM into the core's terms.
func (v *VM) Status() migration.VMStatus {
	runs := !v.Ended && !v.Off() && !v.Between()
	return migration.VMStatus{Exists: true, Final: v.Ended, Running: runs, Stopping: v.Off() && !v.Ended,
		Hotplug: v.Blockers.Hotplug, UtilityVolumes: v.Blockers.UtilityVolumes,
		Backup: v.Blockers.Backup, CPUChange: v.Blockers.CPUChange, MemoryChange: v.Blockers.MemoryChange}
}
