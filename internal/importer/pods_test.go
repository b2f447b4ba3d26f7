package importer_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// rooms has a node with all that pods may take.
const rooms = `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubevirt.io/schedulable: "true"}}
status:
  allocatable: {cpu: "16", memory: 64Gi, pods: "110", hugepages-2Mi: 4Gi, example.com/nic: "8"}
  conditions: [{type: Ready, status: "True"}]
`

// A pod that is read: what it adds to metadata, to the spec, and its phase.
func podOf(metadata, spec, phase string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: a, name: p" + metadata + "}\nspec: {" + spec +
		"}\nstatus: {phase: " + phase + "}\n"
}

// What other pods request of a node is not free for VMs.
func TestPodsTakeRoom(t *testing.T) {
	const asks = `nodeName: n1, containers: [{resources: {requests: {cpu: 500m, memory: 1Gi}}}, ` +
		`{resources: {requests: {cpu: "1", memory: 1Gi, hugepages-2Mi: 3Mi, example.com/nic: "3"}}}]`
	launcher := func(vm string) string {
		return podOf(`, labels: {kubevirt.io: virt-launcher}, annotations: {kubevirt.io/domain: `+vm+`}`, asks, "Running")
	}
	const vm = `---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: a, name: db}
spec: {domain: {devices: {}, memory: {guest: 8Gi}}}
status: {nodeName: n1}
`
	const away = `---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {namespace: a, name: m}
spec: {vmiName: db}
`
	type room struct {
		memory      hypervisor.Bytes
		cpus, vms   int
		pages, nics int
	}
	all := room{68 * hypervisor.GiB, 160, 110, 2048, 8}
	less := room{66*hypervisor.GiB - 4*hypervisor.MiB, 145, 109, 2046, 5}
	for _, c := range []struct {
		name, text string
		want       room
	}{
		{"none", rooms, all},
		{"one that runs", rooms + podOf("", asks, "Running"), less},
		{"before its node", podOf("", asks, "Running") + "---\n" + rooms, less},
		{"one that has ended", rooms + podOf("", asks, "Succeeded") + podOf("", asks, "Failed"), all},
		{"one that waits for a node", rooms + podOf("", strings.TrimPrefix(asks, "nodeName: n1, "), "Pending"), all},
		{"one on another node", rooms + podOf("", strings.Replace(asks, "n1", "n2", 1), "Running"), all},
		{"a VM's, which accounts for it", rooms + vm + launcher("db"), all},
		{"a VM's that is not known", rooms + vm + launcher("gone"), less},
		{"a VM's that migrates", rooms + "---\n" + strings.ReplaceAll(rooms, "n1", "n2") + strings.Replace(vm, "n1", "n2", 1) + away + launcher("db"), all},
		{"a VM's that starts", rooms + strings.Replace(vm, "status: {nodeName: n1}", "", 1) + launcher("db"), less},
		{"more than there is", rooms + podOf("", `nodeName: n1, containers: [{resources: {requests: {cpu: "99", memory: 99Ti, `+
			`hugepages-2Mi: 99Gi, example.com/nic: "99"}}}]`, "Running"), room{0, 0, 109, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := importer.ReadKubeVirt("f", strings.NewReader(c.text), inventory.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			h := f.Hosts[0]
			got := room{h.Memory, h.CPUs, h.Facts.MaxVMs, int(h.Facts.Cells[0].Pages[0].Pages), h.Facts.Devices[0].Count}
			if got != c.want {
				t.Errorf("the node has %+v, want %+v", got, c.want)
			}
			if free := hypervisor.Bytes(h.Facts.Memory.Capacity()); free != h.Memory {
				t.Errorf("its facts say %v, it has %v", free, h.Memory)
			}
		})
	}
}

// Without other pods, what they take is not known, and that is said.
func TestPodsOfVMsAloneAreNotAll(t *testing.T) {
	const launcher = `, labels: {kubevirt.io: virt-launcher}, annotations: {kubevirt.io/domain: db}`
	for text, warned := range map[string]bool{
		rooms: true,
		rooms + podOf(launcher, "nodeName: n1", "Running"):       true,
		rooms + podOf("", "nodeName: n1", "Running"):             false,
		podOf("", "nodeName: n1", "Succeeded") + "---\n" + rooms: false,
	} {
		f, err := importer.ReadKubeVirt("f", strings.NewReader(text), inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(f.Warnings) > 0 && f.Warnings[0].Message == otherPods; got != warned {
			t.Errorf("%q: warnings %v", text, f.Warnings)
		}
	}
}

// A pods limit that others use up closes the node.
func TestPodsUpToTheLimitCloseTheNode(t *testing.T) {
	f, err := importer.ReadKubeVirt("f", strings.NewReader(strings.Replace(rooms, `"110"`, `"1"`, 1)+
		podOf("", "nodeName: n1", "Running")), inventory.Defaults{})
	if err != nil || !f.Hosts[0].Cordoned {
		t.Errorf("%v, %+v", err, f)
	}
}

// What no pod can request is refused, and says where.
func TestPodsThatRequestNonsense(t *testing.T) {
	for asks, want := range map[string]string{
		"memory: -1Gi": "spec.containers[0].resources.requests.memory: -1Gi is negative",
		"cpu: -1":      "spec.containers[0].resources.requests.cpu: -1 is no number of CPUs",
		"memory: 9Ei":  "4 EiB or more",
		"memory: lots": `Pod a/p: "lots" is no quantity, which is a number with or without a unit: 500m, 4 or 64Gi`,
	} {
		_, err := importer.ReadKubeVirt("f", strings.NewReader(rooms+
			podOf("", "nodeName: n1, containers: [{resources: {requests: {"+asks+"}}}]", "Running")), inventory.Defaults{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", asks, err, want)
		}
	}
}
