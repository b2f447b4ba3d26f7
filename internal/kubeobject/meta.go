package kubeobject

import "time"

// UID identifies one object for all time.
type UID string

// ObjectMeta is what every object has.
type ObjectMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               UID               `json:"uid"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

// ConditionStatus is whether a condition holds.
type ConditionStatus string

// ConditionTrue is the status of a condition that holds.
const ConditionTrue ConditionStatus = "True"

// A Condition is what an object says of itself.
type Condition struct {
	Type    string          `json:"type"`
	Status  ConditionStatus `json:"status"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
}

// A ResourceName names what nodes have and pods ask for.
type ResourceName string

// Names of resources.
const (
	ResourceCPU             ResourceName = "cpu"
	ResourceMemory          ResourceName = "memory"
	ResourcePods            ResourceName = "pods"
	ResourceHugePagesPrefix              = "hugepages-"
)

// ResourceList is an amount of each resource.
type ResourceList map[ResourceName]Quantity

// Cpu returns the amount of CPUs, 0 when there is none.
func (l ResourceList) Cpu() *Quantity { return l.amount(ResourceCPU) }

// Memory returns the amount of memory, 0 when there is none.
func (l ResourceList) Memory() *Quantity { return l.amount(ResourceMemory) }

func (l ResourceList) amount(name ResourceName) *Quantity {
	q := l[name]
	return &q
}

// ResourceRequirements are what a pod asks for.
type ResourceRequirements struct {
	Limits   ResourceList `json:"limits"`
	Requests ResourceList `json:"requests"`
	// OvercommitGuestOverhead: the pod requests nothing for its own programs.
	OvercommitGuestOverhead bool `json:"overcommitGuestOverhead"`
}
