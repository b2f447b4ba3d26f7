package inventory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// everything has every field that godwit's own YAML has for targets.
const everything = `aggregates: {fast: {disks: "ssd, nvme", filter_tenant_id: shop}}
groups: {db: {policy: anti-affinity, max: 2, domain: rack}}
hosts:
- name: "n[1-2]"
  memory: 68GiB
  cpus: 18
  link: 25Gbit/s
  labels: {zone: z}
  disk: 1TiB
  reserved: {memory: 4GiB, cpus: 2, disk: 24GiB}
  ratios: {memory: 1.5, cpus: 4, disk: 2}
  perVM:
    memory: {min: 1GiB, max: 32GiB, step: 512MiB}
    cpus: {min: 1, max: 8, step: 1}
    disk: {min: 1GiB, max: 100GiB, step: 1GiB}
  maxVMs: 9
  maxBusy: 3
  disabled: true
  maintenance: true
  zone: north
  aggregates: fast
  arch: x86_64
  cpuModels: Haswell
  cpuFeatures: [vmx, aes]
  machines: [pc, q35]
  hypervisor: QEMU 7.2.22
  abilities: [post-copy, copy-storage]
  cells:
  - {cpus: 0-3, threads: 2, memory: 32GiB, pages: {1GiB: 2, 2MiB: 100}}
  - {cores: ["4,6", "5,7"], memory: 30GiB}
  devices: {tpu: 0, gpu: 2}
  networks: [front, back]
  rack: r1
  uplink: 40Gbit/s
vms:
- {name: other, host: n1, memory: 1GiB}
- name: db
  host: n2
  memory: 8GiB
  cpus: 4
  overhead: 300MiB
  balloon: 1GiB
  zones: [north, south]
  specs: {disks: nvme}
  groups: db
  with: other
  without: [far/away]
  platform: {arch: x86_64, cpuFeatures: aes, hypervisor: QEMU 7.2}
  topology: {cells: 2, threads: isolate}
  devices: [{class: gpu}, {class: nic, count: 2, stays: true}]
  networks: front
  tenant: shop
  hardware:
    machine: q35
    cpuModel: Haswell
    hugepages: 1GiB
    pins: ["4", "5", "6", "7"]
    firmware: /boot/efi.fd
    disks:
    - {name: root, path: /shared/root, format: qcow2, readOnly: true}
    - {name: a, size: 4GiB}
    - {name: b, size: 6GiB}
    nics: [{mac: "52:54:00:12:34:56", tap: tap0}]
- {name: away, namespace: far, memory: 1GiB}
`

func TestReadFleetFacts(t *testing.T) {
	const gib = int64(hypervisor.GiB)
	f, err := inventory.ReadFleet("f", strings.NewReader(everything))
	if err != nil {
		t.Fatal(err)
	}
	h := f.Hosts[0]
	if h.Memory != 96*hypervisor.GiB || h.CPUs != 64 {
		t.Errorf("VMs may use %v and %d CPUs, want (68-4)*1.5 GiB and (18-2)*4", h.Memory, h.CPUs)
	}
	if diff := cmp.Diff(placement.Labels{"zone": "z", "rack": "r1"}, h.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want := &placement.Facts{
		Memory: placement.DeviceInventory{Total: 68 * gib, Reserved: 4 * gib, Ratio: 1.5, Min: gib,
			Max: 32 * gib, Step: gib / 2},
		CPUs: placement.DeviceInventory{Total: 18, Reserved: 2, Ratio: 4, Min: 1, Max: 8, Step: 1},
		Disk: placement.DeviceInventory{Total: 1024 * gib, Reserved: 24 * gib, Ratio: 2, Min: gib,
			Max: 100 * gib, Step: gib},
		MaxVMs: 9, MaxBusy: 3, Disabled: true, Maintenance: true, Zone: "north",
		Aggregates: []*placement.Aggregate{placement.NewAggregate("fast", map[string]string{
			"disks": "ssd, nvme", "filter_tenant_id": "shop"})},
		Machines: []string{"pc", "q35"},
		CPU: &placement.CPU{Arch: "x86_64", Models: []string{"Haswell"},
			Features: []string{"aes", "vmx"}},
		Hypervisor: placement.Hypervisor{Kind: "QEMU", Version: 7002022},
		Abilities:  hypervisor.CanPostCopy | hypervisor.CanCopyStorage,
		Cells: []placement.Cell{
			{Cores: []placement.CPUSet{placement.CPUSetOf(0, 1), placement.CPUSetOf(2, 3)},
				Memory: 32 * hypervisor.GiB, Pages: []placement.Pool{
					{Size: 2 * hypervisor.MiB, Pages: 100}, {Size: hypervisor.GiB, Pages: 2}}},
			{ID: 1, Cores: []placement.CPUSet{placement.CPUSetOf(4, 6), placement.CPUSetOf(5, 7)},
				Memory: 30 * hypervisor.GiB}},
		Devices:  placement.Devices{{Class: "gpu", Count: 2}, {Class: "tpu"}},
		Networks: []string{"front", "back"},
		Link:     25 * hypervisor.Gbit, Rack: "r1", Uplink: 40 * hypervisor.Gbit,
	}
	if diff := cmp.Diff(want, h.Facts, cmp.AllowUnexported(placement.Value{})); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if h.Facts != f.Hosts[1].Facts {
		t.Error("hosts of one range do not share what is known of them")
	}
}

// A rack's up-link is said once, for all of its hosts.
func TestReadFleetRacksAndNetwork(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(`
network: {speed: 100Gbit/s}
racks: {a: {uplink: 40Gbit/s}, b: {}, c: {}}
hosts:
- {name: n1, memory: 1GiB, cpus: 1, rack: a}
- {name: n2, memory: 1GiB, cpus: 1, rack: a, uplink: 40Gbit/s}
- {name: n3, memory: 1GiB, cpus: 1, rack: b}
- {name: n4, memory: 1GiB, cpus: 1, rack: c, uplink: 10Gbit/s}
- {name: n5, memory: 1GiB, cpus: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	const gbit = hypervisor.Gbit
	want := map[hypervisor.HostName]hypervisor.Bandwidth{"n1": 40 * gbit, "n2": 40 * gbit,
		"n3": 0, "n4": 10 * gbit, "n5": 0}
	got := map[hypervisor.HostName]hypervisor.Bandwidth{}
	for _, h := range f.Hosts {
		got[h.Name] = h.Facts.Uplink
	}
	if diff := cmp.Diff(want, got); diff != "" || f.Network != 100*gbit {
		t.Errorf("network %v, up-links (-want +got):\n%s", f.Network, diff)
	}
}

func TestReadFleetDemands(t *testing.T) {
	const gib = hypervisor.GiB
	f, err := inventory.ReadFleet("f", strings.NewReader(everything))
	if err != nil {
		t.Fatal(err)
	}
	v := f.VMs[0]
	half := placement.Part{CPUs: 2, Memory: 4 * gib}
	want := placement.Constraints{
		Zones: []string{"north", "south"}, Specs: map[string]string{"disks": "nvme"},
		Groups: []placement.GroupRule{{Group: "db", Policy: placement.AntiAffinity, Max: 2,
			Domain: "rack"}},
		With:    []hypervisor.VMID{"default/other"},
		Without: []hypervisor.VMID{"far/away"},
		Platform: placement.Platform{Arch: "x86_64", Machine: "q35", CPUModel: "Haswell",
			CPUFeatures: []string{"aes"}, Hypervisor: "QEMU", MinVersion: 7002000},
		Topology: &placement.TopologyRequest{Parts: []placement.Part{half, half}, Dedicated: true,
			Threads: placement.Isolate, PageSize: gib},
		Devices: []placement.DeviceAsk{{Class: "gpu", Count: 1},
			{Class: "nic", Count: 2, Stays: true}},
		Networks: []string{"front"}, Tenant: "shop",
	}
	if diff := cmp.Diff(want, v.Placement); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	hardware := &hypervisor.Hardware{Machine: "q35", CPUModel: "Haswell", Hugepages: gib,
		Pins: [][]int{{4}, {5}, {6}, {7}}, Firmware: "/boot/efi.fd",
		Disks: []hypervisor.Disk{{Name: "root", Path: "/shared/root", Format: "qcow2",
			ReadOnly: true}, {Name: "a", Size: 4 * gib}, {Name: "b", Size: 6 * gib}},
		NICs: []hypervisor.NIC{{MAC: "52:54:00:12:34:56", Tap: "tap0"}}}
	if diff := cmp.Diff(hardware, v.Hardware); diff != "" {
		t.Errorf("hardware (-want +got):\n%s", diff)
	}
	if v.Overhead != 300*hypervisor.MiB || v.Balloon != gib || v.Disk != 10*gib {
		t.Errorf("overhead %v, balloon %v, local disks %v", v.Overhead, v.Balloon, v.Disk)
	}
	if other := f.VMs[1]; other.Hardware != nil || other.Disk != 0 {
		t.Errorf("a VM of which nothing is said has %+v", other.Hardware)
	}
}

// TestHardwareAsksOnlyForWhatItNeeds: shared disks and shared CPUs are no demands,
// nor is an empty description.
func TestHardwareAsksOnlyForWhatItNeeds(t *testing.T) {
	for _, hardware := range []string{"{}", `{pins: ["0-3", "0-3"]}`, `{pins: ["3", "3"]}`,
		"{disks: [{name: a, path: /a, size: 4GiB}]}", "{nics: [{tap: a}]}"} {
		f, err := inventory.ReadFleet("f", strings.NewReader(oneHost+
			"vms:\n- {name: a, memory: 1GiB, cpus: 2, hardware: "+hardware+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", hardware, err)
			continue
		}
		v := f.VMs[0]
		if diff := cmp.Diff(placement.Constraints{}, v.Placement); diff != "" || v.Disk != 0 {
			t.Errorf("%s asks for %v of disk and (-want +got):\n%s", hardware, v.Disk, diff)
		}
		if v.Hardware == nil {
			t.Errorf("%s is not kept", hardware)
		}
	}
}

func TestReadFleetRefusesFacts(t *testing.T) {
	const host = "hosts:\n- {name: n1, memory: 8GiB, cpus: 4, "
	var tests []refusal
	for _, row := range [][2]string{
		{"colour: red", `colour: unknown field "colour"`},
		{"disk: 5", `disk: "5" has no unit of memory`},
		{"reserved: {memory: 8GiB}", "reserved.memory: nothing is left for VMs"},
		{"reserved: {cpus: 9}", "reserved.cpus: nothing is left for VMs"},
		{"reserved: {disk: 1GiB}", "disk: it is missing, although a part is reserved"},
		{"reserved: {cpus: -1}", "reserved.cpus: needs 0 to 1000000, has -1"},
		{"ratios: {cpus: 0}", "ratios.cpus: needs more than 0 and at most 1000, has 0"},
		{"ratios: {memory: .nan}", "ratios.memory: needs more than 0"},
		{"ratios: {memory: 1e9}", "ratios.memory: needs more than 0"},
		{"perVM: {cpus: {min: 4, max: 2}}", "perVM.cpus.max: it is less than min"},
		{"perVM: {memory: {step: x}}", `perVM.memory.step: "x" has no unit`},
		{"maxVMs: -2", "maxVMs: needs 0 to 1000000, has -2"},
		{"maxBusy: many", "maxBusy: needs a whole number"},
		{"zone: \"a b\"", `zone: "a b" has a space in it`},
		{"zone: \"a\\x1b\"", "is no text of at most 253 printable characters"},
		{"aggregates: [fast, slow]", `aggregates[0]: there is no aggregate "fast"; there is none`},
		{"machines: [pc, pc]", `machines[1]: "pc" is there twice`},
		{"cpuFeatures: [\"\"]", "cpuFeatures[0]: a name is missing"},
		{"hypervisor: QEMU seven", `hypervisor: "QEMU seven" is no hypervisor; write QEMU`},
		{"hypervisor: QEMU 7.2.1.0", "is no hypervisor"},
		{"hypervisor: QEMU 7.1000", "is no hypervisor"},
		{"abilities: [fly]", `abilities[0]: unknown ability "fly"; use attach-disk, auto`},
		{"cells: [{memory: 1GiB}]", "cells[0]: give cpus, such as 0-31, or cores"},
		{"cells: [{cpus: 0-3, cores: \"4\"}]", "cells[0]: give cpus"},
		{"cells: [{cpus: 0-x}]", `cells[0].cpus: "0-x" in the set of CPUs`},
		{"cells: [{cores: [\"\"]}]", "cells[0].cores[0]: a CPU is missing"},
		{"cells: [{cpus: 0-2, threads: 2}]", "cells[0].threads: 3 CPUs cannot be divided"},
		{"cells: [{cpus: 0-3}, {cores: \"3\"}]", "cells[1]: CPU 3 is in two cores"},
		{"cells: [{cpus: \"0\", pages: {1: 1}}]", `cells[0].pages: "1" has no unit`},
		{"cells: [{cpus: \"0\", pages: {1GiB: -1}}]", "cells[0].pages: 1GiB needs a size"},
		{"cells: [{cpus: \"0\", pages: {1GiB: 1, 1024MiB: 1}}]",
			"cells[0].pages: 1GiB is there twice"},
		{"devices: {gpu: -1}", "devices.gpu: needs 0 to"},
		{"uplink: 0Gbit/s", "uplink: needs more than 0"},
	} {
		field, want := row[0], row[1]
		tests = append(tests, refusal{field, host + field + "}\n", "f:2: hosts[0]." + want})
	}
	for i := range tests {
		if strings.HasPrefix(tests[i].want, "f:2: hosts[0].is no") {
			tests[i].want = strings.TrimPrefix(tests[i].want, "f:2: hosts[0].")
		}
	}
	checkRefusals(t, append(tests,
		refusal{"a policy that is none", "groups: {db: {policy: apart}}\n",
			`f:1: groups.db.policy: unknown policy "apart"; use affinity, anti-affinity`},
		refusal{"a limit of togetherness", "groups: {db: {policy: affinity, max: 2}}\n",
			"f:1: groups.db.max: only anti-affinity has a limit"},
		refusal{"an aggregate without a name", "aggregates: {\"\": {}}\n",
			"f:1: aggregates: a name is missing"},
	))
}

func TestReadFleetRefusesDemands(t *testing.T) {
	const vm = "groups: {db: {policy: affinity}}\n" + oneHost +
		"vms:\n- {name: a, host: n1, memory: 4GiB, cpus: 4, "
	var tests []refusal
	for _, row := range [][2]string{
		{"balloon: 5GiB", "balloon: 5GiB is more than the memory, 4GiB"},
		{"overhead: 8191.999999PiB", "overhead: with the memory it is 8 EiB or more"},
		{"groups: [web]", `groups[0]: there is no group "web"; there is db`},
		{"devices: [{count: 1}]", "devices[0].class: a name is missing"},
		{"devices: [{class: a, count: 0}]", "devices[0].count: needs 1 or more"},
		{"devices: [{class: a, count: -1}]", "devices[0].count: needs 0 to"},
		{"platform: {cpu: x}", `platform.cpu: unknown field "cpu"`},
		{"platform: {hypervisor: \"\\u202e\"}", "platform.hypervisor: "},
		{"topology: {cells: 3}", "topology.cells: 4 CPUs and 4GiB cannot be divided into 3"},
		{"topology: {cells: -1}", "topology: a VM has at most 64 cells"},
		{"topology: {threads: many}", `topology.threads: unknown policy "many"; use prefer`},
		{"topology: {pageSize: 3GiB}", "topology: the parts must add up to 4 CPUs and 4GiB"},
		{"topology: {cells: 1, parts: [{cpus: 4, memory: 4GiB}]}",
			"topology.cells: parts say it, too"},
		{"topology: {parts: [{cpus: 2, memory: 4GiB}]}", "topology: the parts must add up to"},
		{"hardware: {machine: q35}, platform: {machine: pc}",
			`hardware.machine: platform says "pc"`},
		{"hardware: {hugepages: 3GiB}", "hardware: the parts must add up"},
		{"hardware: {hugepages: 1GiB}, topology: {pageSize: 2MiB}",
			"hardware.hugepages: topology says 2MiB"},
		{"hardware: {pins: [\"1\"]}", "hardware.pins: needs a set for each of 4 CPUs, has 1"},
		{"hardware: {disks: [{name: A, path: x}]}",
			`hardware.disks[0].name: "A" is no name of a disk`},
		{"hardware: {disks: [{name: a}]}", "hardware.disks[0].size: a local disk needs a size"},
		{"hardware: {disks: [{name: a, path: x, format: vmdk}]}",
			"hardware.disks[0].format: unknown format"},
		{"hardware: {disks: [{name: a, path: x}, {name: a, path: y}]}",
			"hardware.disks[1].name: there is already"},
		{"hardware: {disks: [{name: a, size: 8191PiB}, {name: b, size: 1PiB}]}",
			"hardware.disks[1].size: together they are 8 EiB or more"},
	} {
		field, want := row[0], row[1]
		tests = append(tests, refusal{field, vm + field + "}\n", "f:5: vms[0]." + want})
	}
	checkRefusals(t, append(tests,
		refusal{"company that is not there", vm + "with: ghost}\n",
			`f:5: vm default/a with or without: there is no VM "default/ghost"`},
		refusal{"someone to avoid who is not there", vm + "namespace: prod, without: ghost}\n",
			`f:5: vm prod/a with or without: there is no VM "prod/ghost"`},
	))
}

// TestManyCPUsAreRefused: a small file cannot ask for gigabytes of them.
func TestManyCPUsAreRefused(t *testing.T) {
	for what, text := range map[string]string{
		"cores": "hosts:\n" + strings.Repeat("- {name: a, memory: 1GiB, cpus: 1, cells: "+
			"[{cpus: 0-8191}]}\n", 3000),
		"pins": "vms:\n- {name: a, memory: 1GiB, hardware: {pins: [" +
			strings.Repeat("0-8191, ", 30_000) + "]}}\n",
	} {
		began := time.Now()
		_, err := inventory.ReadFleet("f", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), "this file names too many CPUs") {
			t.Errorf("%s: %.300v", what, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
	}
}
