package forecast

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/plan"
)

// A Rollout asks for a plan by which nodes are emptied and serviced, one batch after another.
type Rollout struct {
	Question
	Service  time.Duration // how long a batch is away once it is empty
	Together int           // nodes at once; 0 is no limit
	Keep     int           // failures of other nodes that are survived at any time
}

// A Maintenance is the plan, and when what happens.
type Maintenance struct {
	plan.MaintenancePlan
	Times *whatif.Schedule `json:"times"`
	// ShutDown are VMs that cannot be migrated and are shut down.
	ShutDown []hypervisor.VMID `json:"shutDown"`
}

// Plan plans batches and simulates them.
func (q *Rollout) Plan(ctx context.Context, c *convert.Cluster) (*Maintenance, error) {
	s, hosts, err := q.scenario(c)
	if err != nil {
		return nil, err
	}
	params := s.Controller.Evacuation
	params.Terms = q.terms()
	d := plan.Maintain(s.Fleet, hosts, params)
	r := &plan.Request{Fleet: d.Fleet, Hosts: hosts, Keep: q.Keep, Together: q.Together, Protected: plan.Guarded(nil, d.Groups),
		Service: q.Service, Each: whatif.Each(s)}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	m := &Maintenance{MaintenancePlan: plan.Maintenance(r), ShutDown: append([]hypervisor.VMID{}, d.ShutDown...)}
	m.Unfold(d.Groups)
	var waves []plan.Wave
	for i := range m.Batches {
		waves = append(waves, m.Batches[i].Waves...)
	}
	stops := whatif.StopsOf(&d, s, waves, params.Terms)
	m.Times, err = whatif.PlaySchedule(ctx, s, &m.MaintenancePlan, nil, q.Service, stops)
	return m, err
}

// terms are what becomes of VMs that cannot be migrated.
func (q *Question) terms() evacuation.Terms {
	t := evacuation.Terms{OnUnmovable: evacuation.Keep, Grace: q.Grace}
	if q.Unmovable == v1alpha1.ShutDown {
		t.OnUnmovable = evacuation.ShutDown
	}
	return t
}
