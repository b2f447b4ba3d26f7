package importer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
)

// pods are what pods take of the nodes that they are bound to.
type pods struct {
	others    bool // a pod was seen that is not a VM's
	taken     map[hypervisor.HostName]amounts
	launchers []launcher
}

// A launcher is the pod of a VM. The VM accounts for it, if the VM can be read and runs there.
type launcher struct {
	node  hypervisor.HostName
	vm    hypervisor.VMID
	takes amounts
}

// amounts are how much of each resource: CPUs in thousandths, all others in their unit.
type amounts map[kubeobject.ResourceName]int64

// add adds others, up to the largest number that there is.
func (a amounts) add(others amounts) {
	for name, n := range others {
		if a[name] > math.MaxInt64-n {
			n = math.MaxInt64 - a[name]
		}
		a[name] += n
	}
}

// raise raises amounts to others that are larger.
func (a amounts) raise(others amounts) {
	for name, n := range others {
		a[name] = max(a[name], n)
	}
}

// ofNode reads a pod. One that has ended, or is bound to no node yet, takes nothing.
func (o *object) ofNode(p *kubeobject.Pod) {
	launches := p.Labels[kubeobject.AppLabel] == kubeobject.LauncherApp
	o.pods.others = o.pods.others || !launches
	node := hypervisor.HostName(p.Spec.NodeName)
	if node == "" || p.Status.Phase == kubeobject.PodSucceeded || p.Status.Phase == kubeobject.PodFailed {
		return
	}
	takes := o.podRequests(&p.Spec)
	takes[kubeobject.ResourcePods] = 1
	if launches {
		o.pods.launchers = append(o.pods.launchers, launcher{node, hypervisor.VMID(p.Namespace + "/" +
			p.Annotations[kubeobject.DomainAnnotation]), takes})
		return
	}
	o.pods.take(node, takes)
}

func (p *pods) take(node hypervisor.HostName, takes amounts) {
	if p.taken == nil {
		p.taken = map[hypervisor.HostName]amounts{}
	}
	if p.taken[node] == nil {
		p.taken[node] = amounts{}
	}
	p.taken[node].add(takes)
}

// podRequests returns what the scheduler counts of a pod: its containers together, or more if an init container needs
// more, with the init containers that stay beside it; what the pod as a whole requests instead, if it does; and what
// running it takes. A resize that is under way is not looked at.
// Source: Kubernetes v1.34.3 component-helpers/resource/helpers.go (PodRequests, AggregateContainerRequests).
func (o *object) podRequests(p *kubeobject.PodSpec) amounts {
	all, stay, start := amounts{}, amounts{}, amounts{}
	for i := range p.Containers {
		all.add(o.requests(fmt.Sprintf("spec.containers[%d].resources.requests", i), p.Containers[i].Resources.Requests))
	}
	for i := range p.InitContainers {
		c := &p.InitContainers[i]
		needs := o.requests(fmt.Sprintf("spec.initContainers[%d].resources.requests", i), c.Resources.Requests)
		if c.RestartPolicy == kubeobject.ContainerRestartPolicyAlways {
			all.add(needs)
			stay.add(needs)
			start.raise(stay)
			continue
		}
		needs.add(stay)
		start.raise(needs)
	}
	all.raise(start)
	if p.Resources != nil {
		whole := o.requests("spec.resources.requests", p.Resources.Requests)
		maps.DeleteFunc(whole, func(name kubeobject.ResourceName, _ int64) bool {
			return name != kubeobject.ResourceCPU && name != kubeobject.ResourceMemory && !isPages(name)
		})
		maps.Copy(all, whole)
	}
	all.add(o.requests("spec.overhead", p.Overhead))
	return all
}

func isPages(name kubeobject.ResourceName) bool {
	return strings.HasPrefix(string(name), kubeobject.ResourceHugePagesPrefix)
}

// requests reads amounts of resources.
func (o *object) requests(field string, list kubeobject.ResourceList) amounts {
	a := amounts{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q, at := list[name], field+"."+string(name)
		switch {
		case name == kubeobject.ResourceCPU:
			a[name] = o.millis(at, &q)
		case name == kubeobject.ResourceMemory || isPages(name):
			a[name] = int64(o.bytes(at, &q))
		default:
			a[name] = max(0, min(q.Value(), maxDevices))
		}
	}
	return a
}

// takenByPods returns what pods take of the nodes that no VM accounts for: other pods, and those of VMs that were not
// read or run elsewhere. The pods of a VM that migrates are accounted for by its migration.
func (f *fleetReader) takenByPods() map[hypervisor.HostName]amounts {
	on, migrate := map[hypervisor.VMID]hypervisor.HostName{}, map[hypervisor.VMID]bool{}
	for i := range f.vms {
		on[f.vms[i].ID] = f.vms[i].Host
	}
	for i := range f.moves {
		migrate[f.moves[i].VM] = true
	}
	for _, l := range f.pods.launchers {
		if on[l.vm] != l.node && !migrate[l.vm] {
			f.pods.take(l.node, l.takes)
		}
	}
	return f.pods.taken
}

// give takes from the node what pods take of it.
func (h *kubevirtHost) give(takes amounts) {
	for name, n := range takes {
		switch {
		case name == kubeobject.ResourceCPU:
			h.milli = max(0, h.milli-n)
		case name == kubeobject.ResourceMemory:
			h.giveMemory(n)
		case name == kubeobject.ResourcePods:
			h.givePods(n)
		case isPages(name):
			h.givePages(strings.TrimPrefix(string(name), kubeobject.ResourceHugePagesPrefix), n)
		default:
			for i := range h.Facts.Devices {
				if d := &h.Facts.Devices[i]; d.Class == string(name) {
					d.Count -= int(min(n, int64(d.Count)))
				}
			}
		}
	}
}

// giveMemory takes ordinary memory: that of huge pages is counted apart.
func (h *kubevirtHost) giveMemory(n int64) {
	ordinary := h.Memory
	if len(h.Facts.Cells) > 0 {
		ordinary = h.Facts.Cells[0].Memory
	}
	taken := min(hypervisor.Bytes(n), ordinary)
	if len(h.Facts.Cells) > 0 {
		h.Facts.Cells[0].Memory -= taken
	}
	h.reserve(taken)
}

func (h *kubevirtHost) givePages(size string, n int64) {
	q, err := kubeobject.ParseQuantity(size)
	if err != nil || len(h.Facts.Cells) == 0 {
		return // the node has none of these
	}
	for i := range h.Facts.Cells[0].Pages {
		if p := &h.Facts.Cells[0].Pages[i]; p.Size == hypervisor.Bytes(q.Value()) {
			taken := n / int64(p.Size)
			if n%int64(p.Size) > 0 {
				taken++
			}
			taken = min(taken, p.Pages)
			p.Pages -= taken
			h.reserve(hypervisor.Bytes(taken) * p.Size)
		}
	}
}

// reserve takes memory that is not for VMs.
func (h *kubevirtHost) reserve(n hypervisor.Bytes) {
	h.Memory -= n
	h.Facts.Memory.Reserved += int64(n)
}

// givePods lets the node take fewer VMs. No limit stays none.
func (h *kubevirtHost) givePods(n int64) {
	if h.Facts.MaxVMs == 0 {
		return
	}
	if h.Facts.MaxVMs -= int(min(n, int64(h.Facts.MaxVMs))); h.Facts.MaxVMs == 0 {
		h.Cordoned = true
	}
}
