package evacuate

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A View is what is known of the cluster when it is decided. Objects are read only.
type View struct {
	// Cluster has at least the nodes that NodeEvacuations name or that VMs are marked for, all
	// VMIs on them, all VMIs with unfinished migrations and the nodes of those, all unfinished
	// migrations and the finished ones of these VMIs, and what is in their namespaces.
	convert.Cluster
	Evacuations []v1alpha1.NodeEvacuation
	// Launchers are the pods of the VMIs that have not ended: metadata alone. KubeVirt leaves the pod in place that
	// a migration has left, ended, and lists it in status.activePods, too.
	// Source: KubeVirt v1.8.0 pkg/virt-controller/watch/vmi/lifecycle.go:985 (setActivePods).
	Launchers []metav1.PartialObjectMetadata
	Budgets   []policyv1.PodDisruptionBudget
	// Forecasts are what simulations have said, by the name of the NodeEvacuation.
	Forecasts map[string]*Forecast
	// Refused are what the API server has refused: migrations by the UID of their VMI, evictions by that of the pod.
	Refused map[types.UID]Refusal
	// Hold is why nothing is created or evicted for a moment; "" is that nothing is against it.
	Hold string
	Now  time.Time
}

// aMoment is how long Hold lasts.
const aMoment = time.Second

// holding returns what keeps all VMs for a moment, or nil.
func (v *View) holding() *held {
	if v.Hold == "" {
		return nil
	}
	return &held{until: v.Now.Add(aMoment), reasons: []placement.Reason{{Check: "API server", Need: "that it accepts more", Have: v.Hold}}}
}

// A Refusal is that the API server did not do what was decided: a quota, an admission policy, a webhook or a
// disruption budget is against it.
type Refusal struct {
	Why   string // what the API server said
	Times int    // one after another
	// Until is when it is tried again.
	Until time.Time
}

// persistent is how many refusals one after another are taken to last until something is changed.
const persistent = 3

// held returns what keeps a VM after a refusal, or nil.
func (r Refusal) held(now time.Time, what, help string) *held {
	if !now.Before(r.Until) {
		return nil
	}
	return &held{until: r.Until, blocks: r.Times >= persistent, help: []string{help}, reasons: []placement.Reason{{
		Check: what, Need: "that the API server accepts it", Have: r.Why}}}
}

// A Forecast is what simulations say about a node that is emptied.
type Forecast struct {
	At time.Time // when the cluster was as it was simulated
	// After so long the VMs that can leave have left in so many of the runs; nil is never.
	P50, P95, P99, Max *time.Duration
	Runs               int
	// Left is how many VMs stay: with any, the node is never empty.
	Left int
	VMs  map[hypervisor.VMID]Expectation
	// Writes are how fast guests write to memory, where that is known.
	Writes map[hypervisor.VMID]v1alpha1.WriteRate
	// Unplaceable are the VMs that no other node seems to take, and why. They are migrated all the same:
	// what decides is the scheduler, and it may know better.
	Unplaceable map[hypervisor.VMID][]string
}

// An Expectation is what is predicted of one migration.
type Expectation struct {
	Seconds, DowntimeMilliseconds float64
	Converges                     bool
}

// vm is a VMI with what is known about it.
type vm struct {
	id     hypervisor.VMID
	object *virtv1.VirtualMachineInstance
	known  *inventory.VM // nil: it cannot be read
	wrong  string        // why
	// migrations are all of it, oldest first; current is the one that has not ended.
	migrations []*virtv1.VirtualMachineInstanceMigration
	current    *virtv1.VirtualMachineInstanceMigration
	pods       []*metav1.PartialObjectMetadata // that have not ended, the oldest first
	pod        *metav1.PartialObjectMetadata   // its launcher pod on its node; nil is not seen
}

// index is a view that is sorted.
type index struct {
	*View
	fleet      *inventory.Fleet
	params     evacuation.Params
	vms        []*vm            // by ID
	byNode     map[string][]*vm // by ID, too
	unfinished []evacuation.ActiveMigration
	quota      *placement.QuotaUsage
	begun      []*vm // with a migration that this decision creates
	pods       map[podKey][]*metav1.PartialObjectMetadata
}

// open sorts a view.
func open(v *View) *index {
	x := &index{View: v, byNode: map[string][]*vm{}, pods: podsOf(v)}
	wrong := x.read()
	x.params = evacuation.Params{Mode: evacuation.FreeSpots, Strategy: x.fleet.EvictionStrategy,
		DrainKey: x.fleet.Config.NodeDrainTaintKey,
		Limits: evacuation.Limits{PerCluster: x.fleet.Config.ParallelMigrationsPerCluster,
			PerNode: x.fleet.Config.ParallelOutboundMigrationsPerNode}}
	known := map[hypervisor.VMID]*inventory.VM{}
	for i := range x.fleet.VMs {
		known[x.fleet.VMs[i].ID] = &x.fleet.VMs[i]
	}
	all := map[hypervisor.VMID]*vm{}
	for i := range v.VMIs {
		o := &v.VMIs[i]
		m := &vm{id: idOf(o.Namespace, o.Name), object: o, wrong: wrong[idOf(o.Namespace, o.Name)]}
		m.known = known[m.id]
		all[m.id] = m
		if o.IsFinal() {
			continue
		}
		x.vms = append(x.vms, m)
		m.pods = x.pods[podKey{o.Namespace, string(o.UID)}]
		m.pod = m.podOn(o.Status.NodeName)
	}
	slices.SortFunc(x.vms, func(a, b *vm) int { return cmp.Compare(a.id, b.id) })
	for _, m := range x.vms {
		x.byNode[m.object.Status.NodeName] = append(x.byNode[m.object.Status.NodeName], m)
	}
	for i := range v.Migrations {
		m := &v.Migrations[i]
		owner := all[idOf(m.Namespace, m.Spec.VMIName)]
		if owner == nil || foreign(m, owner.object) {
			continue
		}
		owner.migrations = append(owner.migrations, m)
		if !m.IsFinal() {
			owner.current = m
		}
	}
	for _, m := range all {
		slices.SortFunc(m.migrations, func(a, b *virtv1.VirtualMachineInstanceMigration) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(number(a), number(b)),
				cmp.Compare(a.Name, b.Name))
		})
	}
	for _, m := range x.fleet.Migrations {
		x.unfinished = append(x.unfinished, evacuation.ActiveMigration{ID: m.ID, VM: m.VM, Phase: m.Phase, By: m.By,
			From: m.Leaving, Abroad: m.CrossCluster})
	}
	x.quota = x.reserved()
	return x
}

// reserved returns what VMs use of the quotas, and what migrations that have no target yet are about to
// use: without it, the room that one of them was admitted for would be given again.
func (x *index) reserved() *placement.QuotaUsage {
	u := inventory.Charged(x.fleet)
	waiting := map[hypervisor.VMID]bool{}
	for _, m := range x.fleet.Migrations {
		waiting[m.VM] = waiting[m.VM] || m.Chosen == "" && !m.CrossCluster
	}
	for _, v := range x.vms {
		if waiting[v.id] && v.known != nil {
			u.Set(v.id, v.known.Placement.Charges, 2)
		}
	}
	return u
}

// read reads the view as a fleet. VMs that cannot be read are left out and returned with what is
// wrong, so that one of them does not keep the others on their node.
func (x *index) read() map[hypervisor.VMID]string {
	fleet, wrong, err := convert.Sound("cluster", &x.Cluster, inventory.Defaults{})
	if err == nil {
		x.fleet = fleet
		return wrong
	}
	wrong = map[hypervisor.VMID]string{}
	x.fleet = &inventory.Fleet{Config: migration.DefaultCluster()}
	for i := range x.VMIs { // it is no VM: nothing moves until it is mended
		wrong[idOf(x.VMIs[i].Namespace, x.VMIs[i].Name)] = err.Error()
	}
	return wrong
}

func idOf(namespace, name string) hypervisor.VMID { return hypervisor.VMID(namespace + "/" + name) }

// A podKey is that of the pods of a VMI.
type podKey struct{ namespace, vmi string }

// podsOf sorts the pods by their VMI, the oldest first.
func podsOf(v *View) map[podKey][]*metav1.PartialObjectMetadata {
	all := map[podKey][]*metav1.PartialObjectMetadata{}
	for i := range v.Launchers {
		p := &v.Launchers[i]
		key := podKey{p.Namespace, p.Labels[virtv1.CreatedByLabel]}
		all[key] = append(all[key], p)
	}
	for _, of := range all {
		slices.SortFunc(of, func(a, b *metav1.PartialObjectMetadata) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return all
}

// podOn returns the last pod of a VM on a node, or nil.
// Source: KubeVirt v1.8.0 pkg/controller/controller.go:323 (CurrentVMIPod).
func (v *vm) podOn(node string) (last *metav1.PartialObjectMetadata) {
	for _, p := range v.pods {
		if on, known := v.object.Status.ActivePods[p.UID]; known && on == node {
			last = p
		}
	}
	return last
}

// foreign reports whether a migration was made for another VMI of the same name.
func foreign(m *virtv1.VirtualMachineInstanceMigration, o *virtv1.VirtualMachineInstance) bool {
	uid := m.Labels[v1alpha1.VMIUIDLabel]
	return uid != "" && uid != string(o.UID)
}

// ours reports whether this controller created a migration.
func ours(m *virtv1.VirtualMachineInstanceMigration) bool {
	return m.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}

// node returns a node of the view, or nil.
func (x *index) node(name string) *corev1.Node {
	for i := range x.Nodes {
		if x.Nodes[i].Name == name {
			return &x.Nodes[i]
		}
	}
	return nil
}
