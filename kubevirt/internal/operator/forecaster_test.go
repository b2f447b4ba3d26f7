package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	migrationsv1 "kubevirt.io/api/migrations/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// A forecast is made anew by time while VMs should be leaving and do not; nothing is told while all stays as it was.
func TestAForecastIsMadeAnewByTime(t *testing.T) {
	for _, c := range []struct {
		name       string
		migratable corev1.ConditionStatus
		told       int // in an hour, at least
		most       int
	}{
		{"the VM should have left", corev1.ConditionTrue, 20, 61},
		{"the VM cannot leave", corev1.ConditionFalse, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"},
				Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n1"}}
			all := emptied(t, e, c.migratable)
			synctest.Test(t, func(t *testing.T) {
				f := NewForecaster(all, time.Now)
				ctx, cancel := context.WithCancel(t.Context())
				go f.Start(ctx)
				f.Want([]v1alpha1.NodeEvacuation{*e})
				told := 0
				for range 3600 {
					time.Sleep(time.Second)
					synctest.Wait()
					select {
					case <-f.done:
						told++
					default:
					}
				}
				if told < c.told || told > c.most {
					t.Errorf("told %d times in an hour, want from %d to %d", told, c.told, c.most)
				}
				if made := f.Forecasts()["e"]; made == nil || (made.P50 != nil) != (c.migratable == corev1.ConditionTrue) {
					t.Errorf("%+v", made)
				} else if age := f.Now().Sub(made.At); made.P50 != nil && age > 3*time.Minute {
					t.Errorf("it is %s old", age)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// emptied is a cluster in which n1, with a VM, is emptied, and with more objects.
func emptied(t *testing.T, e *v1alpha1.NodeEvacuation, migratable corev1.ConditionStatus, more ...client.Object) client.Client {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{virtv1.NodeSchedulable: "true"}},
			Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	}
	memory, strategy := resource.MustParse("4Gi"), virtv1.EvictionStrategyExternal
	v := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: virtv1.VirtualMachineInstanceSpec{EvictionStrategy: &strategy,
			Domain: virtv1.DomainSpec{Memory: &virtv1.Memory{Guest: &memory}}},
		Status: virtv1.VirtualMachineInstanceStatus{Phase: virtv1.Running, NodeName: "n1",
			Conditions: []virtv1.VirtualMachineInstanceCondition{{Type: virtv1.VirtualMachineInstanceIsMigratable, Status: migratable}}}}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, v, node("n1"), node("n2")).WithObjects(more...)
	for _, i := range Indexes() {
		b = b.WithIndex(i.Object, i.Name, i.Extract)
	}
	return b.Build()
}

// A MigrationPolicy that caps the migrations of a namespace makes the evacuation longer by the cap.
func TestAForecastKeepsToMigrationPolicies(t *testing.T) {
	e := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"},
		Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n1"}}
	all := emptied(t, e, corev1.ConditionTrue)
	ask := func() time.Duration {
		t.Helper()
		made, err := NewForecaster(all, time.Now).ask(t.Context(), []v1alpha1.NodeEvacuation{*e})
		if err != nil || made["e"] == nil || made["e"].P50 == nil {
			t.Fatalf("%+v, %v", made, err)
		}
		return *made["e"].P50
	}
	free, slow := ask(), resource.MustParse("64Mi")
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"tier": "slow"}}},
		&migrationsv1.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: migrationsv1.MigrationPolicySpec{
			BandwidthPerMigration: &slow,
			Selectors:             &migrationsv1.Selectors{NamespaceSelector: migrationsv1.LabelSelector{"tier": "slow"}}}},
	} {
		if err := all.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if capped := ask(); capped < 10*free || capped < 30*time.Second {
		t.Errorf("%v with 64 MiB/s, %v without a cap", capped, free)
	}
}

// Where other pods have taken the only other node, the VM has no place.
func TestAForecastKnowsWhatOtherPodsTake(t *testing.T) {
	e := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"},
		Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n1"}}
	other := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}, Spec: corev1.PodSpec{NodeName: "n2",
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("254Gi")}}}}}}
	for _, pods := range [][]corev1.Pod{nil, {other}} {
		f, now, reads := NewForecaster(emptied(t, e, corev1.ConditionTrue), time.Now), time.Now(), 0
		f.Pods = remembered(func() time.Time { return now }, func(context.Context) ([]corev1.Pod, error) {
			reads++
			return pods, nil
		})
		for _, later := range []time.Duration{0, podsAge - 1, 1} {
			now = now.Add(later)
			made, err := f.ask(t.Context(), []v1alpha1.NodeEvacuation{*e})
			if err != nil || made["e"] == nil || len(made["e"].Unplaceable) != len(pods) {
				t.Fatalf("with %d pods: %+v, %v", len(pods), made["e"], err)
			}
		}
		if reads != 2 {
			t.Errorf("the pods were read %d times in %v, want 2", reads, podsAge)
		}
	}
}

// What is remembered of pods is better than nothing when they cannot be read.
func TestPodsAreRememberedWhenTheyCannotBeRead(t *testing.T) {
	now, fails := time.Now(), false
	read := remembered(func() time.Time { return now }, func(context.Context) ([]corev1.Pod, error) {
		if fails {
			return nil, errors.New("refused")
		}
		return make([]corev1.Pod, 2), nil
	})
	if all, err := read(t.Context()); len(all) != 2 || err != nil {
		t.Fatal(all, err)
	}
	now, fails = now.Add(podsAge), true
	if all, err := read(t.Context()); len(all) != 2 || err == nil {
		t.Error(all, err)
	}
}

// A VMI is of concern where it is, where it starts and where it migrates to.
func TestAVMIConcernsTheNodesThatItComesTo(t *testing.T) {
	r := &Reconciler{}
	r.nodes.Store(&map[string]bool{"n1": true})
	end := metav1.Now()
	for _, c := range []struct {
		name   string
		status virtv1.VirtualMachineInstanceStatus
		want   bool
	}{
		{"it is there", virtv1.VirtualMachineInstanceStatus{NodeName: "n1"}, true},
		{"it is elsewhere", virtv1.VirtualMachineInstanceStatus{NodeName: "n2", ActivePods: map[types.UID]string{"a": "n2"}}, false},
		{"it starts there", virtv1.VirtualMachineInstanceStatus{ActivePods: map[types.UID]string{"a": "n1"}}, true},
		{"it migrates there", virtv1.VirtualMachineInstanceStatus{NodeName: "n2",
			MigrationState: &virtv1.VirtualMachineInstanceMigrationState{TargetNode: "n1"}}, true},
		{"it should have come there", virtv1.VirtualMachineInstanceStatus{NodeName: "n2",
			MigrationState: &virtv1.VirtualMachineInstanceMigrationState{TargetNode: "n1", EndTimestamp: &end}}, false},
	} {
		if got := r.concerned(&virtv1.VirtualMachineInstance{Status: c.status}); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhenTwoForecastsSayTheSame(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(at time.Time, seconds int) *evacuate.Forecast {
		after := time.Duration(seconds) * time.Second
		return &evacuate.Forecast{At: at, P50: &after, P95: &after}
	}
	never := &evacuate.Forecast{At: at}
	for _, c := range []struct {
		name string
		a, b *evacuate.Forecast
		want bool
	}{
		{"none before", nil, never, false},
		{"never, later again", never, &evacuate.Forecast{At: at.Add(time.Hour)}, true},
		{"never, then once", never, of(at, 600), false},
		{"the same time of the day", of(at, 600), of(at.Add(5*time.Minute), 300), true},
		{"half a minute later", of(at, 600), of(at.Add(5*time.Minute), 330), true},
		{"a minute later", of(at, 600), of(at.Add(5*time.Minute), 360), false},
		{"a tenth later", of(at, 6000), of(at, 6600), true},
		{"an eighth later", of(at, 6000), of(at, 6900), false},
		{"a VM stays", of(at, 600), &evacuate.Forecast{At: at, P50: of(at, 600).P50, P95: of(at, 600).P95, Left: 1}, false},
		{"a VM more", never, &evacuate.Forecast{At: at, VMs: map[hypervisor.VMID]evacuate.Expectation{"shop/web": {}}}, false},
	} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%s: alike %t, want %t", c.name, got, c.want)
		}
	}
}

// An error does not put off the next decision for long: the latest of those that decisions ask for is 5 s while places are missing.
func TestAnErrorIsRetriedSoon(t *testing.T) {
	l := retries()
	for range 100 {
		if after := l.When(request); after > 5*time.Second {
			t.Fatalf("after %v", after)
		}
	}
}

// Nodes that are emptied at once are forecast together: with one migration at a time the second waits for the first. When the
// first is not emptied any more, the second is forecast anew.
func TestNodesAreForecastTogether(t *testing.T) {
	first := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "first", UID: "first"}, Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n1"}}
	second := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "second", UID: "second"}, Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n2"}}
	all := emptied(t, first, corev1.ConditionTrue)
	var web virtv1.VirtualMachineInstance
	var n2 corev1.Node
	for name, o := range map[types.NamespacedName]client.Object{{Namespace: "shop", Name: "web"}: &web, {Name: "n2"}: &n2} {
		if err := all.Get(t.Context(), name, o); err != nil {
			t.Fatal(err)
		}
	}
	db, n3, one := web.DeepCopy(), n2.DeepCopy(), uint32(1)
	db.Name, db.ResourceVersion, db.Status.NodeName, n3.Name, n3.ResourceVersion = "db", "", "n2", "n3", ""
	kubevirt := &virtv1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}
	kubevirt.Spec.Configuration.MigrationConfiguration = &virtv1.MigrationConfiguration{ParallelMigrationsPerCluster: &one}
	f := NewForecaster(emptied(t, first, corev1.ConditionTrue, db, n3, kubevirt), time.Now)
	if !f.look(t.Context(), []v1alpha1.NodeEvacuation{*first, *second}) {
		t.Fatal("nothing is new")
	}
	a, b := f.Forecasts()["first"], f.Forecasts()["second"]
	if a == nil || b == nil || a.P50 == nil || b.P50 == nil || *b.P50 < *a.P50*3/2 {
		t.Fatalf("%+v, then %+v", a, b)
	}
	f.look(t.Context(), []v1alpha1.NodeEvacuation{*second}) // what changes is less than half a minute
	f.due["second"] = f.Now().Add(time.Hour)
	if f.stale(map[string]string{"second": f.keys["second"]}) {
		t.Error("it is made anew though nothing changes")
	}
	if f.due["first"] = f.Now(); !f.stale(map[string]string{"second": f.keys["second"]}) {
		t.Error("it is not made anew when another node is not emptied any more")
	}
}
