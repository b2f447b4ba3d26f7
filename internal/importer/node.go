package importer

import (
	"math"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// defaultCPURatio is how many virtual CPUs share a CPU.
// Source: KubeVirt v1.8.0 api/core/v1/types.go:3391 (CPUAllocationRatio).
const defaultCPURatio = 10

// kubevirtHost is a host whose CPUs are not multiplied yet.
type kubevirtHost struct {
	inventory.Host
	line  int
	milli int64 // CPUs, in thousandths
}

func (o *object) node(n *kubeobject.Node) {
	h := kubevirtHost{
		Host: inventory.Host{
			Host: hypervisor.Host{
				Name:   hypervisor.HostName(n.Name),
				Memory: o.bytes("status.allocatable.memory", n.Status.Allocatable.Memory()),
				Link:   o.defaults.LinkOf(n.Labels),
			},
			Labels: n.Labels,
			Down:   !o.ready(n),
		},
		line:  o.line,
		milli: o.millis("status.allocatable.cpu", n.Status.Allocatable.Cpu()),
	}
	h.Cordoned = h.Down || n.Spec.Unschedulable || n.Labels[kubeobject.NodeSchedulable] != "true"
	for _, t := range n.Spec.Taints {
		h.Taints = append(h.Taints, placement.Taint{
			Key: t.Key, Value: t.Value, Effect: placement.Effect(t.Effect),
		})
	}
	h.Facts = o.facts(n, &h)
	if pods, found := n.Status.Allocatable[kubeobject.ResourcePods]; found {
		if h.Facts.MaxVMs = o.number("status.allocatable.pods", &pods); h.Facts.MaxVMs == 0 {
			h.Cordoned = true
		}
	}
	o.hosts = append(o.hosts, h)
}

// ready reports whether the node says that it is ready.
func (o *object) ready(n *kubeobject.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == kubeobject.NodeReady {
			return c.Status == kubeobject.ConditionTrue
		}
	}
	o.warnf("status.conditions", "without a Ready condition it counts as down")
	return false
}

func (o *object) namespace(n *kubeobject.Namespace) { o.AddNamespace(n.Name, n.Labels) }

// addHosts adds the hosts, when the ratio is known.
func (f *fleetReader) addHosts() {
	open := false
	taken := f.takenByPods()
	for _, h := range f.hosts {
		h.give(taken[h.Name])
		h.CPUs = int(h.milli * int64(f.cpuRatio) * f.unit / 1000)
		f.AddHost(h.line, h.Host)
		open = open || !h.Cordoned
	}
	if len(f.hosts) > 0 && !f.pods.others {
		f.Warnf(0, "", "what pods other than those of VMs request of the nodes is not known: it counts as free memory and CPUs. "+
			"Let kubectl get pods, too")
	}
	if !open && len(f.hosts) > 0 {
		f.Warnf(0, "", "no node is ready, schedulable and has the label %s=true",
			kubeobject.NodeSchedulable)
	}
}

// bytes returns a quantity as bytes, rounded up.
func (o *object) bytes(field string, q *kubeobject.Quantity) hypervisor.Bytes {
	if q == nil {
		return 0
	}
	switch f := q.AsApproximateFloat64(); {
	case f < 0:
		o.errorf(field, "%s is negative", q)
		return 0
	case f >= math.MaxInt64/2:
		o.errorf(field, "%s is 4 EiB or more", q)
		return 0
	}
	return hypervisor.Bytes(q.Value())
}

// maxPods is more than any node, or namespace, has.
const maxPods = 1 << 30

// number returns a quantity as a number of things.
func (o *object) number(field string, q *kubeobject.Quantity) int {
	if f := q.AsApproximateFloat64(); f < 0 || f > maxPods {
		o.errorf(field, "%s is no number of pods", q)
		return 0
	}
	return int(q.Value())
}

// millis returns a quantity of CPUs in thousandths, rounded up.
func (o *object) millis(field string, q *kubeobject.Quantity) int64 {
	if q == nil {
		return 0
	}
	if f := q.AsApproximateFloat64(); f < 0 || f > maxCPUs {
		o.errorf(field, "%s is no number of CPUs", q)
		return 0
	}
	return q.MilliValue()
}
