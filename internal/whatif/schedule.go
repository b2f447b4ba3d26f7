package whatif

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
)

// rest is what a move takes about, besides sending memory.
const rest = 2 * time.Second

// A Schedule is when each batch of a maintenance plan happens, in seconds since the beginning. A time that is nil, which
// is null in JSON, is never: a batch that is not emptied is not serviced, and those after it
// do not begin.
type Schedule struct {
	Batches []Batch `json:"shifts"` // one for each batch
	Back    *Batch  `json:"back"`   // the way home; null when none was asked for
	// EndsSeconds is when all is over, BoundSeconds when it is at the earliest: the same
	// moves at the full speed of the narrowest links, as many at once as may.
	EndsSeconds *float64 `json:"endsSeconds"`
	// Range is the distribution of EndsSeconds, as far as the model may be off: all batches are
	// taken to be off by as much. Null is never.
	Range        *predict.Range `json:"rangeSeconds"`
	BoundSeconds float64        `json:"boundSeconds"`
	Violations   []string       `json:"invariantViolations"`
}

// A Batch is when one batch is emptied and serviced.
type Batch struct {
	BeginsSeconds *float64 `json:"beginsSeconds"`
	MovedSeconds  *float64 `json:"movedSeconds"` // when the last VM has moved
	BackSeconds   *float64 `json:"backSeconds"`  // when the hosts take VMs again
	// Range is the distribution of how long its moves take, as far as the model may be off; null is
	// never.
	Range        *predict.Range `json:"rangeSeconds"`
	BoundSeconds float64        `json:"boundSeconds"` // how long the moves take at least
	// Stay are the VMs that did not move, and Obstacles say why: they do not converge, or
	// failed too often. What comes later is played as if an operator had seen to them, so that
	// all that stand in the way are told.
	Stay      []hypervisor.VMID `json:"stay"`
	Obstacles []Obstacle        `json:"obstacles"`
}

// Each returns about how long a move takes when as many run at once as may: what a plan
// weighs against the time of a batch. Each VM's memory is sent at the speed of its host's link, or at the cap
// on each migration where that is lower.
func Each(s *config.Scenario) time.Duration {
	links := make(map[hypervisor.HostName]hypervisor.Bandwidth, len(s.Fleet.Hosts))
	for i := range s.Fleet.Hosts {
		links[s.Fleet.Hosts[i].Name] = s.Fleet.Hosts[i].Link
	}
	limit := s.Controller.Cluster.BandwidthPerMigration
	var all time.Duration
	for i := range s.Fleet.VMs {
		v := &s.Fleet.VMs[i]
		speed := links[v.Host]
		if speed <= 0 {
			speed = inventory.DefaultLink
		}
		if limit > 0 {
			speed = min(speed, limit)
		}
		all += v.Memory.At(speed)
	}
	n := time.Duration(max(1, len(s.Fleet.VMs)))
	return (all/n + rest) / time.Duration(max(1, atOnce(s)))
}

func atOnce(s *config.Scenario) int {
	return (&Play{Scenario: s}).Present().PerCluster
}

// PlaySchedule plays a plan and, unless it is nil, the way back. Service is how long the hosts of
// a batch are away once they are empty; stops are the VMs that are not migrated one by one, or nil.
func PlaySchedule(ctx context.Context, s *config.Scenario, a *plan.MaintenancePlan,
	back *plan.ReturnPlan, service time.Duration, stops *Stops) (*Schedule, error) {
	t := &Schedule{Batches: []Batch{}, Violations: []string{}, EndsSeconds: new(float64)}
	now := *Endless(s)
	for i := range a.Batches {
		b := &a.Batches[i]
		batch, err := t.play(ctx, &now, b.Hosts, b.Waves, stops.on(b.Hosts))
		if err != nil {
			return nil, err
		}
		batch.BackSeconds = later(batch.MovedSeconds, service)
		t.EndsSeconds = batch.BackSeconds
		t.BoundSeconds += batch.BoundSeconds + service.Seconds()
		t.Batches = append(t.Batches, *batch)
		now.Fleet = after(now.Fleet, b.Waves, stops.on(b.Hosts))
	}
	if back == nil {
		t.ranged(service)
		return t, nil
	}
	batch, err := t.play(ctx, &now, nil, back.Waves, stops.on(nil))
	if err != nil {
		return nil, err
	}
	batch.BackSeconds = batch.MovedSeconds
	t.Back, t.EndsSeconds = batch, batch.MovedSeconds
	t.BoundSeconds += batch.BoundSeconds
	t.ranged(service)
	return t, nil
}

// ranged sums up the ranges of all batches and of the way back.
func (t *Schedule) ranged(service time.Duration) {
	if t.EndsSeconds == nil {
		return
	}
	t.Range = &predict.Range{}
	batches := t.Batches
	if t.Back != nil {
		batches = append(slices.Clone(batches), *t.Back)
	}
	for i := range batches {
		r, away := batches[i].Range, service.Seconds()
		if i == len(t.Batches) {
			away = 0
		}
		t.Range.P10, t.Range.P50, t.Range.P90 = t.Range.P10+r.P10+away, t.Range.P50+r.P50+away,
			t.Range.P90+r.P90+away
	}
}

// play plays the moves of one batch, from where the schedule ends.
func (t *Schedule) play(ctx context.Context, s *config.Scenario, hosts []hypervisor.HostName,
	waves []plan.Wave, stops *Stops) (*Batch, error) {
	p := &Play{Scenario: s, Hosts: hosts, Waves: waves, Stops: stops}
	run, err := p.Nominal(ctx)
	if err != nil {
		return nil, err
	}
	last := max(0, run.Empty) // a VM that is shut down has left, too
	batch := &Batch{BeginsSeconds: t.EndsSeconds, Stay: []hypervisor.VMID{},
		BoundSeconds: bound(s, waves, stops).Seconds()}
	for _, result := range run.Results {
		if result.Done {
			last = max(last, result.Began+result.Took)
		}
	}
	if batch.Obstacles, err = p.Stuck(ctx, run); err != nil {
		return nil, err
	}
	for _, o := range batch.Obstacles {
		batch.Stay = append(batch.Stay, o.VM)
	}
	if len(batch.Stay) == 0 && run.Empty >= 0 {
		batch.MovedSeconds = later(t.EndsSeconds, last)
		if batch.Range, err = p.ranged(run, last); err != nil {
			return nil, err
		}
	}
	for _, v := range run.Violations {
		t.Violations = append(t.Violations, v.Invariant+": "+v.Detail)
	}
	return batch, nil
}

// later returns a time that is so much later; never stays never.
func later(seconds *float64, by time.Duration) *float64 {
	if seconds == nil {
		return nil
	}
	return new(*seconds + by.Seconds())
}

// bound returns how long moves take at least: by the wire out of each host and into it,
// and because not more than the limits allow run at once.
// A VM that is restarted sends nothing.
func bound(s *config.Scenario, waves []plan.Wave, stops *Stops) time.Duration {
	links := map[hypervisor.HostName]hypervisor.Bandwidth{}
	for i := range s.Fleet.Hosts {
		links[s.Fleet.Hosts[i].Name] = s.Fleet.Hosts[i].Link
	}
	out := map[hypervisor.HostName]hypervisor.Bytes{}
	in := map[hypervisor.HostName]hypervisor.Bytes{}
	var longest, sum time.Duration
	for _, m := range slices.Concat(waves...) {
		if stops != nil && stops.Restart[m.VM] {
			continue
		}
		at, _ := slices.BinarySearchFunc(s.Fleet.VMs, m.VM,
			func(v inventory.VM, id hypervisor.VMID) int { return cmp.Compare(v.ID, id) })
		v := &s.Fleet.VMs[at]
		bytes := least(s, v, m)
		out[m.Source] += bytes
		in[m.Target] += bytes
		sum += bytes.At(min(links[m.Source], links[m.Target]))
		longest = max(longest, out[m.Source].At(links[m.Source]), in[m.Target].At(links[m.Target]))
	}
	return max(longest, sum/time.Duration(max(1, atOnce(s))))
}

// after returns the fleet after moves, without the VMs that were shut down.
func after(f *inventory.Fleet, waves []plan.Wave, stops *Stops) *inventory.Fleet {
	now, target := *f, map[hypervisor.VMID]hypervisor.HostName{}
	for _, m := range slices.Concat(waves...) {
		target[m.VM] = m.Target
	}
	now.VMs, now.Migrations = slices.Clone(f.VMs), nil
	if stops != nil {
		now.VMs = slices.DeleteFunc(now.VMs, func(v inventory.VM) bool { return stops.Off[v.ID] != "" })
	}
	for i := range now.VMs {
		v := &now.VMs[i]
		v.Host = cmp.Or(target[v.ID], v.Host)
	}
	return &now
}
