package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	virtv1 "kubevirt.io/api/core/v1"
	migrationsv1 "kubevirt.io/api/migrations/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

// pause is the least time between two simulations: they cost a core for as long as they run.
const pause = 10 * time.Second

// A Forecaster simulates how nodes are emptied, beside the controller: a decision does not wait for it. It
// simulates anew when other VMs are left on a node, and when a forecast is old: the cluster around the node
// changes, and what was to be over may not be. It tells the controller if what comes of that is something else.
type Forecaster struct {
	Client client.Reader
	Now    func() time.Time
	// Rates returns how fast guests write, as far as that is measured; nil is not at all.
	Rates func(context.Context) (map[hypervisor.VMID]dirty.Rate, error)
	// Pods returns the pods of the cluster: what those that are not of VMs take of a node is not free. Nil is not known.
	Pods func(context.Context) ([]corev1.Pod, error)

	done   chan event.GenericEvent // a forecast is ready
	wanted chan []v1alpha1.NodeEvacuation

	mu        sync.Mutex
	forecasts map[string]*evacuate.Forecast
	keys      map[string]string    // what each forecast is about
	due       map[string]time.Time // when it is made anew even if that stays
}

// NewForecaster returns a forecaster, to be started.
func NewForecaster(c client.Reader, now func() time.Time) *Forecaster {
	return &Forecaster{Client: c, Now: now, done: make(chan event.GenericEvent, 1),
		wanted:    make(chan []v1alpha1.NodeEvacuation, 1),
		forecasts: map[string]*evacuate.Forecast{}, keys: map[string]string{}, due: map[string]time.Time{}}
}

// Forecasts returns what is known now.
func (f *Forecaster) Forecasts() map[string]*evacuate.Forecast {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.forecasts)
}

// Want says what is emptied. It does not wait.
func (f *Forecaster) Want(all []v1alpha1.NodeEvacuation) {
	select {
	case <-f.wanted: // older
	default:
	}
	f.wanted <- all
}

// NeedLeaderElection says that only the leader simulates.
func (f *Forecaster) NeedLeaderElection() bool { return true }

// Start simulates until ctx ends.
func (f *Forecaster) Start(ctx context.Context) error {
	var all []v1alpha1.NodeEvacuation
	for {
		select {
		case <-ctx.Done():
			return nil
		case all = <-f.wanted:
		case <-f.next():
		}
		if !f.look(ctx, all) {
			continue
		}
		select {
		case f.done <- event.GenericEvent{Object: &v1alpha1.NodeEvacuation{}}:
		default: // it was told, and has not looked yet
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// next is ready when the first forecast is to be made anew; nil is never.
func (f *Forecaster) next() <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.due) == 0 {
		return nil
	}
	first := slices.MinFunc(slices.Collect(maps.Values(f.due)), time.Time.Compare)
	return time.After(max(pause, first.Sub(f.Now())))
}

// look simulates what has changed or is old, and reports whether there is anything new.
func (f *Forecaster) look(ctx context.Context, all []v1alpha1.NodeEvacuation) (anew bool) {
	names, keys := map[string]bool{}, map[string]string{}
	var active []v1alpha1.NodeEvacuation
	for i := range all {
		e := &all[i]
		if e.DeletionTimestamp != nil || e.Status.Phase == v1alpha1.Conflict {
			continue
		}
		names[e.Name] = true
		key, left, err := f.key(ctx, e)
		if left == 0 {
			f.rest(e.Name)
		}
		if err == nil && left > 0 {
			keys[e.Name], active = key, append(active, *e)
		}
	}
	if f.stale(keys) {
		anew = f.take(keys, f.asked(ctx, active))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.forecasts, func(name string, _ *evacuate.Forecast) bool { return !names[name] })
	maps.DeleteFunc(f.keys, func(name, _ string) bool { return !names[name] })
	maps.DeleteFunc(f.due, func(name string, _ time.Time) bool { return !names[name] })
	return anew
}

// stale reports whether a node is emptied that was not, or is not any more, or whether a forecast is old or about
// something else. The forecasts are made together: the nodes share limits.
func (f *Forecaster) stale(keys map[string]string) bool {
	if len(keys) == 0 {
		return false
	}
	for name := range f.due {
		if keys[name] == "" {
			return true
		}
	}
	for name, key := range keys {
		if due, made := f.due[name]; !made || f.keys[name] != key || !f.Now().Before(due) {
			return true
		}
	}
	return false
}

// take takes in forecasts by the name of the NodeEvacuation; without one it was not possible. It reports whether one
// says something else than before.
func (f *Forecaster) take(keys map[string]string, made map[string]*evacuate.Forecast) (anew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.due, func(name string, _ time.Time) bool { return keys[name] == "" })
	for name, key := range keys {
		changed := f.keys[name] != key
		f.keys[name], f.due[name] = key, f.Now().Add(oldAfter(made[name]))
		if made[name] != nil && (changed || !alike(f.forecasts[name], made[name])) {
			f.forecasts[name], anew = made[name], true
		}
	}
	return anew
}

// asked simulates, and logs why it cannot.
func (f *Forecaster) asked(ctx context.Context, all []v1alpha1.NodeEvacuation) map[string]*evacuate.Forecast {
	made, err := f.ask(ctx, all)
	if err != nil {
		log.FromContext(ctx).Error(err, "no forecast of some nodes")
	}
	return made
}

// rest makes no forecast anew by time: the node is empty.
func (f *Forecaster) rest(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.due, name)
}

// oldAfter returns how long a forecast is not made anew: a tenth of what it says, within bounds. A simulation
// costs seconds, and a status that is written each minute tells nothing new about a night.
func oldAfter(f *evacuate.Forecast) time.Duration {
	if f == nil || f.P50 == nil {
		return 10 * time.Minute
	}
	return min(max(time.Minute, *f.P50/10), 10*time.Minute)
}

// alike reports whether two forecasts say the same but for their time, so that nothing is written while
// nothing changes. Times of the day may differ by a tenth of what is left, and half a minute.
func alike(a, b *evacuate.Forecast) bool {
	if a == nil || a.Left != b.Left || len(a.VMs) != len(b.VMs) || len(a.Unplaceable) != len(b.Unplaceable) {
		return false
	}
	for id, x := range a.VMs {
		if y, found := b.VMs[id]; !found || x.Converges != y.Converges {
			return false
		}
	}
	for id, why := range a.Unplaceable {
		if !slices.Equal(why, b.Unplaceable[id]) {
			return false
		}
	}
	return near(a.At, a.P50, b.At, b.P50) && near(a.At, a.P95, b.At, b.P95) && near(a.At, a.P99, b.At, b.P99) &&
		near(a.At, a.Max, b.At, b.Max)
}

func near(a time.Time, afterA *time.Duration, b time.Time, afterB *time.Duration) bool {
	if afterA == nil || afterB == nil {
		return afterA == afterB
	}
	differ := b.Add(*afterB).Sub(a.Add(*afterA)).Abs()
	return differ <= max(*afterB/10, 30*time.Second)
}

// key says what a forecast is about: what is asked for, and the VMs that are left.
func (f *Forecaster) key(ctx context.Context, e *v1alpha1.NodeEvacuation) (key string, left int, err error) {
	var on virtv1.VirtualMachineInstanceList
	if err := f.Client.List(ctx, &on, client.MatchingFields{byNode: e.Spec.NodeName}); err != nil {
		return "", 0, err
	}
	var names []string
	for i := range on.Items {
		if !on.Items[i].IsFinal() {
			names = append(names, on.Items[i].Namespace+"/"+on.Items[i].Name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(e.UID, e.Generation, names), len(names), nil
}

// ask simulates how nodes are emptied at once. What is returned is by the name of the NodeEvacuation.
func (f *Forecaster) ask(ctx context.Context, all []v1alpha1.NodeEvacuation) (map[string]*evacuate.Forecast, error) {
	at := f.Now()
	c, err := Cluster(ctx, f.Client)
	if err != nil {
		return nil, err
	}
	if f.Pods != nil {
		if c.Pods, err = f.Pods(ctx); err != nil { // a forecast that may be too early is better than none
			log.FromContext(ctx).Error(err, "it is not known what pods other than those of VMs take of the nodes")
		}
	}
	var rates map[hypervisor.VMID]dirty.Rate
	if f.Rates != nil {
		if rates, err = f.Rates(ctx); err != nil { // what past migrations say is better than no forecast
			log.FromContext(ctx).Error(err, "it is not known how fast guests write")
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(e v1alpha1.NodeEvacuation) bool {
		return !slices.ContainsFunc(c.Nodes, func(n corev1.Node) bool { return n.Name == e.Spec.NodeName })
	})
	made := map[string]*evacuate.Forecast{}
	var wrong []error
	for _, q := range forecast.Together(all) {
		q.Rates = rates
		if len(c.VMIs) > 5000 {
			q.Samples = forecast.Samples / 2
		}
		a, err := simulate(ctx, c, q)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("nodes %v: %w", q.Nodes, err))
			continue
		}
		for i := range all {
			if node := all[i].Spec.NodeName; slices.Contains(q.Nodes, node) {
				made[all[i].Name] = forecast.ForNode(a, at, node)
			}
		}
	}
	return made, errors.Join(wrong...)
}

// simulate asks a question. A mistake in a simulation does not end the controller.
func simulate(ctx context.Context, c *convert.Cluster, q forecast.Question) (a *forecast.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a simulation panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return forecast.Ask(ctx, c, q)
}

// podsPerPage is how many pods are read at once.
const podsPerPage = 500

// Pods reads the pods that take room on nodes, page by page, and keeps what is looked at of each.
func Pods(ctx context.Context, c client.Reader) ([]corev1.Pod, error) {
	var all []corev1.Pod
	bound := fields.AndSelectors(Unended(), fields.OneTermNotEqualSelector("spec.nodeName", ""))
	for next := ""; ; {
		var page corev1.PodList // each time anew: JSON is decoded into what is there
		err := c.List(ctx, &page, client.MatchingFieldsSelector{Selector: bound}, client.Limit(podsPerPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			all = append(all, *convert.Pod(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// podsAge is how old what is known of pods may be: those that are not of VMs seldom change nodes.
const podsAge = 5 * time.Minute

// remembered returns a function that reads the pods of a cluster, and remembers them for a while. When they cannot be
// read it returns those that it remembers, and the error. One caller at a time may use it.
func remembered(now func() time.Time, read func(context.Context) ([]corev1.Pod, error)) func(context.Context) ([]corev1.Pod, error) {
	var (
		all []corev1.Pod
		at  time.Time
	)
	return func(ctx context.Context) ([]corev1.Pod, error) {
		if !at.IsZero() && now().Sub(at) < podsAge {
			return all, nil
		}
		pods, err := read(ctx)
		if err != nil {
			return all, err
		}
		all, at = pods, now()
		return all, nil
	}
}

// Cluster reads all that a simulation looks at but the pods.
func Cluster(ctx context.Context, c client.Reader) (*convert.Cluster, error) {
	var (
		nodes      corev1.NodeList
		namespaces corev1.NamespaceList
		quotas     corev1.ResourceQuotaList
		policies   migrationsv1.MigrationPolicyList
		vmis       virtv1.VirtualMachineInstanceList
		migrations virtv1.VirtualMachineInstanceMigrationList
		kubevirts  virtv1.KubeVirtList
	)
	for _, l := range []client.ObjectList{&nodes, &namespaces, &quotas, &vmis, &migrations, &kubevirts} {
		if err := c.List(ctx, l); err != nil {
			return nil, fmt.Errorf("list %T: %w", l, err)
		}
	}
	if err := c.List(ctx, &policies); err != nil && !meta.IsNoMatchError(err) { // KubeVirt before 0.49 has none
		return nil, fmt.Errorf("list %T: %w", &policies, err)
	}
	all := &convert.Cluster{Nodes: nodes.Items, Namespaces: namespaces.Items, Quotas: quotas.Items,
		Policies: policies.Items, VMIs: vmis.Items, Migrations: migrations.Items}
	slices.SortFunc(all.VMIs, func(a, b virtv1.VirtualMachineInstance) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if len(kubevirts.Items) > 0 {
		all.KubeVirt = &kubevirts.Items[0]
	}
	return all, nil
}
