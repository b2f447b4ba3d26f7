package importer_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

const (
	node = `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubevirt.io/schedulable: "true"}}
status:
  allocatable: {cpu: "16", memory: 64Gi}
  conditions: [{type: Ready, status: "True"}]
`
	instance = `---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: prod, name: db}
spec:
  domain:
    devices: {}
    memory: {guest: 8Gi}
status: {nodeName: n1}
`
	move = `---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {namespace: prod, name: m}
spec: {vmiName: db}
`
)

// kubevirtRead reads objects, and leaves out the warning that every cluster has.
func kubevirtRead(text string) (*inventory.Fleet, error) {
	fleet, err := importer.ReadKubeVirt("f", strings.NewReader(text), inventory.Defaults{})
	if fleet != nil {
		fleet.Warnings = slices.DeleteFunc(fleet.Warnings, func(p inventory.Problem) bool { return p.Message == otherPods })
	}
	return fleet, err
}

const otherPods = "what pods other than those of VMs request of the nodes is not known: it counts as free memory and CPUs. " +
	"Let kubectl get pods, too"

// What other pods take counts as free, and that is said, once for all nodes.
func TestOtherPodsAreWarnedOf(t *testing.T) {
	fleet, err := importer.ReadKubeVirt("f", strings.NewReader(rich), inventory.Defaults{})
	if err != nil || len(fleet.Warnings) != 1 || fleet.Warnings[0].Message != otherPods {
		t.Errorf("%v, %+v", err, fleet)
	}
}

func TestReadRefuses(t *testing.T) {
	replace := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in the text", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	vmi := node + instance
	with := func(old, new string) string { return replace(vmi, old, new) }
	list := func(item string) string { return `{"kind": "List", "items": [` + "\n" + item + "]}" }
	tests := []refusal{
		{"nothing", "", "f: it is empty"},
		{"a word", "hello", "f:1: needs"},
		{"a list", "- a\n- b\n", "f:1: needs"},
		{"JSON that ends", `{"kind": "List", "items": [{`, "the JSON ends in the middle"},
		{"JSON that is wrong", list(`{"kind": x}`), "f:2: invalid character 'x'"},
		{"JSON with a bracket too many", `{}}`, "f:1: a } closes nothing"},
		{"deep JSON", strings.Repeat(`{"a":[`, 1_000_000), "nested more than 100"},
		{"deep JSON in an item", list(strings.Repeat(`[`, 200)), "f:2: it is nested more"},
		{"YAML that is wrong", node + "\t- :\n", "f:"},
		{"aliases", "items:\n- a: &a 1\n- b: *a\nkind: List\n", "f:2: YAML anchors"},
		{"a list that is cut off at the end of a line", "apiVersion: v1\nitems:\n- " +
			strings.ReplaceAll(strings.TrimSpace(node), "\n", "\n  ") + "\n",
			"f:8: the list has items and no kind"},
		{"the first of two lists that is cut off", "items:\n- {a: 1}\n---\n" + node,
			"f:2: the list has items and no kind"},
		{"a NUL byte", node + "x: \x00\n", "f:7: it contains a NUL byte"},
		{"no kind", "metadata: {name: x}\n", "f:1: x kind: it has no kind"},
		{"no name", "apiVersion: v1\nkind: Node\n", "f:1: Node metadata.name: it has no name"},
		{"a list in a list", list(`{"kind": "List", "items": [{"kind": "List"}]}`),
			"a list is in a list"},
		{"a quantity that is a list", with("guest: 8Gi", "guest: [8Gi]"),
			`f:8: VirtualMachineInstance prod/db: "[\"8Gi\"]" is no quantity`},
		{"a wrong quantity", with("8Gi", "8Gigs"),
			`f:8: VirtualMachineInstance prod/db: "8Gigs" is no quantity`},
		{"a wrong type", with("devices: {}", "cpu: {cores: many}"),
			"f:13: VirtualMachineInstance prod/db spec.domain.cpu.cores: needs uint32, has string"},
		{"negative memory", with("8Gi", "-8Gi"),
			"f:14: VirtualMachineInstance prod/db spec.domain.memory.guest: -8Gi is negative"},
		{"no memory", with("    memory: {guest: 8Gi}\n", ""), "a VM needs memory"},
		{"memory beyond all bounds", with("8Gi", "1e30"), "is 4 EiB or more"},
		{"an exponent that would take hours", with("8Gi", `"1e-999999999"`), "exponent"},
		{"cores beyond all bounds",
			with("devices: {}", "cpu: {cores: 4294967295, sockets: 4294967295}"),
			"it has more than 1048576 CPUs"},
		{"CPUs beyond all bounds", replace(node, `cpu: "16"`, "cpu: 1e20"), "is no number of CPUs"},
		{"an unknown strategy", with("spec:", "spec:\n  evictionStrategy: Flee"),
			"f:12: VirtualMachineInstance prod/db spec.evictionStrategy: unknown"},
		{"a node that is not there", with("nodeName: n1", "nodeName: n2"),
			`f:8: vm prod/db host: there is no host "n2"`},
		{"a node twice", node + "---\n" + node, "f:8: host n1 name: there is already a host"},
		{"an unknown phase", vmi + move + "status: {phase: Flying}\n",
			"f:21: VirtualMachineInstanceMigration prod/m status.phase: "},
		{"a migration of nothing", vmi + replace(move, "vmiName: db", "{}"), "f:"},
		{"two KubeVirts", strings.Repeat(
			"---\napiVersion: kubevirt.io/v1\nkind: KubeVirt\n"+
				"metadata: {namespace: k, name: k}\n", 2),
			"f:6: KubeVirt k/k: there is already a KubeVirt object"},
		{"a policy that admission refuses", "apiVersion: migrations.kubevirt.io/v1alpha1\n" +
			"kind: MigrationPolicy\nmetadata: {name: p}\nspec: {completionTimeoutPerGiB: -1}\n",
			"f:4: policy p completionTimeoutPerGiB: needs"},
	}
	checkRefusals(t, tests)
}

// refusal is a text that is no fleet, and what the error says.
type refusal struct{ name, text, want string }

func checkRefusals(t *testing.T, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := kubevirtRead(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Read() = %v, want %q in it", err, tt.want)
			}
			if _, is := errors.AsType[inventory.Problems](err); !is {
				t.Errorf("%T is no Problems", err)
			}
		})
	}
}

// TestReadIsBounded: garbage that never ends is refused after a few megabytes.
func TestReadIsBounded(t *testing.T) {
	tests := []struct{ name, start, more string }{
		{"one line of YAML", "a: ", "xxxxxxxxxxxxxxxx"},
		{"many lines of YAML", "a:\n", "- garbage\n"},
		{"an item without end", "items:\n- a: |\n", "    garbage\n"},
		{"a JSON text", `{"a": "`, "xxxxxxxxxxxxxxxx"},
		{"a JSON list", `{"a": [`, "1,1,1,1,1,1,1,"},
		{"a JSON item", `{"items": [[`, "1,1,1,1,1,1,1,"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &repeat{more: tt.more}
			_, err := importer.ReadKubeVirt("f", io.MultiReader(strings.NewReader(tt.start), r),
				inventory.Defaults{})
			if err == nil || !strings.Contains(err.Error(), "longer than 4 MiB") {
				t.Errorf("Read() = %.300v, want a limit", err)
			}
			if r.n > importer.MaxObject+1<<20 {
				t.Errorf("it read %d bytes", r.n)
			}
		})
	}
}

// repeat is the same text again and again.
type repeat struct {
	more string
	n    int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.more[(r.n+i)%len(r.more)]
	}
	r.n += len(p)
	return len(p), nil
}

func TestReadWarns(t *testing.T) {
	text := node + instance + move + `---
apiVersion: v1
kind: Service
metadata: {namespace: prod, name: p}
---
apiVersion: v1
kind: Service
metadata: {namespace: prod, name: q}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {namespace: prod, name: gone}
spec: {vmiName: missing}
---
apiVersion: v1
kind: Node
metadata: {name: old}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: prod, name: picky}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: x}]
  topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule}]
  domain: {devices: {}, cpu: {dedicatedCpuPlacement: true}, memory: {guest: 65Gi}}
status: {nodeName: n1}
`
	fleet, err := kubevirtRead(text)
	if err != nil {
		t.Fatal(err)
	}
	picky := "VirtualMachineInstance prod/picky spec."
	want := []string{
		"f:1: host n1: its VMs need 73.6GiB of memory, it has 64GiB",
		"f:22: Service prod/p: objects of the kind v1 Service are left out (and 1 more like it)",
		"f:30: migration prod/gone: left out: there is no VM prod/missing",
		"f:35: Node old status.conditions: without a Ready condition it counts as down",
		"f:39: " + picky + "topologySpreadConstraints: spreading is not supported; left out",
		"f:39: " + picky + "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution." +
			"nodeSelectorTerms[0].matchFields: metadata.name is read as the label " +
			"kubernetes.io/hostname",
		"f:39: " + picky + "domain.cpu.dedicatedCpuPlacement: " +
			"dedicated CPUs are kept apart from each other; of what VMs share they are counted " +
			"like shared ones",
		"f:39: " + picky + "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution" +
			"[0]: no VM is meant, and other pods are not known; left out",
	}
	var got []string
	for _, p := range fleet.Warnings {
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestReadFileChoosesByContent(t *testing.T) {
	tests := []struct {
		name, text string
		hosts      int
		err        string
	}{
		{"a single object", node, 1, ""},
		{"a comment first", "# printed today\n---\n" + node, 1, ""},
		{"JSON in one line", `{"items":[],"kind":"List"}`, 0, ""},
		{"JSON over lines", "\n{\n    \"apiVersion\": \"v1\",\n\"kind\": \"List\"}", 0, ""},
		{"godwit's own", "hosts:\n- {name: n1, memory: 1GiB, cpus: 1}\n", 1, ""},
		{"godwit's own, with kind deeper down", "hosts:\n- {name: n1, memory: 1GiB, cpus: 1,\n" +
			"   labels: {kind: x}}\nnamespaces:\n  kind: {}\n", 1, ""},
		{"neither", "hello: world\n", 0, "it is neither what kubectl get"},
		{"nothing", "", 0, "it is empty"},
		{"binary", "\x7fELF\x00\x00", 0, "it is neither what kubectl get"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fleet.txt")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			fleet, err := importer.ReadKubeVirtFile(path, inventory.Defaults{})
			switch {
			case tt.err != "":
				if want := "fleet.txt:1: " + tt.err; !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("ReadFile() = %v, want %q in it", err, want)
				}
			case err != nil:
				t.Error(err)
			case len(fleet.Hosts) != tt.hosts:
				t.Errorf("it has %d hosts, want %d", len(fleet.Hosts), tt.hosts)
			}
		})
	}
	if _, err := importer.ReadKubeVirtFile("no such file", inventory.Defaults{}); !os.IsNotExist(err) {
		t.Errorf("a missing file gives %v", err)
	}
	bad := inventory.Defaults{Load: inventory.Load{Class: "lazy"}}
	if _, err := importer.ReadKubeVirt("f", strings.NewReader(node), bad); err == nil {
		t.Error("unknown defaults are accepted")
	}
}
