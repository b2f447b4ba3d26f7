package importer

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

// move is a migration, or what a VM says about one. The two are joined at the
// end, by the migration's UID.
type move struct {
	inventory.Migration
	line     int
	uid      kubeobject.UID
	receives bool            // the VM comes from another cluster
	vm       hypervisor.VMID // whose state this is; "" for a migration
	state    *kubeobject.VirtualMachineInstanceMigrationState
}

// migration reads a migration that has not ended.
func (o *object) migration(m *kubeobject.VirtualMachineInstanceMigration) {
	if m.IsFinal() {
		return
	}
	phase, err := phaseOf(m)
	if err != nil {
		o.errorf("status.phase", "%v", err)
		return
	}
	if m.Spec.VMIName == "" {
		o.errorf("spec.vmiName", "it has no VM")
		return
	}
	read := inventory.Migration{
		Spec: migration.Spec{
			ID:      migration.ID(o.id),
			VM:      hypervisor.VMID(m.Namespace + "/" + m.Spec.VMIName),
			Created: m.CreationTimestamp.UTC(),
			Target:  hypervisor.HostName(m.Spec.AddedNodeSelector[hostnameLabel]),
			Timeouts: migration.Overrides{
				Unschedulable: migration.ParseSeconds(
					m.Annotations[kubeobject.MigrationUnschedulablePodTimeoutSecondsAnnotation]),
				Target: migration.ParseSeconds(
					m.Annotations[kubeobject.MigrationPendingPodTimeoutSecondsAnnotation]),
				UtilityVolumes: migration.ParseSeconds(
					m.Annotations[kubeobject.MigrationUtilityVolumesTimeoutSecondsAnnotation]),
			},
		},
		Phase:        phase,
		CrossCluster: m.IsDecentralizedSource() || m.IsDecentralizedTarget(),
	}
	if m.Spec.Priority != nil {
		read.Priority = migration.ParsePriority(string(*m.Spec.Priority))
	}
	if host, found := m.Annotations[kubeobject.EvacuationMigrationAnnotation]; found {
		read.By, read.Leaving = migration.Evacuation, hypervisor.HostName(host)
	} else if _, found := m.Annotations[kubeobject.WorkloadUpdateMigrationAnnotation]; found {
		read.By = migration.WorkloadUpdate
	}
	o.moves = append(o.moves, move{Migration: read, line: o.line, uid: m.UID,
		receives: m.IsDecentralizedTarget()})
}

// phaseOf returns how far a migration has come. One between clusters that has no pod of its own
// yet holds no slot, as one that is pending.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:850 (IsRunning).
func phaseOf(m *kubeobject.VirtualMachineInstanceMigration) (phase migration.Phase, err error) {
	switch word := m.Status.Phase; {
	case word == kubeobject.MigrationWaitingForSync, word == kubeobject.MigrationSynchronizing,
		word == kubeobject.MigrationScheduling && m.IsDecentralizedSource():
		return migration.Pending, nil
	default:
		err = phase.UnmarshalText([]byte(word))
		return phase, err
	}
}

// addMigrations adds the migrations, with the hosts that their VMs know.
func (f *fleetReader) addMigrations() {
	states := make(map[kubeobject.UID]*kubeobject.VirtualMachineInstanceMigrationState)
	for _, m := range f.moves {
		if m.state != nil && m.state.MigrationUID != "" {
			states[m.state.MigrationUID] = m.state
		}
	}
	for _, m := range f.moves {
		if m.state != nil {
			continue
		}
		if state := states[m.uid]; state != nil {
			m.Source = hypervisor.HostName(state.SourceNode)
			m.Chosen = hypervisor.HostName(state.TargetNode)
		}
		if m.CrossCluster {
			f.acrossClusters(&m)
		}
		f.AddMigration(m.line, m.Migration)
	}
}

// acrossClusters keeps the VM of a migration between clusters from being migrated otherwise, and
// leaves out the host that is in the other cluster.
func (f *fleetReader) acrossClusters(m *move) {
	way := "moves it to another cluster"
	if m.receives {
		m.Source, way = "", "moves it here from another cluster"
	} else {
		m.Chosen = ""
	}
	for i := range f.vms {
		v := &f.vms[i]
		if v.ID != m.VM {
			continue
		}
		if v.Host != "" {
			m.Chosen = ""
		}
		v.Migratable, v.NotMigratableReason = false, fmt.Sprintf("the migration %s %s", m.ID, way)
	}
}

// fleet puts everything together.
func (f *fleetReader) fleet() (*inventory.Fleet, error) {
	f.complete()
	f.addHosts()
	f.addGroups()
	f.addMigrations()
	for _, v := range f.vms {
		f.AddVM(v.line, v.VM)
	}
	f.addQuotas()
	if f.objects == 0 {
		f.Errorf(0, "", "it is empty")
	}
	return f.Fleet()
}
