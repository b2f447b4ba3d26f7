package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// A Reconciler empties nodes. It is called by one goroutine at a time.
type Reconciler struct {
	Client client.Client // reads a cache with [Indexes]
	Live   client.Reader // reads the API server
	Events record.EventRecorder
	Now    func() time.Time
	// Forecasts returns what simulations have said, by NodeEvacuation; nil is nothing.
	Forecasts func() map[string]*evacuate.Forecast
	// Wanted is told what is emptied; nil is nothing.
	Wanted func([]v1alpha1.NodeEvacuation)

	created map[types.UID]creation // by this process, and not in the cache
	refused map[types.UID]evacuate.Refusal
	warned  map[types.NamespacedName]string
	nodes   atomic.Pointer[map[string]bool] // that the last decision was about
}

// A creation is a migration that the cache does not show yet.
type creation struct {
	migration *virtv1.VirtualMachineInstanceMigration
	at        time.Time
}

// unseenFor is how long a migration that was created is believed in without being seen.
const unseenFor = 5 * time.Minute

// Concerns reports whether something about a node may change a decision.
func (r *Reconciler) Concerns(node string) bool {
	nodes := r.nodes.Load()
	return nodes == nil || (*nodes)[node]
}

// Reconcile looks once, and acts.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	began := time.Now()
	v, nodes, err := r.look(ctx)
	r.nodes.Store(&nodes)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := evacuate.Decide(v)
	decisionSeconds.Observe(time.Since(began).Seconds())
	d, err = r.act(ctx, v, d)
	if r.Wanted != nil {
		r.Wanted(v.Evacuations)
	}
	return reconcile.Result{RequeueAfter: d.Again}, err
}

// act carries out a decision. What fails is tried again by the next one, and stops nothing else;
// but a node is not cordoned for a NodeEvacuation that could be deleted without a trace.
//
// It returns what was decided in the end: see move.
func (r *Reconciler) act(ctx context.Context, v *evacuate.View, d *evacuate.Decision) (*evacuate.Decision, error) {
	var wrong []error
	unready := map[types.UID]bool{}
	for _, name := range d.Finalizers {
		e := evacuation(v, name)
		if err := r.addFinalizer(ctx, e); err != nil {
			unready[e.UID] = true
			wrong = append(wrong, err)
		}
	}
	for _, c := range d.Cordon {
		if !unready[c.UID] {
			wrong = append(wrong, r.cordon(ctx, v, c))
		}
	}
	for _, c := range d.Cancel {
		wrong = append(wrong, r.cancel(ctx, v, c))
	}
	d, errs := r.move(ctx, v, d)
	wrong = append(wrong, errs...)
	for _, c := range d.Uncordon {
		wrong = append(wrong, r.uncordon(ctx, v, c))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Status)) {
		wrong = append(wrong, r.writeStatus(ctx, v, evacuation(v, name), d.Status[name]))
	}
	for _, name := range d.Release {
		wrong = append(wrong, r.release(ctx, evacuation(v, name)))
	}
	r.warn(v, d.Blocked)
	return d, errors.Join(wrong...)
}

func evacuation(v *evacuate.View, name string) *v1alpha1.NodeEvacuation {
	for i := range v.Evacuations {
		if v.Evacuations[i].Name == name {
			return &v.Evacuations[i]
		}
	}
	panic("a decision about a NodeEvacuation that is not in the view: " + name)
}

func (r *Reconciler) addFinalizer(ctx context.Context, e *v1alpha1.NodeEvacuation) error {
	changed := e.DeepCopy()
	controllerutil.AddFinalizer(changed, v1alpha1.Finalizer)
	return r.patch(ctx, changed, e, "add the finalizer to NodeEvacuation "+e.Name)
}

func (r *Reconciler) release(ctx context.Context, e *v1alpha1.NodeEvacuation) error {
	changed := e.DeepCopy()
	controllerutil.RemoveFinalizer(changed, v1alpha1.Finalizer)
	forget(e)
	return r.patch(ctx, changed, e, "remove the finalizer of NodeEvacuation "+e.Name)
}

// patch writes what differs, unless the object was changed since it was read.
func (r *Reconciler) patch(ctx context.Context, changed, from client.Object, what string) error {
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func node(v *evacuate.View, name string) *corev1.Node {
	for i := range v.Nodes {
		if v.Nodes[i].Name == name {
			return &v.Nodes[i]
		}
	}
	panic("a decision about a node that is not in the view: " + name)
}

func (r *Reconciler) cordon(ctx context.Context, v *evacuate.View, c evacuate.Cordon) error {
	n := node(v, c.Node)
	changed := n.DeepCopy()
	changed.Spec.Unschedulable = true
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.CordonedByAnnotation, string(c.UID))
	if err := r.patch(ctx, changed, n, "cordon node "+c.Node); err != nil {
		return err
	}
	r.Events.Event(n, corev1.EventTypeNormal, "Cordoned", "cordoned: a NodeEvacuation empties the node")
	return nil
}

func (r *Reconciler) uncordon(ctx context.Context, v *evacuate.View, c evacuate.Cordon) error {
	n := node(v, c.Node)
	changed := n.DeepCopy()
	changed.Spec.Unschedulable = false
	delete(changed.Annotations, v1alpha1.CordonedByAnnotation)
	if err := r.patch(ctx, changed, n, "uncordon node "+c.Node); err != nil {
		return err
	}
	r.Events.Event(n, corev1.EventTypeNormal, "Uncordoned", "uncordoned: its NodeEvacuation is deleted")
	return nil
}

// cancel deletes a migration that has not begun: the API server refuses it if it has changed since.
func (r *Reconciler) cancel(ctx context.Context, v *evacuate.View, c evacuate.Cancellation) error {
	m := &virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	p := client.Preconditions{UID: &c.UID}
	if c.Version != "" {
		p.ResourceVersion = &c.Version
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, m, p)); err != nil {
		return fmt.Errorf("cancel migration %s: %w", c.NamespacedName, err)
	}
	delete(r.created, c.UID)
	canceled.Inc()
	r.about(v, c.Namespace, c.VMI, corev1.EventTypeNormal, "EvacuationCanceled",
		"migration "+c.Name+" is canceled before it began: nothing asks the VM to leave its node any more")
	return nil
}

// create creates a migration, if the VM still is where it was seen.
func (r *Reconciler) create(ctx context.Context, v *evacuate.View, m *virtv1.VirtualMachineInstanceMigration) error {
	var now virtv1.VirtualMachineInstance
	name := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.VMIName}
	if err := r.Live.Get(ctx, name, &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if string(now.UID) != m.Labels[v1alpha1.VMIUIDLabel] || now.DeletionTimestamp != nil ||
		now.Status.NodeName != m.Annotations[v1alpha1.SourceNodeAnnotation] {
		return nil // the cache will show it
	}
	switch err := r.Client.Create(ctx, m); {
	case apierrors.IsAlreadyExists(err):
		return nil // the cache will show it
	case err != nil:
		r.about(v, m.Namespace, m.Spec.VMIName, corev1.EventTypeWarning, "EvacuationFailed",
			fmt.Sprintf("the migration %s is not created: %v", m.Name, err))
		return r.refuse(now.UID, fmt.Errorf("create migration %s/%s: %w", m.Namespace, m.Name, err))
	}
	delete(r.refused, now.UID)
	v.Migrations = append(v.Migrations, *m)
	if r.created == nil {
		r.created = map[types.UID]creation{}
	}
	r.created[m.UID] = creation{m, r.Now()}
	migrations.Inc()
	r.about(v, m.Namespace, m.Spec.VMIName, corev1.EventTypeNormal, "Evacuating", fmt.Sprintf(
		"migration %s takes the VM off %s", m.Name, m.Annotations[v1alpha1.SourceNodeAnnotation]))
	return nil
}

// forget forgets the created migrations that the cache shows, or that were not seen for long.
func (l *looker) forget() {
	for uid, c := range l.created {
		var m virtv1.VirtualMachineInstanceMigration
		err := l.Client.Get(l.ctx, client.ObjectKeyFromObject(c.migration), &m)
		if err == nil && m.UID == uid || l.Now().Sub(c.at) > unseenFor {
			delete(l.created, uid)
		}
	}
}

func (r *Reconciler) evict(ctx context.Context, v *evacuate.View, e evacuate.Eviction) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Pod.Namespace, Name: e.Pod.Name}}
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.UID}}
	if e.Grace != nil {
		seconds := wholeSeconds(*e.Grace)
		options.GracePeriodSeconds = &seconds
	}
	err := r.Client.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{ObjectMeta: p.ObjectMeta, DeleteOptions: options})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		r.about(v, e.Pod.Namespace, e.VMI, corev1.EventTypeWarning, "EvacuationFailed",
			fmt.Sprintf("the pod %s is not evicted: %v", e.Pod.Name, err))
		return r.refuse(e.UID, fmt.Errorf("evict pod %s: %w", e.Pod, err))
	}
	delete(r.refused, e.UID)
	evictions.Inc()
	r.about(v, e.Pod.Namespace, e.VMI, corev1.EventTypeNormal, "EvacuationShutDown", e.Why)
	return nil
}

// wholeSeconds rounds a grace period up: 0 would kill the guest at once.
func wholeSeconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// about records an event on a VMI.
func (r *Reconciler) about(v *evacuate.View, namespace, name, kind, reason, text string) {
	for i := range v.VMIs {
		if vmi := &v.VMIs[i]; vmi.Namespace == namespace && vmi.Name == name {
			r.Events.Event(vmi, kind, reason, text)
		}
	}
}

// warn tells the owners of VMs that block, once for each reason.
func (r *Reconciler) warn(v *evacuate.View, blocked []v1alpha1.BlockedVM) {
	next := map[types.NamespacedName]string{}
	for _, b := range blocked {
		name, why := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, fmt.Sprint(b.Reasons)
		if next[name] = why; r.warned[name] != why {
			r.about(v, b.Namespace, b.Name, corev1.EventTypeWarning, "EvacuationBlocked",
				fmt.Sprintf("the VM cannot leave its node: %v; what would help: %v", b.Reasons, b.Help))
		}
	}
	r.warned = next
}

// writeStatus applies a status that differs, and tells what has changed.
func (r *Reconciler) writeStatus(ctx context.Context, v *evacuate.View, e *v1alpha1.NodeEvacuation,
	s *v1alpha1.NodeEvacuationStatus) error {
	measure(e, s)
	if same(&e.Status, s) {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeEvacuation"))
	o.SetName(e.Name)
	o.SetUID(e.UID)
	err = r.Client.Status().Patch(ctx, o, client.Apply, client.FieldOwner(v1alpha1.ManagedBy), client.ForceOwnership)
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write the status of NodeEvacuation %s: %w", e.Name, err)
	}
	r.tell(v, e, s)
	return nil
}

func same(a, b *v1alpha1.NodeEvacuationStatus) bool {
	x, e1 := json.Marshal(a)
	y, e2 := json.Marshal(b)
	return e1 == nil && e2 == nil && string(x) == string(y)
}

// tell records events about what differs between two statuses.
func (r *Reconciler) tell(v *evacuate.View, e *v1alpha1.NodeEvacuation, s *v1alpha1.NodeEvacuationStatus) {
	log.Log.Info("status", "nodeEvacuation", e.Name, "node", e.Spec.NodeName, "phase", s.Phase,
		"left", s.VMsLeft, "moving", s.Moving, "blocked", s.Blocked)
	if e.Status.Phase != s.Phase && s.Phase == v1alpha1.Done {
		r.Events.Event(e, corev1.EventTypeNormal, "Done", "no VM is left on "+e.Spec.NodeName)
		r.Events.Event(node(v, e.Spec.NodeName), corev1.EventTypeNormal, "Evacuated", "no VM is left on the node")
	}
	for _, b := range s.BlockedVMs {
		before := slices.ContainsFunc(e.Status.BlockedVMs, func(o v1alpha1.BlockedVM) bool {
			return o.Namespace == b.Namespace && o.Name == b.Name && slices.Equal(o.Reasons, b.Reasons)
		})
		if !before {
			r.about(v, b.Namespace, b.Name, corev1.EventTypeWarning, "EvacuationBlocked",
				fmt.Sprintf("the VM cannot leave %s: %v; what would help: %v", e.Spec.NodeName, b.Reasons, b.Help))
		}
	}
}
