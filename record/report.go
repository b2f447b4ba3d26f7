package record

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// Report puts the agents' reports into the core's terms. A post-copy that broke, or
// is through, has a deadline again: when nobody says how it ended, its outcome is
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
			host.Fenced || host.Lost && !m.Source.Began),
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

// Guest puts a VM into the core's terms.
func (v *VM) Guest() migration.Guest {
	return migration.Guest{Exists: true, Final: v.Ended, Running: !v.Ended && !v.Stopped,
		Hotplug: v.Holds.Hotplug, UtilityVolumes: v.Holds.UtilityVolumes,
		Backup: v.Holds.Backup, CPUChange: v.Holds.CPUChange, MemoryChange: v.Holds.MemoryChange}
}
