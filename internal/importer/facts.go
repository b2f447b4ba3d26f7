package importer

import (
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/migration/placement"
)

// facts reads what a node says of itself beside its size. Kubernetes does not say
// how its huge pages and CPUs are spread over NUMA nodes: all are in one cell.
func (o *object) facts(n *kubeobject.Node, h *kubevirtHost) *placement.Facts {
	f := &placement.Facts{
		Zone:     n.Labels[kubeobject.LabelTopologyZone],
		CPU:      cpuLabels(n.Labels),
		Machines: isTrue(n.Labels, kubeobject.SupportedMachineTypeLabel),
		Devices:  o.nodeDevices(n.Status.Allocatable),
		Link:     h.Link,
	}
	pages := o.nodePages(n.Status.Allocatable)
	ordinary := h.Memory
	for _, p := range pages {
		if h.Memory += p.Size * hypervisor.Bytes(p.Pages); h.Memory < 0 {
			o.errorf("status.allocatable", "its memory and huge pages are 8 EiB or more")
			h.Memory = 0
		}
	}
	f.Memory.Total = int64(h.Memory)
	if q, found := n.Status.Capacity[kubeobject.ResourceMemory]; found {
		f.Memory.Total = max(f.Memory.Total, int64(o.bytes("status.capacity.memory", &q)))
		f.Memory.Reserved = f.Memory.Total - int64(h.Memory)
	}
	if len(pages) > 0 || managesCPUs(n.Labels) {
		f.Cells = []placement.Cell{{Cores: o.firstCores(h.milli), Memory: ordinary, Pages: pages}}
	}
	return f
}

// firstCores returns whole CPUs, each a core: Kubernetes does not say which share one.
// All nodes share them: 8192 of them take 4 MiB.
func (f *fleetReader) firstCores(milli int64) []placement.CPUSet {
	n := int(min(milli/1000, placement.MaxCPU+1))
	for i := len(f.cores); i < n; i++ {
		f.cores = append(f.cores, placement.CPUSetOf(i))
	}
	return f.cores[:n:n]
}

// nodePages reads how many huge pages may be used.
func (o *object) nodePages(allocatable kubeobject.ResourceList) []placement.Pool {
	var all []placement.Pool
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		text, found := strings.CutPrefix(string(name), kubeobject.ResourceHugePagesPrefix)
		if !found {
			continue
		}
		field := "status.allocatable." + string(name)
		size, q := o.pageSize(field, text), allocatable[name]
		if total := o.bytes(field, &q); size > 0 && total >= size {
			all = append(all, placement.Pool{Size: size, Pages: int64(total / size)})
		}
	}
	return all
}

// maxDevices is more than any node has; some plugins count bytes.
const maxDevices = 1 << 30

// nodeDevices counts what device plugins offer. What KubeVirt itself offers every
// VM, and what is no device, is left out.
func (o *object) nodeDevices(allocatable kubeobject.ResourceList) placement.Devices {
	var all placement.Devices
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		class, q := string(name), allocatable[name]
		if !strings.Contains(class, "/") || strings.HasPrefix(class, "devices.kubevirt.io/") ||
			strings.HasPrefix(class, "attachable-volumes") {
			continue
		}
		n := max(0, min(q.Value(), maxDevices))
		all = append(all, placement.DeviceCount{Class: class, Count: int(n)})
	}
	return all
}
