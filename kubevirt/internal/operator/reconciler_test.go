package operator_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// drained is a world in which n1 with seven VMs of all kinds is emptied.
func drained(t *testing.T) *world {
	w := newWorld(t)
	w.add(w.node("n1"), w.node("n9"), w.evacuation("e", "n1"))
	for i, strategy := range []virtv1.EvictionStrategy{"", virtv1.EvictionStrategyNone, virtv1.EvictionStrategyLiveMigrate,
		virtv1.EvictionStrategyLiveMigrateIfPossible, virtv1.EvictionStrategyExternal, "", ""} {
		w.add(w.vmi(fmt.Sprintf("vm%d", i), "n1", strategy, i+1))
	}
	return w
}

func TestANodeIsEmptiedInOrderWithinTheLimits(t *testing.T) {
	w := drained(t)
	w.reconcile() // with the finalizer, and cordoned
	w.reconcile()
	if e := w.status("e"); *e.Status.VMsLeft != 7 || *e.Status.Moving != 2 || e.Status.Phase != v1alpha1.Evacuating ||
		!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionCordoned) {
		t.Fatalf("status %+v", e.Status)
	}
	var first []string
	for _, m := range w.migrations() {
		first = append(first, m.Spec.VMIName)
	}
	if fmt.Sprint(first) != "[vm5 vm6]" {
		t.Errorf("%v leave first, want the largest", first)
	}
	w.run(20)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Done || *e.Status.VMsLeft != 0 || len(e.Status.Moved) != 7 ||
		!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionDone) || e.Status.DoneAt == nil {
		t.Errorf("status %+v", e.Status)
	}
	if n := len(w.migrations()); n != 7 {
		t.Errorf("%d migrations for 7 VMs", n)
	}
	writes := w.writes
	w.run(3)
	if w.writes != writes {
		t.Errorf("%d writes while nothing changes", w.writes-writes)
	}
}

// The controller crashes at each of its writes, and sees its migrations late: no VM moves twice,
// none is forgotten.
func TestACrashAtAnyWriteForgetsNothing(t *testing.T) {
	every := 5
	if os.Getenv("GODWIT_LONG") != "" {
		every = 1
	}
	for _, hidden := range []int{0, 3} {
		for crash := hidden; crash < 40; crash += every {
			w := drained(t)
			w.crash, w.hidden = crash, hidden
			w.run(25)
			e := w.status("e")
			if e.Status.Phase != v1alpha1.Done || len(w.migrations()) != 7 {
				t.Fatalf("crash after %d writes: %s, %d migrations", crash, e.Status.Phase, len(w.migrations()))
			}
			if err := w.client.Delete(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			w.crash = crash % 3
			w.run(3)
			if n := w.theNode("n1"); n.Spec.Unschedulable || n.Annotations[v1alpha1.CordonedByAnnotation] != "" {
				t.Fatalf("crash after %d writes: the node is still cordoned", crash)
			}
			if err := w.client.Get(t.Context(), types.NamespacedName{Name: "e"}, e); !apierrors.IsNotFound(err) {
				t.Fatalf("crash after %d writes: the NodeEvacuation is still there: %v", crash, err)
			}
		}
	}
}

func (w *world) theNode(name string) *corev1.Node {
	w.t.Helper()
	var n corev1.Node
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		w.t.Fatal(err)
	}
	return &n
}

func TestDeletionCancelsWhatHasNotBegun(t *testing.T) {
	w := drained(t)
	w.reconcile()
	w.reconcile()
	ms := w.migrations()
	ms[0].Status.Phase = virtv1.MigrationRunning
	if err := w.client.Update(t.Context(), &ms[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), w.status("e")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	left := w.migrations()
	if len(left) != 1 || left[0].Name != ms[0].Name {
		t.Errorf("migrations %d, want the one that runs", len(left))
	}
	if w.theNode("n1").Spec.Unschedulable {
		t.Error("the node is cordoned")
	}
	w.run(3)
	if n := len(w.migrations()); n != 1 {
		t.Errorf("%d migrations", n)
	}
}

func TestANodeThatWasCordonedBeforeStaysSo(t *testing.T) {
	w := newWorld(t)
	n := w.node("n1")
	n.Spec.Unschedulable = true
	w.add(n, w.node("n9"), w.evacuation("e", "n1"))
	w.run(2)
	if err := w.client.Delete(t.Context(), w.status("e")); err != nil {
		t.Fatal(err)
	}
	w.run(2)
	if !w.theNode("n1").Spec.Unschedulable {
		t.Error("it was uncordoned")
	}
}

// KubeVirt's own evacuation controller has VMs of its own: none of them is touched.
func TestVMsOfKubeVirtAreLeftToIt(t *testing.T) {
	for name, test := range map[string]struct {
		strategy        virtv1.EvictionStrategy
		marked, named   bool
		taint, migrates bool
	}{
		"External, marked":                       {virtv1.EvictionStrategyExternal, true, false, false, true},
		"External, not marked":                   {virtv1.EvictionStrategyExternal, false, false, false, false},
		"External, not marked, with the taint":   {virtv1.EvictionStrategyExternal, false, false, true, false},
		"External, named":                        {virtv1.EvictionStrategyExternal, false, true, false, true},
		"External, marked and named":             {virtv1.EvictionStrategyExternal, true, true, false, true},
		"LiveMigrate, marked":                    {virtv1.EvictionStrategyLiveMigrate, true, false, false, false},
		"LiveMigrate, marked and named":          {virtv1.EvictionStrategyLiveMigrate, true, true, false, false},
		"LiveMigrate, named":                     {virtv1.EvictionStrategyLiveMigrate, false, true, false, true},
		"LiveMigrate, named, with the taint":     {virtv1.EvictionStrategyLiveMigrate, false, true, true, false},
		"IfPossible, marked and named":           {virtv1.EvictionStrategyLiveMigrateIfPossible, true, true, false, false},
		"None, marked":                           {virtv1.EvictionStrategyNone, true, false, false, false},
		"None, named":                            {virtv1.EvictionStrategyNone, false, true, false, true},
		"None, named, with KubeVirt's own taint": {virtv1.EvictionStrategyNone, false, true, true, true},
	} {
		w := newWorld(t)
		n := w.node("n1")
		if test.taint {
			n.Spec.Taints = []corev1.Taint{{Key: "kubevirt.io/drain", Effect: corev1.TaintEffectNoSchedule}}
		}
		v := w.vmi("vm", "n1", test.strategy, 1)
		if test.marked {
			v.Status.EvacuationNodeName = "n1"
		}
		w.add(n, w.node("n9"), v)
		if test.named {
			w.add(w.evacuation("e", "n1"))
		}
		w.reconcile()
		if got := len(w.migrations()) == 1; got != test.migrates {
			t.Errorf("%s: migrates %t", name, got)
		}
	}
}

func TestAMigrationOfOthersIsEnough(t *testing.T) {
	w := drained(t)
	m := &virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-hand", UID: "x"},
		Spec: virtv1.VirtualMachineInstanceMigrationSpec{VMIName: "vm6"}}
	w.add(m)
	w.run(20)
	if e := w.status("e"); e.Status.Phase != v1alpha1.Done || len(w.migrations()) != 7 {
		t.Errorf("%s, %d migrations", e.Status.Phase, len(w.migrations()))
	}
}

func TestAFailedMigrationIsTriedAgainLater(t *testing.T) {
	w := drained(t)
	w.fails["vm6"] = 2
	w.run(40)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Done || len(w.migrations()) != 9 {
		t.Errorf("%s, %d migrations: %+v", e.Status.Phase, len(w.migrations()), e.Status)
	}
	for _, m := range e.Status.Moved {
		if m.Name == "vm6" && (m.Failures != 2 || m.Outcome != v1alpha1.OutcomeSucceeded || m.TargetNode != "n9") {
			t.Errorf("%+v", m)
		}
	}
}

func TestVMsThatCannotMoveBlockWithReasonsAndHelp(t *testing.T) {
	w := newWorld(t)
	protected := w.vmi("protected", "n1", virtv1.EvictionStrategyLiveMigrate, 1)
	expendable := w.vmi("expendable", "n1", "", 1)
	for _, v := range []*virtv1.VirtualMachineInstance{protected, expendable} {
		v.Status.Conditions[0].Status = corev1.ConditionFalse
		v.Status.Conditions[0].Reason = virtv1.VirtualMachineInstanceReasonDisksNotMigratable
		v.Status.Conditions[0].Message = "cannot migrate VMI with non-shared PVCs"
		w.add(w.pod(v))
	}
	w.add(w.node("n1"), w.node("n9"), w.evacuation("e", "n1"), protected, expendable)
	w.run(2)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Blocked || *e.Status.Blocked != 2 || e.Status.ETA != "never" {
		t.Fatalf("%+v", e.Status)
	}
	for _, b := range e.Status.BlockedVMs {
		if !strings.Contains(fmt.Sprint(b.Reasons), "non-shared PVCs") || !strings.Contains(fmt.Sprint(b.Help), "ReadWriteMany") {
			t.Errorf("%+v", b)
		}
		if shutDown := strings.Contains(fmt.Sprint(b.Help), "ShutDown"); shutDown != (b.Name == "expendable") {
			t.Errorf("%s: is to be shut down: %t", b.Name, shutDown)
		}
	}
	e.Spec.Unmovable = v1alpha1.ShutDown
	if err := w.client.Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.run(2)
	var pods corev1.PodList
	if err := w.client.List(t.Context(), &pods); err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "virt-launcher-protected" {
		t.Errorf("pods %v, %v", pods.Items, err)
	}
}

func TestAFullQuotaHoldsAVMAndNoOther(t *testing.T) {
	w := drained(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.memory": resource.MustParse("20Gi")}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard,
		Used: corev1.ResourceList{"requests.memory": resource.MustParse("19Gi")}}
	v := w.vmi("large", "n1", "", 18)
	v.Namespace = "full"
	w.add(quota, v)
	w.run(25)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Blocked || *e.Status.VMsLeft != 1 || len(e.Status.Moved) != 7 {
		t.Fatalf("%+v", e.Status)
	}
	if b := e.Status.BlockedVMs[0]; b.Name != "large" || !strings.Contains(fmt.Sprint(b.Reasons), "full/q") {
		t.Errorf("%+v", b)
	}
}

func TestADisruptionBudgetHoldsBack(t *testing.T) {
	w := drained(t)
	selects := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "vm",
		Operator: metav1.LabelSelectorOpIn, Values: []string{"vm5", "vm6"}}}}
	w.add(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "both"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &selects}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}})
	for i := range 7 {
		w.add(w.pod(w.vm(fmt.Sprintf("vm%d", i))))
	}
	w.reconcile()
	var first []string
	for _, m := range w.migrations() {
		first = append(first, m.Spec.VMIName)
	}
	if fmt.Sprint(first) != "[vm4 vm6]" {
		t.Errorf("%v leave first", first)
	}
	w.run(25)
	if e := w.status("e"); e.Status.Phase != v1alpha1.Done {
		t.Errorf("%+v", e.Status)
	}
}

func TestTheSecondOfTwoForANodeWaits(t *testing.T) {
	w := drained(t)
	w.add(w.evacuation("later", "n1"))
	w.run(1)
	if e := w.status("later"); e.Status.Phase != v1alpha1.Conflict {
		t.Fatalf("%+v", e.Status)
	}
	if err := w.client.Delete(t.Context(), w.status("e")); err != nil {
		t.Fatal(err)
	}
	w.run(25)
	if e := w.status("later"); e.Status.Phase != v1alpha1.Done || !w.theNode("n1").Spec.Unschedulable {
		t.Errorf("%+v", e.Status)
	}
	if err := w.client.Delete(t.Context(), w.status("later")); err != nil {
		t.Fatal(err)
	}
	w.run(2)
	if w.theNode("n1").Spec.Unschedulable {
		t.Error("the node is still cordoned")
	}
}

func TestAnUnknownNodeIsSaid(t *testing.T) {
	w := newWorld(t)
	w.add(w.evacuation("e", "ghost"))
	w.run(1)
	if e := w.status("e"); e.Status.Phase != v1alpha1.NodeNotFound {
		t.Errorf("%+v", e.Status)
	}
	if err := w.client.Delete(t.Context(), w.status("e")); err != nil {
		t.Fatal(err)
	}
	w.run(1)
}

func TestAVMThatCannotBeReadKeepsNoOther(t *testing.T) {
	w := drained(t)
	v := w.vmi("odd", "n1", "", 1)
	v.Spec.Domain.Memory = nil
	w.add(v)
	w.run(25)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Blocked || len(e.Status.Moved) != 7 || len(e.Status.BlockedVMs) != 1 ||
		e.Status.BlockedVMs[0].Name != "odd" || !strings.Contains(e.Status.BlockedVMs[0].Reasons[0], "a VM needs memory") {
		t.Errorf("%+v", e.Status)
	}
}

func TestANodeThatIsNotReadySendsNothing(t *testing.T) {
	w := drained(t)
	n := w.theNode("n1")
	n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	if err := w.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.run(2)
	if e := w.status("e"); e.Status.Phase != v1alpha1.Blocked || len(w.migrations()) != 0 ||
		!strings.Contains(fmt.Sprint(e.Status.BlockedVMs[0].Reasons), "n1 is not ready (NodeStatusUnknown)") {
		t.Errorf("%+v, %d migrations", e.Status, len(w.migrations()))
	}
}

// A VM whose pod was bound to the node before the cordon starts there: the node is not empty, and the VM leaves it then.
func TestAVMThatStartsIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	v := w.vmi("late", "n1", "", 1)
	v.Status.NodeName, v.Status.Phase = "", virtv1.Scheduling
	w.add(w.node("n1"), w.node("n9"), w.evacuation("e", "n1"), v, w.pod(v))
	w.run(2)
	e := w.status("e")
	if e.Status.Phase != v1alpha1.Evacuating || *e.Status.VMsLeft != 1 || e.Status.VMs[0].State != v1alpha1.Arriving {
		t.Fatalf("%+v", e.Status)
	}
	v = w.vm("late")
	v.Status.NodeName, v.Status.Phase = "n1", virtv1.Running
	if err := w.client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	w.run(5)
	if e := w.status("e"); e.Status.Phase != v1alpha1.Done || len(e.Status.Moved) != 1 {
		t.Errorf("%+v", e.Status)
	}
}

func TestAForecastOrdersAndIsSaid(t *testing.T) {
	w := newWorld(t)
	e := w.evacuation("e", "n1")
	e.Spec.Order = v1alpha1.LongestFirst
	e.Spec.Deadline = &metav1.Time{Time: w.now.Add(time.Minute)}
	w.add(w.node("n1"), w.node("n9"), e, w.vmi("large", "n1", "", 64), w.vmi("medium", "n1", "", 8), w.vmi("busy", "n1", "", 4))
	half, most := 40*time.Second, 70*time.Second
	rate := v1alpha1.WriteRate{BytesPerSecond: 7, Source: "metric", At: metav1.NewTime(w.now)}
	w.r.Forecasts = func() map[string]*evacuate.Forecast {
		return map[string]*evacuate.Forecast{"e": {At: w.now, P50: &half, P95: &most, P99: &most, Max: &most, Runs: 20,
			Writes: map[hypervisor.VMID]v1alpha1.WriteRate{"shop/busy": rate},
			VMs: map[hypervisor.VMID]evacuate.Expectation{"shop/large": {Seconds: 1}, "shop/medium": {Seconds: 2},
				"shop/busy": {Seconds: 100, Converges: true, DowntimeMilliseconds: 80}}}}
	}
	w.reconcile()
	var first []string
	for _, m := range w.migrations() {
		first = append(first, m.Spec.VMIName)
	}
	if fmt.Sprint(first) != "[busy medium]" {
		t.Errorf("%v leave first", first)
	}
	s := w.status("e").Status
	met := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDeadlineMet)
	if s.ETA != "2026-01-01T00:00:40Z" || *s.Estimate.DeadlineProbability != 50 || met == nil ||
		met.Status != metav1.ConditionFalse {
		t.Errorf("%+v", s)
	}
	for _, v := range s.VMs {
		if (v.Writes != nil) != (v.Name == "busy") || v.Writes != nil && (v.Writes.Source != "metric" || v.Writes.BytesPerSecond != 7 || !v.Writes.At.Equal(&rate.At)) {
			t.Errorf("%s writes %+v", v.Name, v.Writes)
		}
	}
}

// A VM that stays in the simulations keeps the node from being empty, whatever the others do.
func TestAForecastWithVMsThatStayIsNever(t *testing.T) {
	w := newWorld(t)
	e := w.evacuation("e", "n1")
	e.Spec.Deadline = &metav1.Time{Time: w.now.Add(time.Hour)}
	w.add(w.node("n1"), w.node("n9"), e, w.vmi("large", "n1", "", 64), w.vmi("small", "n1", "", 1))
	soon := 40 * time.Second
	w.r.Forecasts = func() map[string]*evacuate.Forecast {
		return map[string]*evacuate.Forecast{"e": {At: w.now, P50: &soon, P95: &soon, P99: &soon, Max: &soon, Runs: 20, Left: 1}}
	}
	w.reconcile()
	s := w.status("e").Status
	met := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDeadlineMet)
	if s.ETA != "never" || s.Estimate.P50 == nil || *s.Estimate.DeadlineProbability != 0 || met == nil ||
		met.Status != metav1.ConditionFalse || met.Reason != "VMsStay" {
		t.Errorf("%+v", s)
	}
}

// A grace period below a second, or with a part of one, is rounded up: 0 seconds would kill the guest.
func TestAGracePeriodIsRoundedUp(t *testing.T) {
	for grace, want := range map[time.Duration]int64{time.Nanosecond: 1, 500 * time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2} {
		w := newWorld(t)
		e := w.evacuation("e", "n1")
		e.Spec.Unmovable, e.Spec.Grace = v1alpha1.ShutDown, &metav1.Duration{Duration: grace}
		v := w.vmi("stuck", "n1", "", 1)
		v.Status.Conditions[0].Status = corev1.ConditionFalse
		w.add(w.node("n1"), w.node("n9"), e, v, w.pod(v))
		evicted := 0
		w.evict = func(e *policyv1.Eviction) error {
			if evicted++; *e.DeleteOptions.GracePeriodSeconds != want {
				t.Errorf("%v: %d s, want %d", grace, *e.DeleteOptions.GracePeriodSeconds, want)
			}
			return nil
		}
		if w.reconcile(); evicted != 1 {
			t.Errorf("%v: %d evictions", grace, evicted)
		}
	}
}

// warnings returns the warnings that were recorded.
func (w *world) warnings() (all []string) {
	for {
		select {
		case e := <-w.events.Events:
			if strings.HasPrefix(e, corev1.EventTypeWarning) {
				all = append(all, e)
			}
		default:
			return all
		}
	}
}

// A migration that the API server refuses takes no place from others, is not said to run, and is tried again ever less often.
func TestAMigrationThatIsRefusedTakesNoPlace(t *testing.T) {
	w := newWorld(t)
	w.add(w.node("n1"), w.node("n9"), w.evacuation("e", "n1"))
	for i := range 5 {
		w.add(w.vmi(fmt.Sprintf("vm%d", i), "n1", "", i+1))
	}
	tries, refuses := 0, true
	w.create = func(o client.Object) error {
		m := o.(*virtv1.VirtualMachineInstanceMigration)
		if refuses && (m.Spec.VMIName == "vm4" || m.Spec.VMIName == "vm3") {
			tries++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "migrations"}, m.Name, errors.New("the policy says no"))
		}
		return nil
	}
	w.reconcile()
	var first []string
	for _, m := range w.migrations() {
		first = append(first, m.Spec.VMIName)
	}
	s := w.status("e").Status
	if fmt.Sprint(first) != "[vm1 vm2]" || *s.Moving != 2 || tries != 2 || len(w.warnings()) != 2 {
		t.Errorf("%v leave first, %d tries: %+v", first, tries, s)
	}
	for _, v := range s.VMs {
		refused := v.Name == "vm4" || v.Name == "vm3"
		if (v.State == v1alpha1.Waiting && strings.Contains(v.Reason, "the policy says no")) != refused || refused && v.Migration != "" {
			t.Errorf("%+v", v)
		}
	}
	w.run(30) // 300 s: tries after 10, 20, 40, 80 and 160 s more
	if s := w.status("e").Status; s.Phase != v1alpha1.Blocked || *s.VMsLeft != 2 || len(s.Moved) != 3 || tries != 10 ||
		!strings.Contains(fmt.Sprint(s.BlockedVMs), "the policy says no") || !strings.Contains(fmt.Sprint(s.BlockedVMs), "change what refuses the migration") {
		t.Errorf("%d tries: %+v", tries, s)
	}
	refuses = false
	w.run(40)
	if s := w.status("e").Status; s.Phase != v1alpha1.Done || len(s.Moved) != 5 {
		t.Errorf("%+v", s)
	}
}

// An eviction that a disruption budget refuses is said to wait, and then to block, in the words of the API server; the decision's time
// to look again holds.
func TestAnEvictionThatIsRefusedIsSaid(t *testing.T) {
	w := newWorld(t)
	e := w.evacuation("e", "n1")
	e.Spec.Unmovable = v1alpha1.ShutDown
	v := w.vmi("stuck", "n1", "", 1)
	v.Status.Conditions[0].Status = corev1.ConditionFalse
	w.add(w.node("n1"), w.node("n9"), e, v, w.pod(v))
	tries := 0
	w.evict = func(*policyv1.Eviction) error {
		tries++
		return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	}
	again, err := w.r.Reconcile(t.Context(), reconcile.Request{})
	s := w.status("e").Status
	if err != nil || again.RequeueAfter <= 0 || again.RequeueAfter > 10*time.Second || tries != 1 || len(s.VMs) != 1 || s.VMs[0].State != v1alpha1.Waiting ||
		!strings.Contains(s.VMs[0].Reason, "disruption budget") || len(w.warnings()) != 1 {
		t.Errorf("again after %v, %v, %d tries: %+v", again.RequeueAfter, err, tries, s)
	}
	w.run(10) // 100 s: tries after 10, 20, 40 s more
	if s = w.status("e").Status; s.Phase != v1alpha1.Blocked || tries != 4 || !strings.Contains(fmt.Sprint(s.BlockedVMs), "disruption budget") {
		t.Errorf("%d tries: %+v", tries, s)
	}
	w.evict = nil
	w.run(40)
	var pods corev1.PodList
	if err := w.client.List(t.Context(), &pods); err != nil || len(pods.Items) != 0 {
		t.Errorf("%v, %v", pods.Items, err)
	}
}

// A mark for a node that the VM is not on, or that is gone, keeps no VM.
func TestAMarkForAnotherNodeKeepsNoVM(t *testing.T) {
	w := newWorld(t)
	w.add(w.node("n1"), w.node("n5"), w.node("n9"), w.evacuation("e", "n1"))
	for name, mark := range map[string]string{"a": "n5", "b": "gone"} {
		v := w.vmi(name, "n1", virtv1.EvictionStrategyExternal, 1)
		v.Status.EvacuationNodeName = mark
		w.add(v)
	}
	w.run(5)
	if e := w.status("e"); e.Status.Phase != v1alpha1.Done || len(e.Status.Moved) != 2 {
		t.Errorf("%+v", e.Status)
	}
}

// An API server that refuses everything is not asked for all VMs at once; no VM is said to move meanwhile, and it goes on a second later.
func TestAnAPIServerThatRefusesAllIsNotAskedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.add(w.node("n1"), w.node("n9"), w.evacuation("e", "n1"))
	for i := range 60 {
		w.add(w.vmi(fmt.Sprintf("vm%d", i), "n1", "", 1))
	}
	tries := 0
	w.create = func(client.Object) error {
		tries++
		return apierrors.NewInternalError(errors.New("failed calling webhook"))
	}
	for _, want := range []int{20, 40, 60, 60} {
		again, err := w.r.Reconcile(t.Context(), reconcile.Request{})
		s := w.status("e").Status
		if err != nil || tries != want || *s.Moving != 0 || *s.VMsLeft != 60 || again.RequeueAfter <= 0 || want < 60 && again.RequeueAfter != time.Second {
			t.Errorf("%d tries, want %d, again after %v, %v: %d move", tries, want, again.RequeueAfter, err, *s.Moving)
		}
	}
}
