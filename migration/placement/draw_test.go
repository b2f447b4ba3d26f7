package placement_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// The generators draw from few words and sizes, so that conditions meet, fail
// and tie often.

func often(t *rapid.T, what string) bool { return rapid.IntRange(0, 3).Draw(t, what) > 0 }

func seldom(t *rapid.T, what string) bool { return rapid.IntRange(0, 15).Draw(t, what) == 11 }

func few(t *rapid.T, what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }

func amount(t *rapid.T, what string, most int) hypervisor.Bytes {
	return hypervisor.Bytes(few(t, what, most)) * gib
}

func oneOf(t *rapid.T, what string, words ...string) string {
	return rapid.SampledFrom(words).Draw(t, what)
}

func some(t *rapid.T, what string, words ...string) []string {
	var all []string
	for _, w := range words {
		if rapid.Bool().Draw(t, what+" "+w) {
			all = append(all, w)
		}
	}
	return all
}

func drawCPU(t *rapid.T) *placement.CPU {
	if seldom(t, "unknown CPU") {
		return nil
	}
	return &placement.CPU{Arch: oneOf(t, "arch", "", "x", "x", "x", "arm"),
		Models: some(t, "models", "old", "new"), Features: append(some(t, "features", "f1"), "f2")}
}

func drawInventory(t *rapid.T, what string) placement.DeviceInventory {
	i := placement.DeviceInventory{Ratio: rapid.SampledFrom([]float64{0, 1, 1.5}).Draw(t, "ratio")}
	if rapid.Bool().Draw(t, what+" is known") {
		i.Total, i.Reserved = int64(4*gib+amount(t, what, 8)), int64(amount(t, "reserved", 2))
	}
	if seldom(t, "units") {
		i.Min, i.Step = int64(amount(t, "min", 1)), int64(amount(t, "step", 2))
	}
	return i
}

func drawFacts(t *rapid.T) *placement.Facts {
	if seldom(t, "unknown facts") {
		return nil
	}
	f := &placement.Facts{
		Memory: drawInventory(t, "memory"), Disk: drawInventory(t, "disk"),
		MaxVMs: 6 * few(t, "max VMs", 1), MaxBusy: 6 * few(t, "max busy", 1),
		Disabled: seldom(t, "disabled"), Maintenance: seldom(t, "maintenance"),
		Zone: oneOf(t, "zone", "", "a", "b"), Machines: some(t, "machines", "q35", "pc"),
		CPU: drawCPU(t), Networks: some(t, "networks", "front", "back"),
		Hypervisor: placement.Hypervisor{Kind: oneOf(t, "kind", "", "QEMU", "QEMU", "QEMU", "Xen"),
			Version: few(t, "version", 2)},
		Devices: placement.Devices{{Class: "gpu", Count: few(t, "gpus", 3)}},
		Abilities: rapid.SampledFrom([]hypervisor.Abilities{0, hypervisor.CanPostCopy,
			hypervisor.CanCopyStorage}).Draw(t, "abilities"),
		Link: hypervisor.Bandwidth(few(t, "link", 2)) * hypervisor.Gbit,
		Rack: oneOf(t, "in rack", "r1", "r2"),
	}
	if rapid.Bool().Draw(t, "in an aggregate") {
		f.Aggregates = []*placement.Aggregate{placement.NewAggregate("x", map[string]string{
			"gen": oneOf(t, "gen", "1", "2", "1, 3")})}
	}
	if seldom(t, "has tenants") {
		f.Aggregates = append(f.Aggregates, placement.NewAggregate("y", map[string]string{
			"filter_tenant_id": oneOf(t, "tenants", "shop", "bank")}))
	}
	for id := range few(t, "cells", 2) {
		f.Cells = append(f.Cells, placement.Cell{ID: id, Memory: amount(t, "cell", 6),
			Cores: []placement.CPUSet{placement.CPUSetOf(4*id, 4*id+1), placement.CPUSetOf(4*id+2, 4*id+3)},
			Pages: []placement.Pool{{Size: gib, Pages: int64(few(t, "pages", 6))}}})
	}
	return f
}

func chooseDrawHost(t *rapid.T, name hypervisor.HostName) placement.Host {
	h := placement.Host{Name: name, Memory: 4*gib + amount(t, "memory", 8),
		CPUs:       4 + few(t, "cpus", 8),
		UsedMemory: amount(t, "used", 4), UsedCPUs: few(t, "used cpus", 4),
		Labels: placement.Labels{"rack": oneOf(t, "rack", "r1", "r2")},
		Down:   seldom(t, "down"), Cordoned: seldom(t, "closed"), Incoming: few(t, "incoming", 2),
		Facts: drawFacts(t)}
	if seldom(t, "no rack") {
		h.Labels = nil
	}
	if seldom(t, "tainted") {
		h.Taints = []placement.Taint{{Key: "gpu", Effect: placement.NoSchedule}}
	}
	if often(t, "has a group") {
		h.Groups = map[string]int{"g": 1 + few(t, "in g", 2)}
	}
	if often(t, "known load") {
		h.Load = &placement.Load{VMs: few(t, "VMs", 4), Busy: few(t, "busy", 3),
			Disk: amount(t, "used disk", 4)}
		for _, id := range some(t, "held", "v1", "v2") {
			vm := placement.VM{ID: hypervisor.VMID(id), Memory: amount(t, "of "+id, 2), CPUs: 1}
			if after, ok := h.With(&vm); ok {
				after.Incoming = h.Incoming
				h = after
			}
		}
	}
	return h
}

func chooseDrawVM(t *rapid.T) *placement.VM {
	vm := &placement.VM{ID: "vm", Memory: amount(t, "memory", 6), CPUs: few(t, "cpus", 4)}
	if seldom(t, "overhead") {
		vm.Overhead, vm.Balloon = gib, vm.Memory/2
	}
	if seldom(t, "local disk") {
		vm.Disk = amount(t, "disk", 6)
	}
	c := &vm.Constraints
	if seldom(t, "zones") {
		c.Zones = []string{oneOf(t, "zone", "a", "b")}
	}
	if seldom(t, "selects") {
		c.Selector = placement.Labels{"rack": oneOf(t, "rack", "r1", "r2")}
	}
	if seldom(t, "specs") {
		c.Specs = map[string]string{"gen": oneOf(t, "spec", "= 2", "1", "<or> 1 <or> 3", "<in> 9")}
	}
	if !often(t, "grouped") {
		c.Groups = []placement.GroupRule{{Group: "g", Policy: rapid.SampledFrom(
			[]placement.GroupPolicy{placement.Affinity, placement.AntiAffinity,
				placement.SoftAffinity, placement.SoftAntiAffinity}).Draw(t, "policy"),
			Max: few(t, "max", 2), Domain: oneOf(t, "domain", "", "rack")}}
	}
	if seldom(t, "with") {
		c.With = []hypervisor.VMID{hypervisor.VMID(oneOf(t, "with", "v1", "v2"))}
	}
	if seldom(t, "without") {
		c.Without = []hypervisor.VMID{"v1"}
		c.With = nil
	}
	drawNeeds(t, vm)
	return vm
}

func drawNeeds(t *rapid.T, vm *placement.VM) {
	c := &vm.Constraints
	if seldom(t, "platform") {
		c.Platform = placement.Platform{Arch: oneOf(t, "arch", "", "x"),
			Machine: oneOf(t, "machine", "", "q35"), CPUModel: oneOf(t, "model", "", "old"),
			CPUFeatures: some(t, "wanted", "f1", "f2"), HostModel: oneOf(t, "host model", "", "old"),
			HostFeatures: some(t, "kept", "f1", "f2"), Hypervisor: oneOf(t, "kind", "", "QEMU"),
			MinVersion: few(t, "version", 2)}
	}
	if seldom(t, "layout") {
		c.Topology = &placement.TopologyRequest{Dedicated: rapid.Bool().Draw(t, "dedicated"),
			Threads: rapid.SampledFrom([]placement.Threads{"", placement.Isolate,
				placement.Require}).Draw(t, "threads")}
		if rapid.Bool().Draw(t, "huge") {
			c.Topology.PageSize = gib
		}
	}
	if seldom(t, "devices") {
		c.Devices = []placement.DeviceAsk{{Class: "gpu", Count: few(t, "gpus", 2),
			Stays: seldom(t, "stays")}}
	}
	if seldom(t, "networks") {
		c.Networks = some(t, "net", "front", "back")
	}
	c.Tenant = oneOf(t, "tenant", "", "shop")
}

func chooseDrawHosts(t *rapid.T) []placement.Host {
	var hosts []placement.Host
	for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
		hosts = append(hosts, chooseDrawHost(t, hypervisor.HostName(fmt.Sprintf("n%d", i))))
	}
	return hosts
}

func drawRequest(t *rapid.T, vm *placement.VM, hosts []placement.Host) *placement.Request {
	name := func(what string) hypervisor.HostName {
		return rapid.SampledFrom(hosts[len(hosts)/2:]).Draw(t, what).Name
	}
	r := &placement.Request{VM: vm, Source: "n0", Rebuild: seldom(t, "rebuild"),
		Inbound: few(t, "inbound", 4),
		Force: rapid.SampledFrom([]placement.Force{placement.Absent, placement.No, placement.Yes}).
			Draw(t, "force"),
		Compat: seldom(t, "compat")}
	if rapid.Bool().Draw(t, "named") || r.Force == placement.Yes {
		r.Host = name("host")
	}
	if seldom(t, "ignores") {
		r.Ignored = []hypervisor.HostName{name("ignored")}
	}
	if seldom(t, "avoids") {
		r.Avoid = []hypervisor.HostName{name("avoided")}
	}
	return r
}
