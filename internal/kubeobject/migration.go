package kubeobject

// A VirtualMachineInstanceMigration moves a VM.
type VirtualMachineInstanceMigration struct {
	ObjectMeta `json:"metadata"`
	Spec       VirtualMachineInstanceMigrationSpec   `json:"spec"`
	Status     VirtualMachineInstanceMigrationStatus `json:"status"`
}

// IsFinal reports whether the migration has ended.
func (m *VirtualMachineInstanceMigration) IsFinal() bool {
	return m.Status.Phase == "Failed" || m.Status.Phase == "Succeeded"
}

// IsDecentralizedSource reports whether it moves its VM to another cluster.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:1875 (IsDecentralizedSource).
func (m *VirtualMachineInstanceMigration) IsDecentralizedSource() bool {
	return m.Spec.SendTo != nil && m.Spec.Receive == nil
}

// IsDecentralizedTarget reports whether its VM comes from another cluster.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:1880 (IsDecentralizedTarget).
func (m *VirtualMachineInstanceMigration) IsDecentralizedTarget() bool {
	return m.Spec.Receive != nil && m.Spec.SendTo == nil
}

// VirtualMachineInstanceMigrationSpec says what moves.
type VirtualMachineInstanceMigrationSpec struct {
	VMIName           string            `json:"vmiName"`
	AddedNodeSelector map[string]string `json:"addedNodeSelector"`
	Priority          *string           `json:"priority"`
	SendTo            *struct{}         `json:"sendTo"`
	Receive           *struct{}         `json:"receive"`
}

// VirtualMachineInstanceMigrationStatus is how far it has come.
type VirtualMachineInstanceMigrationStatus struct {
	Phase string `json:"phase"`
}

// Phases that only migrations between clusters have.
const (
	MigrationWaitingForSync = "WaitingForSync" // the target waits for the source's state
	MigrationSynchronizing  = "Synchronizing"  // the source waits for the target's state
	MigrationScheduling     = "Scheduling"
)

// Annotations of migrations.
const (
	EvacuationMigrationAnnotation                     = "kubevirt.io/evacuationMigration"
	WorkloadUpdateMigrationAnnotation                 = "kubevirt.io/workloadUpdateMigration"
	MigrationUnschedulablePodTimeoutSecondsAnnotation = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
	MigrationPendingPodTimeoutSecondsAnnotation       = "kubevirt.io/migrationPendingPodTimeoutSeconds"
	MigrationUtilityVolumesTimeoutSecondsAnnotation   = "kubevirt.io/migrationUtilityVolumesTimeoutSeconds"
)
