package evacuate_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A guest is a VM of a test.
type guest struct {
	name       string
	node       string
	gib        int
	strategy   virtv1.EvictionStrategy // "" is none
	marked     bool                    // for eviction
	stuck      bool                    // not migratable
	starting   bool
	copies     int    // of it, 0 is one
	budget     bool   // the budget of the test selects it
	bounded    bool   // it is in the namespace with the quota
	flight     string // phase of a migration that it has, "-" is unset
	flightOurs bool
}

func (g *guest) namespace() string {
	if g.bounded {
		return "bounded"
	}
	return "shop"
}

// A scene is a cluster of a test.
type scene struct {
	guests              []guest
	perCluster, perNode uint32
	nodes               []string
	down                map[string]bool // nodes that are not ready
	tainted             map[string]bool // nodes with KubeVirt's drain taint
	evacuated           []string        // nodes with a NodeEvacuation
	order               v1alpha1.Order
	unmovable           v1alpha1.Unmovable
	outbound            int32 // 0 is none
	allowed             int32 // disruptions of the budget
	roomGiB             int   // left in the quota
	cordonedBy          map[string]types.UID
	deleted             []string // nodes with a NodeEvacuation that is being deleted
}

func (s *scene) view() *evacuate.View {
	v := &evacuate.View{Now: now}
	v.KubeVirt = &virtv1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}
	v.KubeVirt.Spec.Configuration.MigrationConfiguration = &virtv1.MigrationConfiguration{
		ParallelMigrationsPerCluster: &s.perCluster, ParallelOutboundMigrationsPerNode: &s.perNode}
	for _, name := range s.nodes {
		v.Nodes = append(v.Nodes, s.node(name))
	}
	for _, name := range s.evacuated {
		v.Evacuations = append(v.Evacuations, s.evacuation(name, "e-"+name))
	}
	for _, name := range s.deleted {
		e := s.evacuation(name, "d-"+name)
		e.DeletionTimestamp = &metav1.Time{Time: now}
		v.Evacuations = append(v.Evacuations, e)
	}
	used := 0
	for i := range s.guests {
		g := &s.guests[i]
		vmi := g.vmi()
		v.VMIs, v.Launchers = append(v.VMIs, *vmi), append(v.Launchers, pods(vmi)...)
		if g.flight != "" {
			v.Migrations = append(v.Migrations, *g.migration())
		}
		if g.bounded {
			used += g.gib
		}
	}
	quantity := func(gib int) corev1.ResourceList {
		return corev1.ResourceList{"requests.memory": resource.MustParse(fmt.Sprintf("%dGi", gib))}
	}
	v.Quotas = []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "bounded", Name: "q"},
		Spec:   corev1.ResourceQuotaSpec{Hard: quantity(used + s.roomGiB)},
		Status: corev1.ResourceQuotaStatus{Hard: quantity(used + s.roomGiB), Used: quantity(used)}}}
	v.Budgets = []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"budget": "b"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: s.allowed}}}
	return v
}

func (s *scene) node(name string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if s.down[name] {
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
	}
	if s.tainted[name] {
		n.Spec.Taints = []corev1.Taint{{Key: "kubevirt.io/drain", Effect: corev1.TaintEffectNoSchedule}}
	}
	if by := s.cordonedBy[name]; by != "" {
		n.Annotations[v1alpha1.CordonedByAnnotation], n.Spec.Unschedulable = string(by), true
	}
	return n
}

func (s *scene) evacuation(node, name string) v1alpha1.NodeEvacuation {
	e := v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{v1alpha1.Finalizer},
		CreationTimestamp: metav1.NewTime(now)}, Spec: v1alpha1.NodeEvacuationSpec{NodeName: node, Order: s.order, Unmovable: s.unmovable}}
	if s.outbound > 0 {
		e.Spec.Limits = &v1alpha1.Limits{ParallelOutbound: &s.outbound}
	}
	return e
}

func (g *guest) vmi() *virtv1.VirtualMachineInstance {
	memory := resource.MustParse(fmt.Sprintf("%dGi", g.gib))
	v := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace(), Name: g.name, UID: types.UID("vmi-" + g.name)}}
	v.Spec.Domain.Memory = &virtv1.Memory{Guest: &memory}
	v.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: memory}
	if g.strategy != "" {
		v.Spec.EvictionStrategy = &g.strategy
	}
	if g.budget {
		v.Labels = map[string]string{"budget": "b"}
	}
	v.Status = virtv1.VirtualMachineInstanceStatus{Phase: virtv1.Running, NodeName: g.node, ActivePods: map[types.UID]string{},
		Conditions: []virtv1.VirtualMachineInstanceCondition{{Type: virtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}}}
	for i := range max(1, g.copies) {
		v.Status.ActivePods[types.UID(fmt.Sprintf("pod-%s-%d", g.name, i))] = g.node
	}
	if g.stuck {
		v.Status.Conditions[0].Status = corev1.ConditionFalse
		v.Status.Conditions[0].Reason = virtv1.VirtualMachineInstanceReasonHostDeviceNotMigratable
	}
	if g.marked {
		v.Status.EvacuationNodeName = g.node
	}
	if g.starting {
		v.Status.Phase = virtv1.Scheduled
	}
	v.Spec.Domain.Resources.OvercommitGuestOverhead = true // quotas are about whole GiB here
	return v
}

// pods returns the pods of a VM, none of which has ended.
func pods(vmi *virtv1.VirtualMachineInstance) (all []metav1.PartialObjectMetadata) {
	for _, uid := range slices.Sorted(maps.Keys(vmi.Status.ActivePods)) {
		all = append(all, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: vmi.Namespace, Name: string(uid), UID: uid,
			Labels: map[string]string{virtv1.CreatedByLabel: string(vmi.UID), "budget": vmi.Labels["budget"]}}})
	}
	return all
}

func (g *guest) migration() *virtv1.VirtualMachineInstanceMigration {
	m := &virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace(), Name: "m-" + g.name + "-1",
		UID: types.UID("m-" + g.name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec: virtv1.VirtualMachineInstanceMigrationSpec{VMIName: g.name}}
	if g.flight != "-" {
		m.Status.Phase = virtv1.VirtualMachineInstanceMigrationPhase(g.flight)
	}
	if g.flightOurs {
		m.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.VMIUIDLabel: "vmi-" + g.name}
		m.Annotations = map[string]string{v1alpha1.SourceNodeAnnotation: g.node, virtv1.EvacuationMigrationAnnotation: g.node}
	}
	return m
}

// The rules of the test: an independent reading of what docs/kubevirt.md says.

func (g *guest) moves() bool { return g.flight != "" && g.flight != "Failed" }

// leaves reports whether the controller is to migrate a VM when there is room.
func (s *scene) leaves(g *guest) bool {
	named := slices.Contains(s.evacuated, g.node)
	kubevirts := strings.HasPrefix(string(g.strategy), "LiveMigrate") && (g.marked || s.tainted[g.node])
	asked := g.strategy == virtv1.EvictionStrategyExternal && g.marked
	return (named && !kubevirts || asked) && !g.stuck && !g.starting && !g.moves() && g.copies <= 1 && !s.down[g.node]
}

// admits reports whether limits, quota and budget allow these VMs to set off together.
func (s *scene) admits(set []*guest) bool {
	all, from, budget, gib := 0, map[string]int{}, 0, 0
	count := func(g *guest) {
		all++
		from[g.node]++
		if g.budget && !g.bounded {
			budget++
		}
	}
	for i := range s.guests {
		if s.guests[i].moves() {
			count(&s.guests[i])
		}
	}
	running, had := all, maps.Clone(from)
	for _, g := range set {
		count(g)
		if g.bounded {
			gib += g.gib
		}
	}
	for node, n := range from {
		limit := int(s.perNode)
		if s.outbound > 0 && slices.Contains(s.evacuated, node) {
			limit = min(limit, int(s.outbound))
		}
		if n > max(limit, had[node]) {
			return false
		}
	}
	budgeted := slices.ContainsFunc(set, func(g *guest) bool { return g.budget && !g.bounded })
	return all <= max(int(s.perCluster), running) && gib <= s.roomGiB && (!budgeted || budget <= max(1, int(s.allowed)))
}

// order is that in which VMs of one node are asked to go.
func (s *scene) before(a, b *guest) int {
	byID := cmp.Compare(a.namespace()+"/"+a.name, b.namespace()+"/"+b.name)
	named := slices.Contains(s.evacuated, a.node)
	switch {
	case named && s.order == v1alpha1.SmallestFirst:
		return cmp.Or(cmp.Compare(a.gib, b.gib), byID)
	case named && s.order == v1alpha1.ByName:
		return byID
	}
	return cmp.Or(cmp.Compare(b.gib, a.gib), byID)
}

// best tries all sets of VMs, and returns the one that is admitted and has the first of the order, else the second, ...
func (s *scene) best() map[string]bool {
	var queue []*guest
	for i := range s.guests {
		if s.leaves(&s.guests[i]) {
			queue = append(queue, &s.guests[i])
		}
	}
	slices.SortFunc(queue, func(a, b *guest) int { return cmp.Or(cmp.Compare(a.node, b.node), s.before(a, b)) })
	best := []*guest{}
	bestBits := uint(0)
	for bits := range uint(1) << len(queue) {
		var set []*guest
		for i, g := range queue {
			if bits>>(len(queue)-1-i)&1 == 1 { // the first of the order is the highest bit
				set = append(set, g)
			}
		}
		if bits >= bestBits && s.admits(set) {
			best, bestBits = set, bits
		}
	}
	names := map[string]bool{}
	for _, g := range best {
		names[g.name] = true
	}
	return names
}

func created(d *evacuate.Decision) map[string]bool {
	names := map[string]bool{}
	for _, m := range d.Create {
		names[m.Spec.VMIName] = true
	}
	return names
}

func scenes() *rapid.Generator[*scene] {
	return rapid.Custom(func(t *rapid.T) *scene {
		s := &scene{nodes: []string{"n1", "n2", "n3"}, down: map[string]bool{}, tainted: map[string]bool{}, cordonedBy: map[string]types.UID{}}
		s.perCluster = uint32(rapid.IntRange(1, 5).Draw(t, "per cluster"))
		s.perNode = uint32(rapid.IntRange(1, 3).Draw(t, "per node"))
		s.outbound = int32(rapid.IntRange(0, 3).Draw(t, "outbound"))
		s.allowed = int32(rapid.IntRange(0, 2).Draw(t, "allowed"))
		s.roomGiB = rapid.IntRange(0, 12).Draw(t, "room")
		s.order = rapid.SampledFrom([]v1alpha1.Order{v1alpha1.LargestFirst, v1alpha1.SmallestFirst, v1alpha1.ByName}).Draw(t, "order")
		s.unmovable = rapid.SampledFrom([]v1alpha1.Unmovable{v1alpha1.Keep, v1alpha1.ShutDown}).Draw(t, "unmovable")
		seldom := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
		for _, n := range s.nodes {
			switch rapid.IntRange(0, 3).Draw(t, "asked") {
			case 0:
				s.deleted = append(s.deleted, n)
				s.cordonedBy[n] = types.UID("d-" + n)
			case 1, 2:
				s.evacuated = append(s.evacuated, n)
			}
			s.down[n], s.tainted[n] = seldom("down"), seldom("tainted")
		}
		phases := []string{"", "", "", "", "-", "Pending", "Scheduling", "Running", "Failed"}
		strategies := []virtv1.EvictionStrategy{"", virtv1.EvictionStrategyExternal, virtv1.EvictionStrategyExternal,
			virtv1.EvictionStrategyLiveMigrate, virtv1.EvictionStrategyLiveMigrateIfPossible, virtv1.EvictionStrategyNone}
		for i := range rapid.IntRange(0, 8).Draw(t, "VMs") {
			g := guest{name: fmt.Sprintf("vm%d", i), node: rapid.SampledFrom(s.nodes).Draw(t, "node"),
				gib: rapid.IntRange(1, 4).Draw(t, "GiB"), strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
				marked: rapid.Bool().Draw(t, "marked"), stuck: seldom("stuck"), starting: seldom("starting"),
				copies: rapid.SampledFrom([]int{0, 0, 0, 0, 2}).Draw(t, "copies"), budget: rapid.Bool().Draw(t, "budget"),
				flight: rapid.SampledFrom(phases).Draw(t, "flight"), flightOurs: rapid.Bool().Draw(t, "ours")}
			g.bounded = g.flight == "" && seldom("bounded") // what a target pod has taken is in the quota's status
			s.guests = append(s.guests, g)
		}
		return s
	})
}

// What sets off is what a search of all sets of VMs finds: only VMs that are to leave, within every limit, and of
// these the first of the order.
func TestWhoSetsOffIsTheBestOfAllSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenes().Draw(t, "scene")
		if got, want := created(evacuate.Decide(s.view())), s.best(); !maps.Equal(got, want) {
			t.Fatalf("%v set off, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	})
}

func TestADecisionHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenes().Draw(t, "scene")
		v := s.view()
		d := evacuate.Decide(v)
		unfinished := map[string]bool{}
		for _, m := range v.Migrations {
			unfinished[m.Spec.VMIName] = unfinished[m.Spec.VMIName] || !m.IsFinal()
		}
		for _, m := range d.Create {
			if unfinished[m.Spec.VMIName] {
				t.Fatalf("%s gets a second migration", m.Spec.VMIName)
			}
			unfinished[m.Spec.VMIName] = true
		}
		for _, node := range s.evacuated {
			accounted(t, s, node, d.Status["e-"+node])
		}
		for _, c := range d.Uncordon {
			if !slices.Contains(s.deleted, c.Node) || slices.Contains(s.evacuated, c.Node) {
				t.Fatalf("%s is uncordoned", c.Node)
			}
		}
		for _, c := range d.Cancel {
			i := slices.IndexFunc(s.guests, func(g guest) bool { return g.name == c.VMI })
			g := &s.guests[i]
			if asked := g.marked && g.strategy == virtv1.EvictionStrategyExternal; asked || !g.flightOurs ||
				g.flight == "Running" || slices.Contains(s.evacuated, g.node) {
				t.Fatalf("the migration of %+v is canceled", g)
			}
		}
	})
}

// accounted checks that every VM on a node is in exactly one list of the status.
func accounted(t *rapid.T, s *scene, node string, status *v1alpha1.NodeEvacuationStatus) {
	times := map[string]int{}
	for _, l := range status.VMs {
		times[l.Name]++
	}
	for _, b := range status.BlockedVMs {
		if times[b.Name]++; len(b.Reasons) == 0 || len(b.Help) == 0 {
			t.Fatalf("%s blocks without a reason or help: %+v", b.Name, b)
		}
	}
	on := 0
	for i := range s.guests {
		if g := &s.guests[i]; g.node == node {
			if on++; times[g.name] != 1 {
				t.Fatalf("%s is %d times in the status of %s", g.name, times[g.name], node)
			}
		}
	}
	if int(*status.VMsLeft) != on || len(times) != on || int(*status.Blocked) != len(status.BlockedVMs) {
		t.Fatalf("%d VMs left, %d blocked; %d are on %s: %+v", *status.VMsLeft, *status.Blocked, on, node, times)
	}
}

// The order of the objects is chance, and a decision that was carried out is not made again.
func TestADecisionDoesNotDependOnTheOrderOfObjectsAndIsMadeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenes().Draw(t, "scene")
		v := s.view()
		d := evacuate.Decide(v)
		turned := *v
		turned.VMIs, turned.Nodes, turned.Migrations = slices.Clone(v.VMIs), slices.Clone(v.Nodes), slices.Clone(v.Migrations)
		turned.Evacuations = slices.Clone(v.Evacuations)
		slices.Reverse(turned.VMIs)
		slices.Reverse(turned.Nodes)
		slices.Reverse(turned.Migrations)
		slices.Reverse(turned.Evacuations)
		if diff := gocmp.Diff(d, evacuate.Decide(&turned)); diff != "" {
			t.Fatalf("with the objects turned round (+): %s", diff)
		}
		for _, m := range d.Create {
			v.Migrations = append(v.Migrations, *m)
		}
		if again := evacuate.Decide(v); len(again.Create) > 0 {
			t.Fatalf("after %v, %v set off, too", created(d), created(again))
		}
	})
}

func TestDecideInSingleCases(t *testing.T) {
	external, migrate := virtv1.EvictionStrategyExternal, virtv1.EvictionStrategyLiveMigrate
	for _, c := range []struct {
		name    string
		guests  []guest
		change  func(*scene)
		created string
		blocked string // names of VMs that block n1
		again   time.Duration
	}{
		{"an empty node", nil, nil, "", "", 0},
		{"the two largest of three", []guest{{name: "a", gib: 1}, {name: "b", gib: 3}, {name: "c", gib: 2}}, nil, "b c", "", 5 * time.Second},
		{"one at a time", []guest{{name: "a", gib: 1}, {name: "b", gib: 3}}, func(s *scene) { s.outbound = 1 }, "b", "", 5 * time.Second},
		{"the cluster is full", []guest{{name: "a", gib: 1}, {name: "b", gib: 1, node: "n2", flight: "Running"}},
			func(s *scene) { s.perCluster = 1 }, "", "", 5 * time.Second},
		{"KubeVirt takes what is marked", []guest{{name: "a", gib: 1, strategy: migrate, marked: true}, {name: "b", gib: 1, strategy: migrate}}, nil, "b", "", 0},
		{"KubeVirt takes none that cannot move", []guest{{name: "a", gib: 1, strategy: migrate, marked: true, stuck: true},
			{name: "b", gib: 1, strategy: virtv1.EvictionStrategyLiveMigrateIfPossible, marked: true, stuck: true}}, nil, "", "a b", time.Minute},
		{"nor on a node with its taint", []guest{{name: "a", gib: 1, strategy: migrate, stuck: true}, {name: "b", gib: 1, strategy: migrate}},
			func(s *scene) { s.tainted = map[string]bool{"n1": true} }, "", "a", time.Minute},
		{"a marked one of a node without NodeEvacuation", []guest{{name: "a", node: "n2", gib: 1, strategy: external, marked: true},
			{name: "b", node: "n2", gib: 1, strategy: external}}, nil, "a", "", 0},
		{"the room in a quota is given once, before its migration has a target", []guest{
			{name: "a", gib: 3, bounded: true, flight: "-", flightOurs: true}, {name: "b", gib: 1, bounded: true}},
			func(s *scene) { s.roomGiB = 3 }, "", "", 0},
		{"one that cannot move", []guest{{name: "a", gib: 1, stuck: true, strategy: external}, {name: "b", gib: 1}}, nil, "b", "a", time.Minute},
		{"a node that is down", []guest{{name: "a", gib: 1}}, func(s *scene) { s.down["n1"] = true }, "", "a", 0},
		{"a quota without room", []guest{{name: "a", gib: 4, bounded: true}, {name: "b", gib: 1}}, func(s *scene) { s.roomGiB = 3 }, "b", "a", 0},
		{"a budget of VMs on two nodes", []guest{{name: "a", gib: 1, budget: true}, {name: "b", node: "n2", gib: 1, budget: true}},
			func(s *scene) { s.evacuated = append(s.evacuated, "n2") }, "a", "", 0},
		{"an old copy", []guest{{name: "a", gib: 1, copies: 2}}, nil, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{guests: c.guests, perCluster: 5, perNode: 2, nodes: []string{"n1", "n2"}, evacuated: []string{"n1"},
				down: map[string]bool{}, roomGiB: 100}
			for i := range s.guests {
				s.guests[i].node = cmp.Or(s.guests[i].node, "n1")
			}
			if c.change != nil {
				c.change(s)
			}
			d := evacuate.Decide(s.view())
			var blocked []string
			for _, b := range d.Status["e-n1"].BlockedVMs {
				blocked = append(blocked, b.Name)
			}
			got := strings.Join(slices.Sorted(maps.Keys(created(d))), " ")
			if got != c.created || strings.Join(blocked, " ") != c.blocked || d.Again != c.again {
				t.Errorf("%q set off, %q block, again after %v; want %q, %q, %v", got, blocked, d.Again, c.created, c.blocked, c.again)
			}
		})
	}
}

// What would help is chosen by the reason of the condition, not by its message.
func TestHelpIsChosenByReason(t *testing.T) {
	for reason, want := range map[string]string{
		virtv1.VirtualMachineInstanceReasonDisksNotMigratable:      "ReadWriteMany",
		virtv1.VirtualMachineInstanceReasonInterfaceNotMigratable:  "masquerade",
		virtv1.VirtualMachineInstanceReasonHostDeviceNotMigratable: "host device",
		"SomethingNew": "remove what keeps it",
	} {
		g := guest{name: "a", node: "n1", gib: 1, stuck: true, strategy: virtv1.EvictionStrategyLiveMigrate}
		s := &scene{guests: []guest{g}, perCluster: 5, perNode: 2, nodes: []string{"n1"}, evacuated: []string{"n1"}}
		v := s.view()
		v.VMIs[0].Status.Conditions[0].Reason = reason
		v.VMIs[0].Status.Conditions[0].Message = "DisksNotLiveMigratable InterfaceNotLiveMigratable HostDeviceNotLiveMigratable"
		b := evacuate.Decide(v).Status["e-n1"].BlockedVMs
		if len(b) != 1 || len(b[0].Help) != 1 || !strings.Contains(b[0].Help[0], want) {
			t.Errorf("%s: %+v, want one help with %q", reason, b, want)
		}
	}
}

func TestMigrationsAreSteered(t *testing.T) {
	s := &scene{guests: []guest{{name: "a", node: "n1", gib: 1}, {name: "b", node: "n2", gib: 1, marked: true, strategy: virtv1.EvictionStrategyExternal}},
		perCluster: 5, perNode: 2, nodes: []string{"n1", "n2"}, evacuated: []string{"n1"}}
	v := s.view()
	v.Evacuations[0].Spec.TargetNodeSelector = map[string]string{"pool": "b"}
	want := map[string]map[string]string{"a": {"pool": "b"}, "b": nil}
	for _, m := range evacuate.Decide(v).Create {
		if got := m.Spec.AddedNodeSelector; !maps.Equal(got, want[m.Spec.VMIName]) {
			t.Errorf("%s is steered to %v", m.Spec.VMIName, got)
		}
		delete(want, m.Spec.VMIName)
	}
	if len(want) > 0 {
		t.Errorf("no migration of %v", want)
	}
}

// A deadline is looked at when it has passed, even if nothing changes: it is missed then. After the node is empty it is not.
func TestADeadlineIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		name   string
		guests []guest
		left   time.Duration
		again  time.Duration
		met    metav1.ConditionStatus
	}{
		{"it comes", []guest{{name: "a", node: "n1", gib: 1, flight: "Running"}}, time.Hour, time.Hour + time.Second, metav1.ConditionTrue},
		{"it is here", []guest{{name: "a", node: "n1", gib: 1, flight: "Running"}}, 0, time.Second, metav1.ConditionFalse},
		{"it has passed", []guest{{name: "a", node: "n1", gib: 1, flight: "Running"}}, -time.Second, 0, metav1.ConditionFalse},
		{"the node is empty", nil, time.Hour, 0, metav1.ConditionTrue},
		{"it is far away", []guest{{name: "a", node: "n1", gib: 1, flight: "Running"}}, 1<<63 - 1, 24*time.Hour + time.Second, metav1.ConditionTrue},
		{"something else is sooner", []guest{{name: "a", node: "n1", gib: 1, stuck: true, strategy: virtv1.EvictionStrategyExternal}}, time.Hour, time.Minute, metav1.ConditionFalse},
	} {
		s := &scene{guests: c.guests, perCluster: 5, perNode: 2, nodes: []string{"n1"}, evacuated: []string{"n1"}}
		v := s.view()
		v.Evacuations[0].Spec.Deadline = &metav1.Time{Time: now.Add(c.left)}
		soon := time.Minute
		v.Forecasts = map[string]*evacuate.Forecast{"e-n1": {At: now, P50: &soon, P95: &soon, P99: &soon, Max: &soon, Runs: 20}}
		d := evacuate.Decide(v)
		if met := meta.FindStatusCondition(d.Status["e-n1"].Conditions, v1alpha1.ConditionDeadlineMet); d.Again != c.again || met == nil || met.Status != c.met {
			t.Errorf("%s: again after %v, want %v; %+v", c.name, d.Again, c.again, met)
		}
	}
}
