package placement_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

const gib = hypervisor.GiB

// demanding returns a VM with every kind of constraint; grand takes it.
func demanding() *placement.VM {
	return &placement.VM{
		ID: "shop/db", Memory: 24 * gib, CPUs: 4, Overhead: gib, Disk: 50 * gib,
		Constraints: placement.Constraints{
			Selector: placement.Labels{"disk": "ssd"},
			Affinity: [][]placement.Requirement{{
				{Key: "cores", Operator: placement.Gt, Values: []string{"8"}}}},
			Tolerations: []placement.Toleration{{Key: "gpu", Exists: true}},
			Apart:       []string{"db"}, Zones: []string{"a", "b"},
			Specs: map[string]string{"ssd": "true",
				"aggregate_instance_extra_specs:gen": "= 3"},
			Groups: []placement.GroupRule{
				{Group: "quorum", Policy: placement.AntiAffinity, Max: 2, Domain: "rack"},
				{Group: "shop", Policy: placement.AntiAffinity}},
			Without: []hypervisor.VMID{"shop/noisy"},
			Platform: placement.Platform{Arch: "x86_64", Machine: "q35", CPUModel: "Skylake",
				CPUFeatures: []string{"avx2", "sse4"}, Hypervisor: "QEMU", MinVersion: 7_000_000},
			Topology: &placement.TopologyRequest{Dedicated: true, Threads: placement.Require, PageSize: gib},
			Devices:  []placement.DeviceAsk{{Class: "a100", Count: 1}},
			Networks: []string{"storage", "front"}, Tenant: "shop",
		},
	}
}

var equalCPU = &placement.CPU{Arch: "x86_64", Models: []string{"Haswell", "Skylake"},
	Features: []string{"avx", "avx2", "sse4"}}

var fastPool = placement.NewAggregate("fast", map[string]string{"ssd": "true", "gen": "2, 4",
	"filter_tenant_id": "shop, bank"})

func cells() []placement.Cell {
	var all []placement.Cell
	for id := range 2 {
		c := placement.Cell{ID: id, Memory: 64 * gib, Pages: []placement.Pool{{Size: gib, Pages: 48}}}
		for core := range 16 {
			first := 32*id + 2*core
			c.Cores = append(c.Cores, placement.CPUSetOf(first, first+1))
		}
		all = append(all, c)
	}
	return all
}

// grand returns a host that has everything.
func grand(name hypervisor.HostName, rack string) placement.Host {
	return placement.Host{
		Name: name, Memory: 256 * gib, CPUs: 64, UsedMemory: 64 * gib,
		Labels: placement.Labels{"disk": "ssd", "cores": "64", "rack": rack},
		Taints: []placement.Taint{{Key: "gpu", Value: "true", Effect: placement.NoSchedule}},
		Groups: map[string]int{"web": 2},
		Facts: &placement.Facts{
			Memory: placement.DeviceInventory{Total: int64(256 * gib), Min: int64(gib), Step: int64(gib)},
			CPUs:   placement.DeviceInventory{Total: 64, Max: 64},
			Disk:   placement.DeviceInventory{Total: int64(2000 * gib), Ratio: 1.5},
			MaxVMs: 50, MaxBusy: 8, Zone: "a",
			Aggregates: []*placement.Aggregate{fastPool}, Machines: []string{"pc", "q35"},
			CPU: equalCPU, Hypervisor: placement.Hypervisor{Kind: "QEMU", Version: 7_002_000},
			Abilities: hypervisor.CanCopyStorage, Cells: cells(),
			Devices:  placement.Devices{{Class: "a100", Count: 4}},
			Networks: []string{"front", "storage"},
			Link:     25 * hypervisor.Gbit, Rack: rack, Uplink: 100 * hypervisor.Gbit,
		},
		Load: &placement.Load{VMs: 10, Devices: placement.Devices{{Class: "a100", Count: 1}},
			Held: map[hypervisor.VMID]placement.Held{
				"web/1": {VM: &placement.VM{ID: "web/1", Memory: 2 * gib, CPUs: 1}, Count: 1}}},
	}
}

// racks returns n hosts that have everything, sixteen in a rack; those of one
// rack are alike and share their facts.
func racks(n int) []placement.Host {
	hosts := make([]placement.Host, n)
	for i := range hosts {
		hosts[i] = grand(hypervisor.HostName(fmt.Sprintf("n%05d", i)), fmt.Sprintf("r%d", i/16))
		if i%16 != 0 {
			hosts[i].Facts = hosts[i-1].Facts
		}
		hosts[i].UsedMemory = hypervisor.Bytes(i*7919%128) * gib
	}
	return hosts
}

func request(vm *placement.VM) *placement.Request {
	return &placement.Request{VM: vm, Source: "n00000"}
}
