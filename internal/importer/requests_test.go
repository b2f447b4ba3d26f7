package importer_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// configured is a node with 16 CPUs, and what is written of KubeVirt's configuration.
func configured(config string) string {
	return `apiVersion: kubevirt.io/v1
kind: KubeVirt
metadata: {name: kubevirt, namespace: kubevirt}
spec: {configuration: {` + config + `}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubevirt.io/schedulable: "true", kubevirt.io/cpumanager: "true"}}
status:
  allocatable: {cpu: "16", memory: 64Gi, pods: "110", hugepages-1Gi: 8Gi}
  conditions: [{type: Ready, status: "True"}]
---
`
}

// besides returns what the pod of a VM with one or four cores requests beside so much for its guest: five programs, a
// thread for I/O and a video card, its CPUs and its page tables.
func besides(domain string) hypervisor.Bytes {
	all := (25 + 100 + 25 + 40 + 30 + 8 + 32) * hypervisor.MiB
	cpus := hypervisor.Bytes(1)
	if strings.Contains(domain, "cores: 4") {
		cpus = 4
	}
	if strings.Contains(domain, "dedicated") {
		all += 100 * hypervisor.MiB
	}
	if m := regexp.MustCompile(`requests: {memory: ([0-9]+)Gi`).FindStringSubmatch(domain); m != nil {
		requested, _ := strconv.Atoi(m[1])
		all += hypervisor.Bytes(requested) * hypervisor.GiB / 512
	}
	return all + 8*hypervisor.MiB*cpus
}

// What the pod of a VM needs besides its guest's memory is what KubeVirt says, or else what it would say.
func TestThePodOfAVMNeedsMemoryItself(t *testing.T) {
	const (
		mib  = hypervisor.MiB
		most = (25 + 100 + 25 + 40 + 30 + 8 + 8) * mib // one CPU, and no video card
	)
	plain := "devices: {autoattachGraphicsDevice: false}"
	for _, tt := range []struct {
		name, config, spec, domain, status string
		want                               hypervisor.Bytes
	}{
		{"the programs and the CPU", "", "", plain, "", most},
		{"a video card", "", "", "devices: {}", "", most + 32*mib},
		{"a GPU", "", "", "devices: {autoattachGraphicsDevice: false, gpus: [{deviceName: a}]}", "", most + 1024*mib},
		{"a virtual function", "", "", "devices: {autoattachGraphicsDevice: false, interfaces: [{sriov: {}}]}", "", most + 1024*mib},
		{"a TPM", "", "", "devices: {autoattachGraphicsDevice: false, tpm: {}}", "", most + 53*mib},
		{"a TPM that is off", "", "", "devices: {autoattachGraphicsDevice: false, tpm: {enabled: false}}", "", most},
		{"an encrypted guest", "", "", plain + ", launchSecurity: {sev: {}}", "", most + 256*mib},
		{"the firmware of arm64", "", "architecture: arm64, ", plain, "", most + 128*mib},
		{"probes that run programs", "", "livenessProbe: {exec: {}}, readinessProbe: {exec: {}}, ", plain, "", most + 120*mib},
		{"a probe of a port", "", "livenessProbe: {tcpSocket: {}}, ", plain, "", most},
		{"all that is limited is requested", "", "", plain + ", resources: {requests: {cpu: '1', memory: 2Gi}, limits: " +
			"{cpu: '1', memory: 2Gi}}", "", most + (4+100)*mib},
		{"page tables of what is requested", "", "", plain + ", resources: {requests: {memory: 3Gi}}", "", most + (1024+6)*mib},
		{"what the VM adds", "", "", plain + ", ioThreads: {}", "", most},
		{"twice as much", "additionalGuestMemoryOverheadRatio: '2'", "", plain, "", 2 * most},
		{"as KubeVirt says", "additionalGuestMemoryOverheadRatio: '2'", "", plain, "memory: {memoryOverhead: 300Mi}, ", 300 * mib},
		{"none", "", "", plain + ", resources: {overcommitGuestOverhead: true}", "", 0},
	} {
		fleet, err := kubevirtRead(configured(tt.config) +
			demanding("{"+tt.spec+"domain: {memory: {guest: 2Gi}, "+tt.domain+"}}", tt.status))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := fleet.VMs[0].Overhead; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if _, err := kubevirtRead(configured("additionalGuestMemoryOverheadRatio: lots")); err == nil ||
		!strings.Contains(err.Error(), `additionalGuestMemoryOverheadRatio: needs a number from 1 to 100, has "lots"`) {
		t.Errorf("a ratio that is none: %v", err)
	}
}

// What a VM takes of its node is what its pod requests. CPUs are counted as KubeVirt shares
// them: 160 of 16 with the default ratio of 10.
func TestAVMTakesWhatItsPodRequests(t *testing.T) {
	const gib = hypervisor.GiB
	for _, tt := range []struct {
		name, config, domain string
		memory               hypervisor.Bytes
		cpus, of             int
	}{
		{"nothing requested", "", "memory: {guest: 8Gi}, cpu: {cores: 4}", 8 * gib, 4, 160},
		{"CPUs requested count in full", "",
			"memory: {guest: 8Gi}, cpu: {cores: 4}, resources: {requests: {cpu: '4'}}", 8 * gib, 40, 160},
		{"CPUs limited are requested", "",
			"memory: {guest: 8Gi}, cpu: {cores: 4}, resources: {limits: {cpu: '2'}}", 8 * gib, 20, 160},
		{"a request wins over a limit", "", "memory: {guest: 8Gi}, cpu: {cores: 4}, " +
			"resources: {requests: {cpu: '1'}, limits: {cpu: '2'}}", 8 * gib, 10, 160},
		{"less requested than by the ratio", "",
			"memory: {guest: 8Gi}, cpu: {cores: 4}, resources: {requests: {cpu: 100m}}", 8 * gib, 1, 160},
		{"a fraction of a share", "",
			"memory: {guest: 8Gi}, cpu: {cores: 4}, resources: {requests: {cpu: 250m}}", 8 * gib, 5, 320},
		{"no sharing at all, and a fraction", "developerConfiguration: {cpuAllocationRatio: 1}",
			"memory: {guest: 8Gi}, cpu: {cores: 4}, resources: {requests: {cpu: 250m}}", 8 * gib, 1, 64},
		{"dedicated CPUs are not shared", "", "memory: {guest: 8Gi}, " +
			"cpu: {cores: 4, dedicatedCpuPlacement: true}", 8 * gib, 40, 160},
		{"and their emulator has one more", "", "memory: {guest: 8Gi}, " +
			"cpu: {cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true}", 8 * gib, 50,
			160},
		{"threads for I/O share CPUs, too", "", "memory: {guest: 8Gi}, cpu: {cores: 4}, " +
			"ioThreads: {supplementalPoolThreadCount: 2}", 8 * gib, 6, 160},
		{"the cluster's request", "cpuRequest: 300m", "memory: {guest: 8Gi}, cpu: {cores: 4}",
			8 * gib, 3, 160},
		{"the cluster's default request is by the ratio", "cpuRequest: 100m",
			"memory: {guest: 8Gi}, cpu: {cores: 4}", 8 * gib, 4, 160},
		{"memory is overcommitted", "developerConfiguration: {memoryOvercommit: 200}",
			"memory: {guest: 8Gi}", 4 * gib, 1, 160},
		{"and undercommitted", "developerConfiguration: {memoryOvercommit: 50}",
			"memory: {guest: 8Gi}", 16 * gib, 1, 160},
		{"but not what is requested", "developerConfiguration: {memoryOvercommit: 200}",
			"memory: {guest: 8Gi}, resources: {requests: {memory: 6Gi}}", 6 * gib, 1, 160},
		{"less memory requested", "", "memory: {guest: 8Gi}, resources: {requests: {memory: 2Gi}}",
			2 * gib, 1, 160},
		{"more memory requested", "", "memory: {guest: 8Gi}, resources: {requests: {memory: 9Gi}}",
			9 * gib, 1, 160},
		{"memory limited is requested", "", "memory: {guest: 8Gi}, resources: {limits: {memory: 9Gi}}",
			9 * gib, 1, 160},
		{"a request of nothing is none", "",
			"memory: {guest: 8Gi}, resources: {requests: {memory: '0', cpu: '0'}}", 8 * gib, 1, 160},
		{"huge pages are not overcommitted", "developerConfiguration: {memoryOvercommit: 200}",
			"memory: {guest: 4Gi, hugepages: {pageSize: 1Gi}}", 4 * gib, 1, 160},
		{"nor is the memory beside dedicated CPUs", "developerConfiguration: {memoryOvercommit: 200}",
			"memory: {guest: 8Gi}, cpu: {cores: 1, dedicatedCpuPlacement: true}", 8 * gib, 10, 160},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fleet, err := kubevirtRead(configured(tt.config) + demanding("{domain: {devices: {}, "+tt.domain+"}}", ""))
			if err != nil {
				t.Fatal(err)
			}
			vm := inventory.PlacementVM(&fleet.VMs[0])
			tt.memory += besides(tt.domain)
			if vm.Demand() != tt.memory || vm.DemandCPUs() != tt.cpus || fleet.Hosts[0].CPUs != tt.of {
				t.Errorf("it takes %v and %d of %d CPUs, want %v and %d of %d", vm.Demand(),
					vm.DemandCPUs(), fleet.Hosts[0].CPUs, tt.memory, tt.cpus, tt.of)
			}
		})
	}
}

func TestANodeTakesAsManyVMsAsPods(t *testing.T) {
	for pods, want := range map[string]string{"110": "110 false", "1k": "1000 false", "0": "0 true"} {
		fleet, err := kubevirtRead(strings.ReplaceAll(configured(""), `"110"`, `"`+pods+`"`))
		if err != nil {
			t.Fatal(err)
		}
		h := fleet.Hosts[0]
		if got := fmt.Sprint(h.Facts.MaxVMs, h.Cordoned); got != want {
			t.Errorf("pods: %s: VMs and closed %s, want %s", pods, got, want)
		}
	}
}

// target returns the host that takes a VM, or why none does.
func target(t *testing.T, fleet *inventory.Fleet, vm hypervisor.VMID) string {
	t.Helper()
	return targetOf(t, fleet, vm, false)
}

// targetOf is target of a VM that moves live, or is started elsewhere.
func targetOf(t *testing.T, fleet *inventory.Fleet, vm hypervisor.VMID, started bool) string {
	t.Helper()
	q, found := inventory.Ask(fleet, vm)
	if !found {
		t.Fatalf("there is no VM %s", vm)
	}
	q.Request.Rebuild = q.Request.Rebuild || started
	e := q.Explain(&placement.Config{})
	if e.Decision.Outcome == placement.Accepted {
		return string(e.Decision.Host)
	}
	text := ""
	for _, v := range e.Hosts {
		for _, why := range v.Why {
			text += string(v.Host) + ":" + why.Check + " "
		}
	}
	for _, why := range q.Quota {
		text += why.Check + " "
	}
	return strings.TrimSpace(text)
}

// A guest that sees the processor itself goes to no other vendor and to no other processor, one
// that sees a model goes where the model is, of the same vendor.
func TestAGuestGoesWhereItsProcessorIs(t *testing.T) {
	fleet := readField(t, "host-model.yaml")
	for vm, want := range map[hypervisor.VMID]string{
		"ns1/pass": "amd1:cpu-vendor amd1:cpu-exact new1:source old1:cpu-older old1:cpu-exact",
		"ns1/hm-new": "amd1:cpu-model amd1:cpu-vendor new1:source old1:cpu-model " +
			"old1:cpu-features", "ns1/hm-old": "new1", "ns1/sky": "old1",
	} {
		if got := target(t, fleet, vm); got != want {
			t.Errorf("%s: %s, want %s", vm, got, want)
		}
	}
}

// A guest that is started elsewhere sees the model of its new host: KubeVirt asks for that of the old one
// when it migrates only. What the VM asks for itself remains.
func TestAGuestThatIsStartedTakesTheModelOfItsHost(t *testing.T) {
	fleet := readField(t, "host-model.yaml")
	for _, vm := range []hypervisor.VMID{"ns1/hm-new", "ns1/pass"} {
		if got := targetOf(t, fleet, vm, true); got != "amd1" && got != "old1" {
			t.Errorf("%s is started on: %s", vm, got)
		}
	}
	if got, want := targetOf(t, fleet, "ns1/sky", true), "old1"; got != want {
		t.Errorf("a model of its own: %s, want %s", got, want)
	}
	f := plan.FromInventory(fleet)
	for i := range f.VMs {
		if v := &f.VMs[i]; v.ID == "ns1/hm-new" {
			q := plan.FailoverQuestion{Fleet: f, Failures: 1, Protected: map[hypervisor.VMID]bool{v.ID: true}}
			if r := plan.Failover(q); r.Verdict != plan.Yes {
				t.Errorf("after the failure of its host: %v, %+v", r.Verdict, r.Counterexample)
			}
		}
	}
}

func readField(t *testing.T, name string) *inventory.Fleet {
	t.Helper()
	fleet, err := importer.ReadKubeVirtFile("testdata/"+name, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func TestNoSecondCopyBeyondTheQuotaOfANamespace(t *testing.T) {
	if got, want := target(t, readField(t, "quota.yaml"), "ns1/a"), "w1:source quota quota"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRequestsDecideWhereThereIsRoom(t *testing.T) {
	if got, want := target(t, readField(t, "cpu-requests.yaml"), "default/v1-0"),
		"n1:source n1:cpus n2:cpus n3:cpus"; got != want {
		t.Errorf("with CPUs requested: %s, want %s", got, want)
	}
	if got, want := target(t, readField(t, "overcommit.yaml"), "default/v1-0"), "n2"; got != want {
		t.Errorf("with memory overcommitted: %s, want %s", got, want)
	}
}

// A quota is about what pods take: all their copies, other pods included.
func TestQuotasChargeWhatPodsTake(t *testing.T) {
	const (
		gib    = int64(hypervisor.GiB)
		beside = 276 << 20 // what its pod needs, with two CPUs
	)
	text := configured("") + `apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: prod}
spec: {hard: {%s}, %s}
status: {used: {%s}}
---
` + demanding("{priorityClassName: high, domain: {devices: {}, memory: {guest: 4Gi}, "+
		"cpu: {cores: 2}%s}}", "")
	limits := ", resources: {requests: {memory: 4Gi}, limits: {memory: 5Gi, cpu: 3}}"
	for _, tt := range []struct {
		name, hard, scope, used, domain string
		want                            []placement.QuotaLimit
		charge                          int64
	}{
		{"requested memory", "requests.memory: 10Gi", "", "requests.memory: 5Gi", "",
			[]placement.QuotaLimit{{Resource: "requests.memory", Hard: 10 * gib, Others: gib - beside}}, 4*gib + beside},
		{"memory for short", "memory: 10Gi", "", "memory: 5Gi", "",
			[]placement.QuotaLimit{{Resource: "memory", Hard: 10 * gib, Others: gib - beside}}, 4*gib + beside},
		{"limited memory", "limits.memory: 10Gi", "", "limits.memory: 5Gi", limits,
			[]placement.QuotaLimit{{Resource: "limits.memory", Hard: 10 * gib}}, 5*gib + beside + 4*gib/512},
		{"memory that KubeVirt limits itself", "limits.memory: 10Gi", "", "limits.memory: 8Gi", "",
			[]placement.QuotaLimit{{Resource: "limits.memory", Hard: 10 * gib}}, 8*gib + 2*beside},
		{"CPUs by the ratio", "requests.cpu: 1", "", "requests.cpu: 500m", "",
			[]placement.QuotaLimit{{Resource: "requests.cpu", Hard: 1000, Others: 300}}, 200},
		{"limited CPUs", "limits.cpu: 10", "", "limits.cpu: 3", limits,
			[]placement.QuotaLimit{{Resource: "limits.cpu", Hard: 10_000}}, 3000},
		{"pods", "pods: 3", "", "pods: 3", "",
			[]placement.QuotaLimit{{Resource: "pods", Hard: 3, Others: 2}}, 1},
		{"a scope that holds", "pods: 3", "scopes: [NotBestEffort]", "pods: 1", "",
			[]placement.QuotaLimit{{Resource: "pods", Hard: 3}}, 1},
		{"a scope of other pods", "pods: 3", "scopes: [BestEffort]", "pods: 1", "", nil, 0},
		{"its priority", "pods: 3", "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, " +
			"operator: In, values: [high]}]}", "pods: 1", "",
			[]placement.QuotaLimit{{Resource: "pods", Hard: 3}}, 1},
		{"another priority", "pods: 3", "scopeSelector: {matchExpressions: [{scopeName: " +
			"PriorityClass, operator: In, values: [low]}]}", "pods: 1", "",
			[]placement.QuotaLimit{{Resource: "pods", Hard: 3, Others: 1}}, 0},
		{"what no pod uses", "services: 3", "", "services: 3", "", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fleet, err := kubevirtRead(fmt.Sprintf(text, tt.hard, tt.scope, tt.used, tt.domain))
			if err != nil {
				t.Fatal(err)
			}
			for i := range tt.want {
				tt.want[i].Quota = "prod/q"
			}
			if diff := cmp.Diff(tt.want, fleet.Quotas); diff != "" {
				t.Errorf("quotas (-want +got):\n%s", diff)
			}
			var charge int64
			for _, c := range fleet.VMs[0].Placement.Charges {
				charge += c.Amount
			}
			if charge != tt.charge {
				t.Errorf("a copy is charged %d, want %d", charge, tt.charge)
			}
		})
	}
}
