package importer_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// rich is a node that says all of itself that Kubernetes and KubeVirt let it.
const rich = `apiVersion: v1
kind: Node
metadata:
  name: n1
  labels:
    kubevirt.io/schedulable: "true"
    kubevirt.io/cpumanager: "true"
    kubernetes.io/arch: amd64
    topology.kubernetes.io/zone: north
    cpu-model.node.kubevirt.io/Haswell: "true"
    cpu-model.node.kubevirt.io/Penryn: "false"
    cpu-model-migration.node.kubevirt.io/Haswell: "true"
    cpu-model-migration.node.kubevirt.io/Icelake-Server: "true"
    cpu-feature.node.kubevirt.io/vmx: "true"
    cpu-feature.node.kubevirt.io/aes: "true"
    host-model-cpu.node.kubevirt.io/Icelake-Server: "true"
    host-model-required-features.node.kubevirt.io/ibpb: "true"
    machine-type.node.kubevirt.io/pc-q35-rhel9.4.0: "true"
status:
  allocatable:
    cpu: 2500m
    memory: 16Gi
    hugepages-1Gi: 4Gi
    hugepages-2Mi: "0"
    ephemeral-storage: 100Gi
    pods: "250"
    devices.kubevirt.io/kvm: 1k
    nvidia.com/A100: "2"
    intel.com/sgx: "9000000000000"
  capacity: {cpu: "4", memory: 24Gi}
  conditions: [{type: Ready, status: "True"}]
---
`

func TestNodesSayWhatTheyOffer(t *testing.T) {
	fleet, err := kubevirtRead(rich)
	if err != nil {
		t.Fatal(err)
	}
	h := fleet.Hosts[0]
	if h.Memory != 20*hypervisor.GiB || len(fleet.Warnings) > 0 {
		t.Errorf("it has %v of memory, want 16GiB and 4GiB of pages; warnings %v", h.Memory,
			fleet.Warnings)
	}
	want := &placement.Facts{
		Memory: placement.DeviceInventory{Total: 24 << 30, Reserved: 4 << 30},
		MaxVMs: 250,
		Zone:   "north", Machines: []string{"pc-q35-rhel9.4.0"},
		CPU: &placement.CPU{Arch: "x86_64", Models: []string{"Haswell", "Icelake-Server"},
			Features: []string{"aes", "vmx"}},
		Cells: []placement.Cell{{Cores: []placement.CPUSet{placement.CPUSetOf(0), placement.CPUSetOf(1)},
			Memory: 16 * hypervisor.GiB,
			Pages:  []placement.Pool{{Size: hypervisor.GiB, Pages: 4}}}},
		Devices: placement.Devices{{Class: "intel.com/sgx", Count: 1 << 30},
			{Class: "nvidia.com/A100", Count: 2}},
		Link: inventory.DefaultLink,
	}
	if diff := gocmp.Diff(want, h.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// demanding prints a VM on n1 with this spec and these lines of its status.
func demanding(spec, status string) string {
	return fmt.Sprintf(`apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: prod, name: db}
spec: %s
status: {nodeName: n1, %s conditions: [{type: LiveMigratable, status: "True"}]}
`, spec, status)
}

// asking is a VM and what it asks for.
type asking struct {
	name, spec, status string
	want               placement.Constraints
	warns              string // in the only warning; "" is none
}

func TestVMsAskForWhatTheirPodsAskFor(t *testing.T) {
	for _, tt := range append(plainAskings(), labelAskings()...) {
		t.Run(tt.name, func(t *testing.T) {
			fleet, err := kubevirtRead(rich + demanding(tt.spec, tt.status))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tt.want, fleet.VMs[0].Placement); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
			text := fmt.Sprint(fleet.Warnings)
			if got := len(fleet.Warnings); got > 1 || (got == 1) != (tt.warns != "") ||
				!strings.Contains(text, cmp.Or(tt.warns, "[]")) {
				t.Errorf("warnings %s, want %q", text, tt.warns)
			}
		})
	}
}

var haswell = placement.Platform{CPUModel: "Haswell"}

func inDomain(text string) string {
	return "{domain: {devices: {}, memory: {guest: 2Gi}, cpu: {model: Haswell}, " + text + "}}"
}

func plainAskings() []asking {
	type c = placement.Constraints
	return []asking{
		{"nothing: its host's model and what that stands for",
			"{domain: {devices: {}, memory: {guest: 2Gi}}}", "",
			c{Platform: placement.Platform{HostModel: "Icelake-Server",
				HostFeatures: []string{"ibpb"}}}, ""},
		{"its host's processor", "{domain: {devices: {}, memory: {guest: 2Gi}, cpu: " +
			"{model: host-passthrough}}}", "", c{Platform: placement.Platform{CPUExact: true}}, ""},
		{"a model and features", "{architecture: amd64, domain: {devices: {}, memory: " +
			"{guest: 2Gi}, cpu: {model: Haswell, features: [{name: aes}, {name: vmx, policy: " +
			"require}, {name: ibrs, policy: disable}]}}}", "",
			c{Platform: placement.Platform{Arch: "x86_64", CPUModel: "Haswell",
				CPUFeatures: []string{"aes", "vmx"}}}, ""},
		{"a machine", inDomain("machine: {type: pc-q35-rhel9.4.0}"), "",
			c{Platform: placement.Platform{CPUModel: "Haswell", Machine: "pc-q35-rhel9.4.0"}}, ""},
		{"devices", "{domain: {memory: {guest: 2Gi}, cpu: {model: Haswell}, devices: {gpus: " +
			"[{name: a, deviceName: nvidia.com/A100}, {name: b, deviceName: nvidia.com/A100}], " +
			"hostDevices: [{name: c, deviceName: nic}]}}}", "",
			c{Platform: haswell, Devices: []placement.DeviceAsk{
				{Class: "nvidia.com/A100", Count: 2}, {Class: "nic", Count: 1}}}, ""},
		{"a device that is claimed", "{domain: {memory: {guest: 2Gi}, cpu: {model: Haswell}, " +
			"devices: {gpus: [{name: a, claimName: x}]}}}", "", c{Platform: haswell},
			"spec.domain.devices: devices that are claimed are not looked at"},
		{"a network", "{networks: [{name: a, pod: {}}, {name: b, multus: {networkName: x}}], " +
			"domain: {devices: {}, memory: {guest: 2Gi}, cpu: {model: Haswell}}}", "",
			c{Platform: haswell}, "spec.networks[1].multus: which nodes reach a network"},
		{"pages", "{domain: {devices: {}, cpu: {model: Haswell}, memory: {guest: 2Gi, hugepages: " +
			"{pageSize: 1Gi}}}}", "", c{Platform: haswell,
			Topology: &placement.TopologyRequest{PageSize: hypervisor.GiB}}, "counted with its huge pages"},
		{"CPUs of its own", "{nodeSelector: {a: b}, domain: {devices: {}, memory: {guest: 2Gi}, " +
			"cpu: {model: Haswell, cores: 2, dedicatedCpuPlacement: true}}}", "",
			c{Platform: haswell, Topology: &placement.TopologyRequest{Dedicated: true},
				Selector: placement.Labels{"a": "b", "kubevirt.io/cpumanager": "true"}},
			"dedicated CPUs are kept apart from each other"},
	}
}

func labelAskings() []asking {
	type c = placement.Constraints
	label := func(names ...string) placement.Labels {
		all := placement.Labels{}
		for _, name := range names {
			all[name] = "true"
		}
		return all
	}
	return []asking{
		{"what Windows likes", inDomain("features: {hyperv: {synic: {}, vpindex: {enabled: " +
			"false}, synictimer: {enabled: true}, tlbflush: {}, evmcs: {}}}"),
			"topologyHints: {tscFrequency: 2600000000},", c{Platform: haswell,
				Selector: label("hyperv.node.kubevirt.io/synic",
					"hyperv.node.kubevirt.io/synictimer", "hyperv.node.kubevirt.io/tlbflush",
					"cpu-vendor.node.kubevirt.io/Intel",
					"scheduling.node.kubevirt.io/tsc-frequency-2600000000")}, ""},
		{"memory that is encrypted", inDomain("launchSecurity: {sev: {}}"), "",
			c{Platform: haswell, Selector: label("kubevirt.io/sev")}, ""},
		{"a state that is encrypted", inDomain("launchSecurity: {sev: {policy: " +
			"{encryptedState: true}}}"), "",
			c{Platform: haswell, Selector: label("kubevirt.io/sev-es")}, ""},
		{"encryption of another kind", inDomain("launchSecurity: {}"), "", c{Platform: haswell},
			"spec.domain.launchSecurity: which nodes offer it is not looked at"},
	}
}

// TestOlderKubeVirtsAreAskedForLess: nodes without labels for machines refuse none,
// and the old name of a label is asked for where no node has the new one.
func TestOlderKubeVirtsAreAskedForLess(t *testing.T) {
	text := node + "---\n" + demanding("{domain: {devices: {}, memory: {guest: 2Gi}, machine: "+
		"{type: q35}, cpu: {cores: 1, dedicatedCpuPlacement: true}}}", "")
	fleet, err := kubevirtRead(text)
	if err != nil {
		t.Fatal(err)
	}
	want := placement.Constraints{Selector: placement.Labels{"cpumanager": "true"},
		Topology: &placement.TopologyRequest{Dedicated: true}}
	if diff := gocmp.Diff(want, fleet.VMs[0].Placement); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}

// TestADeviceStaysWhereKubeVirtSaysSo: only of VMs that it calls migratable do
// devices move.
func TestADeviceStaysWhereKubeVirtSaysSo(t *testing.T) {
	text := strings.ReplaceAll(rich+demanding("{domain: {memory: {guest: 2Gi}, devices: {gpus: "+
		"[{name: a, deviceName: nvidia.com/A100}]}}}", ""), `LiveMigratable, status: "True"`,
		`LiveMigratable, status: "False"`)
	fleet, err := kubevirtRead(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []placement.DeviceAsk{{Class: "nvidia.com/A100", Count: 1, Stays: true}}
	if diff := gocmp.Diff(want, fleet.VMs[0].Placement.Devices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestManyLargeNodesShareTheirCores: nodes that say they are huge cost little.
func TestManyLargeNodesShareTheirCores(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n%d"},"status":`+
			`{"allocatable":{"cpu":"%d","memory":"1Gi","hugepages-1Gi":"1Gi"}}}`, i, 8192-i%2)
	}
	fleet, err := kubevirtRead(text.String())
	if err != nil {
		t.Fatal(err)
	}
	a, b := fleet.Hosts[0].Facts.Cells[0].Cores, fleet.Hosts[1].Facts.Cells[0].Cores
	if len(a)+len(b) != 2*8192-1 || &a[0] != &b[0] {
		t.Errorf("two nodes have %d and %d cores of their own", len(a), len(b))
	}
}

// alike prints a VM of an application, with an affinity.
func alike(name, app, affinity string) string {
	return fmt.Sprintf(`---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: ns, name: %s, labels: {app: %s}}
spec: {domain: {devices: {}, memory: {guest: 1Gi}}, affinity: {%s}}
`, name, app, affinity)
}

// term prints a condition on other VMs.
func term(kind, app, key string) string {
	return fmt.Sprintf("%s: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, "+
		"labelSelector: {matchLabels: {app: %s}}}]}", kind, key, app)
}

func TestAffinityBecomesConstraints(t *testing.T) {
	const host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
	group := func(name string, p placement.GroupPolicy, domain string) placement.Constraints {
		return placement.Constraints{Groups: []placement.GroupRule{
			{Group: name, Policy: p, Domain: domain}}}
	}
	type all = map[string]placement.Constraints
	perZone := "ns/app=x per " + zone
	tests := []struct {
		name, text string
		want       all
		warns      string
	}{
		{"apart by zone", alike("a", "x", term("podAntiAffinity", "x", zone)) +
			alike("b", "x", term("podAntiAffinity", "x", zone)),
			all{"a": group(perZone, placement.AntiAffinity, zone),
				"b": group(perZone, placement.AntiAffinity, zone)}, ""},
		{"one apart from another by zone", alike("a", "x", term("podAntiAffinity", "y", zone)) +
			alike("b", "y", ""),
			all{"a": group("ns/app=y per "+zone+" ns/a ns/b", placement.AntiAffinity, zone),
				"b": group("ns/app=y per "+zone+" ns/a ns/b", placement.AntiAffinity, zone)}, ""},
		{"all together", alike("a", "x", term("podAffinity", "x", host)) +
			alike("b", "x", term("podAffinity", "x", host)),
			all{"a": group("with ns/app=x", placement.Affinity, ""),
				"b": group("with ns/app=x", placement.Affinity, "")}, ""},
		{"all in one zone", alike("a", "x", term("podAffinity", "x", zone)),
			all{"a": group("with "+perZone, placement.Affinity, zone)}, ""},
		{"one with others, which do not mind", alike("a", "x", term("podAffinity", "y", host)) +
			alike("b", "y", "") + alike("c", "y", ""),
			all{"a": {With: []hypervisor.VMID{"ns/b", "ns/c"}}, "b": {}, "c": {}}, ""},
		{"with those like itself, too", alike("a", "x", term("podAffinity", "x", host)) +
			alike("b", "x", ""), all{"a": {With: []hypervisor.VMID{"ns/b"}}, "b": {}}, ""},
		{"one in the zone of others", alike("a", "x", term("podAffinity", "y", zone)) +
			alike("b", "y", ""), all{"a": {}, "b": {}},
			"affinity per topology.kubernetes.io/zone to VMs that do not have it, too"},
		{"with no VM", alike("a", "x", term("podAffinity", "z", host)), all{"a": {}},
			"no VM is meant, and other pods are not known; left out"},
		{"with two kinds of others", alike("a", "x", strings.Replace(term("podAffinity", "y", host),
			"]}", ", {topologyKey: "+host+", labelSelector: {matchLabels: {app: z}}}]}", 1)) +
			alike("b", "y", "") + alike("c", "z", ""),
			all{"a": {With: []hypervisor.VMID{"ns/b"}}, "b": {}, "c": {}},
			"only one affinity of a VM to others is supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fleet, err := kubevirtRead(strings.TrimPrefix(tt.text, "---\n"))
			if err != nil {
				t.Fatal(err)
			}
			got := all{}
			for _, v := range fleet.VMs {
				got[strings.TrimPrefix(string(v.ID), "ns/")] = v.Placement
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
			if text := fmt.Sprint(fleet.Warnings); !strings.Contains(text, cmp.Or(tt.warns, "[]")) {
				t.Errorf("warnings %s, want %q", text, tt.warns)
			}
		})
	}
}

func TestReadRefusesWhatVMsAskFor(t *testing.T) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	vmi := node + instance
	checkRefusals(t, []refusal{
		{"affinity without a domain", strings.Replace(vmi, "spec:",
			"spec:\n  affinity: {podAffinity: {"+required+": [{}]}}", 1),
			"f:12: VirtualMachineInstance prod/db spec.affinity.podAffinity." + required +
				"[0]: a topologyKey is missing"},
		{"pages without a size",
			strings.Replace(vmi, "8Gi}", "8Gi, hugepages: {pageSize: large}}", 1),
			`spec.domain.memory.hugepages.pageSize: "large" is no size of pages`},
		{"more pages than can be", strings.Replace(node, "memory: 64Gi",
			"memory: 3Ei, hugepages-1Gi: 3Ei, hugepages-2Mi: 3Ei", 1),
			"its memory and huge pages are 8 EiB or more"},
	})
}
