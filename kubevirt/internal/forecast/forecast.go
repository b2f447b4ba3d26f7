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
	// Rates are how fast guests write, where that was measured. Others have what their past migrations say,
	// or else godwit's default class.
	Rates map[hypervisor.VMID]dirty.Rate
}

// Of returns the question that a NodeEvacuation asks.
func Of(e *v1alpha1.NodeEvacuation) Question {
	q := Question{Nodes: []string{e.Spec.NodeName}, Unmovable: e.Spec.Unmovable, Targets: e.Spec.TargetNodeSelector}
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
}

// Ask simulates.
func Ask(ctx context.Context, c *convert.Cluster, q Question) (*Answer, error) {
	s, hosts, err := q.scenario(c)
	if err != nil {
		return nil, err
	}
	f, err := whatif.Ask(ctx, s, whatif.Question{Hosts: hosts, Samples: cmp.Or(q.Samples, Samples), Terms: q.terms()})
	if err != nil {
		return nil, err
	}
	return &Answer{f, q.Rates}, nil
}

// scenario returns the cluster as godwit simulates it, and the nodes as its hosts. Afterwards the question has all
// rates that are known.
func (q *Question) scenario(c *convert.Cluster) (*config.Scenario, []hypervisor.HostName, error) {
	fleet, err := convert.Fleet("cluster", c, inventory.Defaults{})
	if err != nil {
		return nil, nil, err
	}
	hosts := make([]hypervisor.HostName, len(q.Nodes))
	for i, n := range q.Nodes {
		hosts[i] = hypervisor.HostName(n)
		if !slices.ContainsFunc(fleet.Hosts, func(h inventory.Host) bool { return h.Name == hosts[i] }) {
			return nil, nil, fmt.Errorf("the cluster has no node %s", n)
		}
	}
	willing(fleet, hosts)
	q.steer(fleet, hosts)
	q.Rates = Rates(c, fleet, q.Rates)
	dirty.Lay(fleet, q.Rates)
	if q.Outbound > 0 {
		fleet.Config.ParallelOutboundMigrationsPerNode = min(fleet.Config.ParallelOutboundMigrationsPerNode, q.Outbound)
	}
	s, err := config.Of("cluster", fleet, varied)
	return s, hosts, err
}

// Rates returns what is known of how fast the guests of a cluster write: what was measured, else what their past
// migrations say.
func Rates(c *convert.Cluster, f *inventory.Fleet, measured map[hypervisor.VMID]dirty.Rate) map[hypervisor.VMID]dirty.Rate {
	all := dirty.Migrations(c.Migrations, dirty.Memory(f), inventory.DefaultLink, f.Config.BandwidthPerMigration)
	maps.Copy(all, measured)
	return all
}

// steer lets the VMs on the nodes move to nodes with labels only. A VM's own selector wins, as in KubeVirt.
// Source: KubeVirt v1.8.0 pkg/virt-controller/watch/migration/migration.go:956.
func (q *Question) steer(f *inventory.Fleet, hosts []hypervisor.HostName) {
	if len(q.Targets) == 0 {
		return
	}
	for i := range f.VMs {
		if v := &f.VMs[i]; slices.Contains(hosts, v.Host) {
			own := v.Placement.Selector
			v.Placement.Selector = maps.Clone(q.Targets)
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

// For returns a forecast as package evacuate takes it.
func For(f *Answer, at time.Time) *evacuate.Forecast {
	e := &evacuate.Forecast{At: at, Left: len(f.Left), VMs: map[hypervisor.VMID]evacuate.Expectation{},
		Unplaceable: map[hypervisor.VMID][]string{}, Writes: map[hypervisor.VMID]v1alpha1.WriteRate{}}
	if s := f.Samples; s != nil {
		e.Runs = s.Runs
		e.P50, e.P95, e.P99, e.Max = span(s.Seconds.P50), span(s.Seconds.P95), span(s.Seconds.P99), span(s.Seconds.Max)
	}
	for _, wave := range f.Waves {
		for _, m := range wave {
			e.VMs[m.VM] = evacuate.Expectation{Seconds: m.Seconds, DowntimeMilliseconds: m.DowntimeMilliseconds,
				Converges: m.Converges}
			if r, known := f.Rates[m.VM]; known {
				e.Writes[m.VM] = WriteRate(r)
			}
		}
	}
	for _, proof := range f.Proofs {
		if proof.Kind == plan.Stuck && proof.Pinned == "" && len(proof.Kept) == 0 && len(proof.VMs) == 1 {
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
