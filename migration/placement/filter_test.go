package placement_test

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A scene is a move that every filter accepts, before a row changes it.
type scene struct {
	vm    *placement.VM
	c     *placement.Constraints // of vm
	host  *placement.Host
	facts *placement.Facts // of host
	load  *placement.Load  // of host
	from  *placement.Facts // of the source
	o     placement.Options
}

func newScene() *scene {
	s := &scene{
		vm: &placement.VM{ID: "shop/web", Memory: 24 * gib, CPUs: 4},
		host: &placement.Host{Name: "n2", Memory: 64 * gib, CPUs: 16, UsedMemory: 40 * gib,
			UsedCPUs: 12, Labels: placement.Labels{"rack": "r1"},
			Facts: &placement.Facts{}, Load: &placement.Load{}},
		from: &placement.Facts{},
	}
	s.c, s.facts, s.load = &s.vm.Constraints, s.host.Facts, s.host.Load
	s.o = placement.Options{Source: "n1", Move: &placement.Move{Source: s.from}}
	return s
}

// check asks all filters, after the facts that a survey of the fleet would find.
func (s *scene) check() []placement.Reason {
	if s.o.Move != nil {
		s.o.Move.Wants = placement.ParseWant(s.c.Specs)
	}
	return placement.CheckAll(placement.AllFilters(), s.vm, s.host, s.o)
}

// A row changes a scene; want is what is refused, one line each, "" is nothing.
type row struct {
	name   string
	change func(*scene)
	want   string
}

var told = map[string]bool{} // filters that a row has seen refuse

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := newScene()
			r.change(s)
			var lines []string
			for _, reason := range s.check() {
				lines = append(lines, reason.String())
				told[reason.Check] = true
				s.isAsked(t, reason.Check)
			}
			if diff := cmp.Diff(r.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

// isAsked wants of a filter that refuses that controller and simulator ask it: they ask the basic ones alone until a VM
// asks for more or a host says more.
func (s *scene) isAsked(t *testing.T, filter string) {
	t.Helper()
	source := placement.Host{Facts: s.from}
	more := s.vm.Disk > 0 || placement.AsksMore(s.c) || placement.SaysMore(s.host) || placement.SaysMore(&source)
	if more || !placement.FitsAll(placement.Basic(), s.vm, s.host, s.o) { // a basic one that refuses is enough
		return
	}
	t.Errorf("%s refuses by something that AsksMore and SaysMore do not look at: controllers would not ask it; a filter by "+
		"size, marks, labels or taints of a host belongs to the basic ones, in check.go", filter)
}

func group(policy placement.GroupPolicy, most int, domain string) []placement.GroupRule {
	return []placement.GroupRule{{Group: "db", Policy: policy, Max: most, Domain: domain}}
}

func tenants(names string) []*placement.Aggregate {
	return []*placement.Aggregate{placement.NewAggregate("a", map[string]string{"filter_tenant_id": names})}
}

func TestHostAndCapacity(t *testing.T) {
	run(t, []row{
		{"exactly enough is enough", func(*scene) {}, ""},
		{"nothing known refuses no VM", func(s *scene) {
			s.host.Facts, s.host.Load, s.o.Move.Source = nil, nil, nil
			s.vm.Disk = 500 * gib
		}, ""},
		{"a disabled host", func(s *scene) { s.facts.Disabled = true },
			"disabled needs a host in service has disabled"},
		{"a host in maintenance", func(s *scene) { s.facts.Maintenance = true },
			"maintenance needs a host that is in service has in maintenance"},
		{"the overhead counts", func(s *scene) { s.vm.Overhead = 1 },
			"memory needs 25769803777B has 25769803776B"},
		{"what the balloon keeps does not", func(s *scene) {
			s.vm.Overhead, s.vm.Balloon = gib, gib
		}, ""},
		{"a VM larger than the host", func(s *scene) { s.vm.Memory = 65 * gib },
			"memory needs 65GiB has 24GiB\nmemory-exists needs 65GiB has 64GiB in all"},
		{"memory that is reserved exists", func(s *scene) {
			s.vm.Memory = 65 * gib
			s.facts.Memory = placement.DeviceInventory{Total: int64(60 * gib), Ratio: 1.5}
		}, "memory needs 65GiB has 24GiB"},
		{"exactly the disk that is left", func(s *scene) {
			s.vm.Disk, s.load.Disk = 10*gib, 90*gib
			s.facts.Disk = placement.DeviceInventory{Total: int64(60 * gib), Reserved: int64(10 * gib),
				Ratio: 2}
		}, ""},
		{"one byte of disk too much", func(s *scene) {
			s.vm.Disk, s.load.Disk = 10*gib+1, 90*gib
			s.facts.Disk = placement.DeviceInventory{Total: int64(60 * gib), Reserved: int64(10 * gib),
				Ratio: 2}
		}, "disk needs 10737418241B has 10737418240B"},
		{"a disk larger than the host's", func(s *scene) {
			s.vm.Disk = 70 * gib
			s.facts.Disk = placement.DeviceInventory{Total: int64(60 * gib)}
		}, "disk needs 70GiB has 60GiB\ndisk-exists needs 70GiB has 60GiB in all"},
		{"local disks do not move live to a host that cannot receive them", func(s *scene) {
			s.vm.Disk, s.facts.Abilities = gib, hypervisor.CanPostCopy
		}, "local-disks needs copy-storage has shared disks only"},
		{"a rebuild copies none", func(s *scene) {
			s.vm.Disk, s.facts.Abilities = gib, hypervisor.CanPostCopy
			s.o.Move.Rebuild = true
		}, ""},
		{"the largest number of CPUs for one VM", func(s *scene) {
			s.facts.CPUs = placement.DeviceInventory{Total: 16, Max: 3}
		}, "units needs cpus 4 has cpus from 0 to 3 in steps of 1"},
		{"the smallest size and whole steps", func(s *scene) {
			s.facts.Memory = placement.DeviceInventory{Total: 1 << 40, Min: int64(32 * gib)}
			s.facts.CPUs = placement.DeviceInventory{Total: 16, Step: 3}
		}, "units needs memory 24GiB, cpus 4 " +
			"has memory from 32GiB to any in steps of 1B, cpus from 0 to any in steps of 3"},
		{"one VM fewer than the limit", func(s *scene) { s.facts.MaxVMs, s.load.VMs = 50, 49 }, ""},
		{"the limit of VMs", func(s *scene) { s.facts.MaxVMs, s.load.VMs = 50, 50 },
			"max-vms needs fewer than 50 VMs has 50"},
		{"moves in and builds add up", func(s *scene) {
			s.facts.MaxBusy, s.load.Busy, s.host.Incoming = 8, 5, 3
		}, "busy needs fewer than 8 moves, builds and copies has 8"},
		{"below the limit of moves and builds", func(s *scene) {
			s.facts.MaxBusy, s.load.Busy, s.host.Incoming = 8, 5, 2
		}, ""},
	})
}

type p = placement.Platform

var (
	newer = &placement.CPU{Arch: "x86_64", Models: []string{"Haswell", "Skylake"},
		Features: []string{"avx", "avx512", "sse"}}
	older = &placement.CPU{Arch: "x86_64", Models: []string{"Haswell"},
		Features: []string{"avx", "sse"}}
	arm = &placement.CPU{Arch: "aarch64"}
)

func TestProcessor(t *testing.T) {
	run(t, []row{
		{"an asked architecture that is not known", func(s *scene) {
			s.c.Platform = p{Arch: "x86_64"}
		}, "arch needs x86_64 has unknown"},
		{"a live move keeps the architecture", func(s *scene) {
			s.from.CPU, s.facts.CPU = newer, arm
		}, "arch needs x86_64 has aarch64"},
		{"a rebuild may change it", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.o.Move.Rebuild = newer, arm, true
		}, ""},
		{"a machine type that the host has", func(s *scene) {
			s.c.Platform, s.facts.Machines = p{Machine: "q35"}, []string{"pc", "q35"}
		}, ""},
		{"a machine type that it lacks", func(s *scene) {
			s.c.Platform, s.facts.Machines = p{Machine: "q36"}, []string{"pc", "q35"}
		}, "machine needs q36 has pc, q35"},
		{"a model that the host cannot show", func(s *scene) {
			s.c.Platform, s.facts.CPU = p{CPUModel: "Skylake"}, older
		}, "cpu-model needs Skylake has Haswell"},
		{"a model of an unknown host", func(s *scene) { s.c.Platform = p{CPUModel: "Skylake"} },
			"cpu-model needs Skylake has unknown"},
		{"a live move keeps the model of the host where the guest was started", func(s *scene) {
			s.from.CPU, s.facts.CPU = newer, older
			s.c.Platform = p{HostModel: "Skylake"}
		}, "cpu-model needs Skylake has Haswell"},
		{"a live move keeps the features of that model", func(s *scene) {
			s.c.Platform, s.facts.CPU = p{HostFeatures: []string{"sse", "avx512"}}, older
		}, "cpu-features needs avx512 has a processor without"},
		{"a start takes the model of the new host", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.o.Move.Rebuild = newer, older, true
			s.c.Platform = p{HostModel: "Skylake", HostFeatures: []string{"avx512"}}
		}, ""},
		{"a start keeps the features that the VM asks for itself", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.o.Move.Rebuild = newer, older, true
			s.c.Platform = p{HostModel: "Skylake", CPUFeatures: []string{"avx512"}}
		}, "cpu-features needs avx512 has a processor without"},
		{"a feature that is missing", func(s *scene) {
			s.c.Platform, s.facts.CPU = p{CPUFeatures: []string{"sse", "avx512"}}, older
		}, "cpu-features needs avx512 has a processor without"},
		{"features of an unknown host", func(s *scene) {
			s.c.Platform = p{CPUFeatures: []string{"sse"}}
		}, "cpu-features needs sse has unknown"},
		{"from older to newer", func(s *scene) { s.from.CPU, s.facts.CPU = older, newer }, ""},
		{"not from newer to older", func(s *scene) { s.from.CPU, s.facts.CPU = newer, older },
			"cpu-older needs the source's avx512 has an older processor"},
		{"with a model of its own the guest sees no difference", func(s *scene) {
			s.from.CPU, s.facts.CPU = newer, older
			s.c.Platform = p{CPUModel: "Haswell"}
		}, ""},
		{"another vendor", func(s *scene) {
			s.from.CPU, s.facts.CPU = &placement.CPU{Vendor: "Intel"}, &placement.CPU{Vendor: "AMD"}
			s.c.Platform = p{CPUModel: "Haswell"}
			s.facts.CPU.Models = []string{"Haswell"}
		}, "cpu-vendor needs Intel has AMD"},
		{"a vendor that is not known", func(s *scene) {
			s.from.CPU, s.facts.CPU = &placement.CPU{Vendor: "Intel"}, &placement.CPU{}
		}, ""},
		{"the processor itself, and a newer one", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.c.Platform = older, newer, p{CPUExact: true}
		}, "cpu-exact needs the source's very processor has avx512 besides"},
		{"the processor itself, and an older one", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.c.Platform = newer, older, p{CPUExact: true}
		}, "cpu-older needs the source's avx512 has an older processor\n" +
			"cpu-exact needs the source's very processor has no avx512"},
		{"the processor itself, and its like", func(s *scene) {
			same := *older
			s.from.CPU, s.facts.CPU, s.c.Platform = older, &same, p{CPUExact: true}
		}, ""},
		{"a rebuild goes to any processor", func(s *scene) {
			s.from.CPU, s.facts.CPU, s.o.Move.Rebuild = newer, older, true
		}, ""},
	})
}

func TestSoftwareAndDevices(t *testing.T) {
	run(t, []row{
		{"another kind of hypervisor", func(s *scene) {
			s.from.Hypervisor.Kind, s.facts.Hypervisor.Kind = "QEMU", "Xen"
		}, "hypervisor needs QEMU has Xen"},
		{"an asked hypervisor that is not known", func(s *scene) {
			s.c.Platform = p{Hypervisor: "QEMU"}
		}, "hypervisor needs QEMU has unknown"},
		{"the same version", func(s *scene) {
			s.from.Hypervisor = placement.Hypervisor{Kind: "QEMU", Version: 8_000_000}
			s.facts.Hypervisor = s.from.Hypervisor
		}, ""},
		{"an older version", func(s *scene) {
			s.from.Hypervisor = placement.Hypervisor{Kind: "QEMU", Version: 8_000_000}
			s.facts.Hypervisor = placement.Hypervisor{Kind: "QEMU", Version: 7_002_000}
		}, "hypervisor-version needs version 8.0.0 or newer has 7.2.0"},
		{"a version that the VM asks for", func(s *scene) {
			s.c.Platform = p{MinVersion: 7_002_001}
		}, "hypervisor-version needs version 7.2.1 or newer has unknown"},
		{"networks out of reach", func(s *scene) {
			s.c.Networks, s.facts.Networks = []string{"front", "back"}, []string{"front"}
		}, "networks needs back has front"},
		{"devices that are taken", func(s *scene) {
			s.c.Devices = []placement.DeviceAsk{{Class: "gpu", Count: 1}, {Class: "gpu", Count: 1}}
			s.facts.Devices = placement.Devices{{Class: "gpu", Count: 2}}
			s.load.Devices = placement.Devices{{Class: "gpu", Count: 1}}
		}, "devices needs 2 gpu has 1 gpu"},
		{"devices that are not known", func(s *scene) {
			s.host.Facts, s.c.Devices = nil, []placement.DeviceAsk{{Class: "gpu", Count: 1}}
		}, "devices needs 1 gpu has 0 gpu"},
		{"a device that does not move", func(s *scene) {
			s.c.Devices = []placement.DeviceAsk{{Class: "gpu", Count: 1, Stays: true}}
			s.facts.Devices = placement.Devices{{Class: "gpu", Count: 2}}
		}, "live-devices needs devices that move while the VM runs has gpu"},
		{"a rebuild leaves it behind", func(s *scene) {
			s.c.Devices = []placement.DeviceAsk{{Class: "gpu", Count: 1, Stays: true}}
			s.facts.Devices = placement.Devices{{Class: "gpu", Count: 2}}
			s.o.Move.Rebuild = true
		}, ""},
	})
}

func TestPolicies(t *testing.T) {
	run(t, []row{
		{"one of the zones", func(s *scene) {
			s.c.Zones, s.facts.Zone = []string{"a", "b"}, "b"
		}, ""},
		{"none of the zones", func(s *scene) { s.c.Zones, s.facts.Zone = []string{"a", "b"}, "c" },
			"zone needs a or b has c"},
		{"a zone of an unknown host", func(s *scene) {
			s.c.Zones, s.host.Facts = []string{"a"}, nil
		}, "zone needs a has no zone"},
		{"what the flavor asks of aggregates", func(s *scene) {
			s.c.Specs = map[string]string{"gen": "= 3", "ssd": "true", "gpu": "<in> a100"}
			s.facts.Aggregates = []*placement.Aggregate{
				placement.NewAggregate("x", map[string]string{"gen": "2", "ssd": "true"}),
				placement.NewAggregate("y", map[string]string{"gen": "1, 2"})}
		}, "aggregates needs gen = 3, gpu <in> a100 has gen 1|2, no gpu"},
		{"specs are also read without a survey", func(s *scene) {
			s.c.Specs, s.o.Move = map[string]string{"gen": "= 3"}, nil
		}, "aggregates needs gen = 3 has no gen"},
		{"a host of other tenants", func(s *scene) {
			s.c.Tenant, s.facts.Aggregates = "mill", tenants("shop,bank")
		}, "tenants needs a host for mill has only for bank, shop"},
		{"a host of the tenant", func(s *scene) {
			s.c.Tenant, s.facts.Aggregates = "shop", tenants("shop,bank")
		}, ""},
		{"with a VM that is there", func(s *scene) {
			s.c.With = []hypervisor.VMID{"x", "y"}
			s.load.Held = map[hypervisor.VMID]placement.Held{"y": {}}
		}, ""},
		{"with VMs that are not", func(s *scene) { s.c.With = []hypervisor.VMID{"x", "y"} },
			"same-host needs a host with x or y has none of them"},
		{"without a VM that is there", func(s *scene) {
			s.c.Without = []hypervisor.VMID{"x", "y"}
			s.load.Held = map[hypervisor.VMID]placement.Held{"y": {}}
		}, "different-host needs a host without x, y has y"},
		{"without a VM, and the VMs there are not known", func(s *scene) {
			s.c.Without, s.host.Load = []hypervisor.VMID{"x"}, nil
		}, "different-host needs a host without x has unknown VMs"},
	})
}

func TestGroups(t *testing.T) {
	members := func(s *scene, all, here int) {
		s.o.Move.Members, s.host.Groups = map[string]int{"db": all}, map[string]int{"db": here}
	}
	inRack := func(s *scene, n int) {
		s.o.Move.Domains = map[placement.Domain]int{{Group: "db", Label: "rack", Value: "r1"}: n}
	}
	run(t, []row{
		{"to be with a group that has no other VM", func(s *scene) {
			s.c.Groups = group(placement.Affinity, 0, "")
		}, ""},
		{"to be with a group that is there", func(s *scene) {
			s.c.Groups = group(placement.Affinity, 0, "")
			members(s, 3, 1)
		}, ""},
		{"to be with a group that is elsewhere", func(s *scene) {
			s.c.Groups = group(placement.Affinity, 0, "")
			members(s, 3, 0)
		}, "group-affinity needs with the VMs of db has none of them"},
		{"to be with a group that is in another rack", func(s *scene) {
			s.c.Groups = group(placement.Affinity, 0, "rack")
			members(s, 3, 0)
		}, "group-affinity needs with the VMs of db has none of them, and no drain moves a group from " +
			"one rack to another"},
		{"to be with a group in its rack", func(s *scene) {
			s.c.Groups = group(placement.Affinity, 0, "rack")
			members(s, 3, 0)
			inRack(s, 1)
		}, ""},
		{"apart, and no VM is there", func(s *scene) {
			s.c.Groups = group(placement.AntiAffinity, 0, "")
			members(s, 3, 0)
		}, ""},
		{"apart, and one is there", func(s *scene) {
			s.c.Groups = group(placement.AntiAffinity, 0, "")
			members(s, 3, 1)
		}, "group-anti-affinity needs fewer than 1 of db has 1"},
		{"up to two together", func(s *scene) {
			s.c.Groups = group(placement.AntiAffinity, 2, "")
			members(s, 3, 1)
		}, ""},
		{"the group contains the VM itself: its own host is no crowd", func(s *scene) {
			s.c.Groups = group(placement.AntiAffinity, 0, "")
			s.o.Source = "n2"
			members(s, 0, 1)
		}, "source needs another host has the source n2"},
		{"soft rules refuse no VM", func(s *scene) {
			s.c.Groups = append(group(placement.SoftAffinity, 0, ""),
				group(placement.SoftAntiAffinity, 0, "rack")...)
			members(s, 3, 0)
			inRack(s, 3)
		}, ""},
		{"one in the rack already", func(s *scene) {
			s.c.Groups = group(placement.AntiAffinity, 0, "rack")
			inRack(s, 1)
		}, "failure-domain needs fewer than 1 of db in one rack has 1 in rack r1"},
		{"a host without a rack", func(s *scene) {
			s.c.Groups, s.host.Labels = group(placement.AntiAffinity, 0, "rack"), nil
		}, "failure-domain needs fewer than 1 of db in one rack has no rack"},
	})
}

func TestLayout(t *testing.T) {
	run(t, []row{
		{"a layout, and no known cells", func(s *scene) { s.c.Topology = &placement.TopologyRequest{} },
			"numa needs 4 CPUs and 24GiB in one cell has no known cells"},
		{"two threads are pinned on the only cell", func(s *scene) {
			s.c.Topology = &placement.TopologyRequest{Dedicated: true, Threads: placement.Require}
			s.facts.Cells = []placement.Cell{{ID: 3, Memory: 64 * gib,
				Cores: []placement.CPUSet{placement.CPUSetOf(0, 1), placement.CPUSetOf(2, 3)}}}
			s.load.Cells = []placement.CellUse{{Pinned: placement.CPUSetOf(0)}}
		}, "numa needs 4 CPUs and 24GiB in one cell, dedicated (require) " +
			"has cell 3: 2 CPUs and 64GiB"},
		{"pages in two cells are enough in all, not in one", func(s *scene) {
			s.c.Topology = &placement.TopologyRequest{PageSize: gib}
			pages := []placement.Pool{{Size: gib, Pages: 12}}
			cores := []placement.CPUSet{placement.CPUSetOf(0, 1, 2, 3)}
			s.facts.Cells = []placement.Cell{{Cores: cores, Pages: pages},
				{ID: 1, Cores: cores, Pages: pages}}
		}, "numa needs 4 CPUs and 24GiB in one cell, in 1GiB pages " +
			"has cell 0: 4 CPUs and 12GiB; cell 1: 4 CPUs and 12GiB"},
		{"no pages of the size", func(s *scene) {
			s.c.Topology = &placement.TopologyRequest{PageSize: gib}
			s.facts.Cells = []placement.Cell{{Cores: []placement.CPUSet{placement.CPUSetOf(0, 1, 2, 3)},
				Memory: 64 * gib}}
		}, "hugepages needs 24GiB in pages of 1GiB has 0 pages\n" +
			"numa needs 4 CPUs and 24GiB in one cell, in 1GiB pages has cell 0: 4 CPUs and 0B"},
	})
}

// TestEveryFilterHasARow runs last of the tables: a filter that no row has seen
// refuse is not tested. The basic ones are tested with package placement.
func TestEveryFilterHasARow(t *testing.T) {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			t.Skip("with -run or -skip not all tables run")
		}
	}
	for _, name := range placement.FilterNames()[len(placement.Basic()):] {
		if !told[name] {
			t.Errorf("no row makes %q refuse", name)
		}
	}
}

func TestSelect(t *testing.T) {
	got, err := placement.SelectFilters([]string{"zone", "memory"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got {
		if f.Class != placement.Physics {
			names = append(names, f.Name)
		}
	}
	if diff := cmp.Diff([]string{"memory", "zone"}, names); diff != "" {
		t.Errorf("selected (-want +got):\n%s", diff)
	}
	for _, f := range placement.HardFilters() {
		if !slices.ContainsFunc(got, func(g placement.Filter) bool { return g.Name == f.Name }) {
			t.Errorf("%q of physics was switched off", f.Name)
		}
	}
	_, err = placement.SelectFilters([]string{"zone", "Zone"})
	if err == nil || !strings.Contains(err.Error(), `"Zone"`) ||
		!strings.Contains(err.Error(), strings.Join(placement.FilterNames(), ", ")) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestForcedMemoryIsStrict: Nova refuses a forced move that would leave nothing.
func TestForcedMemoryIsStrict(t *testing.T) {
	forced := placement.ForcedMemory()
	for _, r := range []struct {
		name     string
		change   func(*scene)
		refused  bool
		wantHave string
	}{
		{"exactly enough is too little", func(*scene) {}, true, "24GiB"},
		{"one byte more is enough", func(s *scene) { s.host.UsedMemory-- }, false, ""},
		{"reserved memory is there", func(s *scene) {
			s.facts.Memory = placement.DeviceInventory{Total: int64(80 * gib), Reserved: int64(16 * gib)}
		}, false, ""},
		{"the ratio counts", func(s *scene) {
			s.facts.Memory = placement.DeviceInventory{Total: int64(32 * gib), Ratio: 1.5}
		}, true, "8GiB"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newScene()
			r.change(s)
			got := forced.Refuses(s.vm, s.host, s.o)
			if got != r.refused {
				t.Fatalf("refused: %v", got)
			}
			if _, have := forced.Explain(s.vm, s.host, s.o); got && have != r.wantHave {
				t.Errorf("has %q, want %q", have, r.wantHave)
			}
		})
	}
}

// TestTheBasicConditionsSuffice: as long as no VM asks for more, and no host says more, than the basic conditions look
// at, the others refuse nothing. The controller looks at the basic ones alone then.
func TestTheBasicConditionsSuffice(t *testing.T) {
	if !placement.BasicSuffices() {
		t.Fatal("a condition is not in dormant: the controller looks at all conditions at all times, which is right and slow")
	}
	plain, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		vm, hosts := chooseDrawVM(t), chooseDrawHosts(t)
		one := func(of any, what string) { // keeps one field, which says more or not
			v := reflect.ValueOf(of).Elem()
			i := rapid.IntRange(0, v.NumField()-1).Draw(t, what)
			kept := reflect.ValueOf(v.Field(i).Interface())
			v.SetZero()
			v.Field(i).Set(kept)
		}
		one(&vm.Constraints, "asks")
		if vm.Disk = 0; placement.AsksMore(&vm.Constraints) {
			return
		}
		for i := range hosts {
			if hosts[i].Load = nil; hosts[i].Facts != nil {
				one(hosts[i].Facts, "says")
			}
			if placement.SaysMore(&hosts[i]) {
				hosts[i].Facts = &placement.Facts{}
			}
		}
		for i := range hosts {
			for _, source := range []hypervisor.HostName{"", hosts[0].Name} {
				plain++
				o := placement.Options{Source: source, Move: placement.CompareHosts(vm, source, hosts)}
				basic := placement.FitsAll(placement.Basic(), vm, &hosts[i], o)
				if fits := placement.Fits(vm, &hosts[i], o); fits != basic {
					t.Fatalf("%+v on %+v: %v", vm, hosts[i], placement.Check(vm, &hosts[i], o))
				} else if !fits {
					refused++
				}
			}
		}
	})
	if plain < 100 || refused == 0 || refused == plain {
		t.Errorf("of %d questions %d were refused", plain, refused)
	}
}
