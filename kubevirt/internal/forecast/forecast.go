// Package forecast simulates how nodes of a cluster with KubeVirt are emptied, with godwit's own controller
// and model of QEMU, and says how long it takes and what becomes of each VM.
//
// What KubeVirt does not say, how fast links are and guests write, is measured where it can be (package dirty), and
// else godwit's default: see docs/kubevirt.md.
package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
	"github.com/godwit-vm/godwit/plan"
)

// Samples is how many simulations there are by default.
const Samples = 20

// varied is how the simulations differ.
var varied = config.VarySpec{Dirty: "lognormal(0.3)", Link: "triangular(0.7, 1, 1)"}

// A Question is what is simulated.
type Question struct {
	Nodes     []string
	Unmovable v1alpha1.Unmovable
	Grace     time.Duration // 0 is godwit's default
	// Outbound bounds the migrations that leave a node at once; 0 is KubeVirt's limit.
	Outbound int
	Samples  int // 0 is [Samples]
	// Targets are labels of nodes that the VMs may move to, besides what each asks for itself.
	Targets map[string]string
	// Order says which VMs of a node leave first; "" is LargestFirst.
	Order v1alpha1.Order
	// Active are all nodes that are emptied at the same time, Nodes among them, the most urgent first. None is that
	// Nodes are alone, and none of them goes first.
	Active []Active
	// Rates are how fast guests write, where that was measured. Others have what their past migrations say,
	// or else godwit's default class.
	Rates map[hypervisor.VMID]dirty.Rate
}

// Active is a node that is emptied, with the labels of nodes that its VMs may move to.
type Active struct {
	Node    string
	Targets map[string]string
}

// Of returns the question that a NodeEvacuation asks.
func Of(e *v1alpha1.NodeEvacuation) Question {
	q := Question{Nodes: []string{e.Spec.NodeName}, Unmovable: e.Spec.Unmovable, Targets: e.Spec.TargetNodeSelector,
		Order: e.Spec.Order}
	if e.Spec.Grace != nil {
		q.Grace = e.Spec.Grace.Duration
	}
	if l := e.Spec.Limits; l != nil && l.ParallelOutbound != nil {
		q.Outbound = int(*l.ParallelOutbound)
	}
	return q
}

// An Answer is what simulations say.
type Answer struct {
	*whatif.Forecast
	// Rates are how fast guests write, where that is known: see [Rates].
	Rates map[hypervisor.VMID]dirty.Rate

	// Unreadable are the VMs that are left out, since they cannot be read, and why. Those on the nodes are in Left, too.
	Unreadable map[hypervisor.VMID]string

	on map[hypervisor.VMID]hypervisor.HostName
}

// Ask simulates.
func Ask(ctx context.Context, c *convert.Cluster, q Question) (*Answer, error) {
	s, hosts, wrong, err := q.scenario(c)
	if err != nil {
		return nil, err
	}
	f, err := whatif.Ask(ctx, s, whatif.Question{Hosts: hosts, Samples: cmp.Or(q.Samples, Samples), Terms: q.terms(),
		Order: whatif.Order(q.Order), InTurn: len(q.Active) > 0})
	if err != nil {
		return nil, err
	}
	a := &Answer{Forecast: f, Rates: q.Rates, Unreadable: wrong, on: map[hypervisor.VMID]hypervisor.HostName{}}
	for i := range c.VMIs {
		v := &c.VMIs[i]
		id, host := hypervisor.VMID(v.Namespace+"/"+v.Name), hypervisor.HostName(v.Status.NodeName)
		a.on[id] = host
		if wrong[id] != "" && slices.Contains(hosts, host) {
			f.Left = append(f.Left, id)
		}
	}
	slices.Sort(f.Left)
	return a, nil
}

// scenario returns the cluster as godwit simulates it, the nodes as its hosts, and what is wrong with the VMs that are
// left out. Afterwards the question has all rates that are known.
func (q *Question) scenario(c *convert.Cluster) (*config.Scenario, []hypervisor.HostName, map[hypervisor.VMID]string, error) {
	fleet, wrong, err := convert.Sound("cluster", c, inventory.Defaults{})
	if err != nil {
		return nil, nil, nil, err
	}
	active := q.active()
	known := func(node string) bool {
		return slices.ContainsFunc(fleet.Hosts, func(h inventory.Host) bool { return string(h.Name) == node })
	}
	for _, n := range q.Nodes {
		if !known(n) {
			return nil, nil, nil, fmt.Errorf("the cluster has no node %s", n)
		}
	}
	var hosts []hypervisor.HostName
	for _, n := range active {
		if known(n.Node) {
			hosts = append(hosts, hypervisor.HostName(n.Node))
			steer(fleet, hypervisor.HostName(n.Node), n.Targets)
		}
	}
	willing(fleet, hosts)
	q.Rates = Rates(c, fleet, q.Rates)
	dirty.Lay(fleet, q.Rates)
	if q.Outbound > 0 {
		fleet.Config.ParallelOutboundMigrationsPerNode = min(fleet.Config.ParallelOutboundMigrationsPerNode, q.Outbound)
	}
	s, err := config.Of("cluster", fleet, varied)
	return s, hosts, wrong, err
}

// Rates returns what is known of how fast the guests of a cluster write: what was measured, else what their past
// migrations say.
func Rates(c *convert.Cluster, f *inventory.Fleet, measured map[hypervisor.VMID]dirty.Rate) map[hypervisor.VMID]dirty.Rate {
	all := dirty.Migrations(c.Migrations, dirty.Memory(f), inventory.DefaultLink, f.Config.BandwidthPerMigration)
	maps.Copy(all, measured)
	return all
}

// active returns the nodes that are emptied.
func (q *Question) active() []Active {
	if len(q.Active) > 0 {
		return q.Active
	}
	all := make([]Active, len(q.Nodes))
	for i, n := range q.Nodes {
		all[i] = Active{n, q.Targets}
	}
	return all
}

// steer lets the VMs on a node move to nodes with labels only. A VM's own selector wins, as in KubeVirt.
// Source: KubeVirt v1.8.0 pkg/virt-controller/watch/migration/migration.go:956.
func steer(f *inventory.Fleet, host hypervisor.HostName, targets map[string]string) {
	if len(targets) == 0 {
		return
	}
	for i := range f.VMs {
		if v := &f.VMs[i]; v.Host == host {
			own := v.Placement.Selector
			v.Placement.Selector = maps.Clone(targets)
			maps.Copy(v.Placement.Selector, own)
		}
	}
}

// willing lets the VMs on the nodes be moved as they are in the cluster: see package evacuate.
func willing(f *inventory.Fleet, hosts []hypervisor.HostName) {
	for i := range f.VMs {
		v := &f.VMs[i]
		if !slices.Contains(hosts, v.Host) {
			continue
		}
		switch v.Strategy = v.Strategy.Or(f.EvictionStrategy); v.Strategy {
		case evacuation.External:
			v.Strategy = evacuation.LiveMigrate
		case evacuation.None, evacuation.Unset:
			v.Strategy = evacuation.LiveMigrateIfPossible
		}
	}
}

// For returns what is forecast of all nodes together, as package evacuate takes it.
func For(f *Answer, at time.Time) *evacuate.Forecast {
	spread := whatif.Spread{}
	if f.Samples != nil {
		spread = f.Samples.Seconds
	}
	return f.of(at, spread, func(hypervisor.VMID) bool { return true })
}

// ForNode returns what is forecast of one of the nodes.
func ForNode(f *Answer, at time.Time, node string) *evacuate.Forecast {
	host, spread := hypervisor.HostName(node), whatif.Spread{}
	if f.Samples != nil {
		spread = f.Samples.Hosts[host]
	}
	e := f.of(at, spread, func(vm hypervisor.VMID) bool { return f.on[vm] == host })
	if e.Left > 0 && len(e.VMs) == 0 { // nothing leaves: no time can be told
		e.P50, e.P95, e.P99, e.Max = nil, nil, nil, nil
	}
	return e
}

// of returns what is forecast of some VMs, which have left after so long.
func (a *Answer) of(at time.Time, left whatif.Spread, some func(hypervisor.VMID) bool) *evacuate.Forecast {
	e := &evacuate.Forecast{At: at, VMs: map[hypervisor.VMID]evacuate.Expectation{},
		Unplaceable: map[hypervisor.VMID][]string{}, Writes: map[hypervisor.VMID]v1alpha1.WriteRate{}}
	if a.Samples != nil {
		e.Runs = a.Samples.Runs
		e.P50, e.P95, e.P99, e.Max = span(left.P50), span(left.P95), span(left.P99), span(left.Max)
	}
	for _, vm := range a.Left {
		if some(vm) {
			e.Left++
		}
	}
	for _, wave := range a.Waves {
		for _, m := range wave {
			if !some(m.VM) {
				continue
			}
			x := evacuate.Expectation{Converges: m.Converges}
			if m.Seconds != nil && m.DowntimeMilliseconds != nil {
				x.Seconds, x.DowntimeMilliseconds = *m.Seconds, *m.DowntimeMilliseconds
			}
			e.VMs[m.VM] = x
			if r, known := a.Rates[m.VM]; known {
				e.Writes[m.VM] = WriteRate(r)
			}
		}
	}
	for _, proof := range a.Proofs {
		if proof.Kind == plan.Stuck && proof.Pinned == "" && len(proof.Kept) == 0 && len(proof.VMs) == 1 && some(proof.VMs[0]) {
			e.Unplaceable[proof.VMs[0]] = refusals(&proof)
		}
	}
	return e
}

// WriteRate returns a rate as a status has it.
func WriteRate(r dirty.Rate) v1alpha1.WriteRate {
	return v1alpha1.WriteRate{BytesPerSecond: int64(r.BytesPerSecond), Source: r.Source[:min(len(r.Source), 600)],
		At: metav1.NewTime(r.At.Truncate(time.Second))}
}

func span(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	d := time.Duration(*seconds * float64(time.Second))
	return &d
}

// refusals says why nodes refuse a VM: the same words once, with how many nodes say so.
func refusals(c *plan.Certificate) (all []string) {
	count := map[string]int{}
	var order []string
	for _, r := range c.Refusals {
		for _, why := range r.Why {
			text := fmt.Sprintf("%s: needs %s", why.Check, why.Need)
			if count[text]++; count[text] == 1 {
				order = append(order, text)
			}
		}
	}
	for _, text := range order {
		all = append(all, fmt.Sprintf("%s (%d nodes)", text, count[text]))
	}
	if len(all) == 0 {
		all = []string{c.String()}
	}
	return all[:min(len(all), 10)]
}
