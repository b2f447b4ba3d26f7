package kubeobject

// KubeVirt is the configuration of a cluster.
type KubeVirt struct {
	ObjectMeta `json:"metadata"`
	Spec       KubeVirtSpec `json:"spec"`
}

// KubeVirtSpec holds the configuration.
type KubeVirtSpec struct {
	Configuration KubeVirtConfiguration `json:"configuration"`
}

// KubeVirtConfiguration is the configuration.
type KubeVirtConfiguration struct {
	CPURequest             *Quantity               `json:"cpuRequest"`
	DeveloperConfiguration *DeveloperConfiguration `json:"developerConfiguration"`
	MigrationConfiguration *MigrationConfiguration `json:"migrations"`
	EvictionStrategy       *EvictionStrategy       `json:"evictionStrategy"`
	// AdditionalGuestMemoryOverheadRatio is by how much the overhead of pods is multiplied.
	AdditionalGuestMemoryOverheadRatio *string `json:"additionalGuestMemoryOverheadRatio"`
}

// DeveloperConfiguration says how nodes are shared.
type DeveloperConfiguration struct {
	MemoryOvercommit   int `json:"memoryOvercommit"`
	CPUAllocationRatio int `json:"cpuAllocationRatio"`
}

// MigrationConfiguration is about all migrations. Of v1.9 on it has MaxDowntimeMs.
type MigrationConfiguration struct {
	NodeDrainTaintKey                 *string   `json:"nodeDrainTaintKey"`
	ParallelOutboundMigrationsPerNode *uint32   `json:"parallelOutboundMigrationsPerNode"`
	ParallelMigrationsPerCluster      *uint32   `json:"parallelMigrationsPerCluster"`
	AllowAutoConverge                 *bool     `json:"allowAutoConverge"`
	BandwidthPerMigration             *Quantity `json:"bandwidthPerMigration"`
	CompletionTimeoutPerGiB           *int64    `json:"completionTimeoutPerGiB"`
	ProgressTimeout                   *int64    `json:"progressTimeout"`
	UtilityVolumesTimeout             *int64    `json:"utilityVolumesTimeout"`
	UnsafeMigrationOverride           *bool     `json:"unsafeMigrationOverride"`
	AllowPostCopy                     *bool     `json:"allowPostCopy"`
	AllowWorkloadDisruption           *bool     `json:"allowWorkloadDisruption"`
	DisableTLS                        *bool     `json:"disableTLS"`
	Network                           *string   `json:"network"`
	MatchSELinuxLevelOnMigration      *bool     `json:"matchSELinuxLevelOnMigration"`
	MaxDowntimeMs                     *int64    `json:"maxDowntimeMs"`
}

// A MigrationPolicy is about the migrations of the VMs that it selects.
type MigrationPolicy struct {
	ObjectMeta `json:"metadata"`
	Spec       MigrationPolicySpec `json:"spec"`
}

// MigrationPolicySpec is what a policy says. Of v1.9 on it has MaxDowntimeMs and Experimental.
type MigrationPolicySpec struct {
	Selectors               *Selectors    `json:"selectors"`
	AllowAutoConverge       *bool         `json:"allowAutoConverge"`
	BandwidthPerMigration   *Quantity     `json:"bandwidthPerMigration"`
	CompletionTimeoutPerGiB *int64        `json:"completionTimeoutPerGiB"`
	AllowPostCopy           *bool         `json:"allowPostCopy"`
	AllowWorkloadDisruption *bool         `json:"allowWorkloadDisruption"`
	MaxDowntimeMs           *int64        `json:"maxDowntimeMs"`
	Experimental            *Experimental `json:"experimental"`
}

// Selectors choose VMs and namespaces.
type Selectors struct {
	NamespaceSelector              map[string]string `json:"namespaceSelector"`
	VirtualMachineInstanceSelector map[string]string `json:"virtualMachineInstanceSelector"`
}

// Experimental is what KubeVirt may change again.
type Experimental struct {
	Compression    *string         `json:"compression"`
	StallDetector  *StallDetector  `json:"stallDetector"`
	DowntimeTuning *DowntimeTuning `json:"downtimeTuning"`
}

// StallDetector says when a migration does not converge. Timeouts are in seconds.
type StallDetector struct {
	StallMargin               *int      `json:"stallMargin"`
	StallProgressTimeout      *int64    `json:"stallProgressTimeout"`
	SwitchoverTimeout         *int64    `json:"switchoverTimeout"`
	SearchLocalMinima         *bool     `json:"searchLocalMinima"`
	EWMAAlpha                 *Quantity `json:"ewmaAlpha"`
	PrecopyPossibleFactor     *Quantity `json:"precopyPossibleFactor"`
	PatienceWindowDecayFactor *Quantity `json:"patienceWindowDecayFactor"`
	CompletionTimeoutFactor   *Quantity `json:"completionTimeoutFactor"`
}

// DowntimeTuning raises the downtime that a migration may take, in steps.
type DowntimeTuning struct {
	InitialMs           *int64 `json:"initialMs"`
	CooldownSeconds     *int64 `json:"cooldownSeconds"`
	Steps               *int   `json:"steps"`
	StartAfterIteration *int   `json:"startAfterIteration"`
}
