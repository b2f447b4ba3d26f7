package evacuate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Decision is what is to be done now, in the order of the fields.
type Decision struct {
	// Finalizers are the NodeEvacuations that get the finalizer, by name: before anything else is
	// done for them.
	Finalizers []string
	Cordon     []Cordon
	Cancel     []Cancellation
	Create     []*virtv1.VirtualMachineInstanceMigration
	Evict      []Eviction
	Uncordon   []Cordon
	// Status is that of every NodeEvacuation that is not being deleted, by name.
	Status map[string]*v1alpha1.NodeEvacuationStatus
	// Release are the NodeEvacuations that lose the finalizer, by name: nothing is left to undo.
	Release []string
	// Blocked are the VMs that were marked for eviction, block and are on no node of a NodeEvacuation.
	Blocked []v1alpha1.BlockedVM
	// Again is when to decide again even if nothing changes; 0 is never.
	Again time.Duration
}

// A Cordon closes a node to new pods, or opens it again.
type Cordon struct {
	Node string
	// UID is that of the NodeEvacuation: the node names the NodeEvacuation that has cordoned it.
	UID types.UID
}

// A Cancellation deletes a migration that has not begun.
type Cancellation struct {
	types.NamespacedName
	UID types.UID
	// Version is the resource version in which it has not begun.
	Version string
	VMI     string
}

// An Eviction evicts the pod of a VM, so that its guest shuts down.
type Eviction struct {
	Pod   types.NamespacedName
	UID   types.UID
	VMI   string
	Grace *time.Duration // nil is the pod's own
	Why   string
}

// Decide decides what is to be done now. It is total and deterministic.
func Decide(v *View) *Decision {
	x := open(v)
	d := &Decision{Status: map[string]*v1alpha1.NodeEvacuationStatus{}}
	started := 0 // by this decision
	for _, s := range x.sites() {
		s.decide(d, &started)
	}
	slices.SortFunc(d.Blocked, func(a, b v1alpha1.BlockedVM) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return d
}

// site is a node with what is asked for it.
type site struct {
	*index
	name   string
	node   *corev1.Node               // nil: the cluster has none of this name
	active *v1alpha1.NodeEvacuation   // nil: only VMs that were marked leave
	others []*v1alpha1.NodeEvacuation // younger ones, and those that are being deleted
	vms    []*vm
}

// sites returns the nodes that something is to be decided about, the most urgent first.
func (x *index) sites() []*site {
	all := map[string]*site{}
	at := func(name string) *site {
		if all[name] == nil {
			all[name] = &site{index: x, name: name, node: x.node(name), vms: x.byNode[name]}
		}
		return all[name]
	}
	evacuations := make([]*v1alpha1.NodeEvacuation, len(x.Evacuations))
	for i := range x.Evacuations {
		evacuations[i] = &x.Evacuations[i]
	}
	slices.SortFunc(evacuations, func(a, b *v1alpha1.NodeEvacuation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range evacuations {
		if s := at(e.Spec.NodeName); s.active == nil && e.DeletionTimestamp == nil {
			s.active = e
		} else {
			s.others = append(s.others, e)
		}
	}
	for _, v := range x.vms {
		if x.asked(v) || v.current != nil && ours(v.current) {
			at(v.object.Status.NodeName)
		}
	}
	sites := make([]*site, 0, len(all))
	for _, s := range all {
		sites = append(sites, s)
	}
	slices.SortFunc(sites, func(a, b *site) int {
		return cmp.Or(a.deadline().Compare(b.deadline()), cmp.Compare(a.name, b.name))
	})
	return sites
}

// never is later than all deadlines.
var never = time.Unix(1<<40, 0)

func (s *site) deadline() time.Time {
	if s.active == nil || s.active.Spec.Deadline == nil {
		return never
	}
	return s.active.Spec.Deadline.Time
}

// decide decides about a node.
func (s *site) decide(d *Decision, started *int) {
	s.undo(d)
	if e := s.active; e != nil {
		if !slices.Contains(e.Finalizers, v1alpha1.Finalizer) {
			d.Finalizers = append(d.Finalizers, e.Name)
		}
		by := s.cordonedBy()
		takenOver := by != "" && by != e.UID // from one that is deleted
		if s.node != nil && (!s.node.Spec.Unschedulable || takenOver) {
			d.Cordon = append(d.Cordon, Cordon{s.name, e.UID})
		}
	}
	s.cancel(d)
	p := s.plan(started)
	d.Create = append(d.Create, p.create...)
	d.Evict = append(d.Evict, p.evict...)
	if s.active == nil {
		d.Blocked = append(d.Blocked, p.blocked...)
	} else {
		status := s.status(p)
		d.Status[s.active.Name] = status
		if left := s.deadline().Sub(s.Now); status.DoneAt == nil && s.active.Spec.Deadline != nil && left >= 0 {
			p.again = sooner(p.again, min(left, 24*time.Hour)+time.Second) // it is missed then
		}
	}
	if p.again > 0 && (d.Again == 0 || p.again < d.Again) {
		d.Again = p.again
	}
	for _, e := range s.others {
		if e.DeletionTimestamp == nil {
			d.Status[e.Name] = conflict(e, s.active, s.Now)
		}
	}
}

// cordonedBy returns the UID of the NodeEvacuation that has cordoned the node, or "".
func (s *site) cordonedBy() types.UID {
	if s.node == nil {
		return ""
	}
	return types.UID(s.node.Annotations[v1alpha1.CordonedByAnnotation])
}

// undo opens the node again for a NodeEvacuation that is being deleted, and lets that go once it is
// seen that nothing is left to undo.
func (s *site) undo(d *Decision) {
	for _, e := range s.others {
		if e.DeletionTimestamp == nil || !slices.Contains(e.Finalizers, v1alpha1.Finalizer) {
			continue
		}
		switch {
		case s.cordonedBy() != e.UID:
			if len(s.unbegun()) == 0 {
				d.Release = append(d.Release, e.Name)
			}
		case s.active == nil:
			d.Uncordon = append(d.Uncordon, Cordon{s.name, e.UID})
		}
	}
}

// cancel takes back migrations of ours that have not begun, of VMs that need not leave any more.
func (s *site) cancel(d *Decision) {
	for _, m := range s.unbegun() {
		d.Cancel = append(d.Cancel, Cancellation{types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
			m.UID, m.ResourceVersion, m.Spec.VMIName})
	}
}

// unbegun returns the migrations of ours that have not begun, of VMs that need not leave.
func (s *site) unbegun() (all []*virtv1.VirtualMachineInstanceMigration) {
	if s.active != nil {
		return nil
	}
	var guests []evacuation.VM
	var unfinished []evacuation.ActiveMigration
	current := map[hypervisor.JobID]*virtv1.VirtualMachineInstanceMigration{}
	for _, v := range s.vms {
		m := v.current
		if m == nil || !ours(m) || m.DeletionTimestamp != nil || v.known == nil || s.asked(v) ||
			m.Annotations[v1alpha1.SourceNodeAnnotation] != s.name {
			continue
		}
		id := hypervisor.JobID(m.Namespace + "/" + m.Name)
		guests, current[id] = append(guests, s.guest(v)), m
		for _, f := range s.unfinished {
			if f.ID == id {
				unfinished = append(unfinished, f)
			}
		}
	}
	host := evacuation.Host{Name: hypervisor.HostName(s.name)}
	for _, id := range evacuation.Cancel(s.params, host, guests, unfinished).Cancel {
		all = append(all, current[id])
	}
	return all
}

// planned is what comes of the VMs of a node.
type planned struct {
	create  []*virtv1.VirtualMachineInstanceMigration
	evict   []Eviction
	leaving []v1alpha1.LeavingVM
	blocked []v1alpha1.BlockedVM
	// arriving are the VMs that are not on the node yet; none where only marked VMs leave.
	arriving []v1alpha1.LeavingVM
	again    time.Duration
}

// plan decides which VMs leave the node now.
func (s *site) plan(started *int) *planned {
	p := &planned{}
	params, host := s.terms()
	var guests, all []evacuation.VM
	byID, held := map[hypervisor.VMID]*vm{}, map[hypervisor.VMID]*held{}
	for _, v := range s.vms {
		if v.known == nil {
			if s.active != nil || s.asked(v) {
				p.blocked = append(p.blocked, blockedVM(v, []placement.Reason{{Check: "description",
					Need: "one that can be read", Have: v.wrong}}, []string{helpVMI}))
			}
			continue
		}
		g := s.guest(v)
		all, byID[v.id] = append(all, g), v
		switch {
		case s.kubeVirts(v, s.node):
			if s.active != nil {
				p.leaving = append(p.leaving, s.leaving(v, v1alpha1.LeftToKubeVirt))
			}
		case s.active != nil || s.asked(v):
			if h := s.hold(v); h != nil && !g.Moving {
				held[v.id] = h
			}
			guests = append(guests, g)
		}
	}
	load := evacuation.Count(params, s.unfinished, all)
	load.InCluster += *started
	d := s.admit(params, host, guests, load, held, byID)
	for _, c := range d.Create {
		v := byID[c.VM]
		m := s.migration(v)
		s.begun, p.create = append(s.begun, v), append(p.create, m)
		l := s.leaving(v, v1alpha1.Moving)
		l.Migration = m.Name
		p.leaving = append(p.leaving, l)
	}
	*started += len(d.Create)
	p.again = d.Again
	s.stay(p, &d, held, byID)
	if s.active != nil {
		if p.arriving = s.arriving(); len(p.arriving) > 0 {
			p.again = sooner(p.again, whenArriving)
		}
	}
	for _, h := range held {
		if !h.until.IsZero() {
			p.again = sooner(p.again, h.until.Sub(s.Now))
		}
	}
	return p
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return max(b, time.Second)
	}
	return a
}

// terms returns the parameters of a node, and the node as package evacuation sees it: with the taint that
// drains it where a NodeEvacuation asks for that.
func (s *site) terms() (evacuation.Params, evacuation.Host) {
	params, host := s.params, evacuation.Host{Name: hypervisor.HostName(s.name), Missing: s.node == nil,
		Terms: evacuation.Terms{OnUnmovable: evacuation.Keep}}
	if s.active == nil {
		return params, host
	}
	spec := &s.active.Spec
	host.Taints = []placement.Taint{{Key: cmp.Or(params.DrainKey, evacuation.DefaultDrainKey),
		Effect: placement.NoSchedule}}
	if l := spec.Limits; l != nil && l.ParallelOutbound != nil {
		params.Limits.PerNode = min(params.Limits.PerNode, int(*l.ParallelOutbound))
	}
	if spec.Unmovable == v1alpha1.ShutDown {
		host.Terms.OnUnmovable = evacuation.ShutDown
		if spec.Grace != nil {
			host.Terms.Grace = spec.Grace.Duration
		}
	}
	switch spec.Order {
	case v1alpha1.SmallestFirst:
		params.Order = evacuation.SmallestFirst
	case v1alpha1.ByName:
		params.Order = evacuation.ByID
	case v1alpha1.LongestFirst:
		params.Policy = evacuation.OrderFunc(s.longestFirst)
	}
	return params, host
}

// longestFirst orders by what was predicted; VMs of which nothing is known go by size.
func (s *site) longestFirst(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if f := s.Forecasts[s.active.Name]; f != nil {
		x, ok := f.VMs[a.VM]
		if y, both := f.VMs[b.VM]; ok && both && x.Seconds != y.Seconds {
			return cmp.Compare(y.Seconds, x.Seconds)
		}
	}
	return cmp.Compare(b.Memory, a.Memory)
}

// migration returns the next attempt to migrate a VM.
func (s *site) migration(v *vm) *virtv1.VirtualMachineInstanceMigration {
	m := &virtv1.VirtualMachineInstanceMigration{
		TypeMeta: metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstanceMigration"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v.object.Namespace, Name: nameOf(v.object, v.attempt()),
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy,
				v1alpha1.VMIUIDLabel: string(v.object.UID)},
			Annotations: map[string]string{v1alpha1.SourceNodeAnnotation: s.name,
				virtv1.EvacuationMigrationAnnotation: s.name}},
		Spec: virtv1.VirtualMachineInstanceMigrationSpec{VMIName: v.object.Name}}
	if s.active != nil {
		m.Spec.AddedNodeSelector = maps.Clone(s.active.Spec.TargetNodeSelector)
	}
	return m
}
