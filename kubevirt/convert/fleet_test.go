package convert_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/convert"
)

// live decodes a dump with the types of a live client, as an informer has them.
func live(t *testing.T, path string) (*convert.Cluster, []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &convert.Cluster{}
	split := importer.SplitYAML
	if strings.HasSuffix(path, ".json") {
		split = importer.SplitJSON
	}
	err = split(bufio.NewReader(bytes.NewReader(text)), func(p importer.Piece) error {
		if p.Rest {
			return nil
		}
		return add(c, p.Text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, text
}

func add(c *convert.Cluster, text []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Node":
		return into(&c.Nodes, text)
	case "Namespace":
		return into(&c.Namespaces, text)
	case "ResourceQuota":
		return into(&c.Quotas, text)
	case "Pod":
		return into(&c.Pods, text)
	case "VirtualMachineInstance":
		return into(&c.VMIs, text)
	case "VirtualMachineInstanceMigration":
		return into(&c.Migrations, text)
	case "MigrationPolicy":
		return into(&c.Policies, text)
	case "KubeVirt":
		var all []virtv1.KubeVirt
		err := into(&all, text)
		c.KubeVirt = &all[0]
		return err
	}
	return nil
}

func into[T any](all *[]T, text []byte) error {
	var v T
	err := yaml.Unmarshal(text, &v)
	*all = append(*all, v)
	return err
}

// A dump and the live objects of the same cluster are the same fleet. The types of KubeVirt v1.8
// do not know what later versions write: maxDowntimeMs and experimental.
func TestALiveClusterIsTheFleetOfItsDump(t *testing.T) {
	const root = "../../"
	for _, path := range []string{"inventory/testdata/cluster.json", "inventory/testdata/cluster.yaml",
		"internal/importer/testdata/quota.yaml", "internal/importer/testdata/host-model.yaml",
		"internal/importer/testdata/cpu-requests.yaml", "internal/importer/testdata/overcommit.yaml"} {
		t.Run(path, func(t *testing.T) {
			c, text := live(t, root+path)
			want, err := importer.ReadKubeVirt("cluster", bytes.NewReader(text), inventory.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := convert.Fleet("cluster", c, inventory.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range want.Policies {
				want.Policies[i].MaxDowntime, want.Policies[i].Experimental = nil, nil
			}
			ignore := cmpopts.IgnoreFields(inventory.Fleet{}, "Warnings") // they have lines
			if diff := cmp.Diff(want, got, ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("fleet (-dump +live):\n%s", diff)
			}
			if len(got.VMs) == 0 || len(got.Hosts) == 0 {
				t.Error("it is empty")
			}
		})
	}
}

func TestAnEmptyClusterIsAnEmptyFleet(t *testing.T) {
	f, err := convert.Fleet("cluster", &convert.Cluster{}, inventory.Defaults{})
	if err != nil || len(f.Hosts)+len(f.VMs) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// chance is the same in every run.
var chance = rand.New(rand.NewPCG(27, 1))

func pick[T any](all ...T) T { return all[chance.IntN(len(all))] }

// The root's quantities are those of Kubernetes.
func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	for range 200_000 {
		// An exponent of many digits takes Kubernetes hours.
		text := pick(fmt.Sprint(chance.IntN(5000)), fmt.Sprint(chance.Float64()*100)) +
			pick("", "m", "k", "M", "G", "Ki", "Mi", "Gi", "T", "Ti", "n", "u", "e2", "E1", "e-2")
		if chance.IntN(4) == 0 {
			text = ""
			for range chance.IntN(8) {
				text += pick("0", "1", "9", "5", ".", "-", "+", "i", "K", "M", "m", "n", "u", "G", "k", "T",
					"P", "12345678", "000000", "Ki", "Gi", "Pi", "Ei", "x", " ")
			}
		}
		want, e1 := resource.ParseQuantity(text)
		got, e2 := kubeobject.ParseQuantity(text)
		if fmt.Sprint(e1) != fmt.Sprint(e2) {
			t.Fatalf("%q: %v, want %v", text, e2, e1)
		}
		float := want.AsApproximateFloat64()
		if e1 != nil || float != float { // 0e12345 is not a number there
			continue
		}
		fits := float >= 0 && float < 9e15 // negative ones are refused
		if float != got.AsApproximateFloat64() || want.IsZero() != got.IsZero() ||
			fits && (want.Value() != got.Value() || want.MilliValue() != got.MilliValue()) {
			t.Fatalf("%q: %v %d %d, want %v %d %d", text, got.AsApproximateFloat64(), got.Value(),
				got.MilliValue(), float, want.Value(), want.MilliValue())
		}
	}
}

// The root's label selectors are those of Kubernetes.
func TestSelectorsAreThoseOfKubernetes(t *testing.T) {
	key := func() string {
		return pick("app", "tier", "a/b", "x.io/name", "bad key", "", "/x", "A_b", "-a", "X/Y",
			strings.Repeat("x", 64))
	}
	for range 20_000 {
		s := metav1.LabelSelector{MatchLabels: map[string]string{}}
		for range chance.IntN(3) {
			s.MatchLabels[pick("app", key())] = pick("", "db", "web", "bad value", "x_y")
		}
		for range chance.IntN(3) {
			e := metav1.LabelSelectorRequirement{Key: pick("app", "tier", key()), Operator: pick(
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
				metav1.LabelSelectorOpDoesNotExist, "Bad")}
			for range chance.IntN(3) {
				e.Values = append(e.Values, pick("db", "web", "", "b c"))
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var own kubeobject.LabelSelector
		if err := json.Unmarshal(text, &own); err != nil {
			t.Fatal(err)
		}
		want, e1 := metav1.LabelSelectorAsSelector(&s)
		got, e2 := own.Compile()
		if (e1 == nil) != (e2 == nil) {
			t.Fatalf("%s: %v, want %v", text, e2, e1)
		}
		if e1 != nil {
			continue
		}
		set := map[string]string{}
		for range chance.IntN(4) {
			set[pick("app", "tier", "a/b", "A_b")] = pick("", "db", "web", "x_y")
		}
		if want.String() != got.String() || want.Matches(labels.Set(set)) != got.Matches(set) {
			t.Fatalf("%s: %s, want %s; %v: %t", text, got, want, set, got.Matches(set))
		}
	}
}

// The labels and annotations that the root knows are KubeVirt's.
func TestNamesAreThoseOfKubeVirt(t *testing.T) {
	for got, want := range map[string]string{
		kubeobject.NodeSchedulable:                                   virtv1.NodeSchedulable,
		kubeobject.CPUManager:                                        virtv1.CPUManager,
		kubeobject.DeprecatedCPUManager:                              virtv1.DeprecatedCPUManager,
		kubeobject.CPUModelLabel:                                     virtv1.CPUModelLabel,
		kubeobject.SupportedHostModelMigrationCPU:                    virtv1.SupportedHostModelMigrationCPU,
		kubeobject.CPUFeatureLabel:                                   virtv1.CPUFeatureLabel,
		kubeobject.CPUModelVendorLabel:                               virtv1.CPUModelVendorLabel,
		kubeobject.HypervLabel:                                       virtv1.HypervLabel,
		kubeobject.HostModelCPULabel:                                 virtv1.HostModelCPULabel,
		kubeobject.HostModelRequiredFeaturesLabel:                    virtv1.HostModelRequiredFeaturesLabel,
		kubeobject.SupportedMachineTypeLabel:                         virtv1.SupportedMachineTypeLabel,
		kubeobject.RealtimeLabel:                                     virtv1.RealtimeLabel,
		kubeobject.SEVLabel:                                          virtv1.SEVLabel,
		kubeobject.SEVESLabel:                                        virtv1.SEVESLabel,
		kubeobject.SEVSNPLabel:                                       virtv1.SEVSNPLabel,
		kubeobject.TDXLabel:                                          virtv1.TDXLabel,
		kubeobject.AppLabel:                                          virtv1.AppLabel,
		kubeobject.CreatedByLabel:                                    virtv1.CreatedByLabel,
		kubeobject.DeprecatedVirtualMachineNameLabel:                 virtv1.DeprecatedVirtualMachineNameLabel,
		kubeobject.EvacuationMigrationAnnotation:                     virtv1.EvacuationMigrationAnnotation,
		kubeobject.WorkloadUpdateMigrationAnnotation:                 virtv1.WorkloadUpdateMigrationAnnotation,
		kubeobject.MigrationUnschedulablePodTimeoutSecondsAnnotation: virtv1.MigrationUnschedulablePodTimeoutSecondsAnnotation,
		kubeobject.MigrationPendingPodTimeoutSecondsAnnotation:       virtv1.MigrationPendingPodTimeoutSecondsAnnotation,
		kubeobject.MigrationUtilityVolumesTimeoutSecondsAnnotation:   virtv1.MigrationUtilityVolumesTimeoutSecondsAnnotation,
		kubeobject.MigrationWaitingForSync:                           string(virtv1.MigrationWaitingForSync),
		kubeobject.MigrationSynchronizing:                            string(virtv1.MigrationSynchronizing),
		kubeobject.LabelHostname:                                     corev1.LabelHostname,
		kubeobject.LabelTopologyZone:                                 corev1.LabelTopologyZone,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
