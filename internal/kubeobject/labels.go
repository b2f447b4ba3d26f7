package kubeobject

// Labels that KubeVirt puts on nodes. Those that end in / go on with a name.
const (
	NodeSchedulable                = "kubevirt.io/schedulable"
	CPUManager                     = "kubevirt.io/cpumanager"
	DeprecatedCPUManager           = "cpumanager"
	CPUModelLabel                  = "cpu-model.node.kubevirt.io/"
	SupportedHostModelMigrationCPU = "cpu-model-migration.node.kubevirt.io/"
	CPUFeatureLabel                = "cpu-feature.node.kubevirt.io/"
	CPUModelVendorLabel            = "cpu-vendor.node.kubevirt.io/"
	HypervLabel                    = "hyperv.node.kubevirt.io/"
	HostModelCPULabel              = "host-model-cpu.node.kubevirt.io/"
	HostModelRequiredFeaturesLabel = "host-model-required-features.node.kubevirt.io/"
	SupportedMachineTypeLabel      = "machine-type.node.kubevirt.io/"
	RealtimeLabel                  = "kubevirt.io/realtime"
	SEVLabel                       = "kubevirt.io/sev"
	SEVESLabel                     = "kubevirt.io/sev-es"
	SEVSNPLabel                    = "kubevirt.io/sev-snp"
	TDXLabel                       = "kubevirt.io/tdx"
)

// Labels that KubeVirt puts on the pods of VMs.
const (
	AppLabel                          = "kubevirt.io"
	CreatedByLabel                    = "kubevirt.io/created-by"
	DeprecatedVirtualMachineNameLabel = "vm.kubevirt.io/name"
)

// LauncherApp is the value of AppLabel that pods of VMs have.
const LauncherApp = "virt-launcher"

// DomainAnnotation says, on the pod of a VM, the VM's name.
const DomainAnnotation = "kubevirt.io/domain"
