package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

var errCrash = errors.New("crashed")

// A world is a cluster in a fake API server, with a KubeVirt that is played by the test.
type world struct {
	t      testing.TB
	client client.WithWatch // sees all
	crash  int              // writes until the controller crashes; negative is never
	hidden int              // migrations younger than so many steps are not in the cache
	born   map[string]int   // step in which a migration was created
	step   int
	now    time.Time
	uids   int
	writes int
	fails  map[string]int // migrations of a VM that still fail
	create func(client.Object) error
	evict  func(*policyv1.Eviction) error
	r      *operator.Reconciler
	events *record.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, virtv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, crash: -1, born: map[string]int{}, fails: map[string]int{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.NodeEvacuation{}).
		WithObjectTracker(clienttesting.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder()))
	for _, i := range operator.Indexes() {
		b = b.WithIndex(i.Object, i.Name, i.Extract)
	}
	w.client = b.Build()
	w.restart()
	return w
}

// restart begins with a controller that knows nothing.
func (w *world) restart() {
	w.events = record.NewFakeRecorder(10_000)
	w.r = &operator.Reconciler{Client: interceptor.NewClient(w.client, w.funcs()), Live: w.client,
		Events: w.events, Now: func() time.Time { return w.now }}
}

// write counts a write of the controller; an error is that it crashes instead.
func (w *world) write() error {
	if w.crash == 0 {
		return errCrash
	}
	w.crash--
	w.writes++
	return nil
}

func (w *world) stale(o client.Object) bool {
	_, is := o.(*virtv1.VirtualMachineInstanceMigration)
	at, known := w.born[o.GetNamespace()+"/"+o.GetName()]
	return is && known && w.step-at < w.hidden
}

func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := w.write(); err != nil {
				return err
			}
			if w.create != nil {
				if err := w.create(o); err != nil {
					return err
				}
			}
			w.uids++
			o.SetUID(types.UID(fmt.Sprintf("m-%d", w.uids)))
			o.SetCreationTimestamp(metav1.NewTime(w.now))
			if err := c.Create(ctx, o, options...); err != nil {
				return err
			}
			w.born[o.GetNamespace()+"/"+o.GetName()] = w.step
			return nil
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return apply(ctx, c, o, p)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, o, sub client.Object,
			options ...client.SubResourceCreateOption) error {
			if err := w.write(); err != nil {
				return err
			}
			if name != "eviction" {
				return fmt.Errorf("%s is created", name)
			}
			e, is := sub.(*policyv1.Eviction)
			if !is {
				return fmt.Errorf("%T is created", sub)
			}
			if w.evict != nil {
				if err := w.evict(e); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, o, options...); err != nil {
				return err
			}
			if all, is := o.(*virtv1.VirtualMachineInstanceMigrationList); is {
				var seen []virtv1.VirtualMachineInstanceMigration
				for i := range all.Items {
					if !w.stale(&all.Items[i]) {
						seen = append(seen, all.Items[i])
					}
				}
				all.Items = seen
			}
			return nil
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			if w.stale(o) {
				o.SetUID("")
			}
			return nil
		},
	}
}

// apply writes a status as the API server does it for its only writer: the fake one is slow at it.
func apply(ctx context.Context, c client.Client, o client.Object, p client.Patch) error {
	text, err := p.Data(o)
	if err != nil {
		return err
	}
	var e, applied v1alpha1.NodeEvacuation
	if err := json.Unmarshal(text, &applied); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), &e); err != nil {
		return err
	}
	e.Status = applied.Status
	return c.Status().Update(ctx, &e)
}

func (w *world) add(all ...client.Object) {
	w.t.Helper()
	for _, o := range all {
		if err := w.client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"kubernetes.io/hostname": name, virtv1.NodeSchedulable: "true"}}}
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status = corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	return n
}

// vmi returns a VM of so many GiB.
func (w *world) vmi(name, node string, strategy virtv1.EvictionStrategy, gib int) *virtv1.VirtualMachineInstance {
	memory := resource.MustParse(fmt.Sprintf("%dGi", gib))
	v := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("vmi-" + name)}}
	v.Spec.Domain.Memory = &virtv1.Memory{Guest: &memory}
	if strategy != "" {
		v.Spec.EvictionStrategy = &strategy
	}
	v.Status = virtv1.VirtualMachineInstanceStatus{Phase: virtv1.Running, NodeName: node,
		ActivePods: map[types.UID]string{types.UID("pod-" + name): node},
		Conditions: []virtv1.VirtualMachineInstanceCondition{{
			Type: virtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}}}
	return v
}

// pod returns the pod of a VM.
func (w *world) pod(v *virtv1.VirtualMachineInstance) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "virt-launcher-" + v.Name,
		UID: types.UID("pod-" + v.Name), Labels: map[string]string{virtv1.AppLabel: "virt-launcher",
			virtv1.CreatedByLabel: string(v.UID), "vm": v.Name}}}
}

func (w *world) evacuation(name, node string) *v1alpha1.NodeEvacuation {
	return &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("e-" + name),
		CreationTimestamp: metav1.NewTime(w.now)}, Spec: v1alpha1.NodeEvacuationSpec{NodeName: node}}
}

// reconcile lets the controller look once. It begins anew after a crash.
func (w *world) reconcile() {
	w.t.Helper()
	w.step++
	_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{})
	switch {
	case errors.Is(err, errCrash):
		w.crash = -1
		w.restart()
	case err != nil:
		w.t.Fatal(err)
	}
	w.check()
}

func (w *world) migrations() []virtv1.VirtualMachineInstanceMigration {
	w.t.Helper()
	var all virtv1.VirtualMachineInstanceMigrationList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// check holds always: one unfinished migration of a VM, and no more in all than the limits say.
func (w *world) check() {
	w.t.Helper()
	unfinished, all := map[string]int{}, 0
	for _, m := range w.migrations() {
		if !m.IsFinal() {
			all++
			if unfinished[m.Spec.VMIName]++; unfinished[m.Spec.VMIName] > 1 {
				w.t.Fatalf("%s has two migrations", m.Spec.VMIName)
			}
		}
	}
	if all > 5 {
		w.t.Fatalf("%d migrations run at once", all)
	}
}

// kubevirt takes every migration one phase forward.
func (w *world) kubevirt() {
	w.t.Helper()
	w.now = w.now.Add(10 * time.Second)
	for _, m := range w.migrations() {
		if m.IsFinal() {
			continue
		}
		phase := virtv1.MigrationRunning
		switch m.Status.Phase {
		case virtv1.MigrationPhaseUnset:
			phase = virtv1.MigrationPending
		case virtv1.MigrationPending:
			phase = virtv1.MigrationScheduling
		case virtv1.MigrationRunning:
			phase = virtv1.MigrationSucceeded
			if w.fails[m.Spec.VMIName] > 0 {
				w.fails[m.Spec.VMIName]--
				phase = virtv1.MigrationFailed
			}
			w.end(&m, phase == virtv1.MigrationSucceeded)
		}
		m.Status.Phase = phase
		m.Status.PhaseTransitionTimestamps = append(m.Status.PhaseTransitionTimestamps,
			virtv1.VirtualMachineInstanceMigrationPhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: metav1.NewTime(w.now)})
		if err := w.client.Update(w.t.Context(), &m); err != nil {
			w.t.Fatal(err)
		}
	}
}

// end moves the VM of a migration, or leaves it where it is.
func (w *world) end(m *virtv1.VirtualMachineInstanceMigration, moved bool) {
	w.t.Helper()
	v := w.vm(m.Spec.VMIName)
	now := metav1.NewTime(w.now)
	v.Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{MigrationUID: m.UID, StartTimestamp: &now,
		EndTimestamp: &now, SourceNode: v.Status.NodeName, TargetNode: "n9", Completed: true, Failed: !moved}
	m.Status.MigrationState = v.Status.MigrationState
	if moved {
		v.Status.NodeName, v.Status.EvacuationNodeName = "n9", ""
		for uid := range v.Status.ActivePods {
			v.Status.ActivePods[uid] = "n9"
		}
	}
	if err := w.client.Update(w.t.Context(), v); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) vm(name string) *virtv1.VirtualMachineInstance {
	w.t.Helper()
	var v virtv1.VirtualMachineInstance
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, &v); err != nil {
		w.t.Fatal(err)
	}
	return &v
}

func (w *world) status(name string) *v1alpha1.NodeEvacuation {
	w.t.Helper()
	var e v1alpha1.NodeEvacuation
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, &e); err != nil {
		w.t.Fatal(err)
	}
	return &e
}

// run lets the controller and KubeVirt take turns.
func (w *world) run(rounds int) {
	w.t.Helper()
	for range rounds {
		w.reconcile()
		w.reconcile()
		w.kubevirt()
	}
	w.reconcile()
}
