package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// The indexes of the cache.
const (
	byNode       = "godwit.node"       // VMIs by their node
	byStart      = "godwit.start"      // VMIs that start, by the node of their pod
	byMark       = "godwit.mark"       // VMIs that were marked for eviction: "yes"
	byUnfinished = "godwit.unfinished" // migrations that have not ended: "yes"
	byVMI        = "godwit.vmi"        // migrations by "namespace/name" of their VMI
	bySource     = "godwit.source"     // migrations by the node that they evacuate
	byCreator    = "godwit.creator"    // pods by the UID of their VMI
)

const yes = "yes"

// An Index is an index of the cache.
type Index struct {
	Object  client.Object
	Name    string
	Extract client.IndexerFunc
}

// Indexes lists those that a [Reconciler] needs.
func Indexes() []Index {
	return []Index{
		{&virtv1.VirtualMachineInstance{}, byNode, func(o client.Object) []string {
			return some(o.(*virtv1.VirtualMachineInstance).Status.NodeName)
		}},
		{&virtv1.VirtualMachineInstance{}, byStart, func(o client.Object) []string {
			return starts(o.(*virtv1.VirtualMachineInstance))
		}},
		{&virtv1.VirtualMachineInstance{}, byMark, func(o client.Object) []string {
			if o.(*virtv1.VirtualMachineInstance).Status.EvacuationNodeName == "" {
				return nil
			}
			return []string{yes}
		}},
		{&virtv1.VirtualMachineInstanceMigration{}, byUnfinished, func(o client.Object) []string {
			if o.(*virtv1.VirtualMachineInstanceMigration).IsFinal() {
				return nil
			}
			return []string{yes}
		}},
		{&virtv1.VirtualMachineInstanceMigration{}, byVMI, func(o client.Object) []string {
			m := o.(*virtv1.VirtualMachineInstanceMigration)
			return []string{m.Namespace + "/" + m.Spec.VMIName}
		}},
		{&virtv1.VirtualMachineInstanceMigration{}, bySource, func(o client.Object) []string {
			return some(o.GetAnnotations()[virtv1.EvacuationMigrationAnnotation])
		}},
		{pod(), byCreator, func(o client.Object) []string { return some(o.GetLabels()[virtv1.CreatedByLabel]) }},
	}
}

func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// starts returns the nodes on which a VMI that is on no node has pods.
func starts(o *virtv1.VirtualMachineInstance) (nodes []string) {
	if o.Status.NodeName != "" {
		return nil
	}
	for _, node := range o.Status.ActivePods {
		nodes = append(nodes, some(node)...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// pod is a pod of which the metadata is read.
func pod() *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{}
	p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return p
}

// look reads what something is asked about. It returns the nodes that it is about.
func (r *Reconciler) look(ctx context.Context) (*evacuate.View, map[string]bool, error) {
	v := &evacuate.View{Now: r.Now(), Refused: r.refusals()}
	l := &looker{Reconciler: r, ctx: ctx, view: v, nodes: map[string]bool{}, vmis: map[types.NamespacedName]bool{}}
	var evacuations v1alpha1.NodeEvacuationList
	l.list(&evacuations)
	v.Evacuations = evacuations.Items
	for i := range v.Evacuations {
		l.about(v.Evacuations[i].Spec.NodeName)
	}
	l.marked()
	l.unfinished()
	l.surroundings()
	if r.Forecasts != nil {
		v.Forecasts = r.Forecasts()
	}
	return v, l.nodes, errors.Join(l.wrong...)
}

// A looker fills a view.
type looker struct {
	*Reconciler
	ctx   context.Context
	view  *evacuate.View
	nodes map[string]bool
	vmis  map[types.NamespacedName]bool
	wrong []error
}

func (l *looker) list(to client.ObjectList, options ...client.ListOption) {
	if err := l.Client.List(l.ctx, to, options...); err != nil {
		l.wrong = append(l.wrong, fmt.Errorf("list %T: %w", to, err))
	}
}

// about takes in a node, the VMIs on it and those that start there.
func (l *looker) about(node string) {
	if node == "" || l.nodes[node] {
		return
	}
	l.nodes[node] = true
	l.node(node)
	for _, index := range []string{byNode, byStart} {
		var on virtv1.VirtualMachineInstanceList
		l.list(&on, client.MatchingFields{index: node})
		for i := range on.Items {
			l.add(&on.Items[i])
		}
	}
}

func (l *looker) node(name string) {
	for i := range l.view.Nodes {
		if l.view.Nodes[i].Name == name {
			return
		}
	}
	var n corev1.Node
	switch err := l.Client.Get(l.ctx, types.NamespacedName{Name: name}, &n); {
	case err == nil:
		l.view.Nodes = append(l.view.Nodes, n)
	case !apierrors.IsNotFound(err):
		l.wrong = append(l.wrong, fmt.Errorf("get node %s: %w", name, err))
	}
}

func (l *looker) add(vmi *virtv1.VirtualMachineInstance) {
	if name := client.ObjectKeyFromObject(vmi); !l.vmis[name] {
		l.vmis[name] = true
		l.view.VMIs = append(l.view.VMIs, *vmi)
	}
}

// marked takes in the nodes that VMIs were asked to leave.
func (l *looker) marked() {
	var all virtv1.VirtualMachineInstanceList
	l.list(&all, client.MatchingFields{byMark: yes})
	for i := range all.Items {
		if s := &all.Items[i].Status; s.EvacuationNodeName == s.NodeName {
			l.about(s.NodeName)
		}
	}
}

// unfinished takes in all unfinished migrations with their VMIs, and those that were created and
// that the cache does not show yet.
func (l *looker) unfinished() {
	var all virtv1.VirtualMachineInstanceMigrationList
	l.list(&all, client.MatchingFields{byUnfinished: yes})
	for i := range all.Items {
		l.withVMI(&all.Items[i])
	}
	l.forget()
	for _, c := range l.created {
		l.withVMI(c.migration)
	}
	seen := map[types.NamespacedName]bool{}
	take := func(m *virtv1.VirtualMachineInstanceMigration) {
		if key := client.ObjectKeyFromObject(m); !seen[key] {
			seen[key] = true
			l.view.Migrations = append(l.view.Migrations, *m)
		}
	}
	for i := range all.Items {
		take(&all.Items[i])
	}
	for name := range l.vmis {
		var of virtv1.VirtualMachineInstanceMigrationList
		l.list(&of, client.InNamespace(name.Namespace), client.MatchingFields{byVMI: name.String()})
		for i := range of.Items {
			take(&of.Items[i])
		}
	}
	for i := range l.view.Evacuations { // for what has moved
		var from virtv1.VirtualMachineInstanceMigrationList
		l.list(&from, client.MatchingFields{bySource: l.view.Evacuations[i].Spec.NodeName})
		for i := range from.Items {
			take(&from.Items[i])
		}
	}
	for _, c := range l.created {
		take(c.migration)
	}
}

// withVMI takes in the VMI of a migration, and all on its node if the migration is ours.
func (l *looker) withVMI(m *virtv1.VirtualMachineInstanceMigration) {
	name := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.VMIName}
	if l.vmis[name] {
		return
	}
	var vmi virtv1.VirtualMachineInstance
	switch err := l.Client.Get(l.ctx, name, &vmi); {
	case err == nil:
		l.add(&vmi)
		if m.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
			l.about(vmi.Status.NodeName)
		}
	case !apierrors.IsNotFound(err):
		l.wrong = append(l.wrong, fmt.Errorf("get VMI %s: %w", name, err))
	}
}

// surroundings takes in what holds for the VMIs.
func (l *looker) surroundings() {
	namespaces := map[string]bool{}
	for i := range l.view.VMIs {
		vmi := &l.view.VMIs[i]
		if vmi.Status.NodeName != "" {
			l.node(vmi.Status.NodeName)
		}
		namespaces[vmi.Namespace] = true
		var pods metav1.PartialObjectMetadataList
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		l.list(&pods, client.InNamespace(vmi.Namespace), client.MatchingFields{byCreator: string(vmi.UID)})
		l.view.Launchers = append(l.view.Launchers, pods.Items...)
	}
	for namespace := range namespaces {
		var quotas corev1.ResourceQuotaList
		l.list(&quotas, client.InNamespace(namespace))
		l.view.Quotas = append(l.view.Quotas, quotas.Items...)
		var budgets policyv1.PodDisruptionBudgetList
		l.list(&budgets, client.InNamespace(namespace))
		l.view.Budgets = append(l.view.Budgets, budgets.Items...)
	}
	var kubevirts virtv1.KubeVirtList
	if err := l.Client.List(l.ctx, &kubevirts); err != nil && !meta.IsNoMatchError(err) {
		l.wrong = append(l.wrong, fmt.Errorf("list KubeVirts: %w", err))
	}
	if len(kubevirts.Items) > 0 {
		l.view.KubeVirt = &kubevirts.Items[0]
	}
}
