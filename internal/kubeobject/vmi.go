package kubeobject

// A VirtualMachineInstance is a VM that runs, or is to run.
type VirtualMachineInstance struct {
	ObjectMeta `json:"metadata"`
	Spec       VirtualMachineInstanceSpec   `json:"spec"`
	Status     VirtualMachineInstanceStatus `json:"status"`
}

// IsFinal reports whether the VM has ended.
func (v *VirtualMachineInstance) IsFinal() bool {
	return v.Status.Phase == "Failed" || v.Status.Phase == "Succeeded"
}

// IsCPUDedicated reports whether the VM has CPUs of its own.
func (v *VirtualMachineInstance) IsCPUDedicated() bool {
	return v.Spec.Domain.CPU != nil && v.Spec.Domain.CPU.DedicatedCPUPlacement
}

// IsRealtimeEnabled reports whether the VM is a real-time one.
func (v *VirtualMachineInstance) IsRealtimeEnabled() bool {
	return v.Spec.Domain.CPU != nil && v.Spec.Domain.CPU.Realtime != nil
}

// VirtualMachineInstanceSpec is what a VM asks for.
type VirtualMachineInstanceSpec struct {
	PriorityClassName         string                     `json:"priorityClassName"`
	Domain                    DomainSpec                 `json:"domain"`
	NodeSelector              map[string]string          `json:"nodeSelector"`
	Affinity                  *Affinity                  `json:"affinity"`
	Tolerations               []Toleration               `json:"tolerations"`
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints"`
	EvictionStrategy          *EvictionStrategy          `json:"evictionStrategy"`
	Networks                  []Network                  `json:"networks"`
	Architecture              string                     `json:"architecture"`
	LivenessProbe             *Probe                     `json:"livenessProbe"`
	ReadinessProbe            *Probe                     `json:"readinessProbe"`
}

// A Probe asks whether the guest is well.
type Probe struct {
	Exec *struct{} `json:"exec"`
}

// Executes reports whether there is a probe that runs a program.
func (p *Probe) Executes() bool { return p != nil && p.Exec != nil }

// UsesVFIO reports whether the VM has a device of its host.
func (v *VirtualMachineInstance) UsesVFIO() bool {
	d := &v.Spec.Domain.Devices
	for i := range d.Interfaces {
		if d.Interfaces[i].SRIOV != nil {
			return true
		}
	}
	return len(d.GPUs)+len(d.HostDevices) > 0
}

// An EvictionStrategy says what happens when the pod of a VM is evicted.
type EvictionStrategy string

// A Network is one that a VM is in.
type Network struct {
	Multus *struct{} `json:"multus"`
}

// DomainSpec is the guest's machine.
type DomainSpec struct {
	Resources      ResourceRequirements `json:"resources"`
	CPU            *CPU                 `json:"cpu"`
	Memory         *Memory              `json:"memory"`
	Machine        *Machine             `json:"machine"`
	Features       *Features            `json:"features"`
	Devices        Devices              `json:"devices"`
	IOThreads      *DiskIOThreads       `json:"ioThreads"`
	LaunchSecurity *LaunchSecurity      `json:"launchSecurity"`
}

// CPU is the guest's processor.
type CPU struct {
	Cores                 uint32       `json:"cores"`
	Sockets               uint32       `json:"sockets"`
	Threads               uint32       `json:"threads"`
	Model                 string       `json:"model"`
	Features              []CPUFeature `json:"features"`
	DedicatedCPUPlacement bool         `json:"dedicatedCpuPlacement"`
	NUMA                  *NUMA        `json:"numa"`
	IsolateEmulatorThread bool         `json:"isolateEmulatorThread"`
	Realtime              *struct{}    `json:"realtime"`
}

// CPU models that name no model.
const (
	CPUModeHostModel       = "host-model"
	CPUModeHostPassthrough = "host-passthrough"
)

// A CPUFeature is a feature of the processor, and whether it is wanted.
type CPUFeature struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
}

// NUMA is how the guest's memory is spread.
type NUMA struct {
	GuestMappingPassthrough *struct{} `json:"guestMappingPassthrough"`
}

// Memory is the guest's memory.
type Memory struct {
	Hugepages *Hugepages `json:"hugepages"`
	Guest     *Quantity  `json:"guest"`
	// ReservedOverhead is what the VM wants beside it.
	ReservedOverhead *ReservedOverhead `json:"reservedOverhead"`
}

// ReservedOverhead is memory beside a guest's.
type ReservedOverhead struct {
	AddedOverhead *Quantity `json:"addedOverhead"`
}

// Hugepages are the pages of a guest's memory.
type Hugepages struct {
	PageSize string `json:"pageSize"`
}

// Machine is QEMU's machine type.
type Machine struct {
	Type string `json:"type"`
}

// Devices are the host's devices that a guest has.
type Devices struct {
	GPUs        []HostDevice `json:"gpus"`
	HostDevices []HostDevice `json:"hostDevices"`
	Interfaces  []Interface  `json:"interfaces"`
	// AutoattachGraphicsDevice is whether there is a video card; nil is that there is.
	AutoattachGraphicsDevice *bool         `json:"autoattachGraphicsDevice"`
	TPM                      *FeatureState `json:"tpm"`
}

// An Interface is a network card.
type Interface struct {
	SRIOV *struct{} `json:"sriov"`
}

// A HostDevice is a device, or one of a kind.
type HostDevice struct {
	DeviceName string `json:"deviceName"`
}

// DiskIOThreads are threads of QEMU for I/O.
type DiskIOThreads struct {
	SupplementalPoolThreadCount *uint32 `json:"supplementalPoolThreadCount"`
}

// LaunchSecurity is how the guest's memory is encrypted.
type LaunchSecurity struct {
	SEV *SEV      `json:"sev"`
	SNP *struct{} `json:"snp"`
	TDX *struct{} `json:"tdx"`
}

// SEV is AMD's memory encryption.
type SEV struct {
	Policy *SEVPolicy `json:"policy"`
}

// SEVPolicy is what the guest asks of SEV.
type SEVPolicy struct {
	EncryptedState *bool `json:"encryptedState"`
}

// Features are what the guest's machine offers.
type Features struct {
	Hyperv *FeatureHyperv `json:"hyperv"`
}

// A FeatureState is whether a feature that is written is on.
type FeatureState struct {
	Enabled *bool `json:"enabled"`
}

// FeatureHyperv is what Windows guests use.
type FeatureHyperv struct {
	VPIndex         *FeatureState `json:"vpindex"`
	Runtime         *FeatureState `json:"runtime"`
	SyNIC           *FeatureState `json:"synic"`
	SyNICTimer      *FeatureState `json:"synictimer"`
	Reset           *FeatureState `json:"reset"`
	Frequencies     *FeatureState `json:"frequencies"`
	Reenlightenment *FeatureState `json:"reenlightenment"`
	TLBFlush        *FeatureState `json:"tlbflush"`
	IPI             *FeatureState `json:"ipi"`
	EVMCS           *FeatureState `json:"evmcs"`
}

// VirtualMachineInstanceStatus is how a VM is.
type VirtualMachineInstanceStatus struct {
	NodeName           string                                `json:"nodeName"`
	Phase              string                                `json:"phase"`
	Conditions         []Condition                           `json:"conditions"`
	EvacuationNodeName string                                `json:"evacuationNodeName"`
	MigrationState     *VirtualMachineInstanceMigrationState `json:"migrationState"`
	TopologyHints      *TopologyHints                        `json:"topologyHints"`
	Memory             *MemoryStatus                         `json:"memory"`
}

// MemoryStatus is what is known of a VM's memory.
type MemoryStatus struct {
	MemoryOverhead *Quantity `json:"memoryOverhead"` // of its pod
}

// VirtualMachineInstanceIsMigratable is the condition of a VM that can be migrated live.
const VirtualMachineInstanceIsMigratable = "LiveMigratable"

// VirtualMachineInstanceMigrationState is what a VM says of its last migration.
type VirtualMachineInstanceMigrationState struct {
	MigrationUID UID    `json:"migrationUid"`
	SourceNode   string `json:"sourceNode"`
	TargetNode   string `json:"targetNode"`
}

// TopologyHints are what a VM needs of the nodes that it may move to.
type TopologyHints struct {
	TSCFrequency *int64 `json:"tscFrequency"`
}
