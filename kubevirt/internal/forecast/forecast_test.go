package forecast_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

// cluster has so many nodes with so many VMs of 4 GiB on each.
func cluster(nodes, vms int) *convert.Cluster {
	c := &convert.Cluster{}
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	memory := resource.MustParse("4Gi")
	for n := range nodes {
		node := fmt.Sprintf("n%d", n)
		c.Nodes = append(c.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{
			"kubernetes.io/hostname": node, virtv1.NodeSchedulable: "true"}},
			Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		for i := range vms {
			v := virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
				Name: fmt.Sprintf("vm-%d-%d", n, i), UID: types.UID(fmt.Sprint(n, i))}}
			v.Spec.Domain.Memory = &virtv1.Memory{Guest: &memory}
			v.Status = virtv1.VirtualMachineInstanceStatus{Phase: virtv1.Running, NodeName: node,
				Conditions: []virtv1.VirtualMachineInstanceCondition{{
					Type: virtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}}}
			c.VMIs = append(c.VMIs, v)
		}
	}
	return c
}

func TestAForecastSaysHowLongItTakes(t *testing.T) {
	f, err := forecast.Ask(t.Context(), cluster(5, 10), forecast.Question{Nodes: []string{"n1"}})
	if err != nil {
		t.Fatal(err)
	}
	e := forecast.For(f, time.Time{})
	if e.Runs != forecast.Samples || e.P50 == nil || e.P95 == nil || *e.P50 <= 0 || *e.P95 < *e.P50 || len(e.VMs) != 10 {
		t.Errorf("%+v", e)
	}
	slow, err := forecast.Ask(t.Context(), cluster(5, 10), forecast.Question{Nodes: []string{"n1"}, Outbound: 1})
	if err != nil {
		t.Fatal(err)
	}
	if s := forecast.For(slow, time.Time{}); *s.P50 <= *e.P50 {
		t.Errorf("one at a time takes %v, two %v", *s.P50, *e.P50)
	}
}

func TestAForecastNamesVMsThatNoNodeTakes(t *testing.T) {
	c := cluster(3, 2)
	large := resource.MustParse("200Gi")
	c.VMIs[0].Spec.Domain.Memory = &virtv1.Memory{Guest: &large}
	for i := range c.Nodes[1:] {
		c.Nodes[i+1].Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"),
			corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	}
	f, err := forecast.Ask(t.Context(), c, forecast.Question{Nodes: []string{"n0"}})
	if err != nil {
		t.Fatal(err)
	}
	if e := forecast.For(f, time.Time{}); len(e.Unplaceable["shop/vm-0-0"]) == 0 || e.Left != 1 || e.P50 == nil || e.InTime(time.Hour) != 0 {
		t.Errorf("%+v %+v", e, f.Proofs)
	}
}

// A rate says where it came from: what was measured, else the last migration; a VM of which nothing is known has none.
// By hand: 4 GiB in 8 s are 512 MiB/s; the rest of 10 Gbit/s, 713,129,088 B/s, was written meanwhile.
func TestAForecastSaysWhereRatesAreFrom(t *testing.T) {
	c := cluster(3, 3)
	began := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ended := metav1.NewTime(began.Add(8 * time.Second))
	past := virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m"}}
	past.Spec.VMIName, past.Status.Phase = "vm-0-0", virtv1.MigrationSucceeded
	past.Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{StartTimestamp: &began, EndTimestamp: &ended, Completed: true,
		SourceNode: "n1", TargetNode: "n0"}
	c.Migrations = append(c.Migrations, past)
	measured := map[hypervisor.VMID]dirty.Rate{"shop/vm-0-1": {BytesPerSecond: 5e6, Source: "metric", At: ended.Time}}
	f, err := forecast.Ask(t.Context(), c, forecast.Question{Nodes: []string{"n0"}, Rates: measured})
	if err != nil {
		t.Fatal(err)
	}
	want := map[hypervisor.VMID]v1alpha1.WriteRate{
		"shop/vm-0-0": {BytesPerSecond: 713129088, Source: "migration shop/m", At: ended},
		"shop/vm-0-1": {BytesPerSecond: 5e6, Source: "metric", At: ended}}
	if diff := cmp.Diff(want, forecast.For(f, time.Time{}).Writes); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownNodeIsNamed(t *testing.T) {
	_, err := forecast.Ask(t.Context(), cluster(2, 1), forecast.Question{Nodes: []string{"n7"}})
	if err == nil || err.Error() != "the cluster has no node n7" {
		t.Error(err)
	}
}

func BenchmarkOfAThousandVMs(b *testing.B) {
	c := cluster(50, 20)
	for b.Loop() {
		if _, err := forecast.Ask(b.Context(), c, forecast.Question{Nodes: []string{"n1"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// Two of five nodes at once take twice the time of their service; a node that cannot be emptied is in no batch.
func TestARolloutServicesNodesInBatches(t *testing.T) {
	c := cluster(5, 10)
	for i := range c.VMIs {
		if v := &c.VMIs[i]; v.Name == "vm-4-0" {
			v.Status.Conditions[0].Status = corev1.ConditionFalse
		}
	}
	q := forecast.Rollout{Question: forecast.Question{Nodes: []string{"n0", "n1", "n2", "n3", "n4"}}, Service: time.Hour, Together: 2}
	m, err := q.Plan(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	serviced := map[string]int{}
	for _, b := range m.Batches {
		if len(b.Hosts) > 2 {
			t.Errorf("%v together", b.Hosts)
		}
		for _, h := range b.Hosts {
			serviced[string(h)]++
		}
	}
	if len(serviced) != 4 || len(m.Batches) != 2 || serviced["n4"] != 0 || len(m.Obstacles) != 1 || m.Obstacles[0].Host != "n4" {
		t.Errorf("%+v, obstacles %+v", m.Batches, m.Obstacles)
	}
	if ends := m.Times.EndsSeconds; ends == nil || *ends < 7200 || *ends > 3*3600 {
		t.Errorf("it ends after %v", ends)
	}
}

// VMs that may move to one pool only do, and stay where no node has its label; a VM's own selector wins.
func TestTargetsAreSteered(t *testing.T) {
	c := cluster(4, 3)
	c.Nodes[2].Labels["pool"], c.Nodes[3].Labels["pool"] = "b", "c"
	c.VMIs[0].Spec.NodeSelector = map[string]string{"pool": "c"}
	q := forecast.Question{Nodes: []string{"n0"}, Targets: map[string]string{"pool": "b"}}
	f, err := forecast.Ask(t.Context(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, wave := range f.Waves {
		for _, m := range wave {
			got[string(m.VM)] = string(m.Target)
		}
	}
	if len(got) != 3 || got["shop/vm-0-0"] != "n3" || got["shop/vm-0-1"] != "n2" || got["shop/vm-0-2"] != "n2" {
		t.Errorf("%v", got)
	}
	q.Targets = map[string]string{"pool": "none"}
	if f, err = forecast.Ask(t.Context(), c, q); err != nil || len(f.Left) != 2 {
		t.Errorf("%v stay, %v", f.Left, err)
	}
}

// evacuations asks for nodes to be emptied, each with a later deadline than the one before.
func evacuations(nodes ...string) (all []v1alpha1.NodeEvacuation) {
	for i, n := range nodes {
		e := v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "e-" + n}, Spec: v1alpha1.NodeEvacuationSpec{NodeName: n}}
		e.Spec.Deadline = &metav1.Time{Time: time.Unix(int64(1767225600+i), 0)}
		all = append(all, e)
	}
	return all
}

// Nodes that are emptied at once share KubeVirt's limits: the most urgent has its time alone, the last waits for the others.
func TestNodesThatAreEmptiedTogetherShareLimits(t *testing.T) {
	c := cluster(16, 10)
	alone, err := forecast.Ask(t.Context(), c, forecast.Question{Nodes: []string{"n1"}})
	if err != nil {
		t.Fatal(err)
	}
	all := forecast.Together(evacuations("n3", "n9", "n1", "n5", "n7", "n11"))
	if len(all) != 1 || len(all[0].Nodes) != 6 || len(all[0].Active) != 6 {
		t.Fatalf("%+v", all)
	}
	a, err := forecast.Ask(t.Context(), c, all[0])
	if err != nil {
		t.Fatal(err)
	}
	one := *forecast.For(alone, time.Time{}).P50
	first, last := forecast.ForNode(a, time.Time{}, "n3"), forecast.ForNode(a, time.Time{}, "n11")
	if first.P50 == nil || last.P50 == nil || *first.P50 > one*3/2 || *last.P50 < 2*one || len(first.VMs) != 10 || len(last.VMs) != 10 {
		t.Errorf("alone %v; together the first after %v, the last after %v", one, first.P50, last.P50)
	}
	if whole := forecast.For(a, time.Time{}); len(whole.VMs) != 60 || *whole.P50 != *last.P50 {
		t.Errorf("%v in all", whole.P50)
	}
}

// NodeEvacuations with other terms are asked about apart, with all nodes; VMs that stay are counted on their own node.
func TestNodeEvacuationsWithOtherTermsAreAskedAboutApart(t *testing.T) {
	c := cluster(6, 3)
	c.VMIs[0].Status.Conditions[0].Status = corev1.ConditionFalse // on n0
	es := evacuations("n0", "n1", "n2", "n0")
	es[1].Spec.Limits = &v1alpha1.Limits{ParallelOutbound: new(int32(1))}
	es[3].Name, es[3].CreationTimestamp = "younger", metav1.NewTime(time.Unix(1767225600, 0))
	all := forecast.Together(es)
	if len(all) != 2 || fmt.Sprint(all[0].Nodes, all[1].Nodes) != "[n0 n2] [n1]" || len(all[1].Active) != 3 || all[1].Outbound != 1 {
		t.Fatalf("%+v", all)
	}
	a, err := forecast.Ask(t.Context(), c, all[0])
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"n0": 1, "n1": 0, "n2": 0} {
		if e := forecast.ForNode(a, time.Time{}, node); e.Left != want || e.P50 == nil || len(e.VMs) != 3-want {
			t.Errorf("%s: %+v", node, e)
		}
	}
}

// The order of a NodeEvacuation is simulated: with one migration at a time the VM that is asked for first leaves first.
func TestAForecastKeepsToTheOrder(t *testing.T) {
	c := cluster(4, 2)
	large := resource.MustParse("32Gi")
	c.VMIs[1].Spec.Domain.Memory = &virtv1.Memory{Guest: &large}
	for order, first := range map[v1alpha1.Order]hypervisor.VMID{"": "shop/vm-0-1", v1alpha1.LargestFirst: "shop/vm-0-1",
		v1alpha1.LongestFirst: "shop/vm-0-1", v1alpha1.SmallestFirst: "shop/vm-0-0", v1alpha1.ByName: "shop/vm-0-0"} {
		e := evacuations("n0")[0]
		e.Spec.Order, e.Spec.Limits = order, &v1alpha1.Limits{ParallelOutbound: new(int32(1))}
		f, err := forecast.Ask(t.Context(), c, forecast.Of(&e))
		if err != nil {
			t.Fatal(err)
		}
		began := map[hypervisor.VMID]float64{}
		for _, wave := range f.Waves {
			for _, m := range wave {
				began[m.VM] = *m.BeginsSeconds
			}
		}
		for vm, at := range began {
			if vm != first && at <= began[first] {
				t.Errorf("%q: %v", order, began)
			}
		}
	}
}

// A VMI that cannot be read is left out, named, and stays on its node; the others are forecast, and maintenance is planned.
func TestAVMIThatCannotBeReadIsLeftOut(t *testing.T) {
	c := cluster(4, 3)
	c.VMIs[0].Spec.Domain.Memory = nil // on n0
	for node, left := range map[string]int{"n0": 1, "n1": 0} {
		f, err := forecast.Ask(t.Context(), c, forecast.Question{Nodes: []string{node}})
		if err != nil {
			t.Fatal(err)
		}
		if e := forecast.ForNode(f, time.Time{}, node); len(f.Left) != left || e.Left != left || len(e.VMs) != 3-left || f.Unreadable["shop/vm-0-0"] == "" {
			t.Errorf("%s: %+v, unreadable %v", node, e, f.Unreadable)
		}
	}
	q := forecast.Rollout{Question: forecast.Question{Nodes: []string{"n0", "n1", "n2"}}, Service: time.Hour}
	m, err := q.Plan(t.Context(), c)
	if err != nil || m.Unreadable["shop/vm-0-0"] == "" || len(m.Obstacles) != 1 || m.Obstacles[0].Host != "n0" {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, b := range m.Batches {
		if slices.Contains(b.Hosts, "n0") {
			t.Errorf("n0 is in a batch: %+v", b)
		}
	}
	if len(m.Batches) == 0 {
		t.Error("no batches")
	}
	q.Nodes = []string{"n0"}
	if m, err := q.Plan(t.Context(), c); err != nil || len(m.Batches) != 0 || len(m.Obstacles) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Of a node from which no VM leaves no time is told: another forecast would say the same.
func TestOfANodeThatKeepsItsVMsNoTimeIsTold(t *testing.T) {
	c := cluster(4, 1)
	c.VMIs[0].Status.Conditions[0].Status = corev1.ConditionFalse // on n0
	a, err := forecast.Ask(t.Context(), c, forecast.Together(evacuations("n0", "n1"))[0])
	if err != nil {
		t.Fatal(err)
	}
	if e := forecast.ForNode(a, time.Time{}, "n0"); e.Left != 1 || e.P50 != nil || e.Max != nil {
		t.Errorf("n0: %+v", e)
	}
	if e := forecast.ForNode(a, time.Time{}, "n1"); e.Left != 0 || e.P50 == nil {
		t.Errorf("n1: %+v", e)
	}
}
