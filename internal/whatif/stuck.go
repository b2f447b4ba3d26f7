package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/plan"
)

// Stuck says what keeps the VMs that a run was to move and did not, by name: each that does
// not move even alone, and each that moves alone, but not beside the others.
func (p *Play) Stuck(ctx context.Context, run *Run) ([]Obstacle, error) {
	left := &Play{Scenario: p.Scenario, Hosts: p.Hosts, Stops: p.Stops}
	last := map[hypervisor.VMID]plan.Move{}
	for _, wave := range p.Waves {
		left.Waves = append(left.Waves, slices.DeleteFunc(slices.Clone(wave),
			func(m plan.Move) bool {
				stays := !run.Results[m.VM].Done
				if stays {
					last[m.VM] = m
				}
				return !stays
			}))
	}
	solos, err := left.Solos(ctx)
	if err != nil {
		return nil, err
	}
	all := []Obstacle{}
	for i := range p.Scenario.Fleet.VMs {
		v := &p.Scenario.Fleet.VMs[i]
		if m, stays := last[v.ID]; stays {
			all = append(all, Obstacle{VM: v.ID,
				Text: fmt.Sprintf("%s: %s", v.ID, p.note(solos[v.ID], v, m))})
		}
	}
	return all, nil
}

// Note says why a move that was played alone does not come about.
func (p *Play) Note(solo MoveResult, v *inventory.VM, m plan.Move) string { return p.note(solo, v, m) }

// note says why a move does not come about.
func (p *Play) note(solo MoveResult, v *inventory.VM, m plan.Move) string {
	switch shut := p.shut(); {
	case p.Stops.restarts(m.VM):
		return "it is shut down, and does not start again"
	case !solo.Done:
		return "will not converge: " + p.pace(solo, v, m)
	case shut != "":
		return "does not begin: the limit " + shut + " is 0"
	}
	return "converges alone, but not beside the others"
}

// waits tells which moves have waited for one that does not converge.
type waits struct {
	run    *Run
	solos  map[hypervisor.VMID]MoveResult
	stuck  []plan.Move // those that do not converge, in their order
	place  map[hypervisor.VMID]int
	byHost map[hypervisor.HostName][]plan.Move
}

// waits looks at all moves once, if one of them does not converge.
func (p *Play) waits(run *Run, solos map[hypervisor.VMID]MoveResult) *waits {
	w := &waits{run: run, solos: solos, place: map[hypervisor.VMID]int{}, byHost: map[hypervisor.HostName][]plan.Move{}}
	all := slices.Concat(p.Waves...)
	for _, m := range all {
		if solo := solos[m.VM]; !run.Results[m.VM].Done && !solo.Done && solo.Busy > 0 {
			w.stuck = append(w.stuck, m)
		}
	}
	if len(w.stuck) == 0 {
		return w
	}
	for i, m := range all {
		w.place[m.VM] = i
		w.byHost[m.Source] = append(w.byHost[m.Source], m)
		w.byHost[m.Target] = append(w.byHost[m.Target], m)
	}
	return w
}

// behind names a VM that does not converge and for whose first attempt a move has waited; "" is none. Others
// share its link only while all converge, so they begin when it has been given up. A move has waited for it when it
// comes later in the plan, and the moves before do not account for half of that time.
func (w *waits) behind(m plan.Move) hypervisor.VMID {
	began := w.run.Results[m.VM].Began
	at := slices.IndexFunc(w.stuck, func(x plan.Move) bool {
		return w.place[x.VM] < w.place[m.VM] && together(x, m) && w.solos[x.VM].Busy <= began
	})
	if at < 0 {
		return ""
	}
	first := w.stuck[at].VM
	var before time.Duration
	counted := map[hypervisor.VMID]bool{}
	for _, host := range []hypervisor.HostName{m.Source, m.Target} {
		for _, x := range w.byHost[host] {
			if r := w.run.Results[x.VM]; x.VM != m.VM && !counted[x.VM] && r.Done && r.Began < began {
				counted[x.VM] = true
				before += r.Took
			}
		}
	}
	if before+w.solos[first].Busy/2 > began {
		return ""
	}
	return first
}

// together reports whether two moves have a host in common.
func together(x, m plan.Move) bool {
	return x.Source == m.Source || x.Target == m.Target || x.Source == m.Target || x.Target == m.Source
}

// shut names the limit that lets no migration begin, if there is one.
func (p *Play) shut() string {
	switch s := p.Present(); {
	case s.PerCluster == 0:
		return "perCluster"
	case s.PerSource == 0:
		return "perSource"
	}
	return ""
}

// pace compares how fast a guest writes with how fast its memory can be sent.
func (p *Play) pace(solo MoveResult, v *inventory.VM, m plan.Move) string {
	speed := solo.Options.Bandwidth
	for i := range p.Scenario.Fleet.Hosts {
		h := &p.Scenario.Fleet.Hosts[i]
		if (h.Name == m.Source || h.Name == m.Target) && h.Link > 0 && (speed == 0 || h.Link < speed) {
			speed = h.Link
		}
	}
	// Encryption, compression and processors may be slower than the link.
	const noticeable = 0.9
	if solo.Speed > 0 && (speed == 0 || float64(solo.Speed) < noticeable*float64(speed)) {
		speed = solo.Speed
	}
	rate := hypervisor.Bandwidth(v.Workload.Dirtied(time.Second))
	downtime := cmp.Or(solo.Options.Downtime, p.Scenario.Controller.Cluster.MaxDowntime)
	text := fmt.Sprintf("it dirties %v, %v can be sent", rate, speed)
	if convergence.Predict(v.Memory, rate, speed, downtime).Converges {
		text += " and the policy gives it too little time"
	}
	return text
}
