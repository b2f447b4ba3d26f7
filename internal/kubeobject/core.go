package kubeobject

// Labels of nodes.
const (
	LabelHostname     = "kubernetes.io/hostname"
	LabelArchStable   = "kubernetes.io/arch"
	LabelTopologyZone = "topology.kubernetes.io/zone"
)

// A Node is a machine of the cluster.
type Node struct {
	ObjectMeta `json:"metadata"`
	Spec       NodeSpec   `json:"spec"`
	Status     NodeStatus `json:"status"`
}

// NodeSpec is how a node is used.
type NodeSpec struct {
	Unschedulable bool    `json:"unschedulable"`
	Taints        []Taint `json:"taints"`
}

// A Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// NodeStatus is what a node has.
type NodeStatus struct {
	Capacity    ResourceList `json:"capacity"`
	Allocatable ResourceList `json:"allocatable"`
	Conditions  []Condition  `json:"conditions"`
}

// NodeReady is the condition of a node that takes pods.
const NodeReady = "Ready"

// A Namespace holds objects.
type Namespace struct {
	ObjectMeta `json:"metadata"`
}

// A ResourceQuota limits what the pods of a namespace ask for.
type ResourceQuota struct {
	ObjectMeta `json:"metadata"`
	Spec       ResourceQuotaSpec   `json:"spec"`
	Status     ResourceQuotaStatus `json:"status"`
}

// ResourceQuotaSpec says what is limited, and of which pods.
type ResourceQuotaSpec struct {
	Hard          ResourceList         `json:"hard"`
	Scopes        []ResourceQuotaScope `json:"scopes"`
	ScopeSelector *ScopeSelector       `json:"scopeSelector"`
}

// ResourceQuotaStatus says what is used.
type ResourceQuotaStatus struct {
	Used ResourceList `json:"used"`
}

// A ResourceQuotaScope is a kind of pods.
type ResourceQuotaScope string

// The kinds of pods.
const (
	ResourceQuotaScopeTerminating    ResourceQuotaScope = "Terminating"
	ResourceQuotaScopeNotTerminating ResourceQuotaScope = "NotTerminating"
	ResourceQuotaScopeBestEffort     ResourceQuotaScope = "BestEffort"
	ResourceQuotaScopeNotBestEffort  ResourceQuotaScope = "NotBestEffort"
	ResourceQuotaScopePriorityClass  ResourceQuotaScope = "PriorityClass"
)

// A ScopeSelector chooses pods: all its requirements hold for them.
type ScopeSelector struct {
	MatchExpressions []ScopedResourceSelectorRequirement `json:"matchExpressions"`
}

// ScopedResourceSelectorRequirement is one requirement of a ScopeSelector.
type ScopedResourceSelectorRequirement struct {
	ScopeName ResourceQuotaScope `json:"scopeName"`
	Operator  string             `json:"operator"`
	Values    []string           `json:"values"`
}

// The operators of scopes.
const (
	ScopeSelectorOpIn           = "In"
	ScopeSelectorOpNotIn        = "NotIn"
	ScopeSelectorOpExists       = "Exists"
	ScopeSelectorOpDoesNotExist = "DoesNotExist"
)

// A Toleration lets a pod onto nodes with a taint.
type Toleration struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
	Effect   string `json:"effect"`
}

// TolerationOpExists is the operator that looks at no value.
const TolerationOpExists = "Exists"

// TopologySpreadConstraint spreads pods.
type TopologySpreadConstraint struct {
	WhenUnsatisfiable string `json:"whenUnsatisfiable"`
}

// DoNotSchedule makes spreading a hard constraint.
const DoNotSchedule = "DoNotSchedule"

// Affinity says near what a pod must run, or far from what.
type Affinity struct {
	NodeAffinity    *NodeAffinity `json:"nodeAffinity"`
	PodAffinity     *PodAffinity  `json:"podAffinity"`
	PodAntiAffinity *PodAffinity  `json:"podAntiAffinity"`
}

// NodeAffinity says on which nodes a pod must run.
type NodeAffinity struct {
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution"`
}

// A NodeSelector chooses nodes: one of its terms holds for them.
type NodeSelector struct {
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// A NodeSelectorTerm holds if all its requirements do.
type NodeSelectorTerm struct {
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions"`
	MatchFields      []NodeSelectorRequirement `json:"matchFields"`
}

// NodeSelectorRequirement is one requirement of a term.
type NodeSelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// PodAffinity is near, or far from, which pods a pod must run.
type PodAffinity struct {
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
}

// A PodAffinityTerm chooses pods, and says what near means.
type PodAffinityTerm struct {
	LabelSelector     *LabelSelector `json:"labelSelector"`
	Namespaces        []string       `json:"namespaces"`
	TopologyKey       string         `json:"topologyKey"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector"`
	MatchLabelKeys    []string       `json:"matchLabelKeys"`
	MismatchLabelKeys []string       `json:"mismatchLabelKeys"`
}

// A Pod runs on a node.
type Pod struct {
	ObjectMeta `json:"metadata"`
	Spec       PodSpec   `json:"spec"`
	Status     PodStatus `json:"status"`
}

// PodSpec is what a pod asks for, and where.
type PodSpec struct {
	NodeName       string                `json:"nodeName"`
	InitContainers []Container           `json:"initContainers"`
	Containers     []Container           `json:"containers"`
	Overhead       ResourceList          `json:"overhead"`
	Resources      *ResourceRequirements `json:"resources"`
}

// A Container is a part of a pod.
type Container struct {
	Resources     ResourceRequirements `json:"resources"`
	RestartPolicy string               `json:"restartPolicy"`
}

// ContainerRestartPolicyAlways makes an init container one that runs beside the others.
const ContainerRestartPolicyAlways = "Always"

// PodStatus is how far a pod has come.
type PodStatus struct {
	Phase string `json:"phase"`
}

// The phases of pods that have ended.
const (
	PodSucceeded = "Succeeded"
	PodFailed    = "Failed"
)
