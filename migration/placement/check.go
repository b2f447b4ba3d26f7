package placement

import (
	"slices"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// A Filter is one condition on a host. [AllFilters] has all of them; [Basic] lists those
// that an [Index] always applies.
type Filter struct {
	Name  string // names the filter in a Reason
	Class Class
	// Refuses reports whether host cannot take vm.
	Refuses func(*VM, *Host, Options) bool
	// Explain says why; it is only asked about a host that is refused.
	Explain func(*VM, *Host, Options) (need, have string)
	// Idle reports whether it refuses no host at all this time; nil is never.
	Idle func(*VM, Options) bool
	// OfFacts: it looks at nothing of a host but its Facts, so that it needs to
	// be asked once for all hosts that share them.
	OfFacts bool
}

// A Class says what it would take to overrule a filter.
type Class uint8

// The classes. An operator's force overrules Policy and Capacity, never Physics.
const (
	Policy   Class = iota // an operator's wish
	Capacity              // an amount that runs out
	Physics               // what force never overrules: mostly, the VM would not run there
)

// String names the class.
func (c Class) String() string {
	switch c {
	case Policy:
		return "policy"
	case Capacity:
		return "capacity"
	case Physics:
		return "physics"
	}
	return "invalid"
}

// MarshalText stores the class as a word.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a word that MarshalText wrote.
func (c *Class) UnmarshalText(text []byte) error {
	return humanize.Parse(c, []string{"policy", "capacity", "physics"}, "class of a filter", text)
}

// filters lists the basic conditions, the cheap ones first. Their order is the
// order of the reasons; it does not change which hosts are accepted.
var filters = []Filter{
	{"down", Physics, hostDown, explainDown, nil, false},
	{"cordon", Policy, hostCordoned, explainCordoned, nil, false},
	{"source", Physics, isSource, explainSource, noSource, false},
	{"avoided", Policy, isAvoided, explainAvoided, noneAvoided, false},
	{"inbound", Policy, inboundFull, explainInbound, noLimit, false},
	{"memory", Capacity, memoryLacks, explainMemory, noMemory, false},
	{"cpus", Capacity, cpusLack, explainCPUs, noCPUs, false},
	{"selector", Policy, selectorDiffers, explainSelector, noSelector, false},
	{"taints", Policy, taintRepels, explainTaints, nil, false},
	{"affinity", Policy, affinityFails, explainAffinity, noAffinity, false},
	{"apart", Policy, groupTaken, explainApart, noneApart, false},
}

// Basic returns the conditions that need no more of hosts and VMs than their sizes, marks, labels and taints, in
// their order: those of the Kubernetes scheduler, and two more. Every [Index] applies them.
func Basic() []Filter { return slices.Clone(filters) }

// Check returns every reason why host cannot take vm, at most one for each
// of [AllFilters]; none means it can. It allocates nothing for a host that can.
func Check(vm *VM, host *Host, o Options) []Reason { return CheckAll(everything, vm, host, o) }

// CheckAll returns every reason of the given filters why host cannot take vm, in
// their order. It allocates nothing for a host that can.
func CheckAll(all []Filter, vm *VM, host *Host, o Options) []Reason {
	var why []Reason
	for i := range all {
		if f := &all[i]; f.Refuses(vm, host, o) {
			need, have := f.Explain(vm, host, o)
			why = append(why, Reason{Check: f.Name, Need: need, Have: have})
		}
	}
	return why
}

// Active returns the filters that may refuse some host this time. The others
// need not be asked.
func Active(all []Filter, vm *VM, o Options) []Filter {
	active := make([]Filter, 0, len(all))
	for _, f := range all {
		if f.Idle == nil || !f.Idle(vm, o) {
			active = append(active, f)
		}
	}
	return active
}

// Fits reports whether host can take vm: whether Check has no reason against
// it. It stops at the first.
func Fits(vm *VM, host *Host, o Options) bool { return FitsAll(everything, vm, host, o) }

// FitsAll reports whether none of the given filters refuses. It stops at the
// first that does.
func FitsAll(all []Filter, vm *VM, host *Host, o Options) bool {
	for i := range all {
		if all[i].Refuses(vm, host, o) {
			return false
		}
	}
	return true
}

// hostDown: the host is not known to be alive. No toleration helps: a VM is
// not moved onto a host that does not answer.
// Source: Kubernetes v1.34.1 pkg/controller/nodelifecycle/node_lifecycle_controller.go:87
// (nodeConditionToTaintKeyStatusMap: NotReady repels), stricter.
func hostDown(_ *VM, host *Host, _ Options) bool { return host.Down }

// hostCordoned: the host is cordoned, draining or in maintenance. Kubernetes lets in a pod that
// tolerates the mark; here nothing enters a host that is being emptied.
// Source: Kubernetes v1.34.1 pkg/scheduler/framework/plugins/nodeunschedulable/
// node_unschedulable.go:133 (Filter), stricter.
func hostCordoned(_ *VM, host *Host, _ Options) bool { return host.Cordoned }

// isSource: the VM is on this host already.
// Source: KubeVirt v1.9.0 watch/migration/migration.go:938 (createTargetPod): a
// required anti-affinity of the VM to itself by host name.
func isSource(_ *VM, host *Host, o Options) bool { return host.Name == o.Source && o.Source != "" }

// isAvoided: the host is remembered as bad for this VM.
// Source: godwit. KubeVirt v1.9.0 keeps no such memory and may choose the same
// bad target after every failure (migration.go:1049 only waits longer).
func isAvoided(_ *VM, host *Host, o Options) bool { return slices.Contains(o.Avoid, host.Name) }

// inboundFull: as many migrations as are allowed are on their way to the host.
// Source: godwit. KubeVirt v1.9.0 limits a node's outbound migrations only
// (migration.go:2423); see kubevirt's ParallelOutboundMigrationsPerNode.
func inboundFull(_ *VM, host *Host, o Options) bool {
	return o.Inbound > 0 && host.Incoming >= o.Inbound
}

// memoryLacks: the VM needs more memory than is free. A VM that needs none is
// never refused for it, not even by a host that is over-committed.
// Source: Kubernetes v1.34.1 plugins/noderesources/fit.go:595 (fitsRequest).
func memoryLacks(vm *VM, host *Host, _ Options) bool {
	need := vm.Demand()
	return need > 0 && need > host.FreeMemory()
}

// cpusLack: the VM needs more CPUs than are free, as memoryLacks.
// Source: Kubernetes v1.34.1 plugins/noderesources/fit.go:585 (fitsRequest).
func cpusLack(vm *VM, host *Host, _ Options) bool {
	return vm.DemandCPUs() > 0 && vm.DemandCPUs() > host.FreeCPUs()
}

// selectorDiffers: a label that the VM selects is absent or has another value.
// Source: Kubernetes v1.34.1 component-helpers/scheduling/corev1/nodeaffinity/
// nodeaffinity.go:323 (RequiredNodeAffinity.Match).
func selectorDiffers(vm *VM, host *Host, _ Options) bool {
	for key, want := range vm.Constraints.Selector {
		if have, ok := host.Labels[key]; !ok || have != want {
			return true
		}
	}
	return false
}

// taintRepels: a taint that keeps VMs away is not tolerated.
// Source: Kubernetes v1.34.1 plugins/tainttoleration/taint_toleration.go:111 (Filter).
func taintRepels(vm *VM, host *Host, _ Options) bool {
	for i := range host.Taints {
		if repels(&host.Taints[i], vm.Constraints.Tolerations) {
			return true
		}
	}
	return false
}

// affinityFails: there are conditions on the labels, and no list of them holds.
// Source: Kubernetes v1.34.1 component-helpers/scheduling/corev1/nodeaffinity/
// nodeaffinity.go:84 (LazyErrorNodeSelector.Match).
func affinityFails(vm *VM, host *Host, _ Options) bool {
	for _, all := range vm.Constraints.Affinity {
		if holdAll(all, host.Labels) {
			return false
		}
	}
	return len(vm.Constraints.Affinity) > 0
}

// groupTaken: a VM that this one must be apart from is on the host, or on its
// way there.
// Source: Kubernetes v1.34.1 plugins/interpodaffinity/filtering.go:367
// (satisfyPodAntiAffinity), with the host name as the topology.
func groupTaken(vm *VM, host *Host, _ Options) bool {
	for _, group := range vm.Constraints.Apart {
		if host.Groups[group] > 0 {
			return true
		}
	}
	return false
}
