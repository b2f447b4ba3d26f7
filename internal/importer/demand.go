package importer

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// demand adds what a VM asks of its node beside what its pod says, and says what
// cannot be asked.
// Source: KubeVirt v1.8.0 virt-controller/services/nodeselectorrenderer.go (Render).
func (o *object) demand(vmi *kubeobject.VirtualMachineInstance, v *inventory.VM) {
	c := &v.Placement
	c.Platform.Arch = arch(vmi.Spec.Architecture)
	if cpu := vmi.Spec.Domain.CPU; cpu != nil {
		if cpu.Model != kubeobject.CPUModeHostModel && cpu.Model != kubeobject.CPUModeHostPassthrough {
			c.Platform.CPUModel = cpu.Model
		}
		c.Platform.CPUExact = cpu.Model == kubeobject.CPUModeHostPassthrough
		for _, f := range cpu.Features {
			if f.Policy == "" || f.Policy == "require" {
				c.Platform.CPUFeatures = append(c.Platform.CPUFeatures, f.Name)
			}
		}
	}
	c.Selector = selector(vmi)
	if s := vmi.Spec.Domain.LaunchSecurity; s != nil && s.SEV == nil && s.SNP == nil &&
		s.TDX == nil {
		o.warnf("spec.domain.launchSecurity", "which nodes offer it is not looked at")
	}
	c.Topology = o.layout(vmi)
	c.Devices = o.devices(vmi, !v.Migratable)
	for i, n := range vmi.Spec.Networks {
		if n.Multus != nil {
			o.warnf(fmt.Sprintf("spec.networks[%d].multus", i),
				"which nodes reach a network is not known: it refuses none")
		}
	}
}

// layout returns the pages and the CPUs of its own that a VM asks for.
func (o *object) layout(vmi *kubeobject.VirtualMachineInstance) *placement.TopologyRequest {
	var ask placement.TopologyRequest
	if m := vmi.Spec.Domain.Memory; m != nil && m.Hugepages != nil {
		const field = "spec.domain.memory.hugepages.pageSize"
		ask.PageSize = o.pageSize(field, m.Hugepages.PageSize)
		o.warnf("spec.domain.memory.hugepages", "the memory of a node is counted with its huge "+
			"pages: it may seem to have room for ordinary memory that it does not have")
	}
	if vmi.IsCPUDedicated() {
		ask.Dedicated = true
		o.warnf("spec.domain.cpu.dedicatedCpuPlacement", "dedicated CPUs are kept apart from "+
			"each other; of what VMs share they are counted like shared ones")
		cpu := vmi.Spec.Domain.CPU
		if cpu.IsolateEmulatorThread || cpu.NUMA != nil && cpu.NUMA.GuestMappingPassthrough != nil {
			o.warnf("spec.domain.cpu", "NUMA nodes, and the CPU of an isolated emulator, are not "+
				"looked at")
		}
	}
	if ask.PageSize == 0 && !ask.Dedicated {
		return nil
	}
	return &ask
}

// pageSize reads a size such as 1Gi.
func (o *object) pageSize(field, text string) hypervisor.Bytes {
	q, err := kubeobject.ParseQuantity(text)
	if err != nil {
		o.errorf(field, "%q is no size of pages: %v", text, err)
		return 0
	}
	return o.bytes(field, &q)
}

// devices returns the host's devices that a VM holds. Whether they move with it is
// what KubeVirt has found out about the VM.
func (o *object) devices(
	vmi *kubeobject.VirtualMachineInstance, stay bool,
) []placement.DeviceAsk {
	var names []string
	for _, d := range vmi.Spec.Domain.Devices.GPUs {
		names = append(names, d.DeviceName)
	}
	for _, d := range vmi.Spec.Domain.Devices.HostDevices {
		names = append(names, d.DeviceName)
	}
	var all []placement.DeviceAsk
	for _, name := range names {
		i := slices.IndexFunc(all, func(d placement.DeviceAsk) bool { return d.Class == name })
		switch {
		case name == "":
			o.warnf("spec.domain.devices", "devices that are claimed are not looked at")
		case i >= 0:
			all[i].Count++
		default:
			all = append(all, placement.DeviceAsk{Class: name, Count: 1, Stays: stay})
		}
	}
	return all
}

// complete adds what VMs ask that depends on what nodes say. Machine types, and the
// label of nodes that give away whole CPUs, are asked for as nodes have them: they
// differ between versions of KubeVirt.
func (f *fleetReader) complete() {
	nodes := make(map[hypervisor.HostName]placement.Labels, len(f.hosts))
	machines, manager := false, kubeobject.DeprecatedCPUManager
	for _, h := range f.hosts {
		nodes[h.Name] = h.Labels
		machines = machines || len(h.Facts.Machines) > 0
		if _, found := h.Labels[kubeobject.CPUManager]; found {
			manager = kubeobject.CPUManager
		}
	}
	f.unit = f.cpuUnit()
	for i := range f.vms {
		v := &f.vms[i]
		c := &v.Placement
		if _, found := nodes[v.EvacuateFrom]; !found && v.EvacuateFrom != "" {
			f.Warnf(v.line, "vm "+string(v.ID), "it was asked to leave %s, which is left out: there is no such node",
				v.EvacuateFrom)
			v.EvacuateFrom = ""
		}
		if machines {
			c.Platform.Machine = v.machine
		}
		if v.hostModel {
			seeHostModel(&c.Platform, nodes[v.Host])
		}
		f.take(v)
		if c.Topology != nil && c.Topology.Dedicated {
			c.Selector = with(c.Selector, manager)
		}
	}
}
