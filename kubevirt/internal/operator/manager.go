package operator

import (
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	virtv1 "kubevirt.io/api/core/v1"
	migrationsv1 "kubevirt.io/api/migrations/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
)

// Name is that of the controller, of its lease and of its field manager.
const Name = v1alpha1.ManagedBy

// Options say how the controller runs.
type Options struct {
	MetricsAddress string // "0" is none
	HealthAddress  string // "" is none
	LeaderElection bool
	// Namespace is where the lease is. Default: that of the pod.
	Namespace string
	// Prometheus is the address of one that knows how fast guests write; "" is none.
	Prometheus string
}

// Scheme returns the types that the controller reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, virtv1.AddToScheme,
		migrationsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// New returns a manager with the controller, to be started.
func New(config *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config, manager.Options{Scheme: scheme, Cache: caches(),
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	for _, i := range Indexes() {
		if err := m.GetFieldIndexer().IndexField(context.Background(), i.Object, i.Name, i.Extract); err != nil {
			return nil, err
		}
	}
	r := &Reconciler{Client: m.GetClient(), Live: m.GetAPIReader(), Events: m.GetEventRecorderFor(Name), Now: time.Now}
	f := NewForecaster(m.GetClient(), time.Now)
	f.Pods = remembered(time.Now, func(ctx context.Context) ([]corev1.Pod, error) { return Pods(ctx, m.GetAPIReader()) })
	r.Forecasts, r.Wanted = f.Forecasts, f.Want
	if o.Prometheus != "" {
		api, err := dirty.Open(o.Prometheus)
		if err != nil {
			return nil, err
		}
		f.Rates = func(ctx context.Context) (map[hypervisor.VMID]dirty.Rate, error) {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			return dirty.Prometheus(ctx, api, time.Now())
		}
	}
	if err := m.Add(f); err != nil {
		return nil, err
	}
	if err := r.watch(m, f); err != nil {
		return nil, err
	}
	if o.HealthAddress == "" {
		return m, nil
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, m.AddReadyzCheck("caches", func(q *http.Request) error {
		ctx, cancel := context.WithTimeout(q.Context(), time.Second)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return context.DeadlineExceeded
		}
		return nil
	})
}

// caches keeps of objects what is looked at.
func caches() cache.Options {
	return cache.Options{DefaultTransform: strip, ByObject: map[client.Object]cache.ByObject{
		pod(): {Label: labels.SelectorFromSet(labels.Set{virtv1.AppLabel: "virt-launcher"}), Field: Unended()}}}
}

// Unended selects the pods that have not ended: KubeVirt leaves the pod in place that a migration has left.
func Unended() fields.Selector {
	return fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
}

// strip takes away what no decision looks at: it is most of an object.
func strip(o any) (any, error) {
	if m, is := o.(metav1.Object); is {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
		o.Status.Addresses, o.Status.NodeInfo = nil, corev1.NodeSystemInfo{}
	case *virtv1.VirtualMachineInstance:
		o.Spec.AccessCredentials = nil // probes that run programs make the pod larger
		o.Status.Interfaces, o.Status.PhaseTransitionTimestamps = nil, nil
		o.Status.GuestOSInfo = virtv1.VirtualMachineInstanceGuestOSInfo{}
		for i := range o.Spec.Volumes {
			o.Spec.Volumes[i].CloudInitNoCloud, o.Spec.Volumes[i].CloudInitConfigDrive = nil, nil
			o.Spec.Volumes[i].Sysprep = nil
		}
	}
	return o, nil
}

// request is the only one: a decision is about the cluster.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "cluster"}}

// watch lets everything that may change a decision cause one.
func (r *Reconciler) watch(m manager.Manager, f *Forecaster) error {
	all := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if !r.concerned(o) {
			return nil
		}
		return []reconcile.Request{request}
	})
	again := true // a process may have several managers, one after another
	return builder.ControllerManagedBy(m).Named(Name).
		Watches(&v1alpha1.NodeEvacuation{}, all).
		Watches(&virtv1.VirtualMachineInstance{}, all).
		Watches(&virtv1.VirtualMachineInstanceMigration{}, all).
		Watches(&virtv1.KubeVirt{}, all).
		Watches(&corev1.Node{}, all).
		Watches(&corev1.ResourceQuota{}, all).
		Watches(&policyv1.PodDisruptionBudget{}, all).
		WatchesRawSource(source.Channel(f.done, all)).
		WatchesMetadata(&corev1.Pod{}, all).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: &again, RateLimiter: retries()}).
		Complete(r)
}

// retries says when it is decided again after an error, which takes the place of [evacuate.Decision.Again]: soon
// enough for any of these.
func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 5*time.Second)
}

// concerned reports whether a change of an object may change a decision.
func (r *Reconciler) concerned(o client.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.NodeEvacuation:
		return true
	case *virtv1.VirtualMachineInstance:
		return o.Status.EvacuationNodeName != "" || slices.ContainsFunc(places(o), r.Concerns)
	case *virtv1.VirtualMachineInstanceMigration:
		return o.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy || r.busy()
	case *corev1.Node:
		return r.Concerns(o.Name)
	}
	return r.busy()
}

// places returns the nodes that a VMI is on, starts on or migrates to.
func places(o *virtv1.VirtualMachineInstance) []string {
	all := append(starts(o), o.Status.NodeName)
	if m := o.Status.MigrationState; m != nil && m.EndTimestamp == nil && m.TargetNode != "" {
		all = append(all, m.TargetNode)
	}
	return all
}

// busy reports whether any node is emptied.
func (r *Reconciler) busy() bool {
	nodes := r.nodes.Load()
	return nodes == nil || len(*nodes) > 0
}
