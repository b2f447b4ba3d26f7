package evacuate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// A node is not empty while a migration has chosen it, or a pod of a VM starts on it. A pod that has ended, and that
// KubeVirt lists with the others, does not count, and neither does one that the VM has left.
func TestANodeIsNotDoneWhileVMsArrive(t *testing.T) {
	pod := func(v *evacuate.View, node, job string) {
		v.VMIs[0].Status.ActivePods["target"] = node
		v.Launchers = append(v.Launchers, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "target", UID: "target",
			Labels: map[string]string{virtv1.CreatedByLabel: "vmi-a", virtv1.MigrationJobLabel: job}}})
	}
	for _, c := range []struct {
		name    string
		change  func(v *evacuate.View)
		arrives bool
	}{
		{"its migration has no target", func(*evacuate.View) {}, false},
		{"its migration has chosen the node", func(v *evacuate.View) {
			v.VMIs[0].Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{MigrationUID: "m-a", TargetNode: "n1"}
		}, true},
		{"its migration has chosen another node", func(v *evacuate.View) {
			v.VMIs[0].Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{MigrationUID: "m-a", TargetNode: "n3"}
		}, false},
		{"an earlier migration had chosen the node", func(v *evacuate.View) {
			v.VMIs[0].Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{MigrationUID: "m-0", TargetNode: "n1"}
		}, false},
		{"its target pod is on the node", func(v *evacuate.View) { pod(v, "n1", "m-a") }, true},
		{"its target pod is on another node", func(v *evacuate.View) { pod(v, "n3", "m-a") }, false},
		{"the pod of an earlier migration is on the node", func(v *evacuate.View) { pod(v, "n1", "m-0") }, false},
		{"a pod on the node has ended", func(v *evacuate.View) { v.VMIs[0].Status.ActivePods["ended"] = "n1" }, false},
		{"a pod on the node ends, and nothing moves", func(v *evacuate.View) {
			pod(v, "n1", "")
			v.Migrations = nil
		}, false},
		{"it starts on the node", func(v *evacuate.View) {
			v.Migrations, v.VMIs[0].Status.Phase, v.VMIs[0].Status.NodeName = nil, virtv1.Scheduling, ""
			v.VMIs[0].Status.ActivePods["pod-a-0"] = "n1"
		}, true},
		{"it starts on another node", func(v *evacuate.View) {
			v.Migrations, v.VMIs[0].Status.Phase, v.VMIs[0].Status.NodeName = nil, virtv1.Scheduling, ""
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{guests: []guest{{name: "a", node: "n2", gib: 1, flight: "Scheduling"}}, perCluster: 5, perNode: 2,
				nodes: []string{"n1", "n2", "n3"}, evacuated: []string{"n1"}}
			v := s.view()
			c.change(v)
			d := evacuate.Decide(v)
			e := d.Status["e-n1"]
			if done := e.Phase == v1alpha1.Done; done == c.arrives || done != meta.IsStatusConditionTrue(e.Conditions, v1alpha1.ConditionDone) {
				t.Errorf("%+v", e)
			}
			if !c.arrives {
				return
			}
			if e.Phase != v1alpha1.Evacuating || *e.VMsLeft != 1 || len(e.VMs) != 1 || e.VMs[0].State != v1alpha1.Arriving || e.VMs[0].Name != "a" ||
				e.VMs[0].Reason == "" || d.Again <= 0 || d.Again > time.Minute {
				t.Errorf("%+v, again after %v", e, d.Again)
			}
		})
	}
}

// KubeVirt lists the pod that a migration has left, ended: it is no copy of the VM that would keep it from moving again, and
// no pod to be evicted.
func TestAVMThatHasMovedMovesAgain(t *testing.T) {
	s := &scene{guests: []guest{{name: "a", node: "n1", gib: 1}, {name: "b", node: "n1", gib: 1, stuck: true}}, perCluster: 5, perNode: 2,
		nodes: []string{"n1", "n2"}, evacuated: []string{"n1"}, unmovable: v1alpha1.ShutDown}
	v := s.view()
	for i := range v.VMIs {
		v.VMIs[i].Status.ActivePods["ended-before"] = "n1"
		v.VMIs[i].Status.ActivePods["ended"] = "n2"
	}
	d := evacuate.Decide(v)
	if !created(d)["a"] || len(d.Evict) != 1 || d.Evict[0].UID != "pod-b-0" {
		t.Errorf("%v set off, evictions %+v: %+v", created(d), d.Evict, d.Status["e-n1"])
	}
	if v.VMIs[0].Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Error("it is not migratable")
	}
}
