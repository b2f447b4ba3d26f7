package importer

import (
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

// move is a migration, or what a VM says about one. The two are joined at the
// end, by the migration's UID.
type move struct {
	inventory.Migration
	line  int
	uid   types.UID
	vm    hypervisor.VMID // whose state this is; "" for a migration
	state *virtv1.VirtualMachineInstanceMigrationState
}

// migration reads a migration that has not ended.
func (o *object) migration(m *virtv1.VirtualMachineInstanceMigration) {
	if m.IsFinal() {
		return
	}
	if m.Spec.SendTo != nil || m.Spec.Receive != nil {
		o.warnf("spec", "migrations between clusters are not supported; left out")
		return
	}
	var phase migration.Phase
	if err := phase.UnmarshalText([]byte(m.Status.Phase)); err != nil {
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
					m.Annotations[virtv1.MigrationUnschedulablePodTimeoutSecondsAnnotation]),
				Target: migration.ParseSeconds(
					m.Annotations[virtv1.MigrationPendingPodTimeoutSecondsAnnotation]),
				UtilityVolumes: migration.ParseSeconds(
					m.Annotations[virtv1.MigrationUtilityVolumesTimeoutSecondsAnnotation]),
			},
		},
		Phase: phase,
	}
	if m.Spec.Priority != nil {
		read.Priority = migration.ParsePriority(string(*m.Spec.Priority))
	}
	if host, found := m.Annotations[virtv1.EvacuationMigrationAnnotation]; found {
		read.By, read.Leaving = migration.Evacuation, hypervisor.HostName(host)
	} else if _, found := m.Annotations[virtv1.WorkloadUpdateMigrationAnnotation]; found {
		read.By = migration.WorkloadUpdate
	}
	o.moves = append(o.moves, move{Migration: read, line: o.line, uid: m.UID})
}

// addMigrations adds the migrations, with the hosts that their VMs know.
func (f *fleetReader) addMigrations() {
	states := make(map[types.UID]*virtv1.VirtualMachineInstanceMigrationState)
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
		f.AddMigration(m.line, m.Migration)
	}
}

// fleet puts everything together.
func (f *fleetReader) fleet() (*inventory.Fleet, error) {
	f.complete()
	f.addHosts()
	f.addGroups()
	for _, v := range f.vms {
		f.AddVM(v.line, v.VM)
	}
	f.addMigrations()
	f.addQuotas()
	if f.objects == 0 {
		f.Errorf(0, "", "it is empty")
	}
	return f.Fleet()
}
