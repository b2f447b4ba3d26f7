package forecast

import (
	"context"
	"slices"
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
	// Unreadable are the VMs that are left out, since they cannot be read, and why.
	Unreadable map[hypervisor.VMID]string `json:"unreadable,omitempty"`
}

// Plan plans batches and simulates them.
func (q *Rollout) Plan(ctx context.Context, c *convert.Cluster) (*Maintenance, error) {
	s, hosts, wrong, err := q.scenario(c)
	if err != nil {
		return nil, err
	}
	hosts, obstacles := readable(c, hosts, wrong)
	if len(hosts) == 0 {
		return &Maintenance{MaintenancePlan: plan.MaintenancePlan{Batches: []plan.Batch{}, Obstacles: obstacles}, Unreadable: wrong,
			Times: &whatif.Schedule{}, ShutDown: []hypervisor.VMID{}}, nil
	}
	params := s.Controller.Evacuation
	params.Terms = q.terms()
	d := plan.Maintain(s.Fleet, hosts, params)
	r := &plan.Request{Fleet: d.Fleet, Hosts: hosts, Keep: q.Keep, Together: q.Together, Protected: plan.Guarded(nil, d.Groups),
		Service: q.Service, Each: whatif.Each(s)}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	m := &Maintenance{MaintenancePlan: plan.Maintenance(r), Unreadable: wrong, ShutDown: append([]hypervisor.VMID{}, d.ShutDown...)}
	m.Unfold(d.Groups)
	m.Obstacles = append(m.Obstacles, obstacles...)
	var waves []plan.Wave
	for i := range m.Batches {
		waves = append(waves, m.Batches[i].Waves...)
	}
	stops := whatif.StopsOf(&d, s, waves, params.Terms)
	m.Times, err = whatif.PlaySchedule(ctx, s, &m.MaintenancePlan, nil, q.Service, stops)
	return m, err
}

// readable returns the nodes without those on which a VM cannot be read, and these as obstacles: the VM stays.
func readable(c *convert.Cluster, hosts []hypervisor.HostName, wrong map[hypervisor.VMID]string) (
	[]hypervisor.HostName, []plan.Obstacle) {
	var all []plan.Obstacle
	for i := range c.VMIs {
		v := &c.VMIs[i]
		id, host := hypervisor.VMID(v.Namespace+"/"+v.Name), hypervisor.HostName(v.Status.NodeName)
		if why := wrong[id]; why != "" && slices.Contains(hosts, host) {
			all = append(all, plan.Obstacle{Host: host, Left: []hypervisor.VMID{id}, Cannot: []hypervisor.VMID{id},
				Moves: []plan.Move{}, Text: string(id) + " cannot be read: " + why})
		}
	}
	return slices.DeleteFunc(hosts, func(h hypervisor.HostName) bool {
		return slices.ContainsFunc(all, func(o plan.Obstacle) bool { return o.Host == h })
	}), all
}

// terms are what becomes of VMs that cannot be migrated.
func (q *Question) terms() evacuation.Terms {
	t := evacuation.Terms{OnUnmovable: evacuation.Keep, Grace: q.Grace}
	if q.Unmovable == v1alpha1.ShutDown {
		t.OnUnmovable = evacuation.ShutDown
	}
	return t
}
