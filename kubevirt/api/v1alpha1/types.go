package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names on objects.
const (
	// Finalizer keeps a NodeEvacuation until its node was uncordoned.
	Finalizer = Group + "/node-evacuation"
	// CordonedByAnnotation is on a node that a NodeEvacuation has cordoned: its UID.
	CordonedByAnnotation = Group + "/cordoned-by"
	// SourceNodeAnnotation is on a migration that the controller created: the node that it evacuates.
	SourceNodeAnnotation = Group + "/source-node"
	// VMIUIDLabel is on a migration that the controller created: the UID of the VMI.
	VMIUIDLabel = Group + "/vmi-uid"
	// ManagedByLabel and ManagedBy are on everything that the controller created.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "godwit-kubevirt"
)

// NodeEvacuation asks for all VMs of a node to leave it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nevac,categories=kubevirt
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="VMs Left",type=integer,JSONPath=`.status.vmsLeft`
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=`.status.moving`
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.blocked`
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.eta`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeEvacuation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeEvacuationSpec `json:"spec"`
	// +optional
	Status NodeEvacuationStatus `json:"status,omitempty,omitzero"`
}

// NodeEvacuationList is a list of NodeEvacuations.
//
// +kubebuilder:object:root=true
type NodeEvacuationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeEvacuation `json:"items"`
}

// NodeEvacuationSpec is what is asked for.
type NodeEvacuationSpec struct {
	// NodeName is the node to be emptied. It cannot be changed.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeName cannot be changed: delete the NodeEvacuation, which uncordons the node, and create another"
	NodeName string `json:"nodeName"`

	// Deadline is when the node has to be empty. It changes nothing about the limits; the
	// condition DeadlineMet says whether it will be met, and nodes with an earlier deadline
	// go first.
	//
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// Order says which VMs leave first.
	//
	// +optional
	// +kubebuilder:default=LargestFirst
	Order Order `json:"order,omitempty"`

	// Limits bound the migrations of this node further. KubeVirt's own limits always hold.
	//
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// TargetNodeSelector are labels of nodes that the VMs may move to, besides what each asks for itself;
	// a label that a VM asks for with another value stays its own. KubeVirt takes them for the target pod
	// of each migration. Default: the scheduler chooses among all nodes.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	TargetNodeSelector map[string]string `json:"targetNodeSelector,omitempty"`

	// Unmovable says what happens to a VM that cannot be migrated, and whose eviction strategy
	// does not protect it. A VM with LiveMigrate or External is kept whatever is said here.
	//
	// +optional
	// +kubebuilder:default=Keep
	Unmovable Unmovable `json:"unmovable,omitempty"`

	// Grace is how long the guest of a VM has to shut down, in whole seconds: a part of one counts as one. Only with
	// unmovable: ShutDown.
	// Default: the grace period of the VM.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="grace is from 1s to 24h"
	Grace *metav1.Duration `json:"grace,omitempty"`
}

// Order says which VMs leave first.
//
// +kubebuilder:validation:Enum=LargestFirst;SmallestFirst;LongestFirst;ByName
type Order string

// The orders.
const (
	// LargestFirst goes by memory and local disks.
	LargestFirst Order = "LargestFirst"
	// SmallestFirst brings the most VMs away in the least time.
	SmallestFirst Order = "SmallestFirst"
	// LongestFirst goes by the expected duration of the migration.
	LongestFirst Order = "LongestFirst"
	// ByName goes by namespace and name.
	ByName Order = "ByName"
)

// Unmovable says what happens to a VM that cannot be migrated.
//
// +kubebuilder:validation:Enum=Keep;ShutDown
type Unmovable string

// The choices.
const (
	// Keep leaves it on the node.
	Keep Unmovable = "Keep"
	// ShutDown evicts its pod, so that the guest shuts down. KubeVirt starts the VM again on another
	// node if its run strategy says so.
	ShutDown Unmovable = "ShutDown"
)

// Limits bound migrations.
type Limits struct {
	// ParallelOutbound is how many migrations may leave the node at once.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	ParallelOutbound *int32 `json:"parallelOutbound,omitempty"`
}

// Phase sums up a NodeEvacuation for people. Programs read conditions.
//
// +kubebuilder:validation:Enum=Evacuating;Blocked;Done;NodeNotFound;Conflict
type Phase string

// The phases.
const (
	// Evacuating: VMs are leaving, or wait for their turn.
	Evacuating Phase = "Evacuating"
	// Blocked: the VMs that are left cannot leave.
	Blocked Phase = "Blocked"
	// Done: no VM is left.
	Done Phase = "Done"
	// NodeNotFound: the cluster has no node of this name.
	NodeNotFound Phase = "NodeNotFound"
	// Conflict: an older NodeEvacuation is about the same node.
	Conflict Phase = "Conflict"
)

// Condition types. All of them are true, false or unknown.
const (
	// ConditionCordoned: the node takes no new pods. The reason names what cordoned it.
	ConditionCordoned = "Cordoned"
	// ConditionProgressing: migrations run or will be created.
	ConditionProgressing = "Progressing"
	// ConditionBlocked: VMs cannot leave until something is changed. See blockedVMs.
	ConditionBlocked = "Blocked"
	// ConditionDone: no VM is left on the node.
	ConditionDone = "Done"
	// ConditionDeadlineMet: the node will be, or was, empty in time. Only with a deadline.
	ConditionDeadlineMet = "DeadlineMet"
)

// NodeEvacuationStatus is what has come of it.
type NodeEvacuationStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// VMsLeft is how many VMs are on the node, or arrive on it.
	//
	// +optional
	VMsLeft *int32 `json:"vmsLeft,omitempty"`
	// Moving is how many of them have an unfinished migration.
	//
	// +optional
	Moving *int32 `json:"moving,omitempty"`
	// Blocked is how many of them cannot leave.
	//
	// +optional
	Blocked *int32 `json:"blocked,omitempty"`
	// ETA is when the node is expected to be empty, in UTC, or "never", or empty.
	//
	// +optional
	ETA string `json:"eta,omitempty"`
	// StartedAt is when the node was first seen.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// DoneAt is when the last VM had left.
	//
	// +optional
	DoneAt *metav1.Time `json:"doneAt,omitempty"`
	// Estimate is when the VMs that can leave will have left.
	//
	// +optional
	Estimate *Estimate `json:"estimate,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// VMs are those on the node that can leave, in the order in which they do, and those that arrive, up to 500.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	VMs []LeavingVM `json:"vms,omitempty"`
	// BlockedVMs are those on the node that cannot leave, up to 500.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	BlockedVMs []BlockedVM `json:"blockedVMs,omitempty"`
	// Moved are the VMs whose migrations off the node have ended, up to 500, the latest last.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	Moved []MovedVM `json:"moved,omitempty"`
}

// Estimate says when the VMs that can leave will have left, from simulations of the cluster as it
// was when it was made. An estimate that is absent is never.
type Estimate struct {
	// At is when it was made.
	//
	// +required
	At metav1.Time `json:"at"`
	// P50 is when they will have left with a probability of one half.
	//
	// +optional
	P50 *metav1.Time `json:"p50,omitempty"`
	// P95 is when they will have left with a probability of 95 %.
	//
	// +optional
	P95 *metav1.Time `json:"p95,omitempty"`
	// Simulations is how many there were.
	//
	// +required
	Simulations int32 `json:"simulations"`
	// DeadlineProbability is in how many percent of them, at least, the node was empty at the
	// deadline: 0 if VMs cannot leave.
	//
	// +optional
	DeadlineProbability *int32 `json:"deadlineProbability,omitempty"`
}

// VMState is what a VM that is to leave does now.
//
// +kubebuilder:validation:Enum=Waiting;Moving;ShuttingDown;LeftToKubeVirt;Arriving
type VMState string

// The states.
const (
	// Waiting: a place among the migrations that run at once is missing.
	Waiting VMState = "Waiting"
	// Moving: it has an unfinished migration.
	Moving VMState = "Moving"
	// ShuttingDown: its guest was asked to shut down.
	ShuttingDown VMState = "ShuttingDown"
	// LeftToKubeVirt: KubeVirt's own evacuation controller migrates it.
	LeftToKubeVirt VMState = "LeftToKubeVirt"
	// Arriving: it is not on the node yet, and a pod of it was bound to the node before the node was cordoned.
	Arriving VMState = "Arriving"
)

// LeavingVM is a VM on the node that can leave, or one that arrives.
type LeavingVM struct {
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +required
	State VMState `json:"state"`
	// Migration is the name of its migration.
	//
	// +optional
	Migration string `json:"migration,omitempty"`
	// Reason is why it waits or arrives.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// ExpectedSeconds is how long its migration will take.
	//
	// +optional
	ExpectedSeconds *int64 `json:"expectedSeconds,omitempty"`
	// ExpectedDowntimeMilliseconds is for how long its guest will stand still.
	//
	// +optional
	ExpectedDowntimeMilliseconds *int64 `json:"expectedDowntimeMilliseconds,omitempty"`
	// Converges is whether its migration ends by itself.
	//
	// +optional
	Converges *bool `json:"converges,omitempty"`
	// Writes is how fast its guest was taken to write to memory for what is expected. Absent: it is not known.
	//
	// +optional
	Writes *WriteRate `json:"writes,omitempty"`
}

// WriteRate is how fast a guest writes to its memory, and from where that is known.
type WriteRate struct {
	// +required
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// Source is the metric of Prometheus or the past migration that says so.
	//
	// +required
	// +kubebuilder:validation:MaxLength=600
	Source string `json:"source"`
	// At is when it was measured.
	//
	// +required
	At metav1.Time `json:"at"`
}

// BlockedVM is a VM on the node that cannot leave.
type BlockedVM struct {
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Reasons are all reasons why it cannot leave.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Reasons []string `json:"reasons"`
	// Help is what would let it leave.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Help []string `json:"help,omitempty"`
}

// Outcome is how the last migration of a VM off the node has ended.
//
// +kubebuilder:validation:Enum=Succeeded;Failed
type Outcome string

// The outcomes.
const (
	OutcomeSucceeded Outcome = "Succeeded"
	OutcomeFailed    Outcome = "Failed"
)

// MovedVM is a VM whose migration off the node has ended.
type MovedVM struct {
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Migration is the last one that has ended.
	//
	// +required
	Migration string `json:"migration"`
	// MigrationUID tells it from others of the same name.
	//
	// +optional
	MigrationUID types.UID `json:"migrationUID,omitempty"`
	// +required
	Outcome Outcome `json:"outcome"`
	// Failures is how many migrations of it have failed.
	//
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// Reason is why it failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// TargetNode is where it went.
	//
	// +optional
	TargetNode string `json:"targetNode,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}
