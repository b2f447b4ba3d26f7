package convert_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduler "k8s.io/component-helpers/resource"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/convert"
)

// What pods take of a node is what Kubernetes' own code counts of them.
func TestPodsTakeWhatTheSchedulerCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const nic = "example.com/nic"
	for range 500 {
		n := node("n1", "400", "4Ti")
		n.Status.Allocatable[corev1.ResourceHugePagesPrefix+"2Mi"] = resource.MustParse("1Ti")
		n.Status.Allocatable[nic] = resource.MustParse("1000")
		c := &convert.Cluster{Nodes: []corev1.Node{n}}
		var milli, memory, pages, nics int64
		for i := range rng.IntN(4) {
			p := randomPod(rng, fmt.Sprint("p", i), nic)
			if p.Status.Phase == corev1.PodRunning {
				r := scheduler.PodRequests(p, scheduler.PodResourcesOptions{})
				huge, devices := r[corev1.ResourceHugePagesPrefix+"2Mi"], r[nic]
				milli, memory = milli+r.Cpu().MilliValue(), memory+r.Memory().Value()
				pages, nics = pages+huge.Value(), nics+devices.Value()
			}
			c.Pods = append(c.Pods, *p)
		}
		f, err := convert.Fleet("cluster", c, inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		h := f.Hosts[0]
		cpus := int((400_000 - milli) * 10 / 1000)
		room := 5*hypervisor.TiB - hypervisor.Bytes(memory+pages)
		if h.CPUs != cpus || h.Memory != room || int64(h.Facts.Devices[0].Count) != 1000-nics {
			t.Fatalf("the node has %d CPUs, %v, %d devices; want %d, %v, %d; pods %+v", h.CPUs, h.Memory, h.Facts.Devices[0].Count,
				cpus, room, 1000-nics, c.Pods)
		}
	}
}

func node(name, cpu, memory string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{virtv1.NodeSchedulable: "true"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}
}

// randomPod returns a pod on n1 with containers of all kinds.
func randomPod(rng *rand.Rand, name string, nic corev1.ResourceName) *corev1.Pod {
	some := func() corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, q := range map[corev1.ResourceName]*resource.Quantity{
			corev1.ResourceCPU:                     resource.NewMilliQuantity(rng.Int64N(50)*100, resource.DecimalSI),
			corev1.ResourceMemory:                  resource.NewQuantity(rng.Int64N(1<<34), resource.BinarySI),
			corev1.ResourceHugePagesPrefix + "2Mi": resource.NewQuantity(rng.Int64N(100)<<21, resource.BinarySI),
			nic:                                    resource.NewQuantity(rng.Int64N(5), resource.DecimalSI),
		} {
			if rng.IntN(3) > 0 {
				all[name] = *q
			}
		}
		return all
	}
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodFailed}[rng.IntN(3)]}}
	for range rng.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: some()}})
	}
	for range rng.IntN(4) {
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: some()}}
		if rng.IntN(2) == 0 {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if rng.IntN(3) == 0 {
		p.Spec.Overhead = some()
	}
	if rng.IntN(3) == 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: some()}
	}
	return p
}

// A VM that cannot be read takes no room of its node in the fleet: its pod does.
func TestThePodOfAVMThatCannotBeReadTakesItsRoom(t *testing.T) {
	vmi := virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "odd"},
		Status: virtv1.VirtualMachineInstanceStatus{NodeName: "n1"}}
	launcher := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "virt-launcher-odd",
		Labels: map[string]string{virtv1.AppLabel: "virt-launcher"}, Annotations: map[string]string{virtv1.DomainAnnotation: "odd"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}}}}}}
	f, wrong, err := convert.Sound("cluster", &convert.Cluster{Nodes: []corev1.Node{node("n1", "16", "64Gi")},
		VMIs: []virtv1.VirtualMachineInstance{vmi}, Pods: []corev1.Pod{launcher}}, inventory.Defaults{})
	if err != nil || len(wrong) != 1 || f.Hosts[0].Memory != 56*hypervisor.GiB {
		t.Errorf("%v, left out %v, %+v", err, wrong, f)
	}
}
