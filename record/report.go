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
