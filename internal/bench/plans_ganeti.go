package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

func ganetiName(hosts, drained int) string { return fmt.Sprintf("ganeti-%d, drain %d", hosts, drained) }

// A drain is a question of the set: some hosts of a cluster are to be emptied.
type drain struct {
	name  string
	fleet *inventory.Fleet
	plan  *plan.Fleet // the same, to plan with
	hosts []hypervisor.HostName
}

// ganetiRows measures all candidates on one cluster.
func ganetiRows(ctx context.Context, hosts, drained int) ([]PlanRow, error) {
	f, err := fleet(hosts)
	if err != nil {
		return nil, err
	}
	q := &drain{name: ganetiName(hosts, drained), fleet: f, plan: plan.FromInventory(f)}
	for i := range drained {
		q.hosts = append(q.hosts, hypervisor.HostName(fmt.Sprintf("node%05d", 1+i)))
	}
	rows := []PlanRow{q.bound()}
	for _, c := range []struct {
		name  string
		moves func() []plan.Wave
	}{{FirstFit, q.firstFit}, {godwit, func() []plan.Wave { return plan.Drain(q.plan, q.hosts).Waves }}} {
		row, err := q.played(ctx, c.name, c.moves())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, row)
	}
	row, err := q.kubeVirt(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KubeVirt, err)
	}
	rows = append(rows, row)
	if waves, known := q.hbal(hosts); known {
		row, err := q.played(ctx, Hbal, waves)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Hbal, err)
		}
		row.Recorded = "plan of ganeti-htools 3.0.2"
		rows = append(rows, row)
	}
	return rows, nil
}

// on reports whether a host is to be emptied.
func (q *drain) on(host hypervisor.HostName) bool {
	for _, h := range q.hosts {
		if h == host {
			return true
		}
	}
	return false
}

// bound returns what no plan is better than: each VM moves once, and all memory of a host crosses its
// link.
func (q *drain) bound() PlanRow {
	row := PlanRow{Set: q.name, Candidate: Bound, Solved: 1, Questions: 1}
	var all, most hypervisor.Bytes
	for _, h := range q.hosts {
		var here hypervisor.Bytes
		for i := range q.plan.VMs {
			if v := &q.plan.VMs[i]; v.Home == h {
				row.Moves++
				here += v.Memory
			}
		}
		all, most = all+here, max(most, here)
	}
	row.MovedGiB, row.Seconds = inGiB(all), inSeconds(most.At(10*hypervisor.Gbit))
	return row
}

// firstFit moves each VM to the first host by name that has room for it.
func (q *drain) firstFit() []plan.Wave {
	hosts := append([]placement.Host{}, q.plan.Hosts...)
	var wave plan.Wave
	for i := range q.plan.VMs {
		v := &q.plan.VMs[i]
		if !q.on(v.Home) {
			continue
		}
		for k := range hosts {
			h := &hosts[k]
			if q.on(h.Name) || h.FreeMemory() < v.Demand() || h.FreeCPUs() < v.DemandCPUs() {
				continue
			}
			wave = append(wave, plan.Move{VM: v.ID, Source: v.Home, Target: h.Name})
			*h, _ = h.With(&v.VM)
			break
		}
	}
	return []plan.Wave{wave}
}

// scenario returns the scenario of the cluster: KubeVirt's limits, and hypervisors that cost nothing.
func (q *drain) scenario() (*config.Scenario, error) {
	s, err := config.Of(q.name, q.fleet, config.VarySpec{})
	if err != nil {
		return nil, err
	}
	s.Model = fake.Model{}
	return s, nil
}

// played carries out the moves of a candidate, and returns what they cost.
func (q *drain) played(ctx context.Context, candidate string, waves []plan.Wave) (PlanRow, error) {
	s, err := q.scenario()
	if err != nil {
		return PlanRow{}, err
	}
	run, err := (&whatif.Play{Scenario: whatif.Endless(s), Hosts: q.hosts, Waves: waves}).Nominal(ctx)
	if err != nil {
		return PlanRow{}, err
	}
	target := map[hypervisor.VMID]hypervisor.HostName{}
	row := PlanRow{Set: q.name, Candidate: candidate, Questions: 1, Moves: plan.Count(waves)}
	for _, w := range waves {
		for _, m := range w {
			target[m.VM] = m.Target
		}
	}
	if run.Empty >= 0 && len(run.Violations) == 0 {
		row.Solved, row.Seconds = 1, inSeconds(run.Empty)
	}
	q.fullness(&row, target)
	return row, nil
}

// fullness enters what moves, and how full the fullest host is then.
func (q *drain) fullness(row *PlanRow, target map[hypervisor.VMID]hypervisor.HostName) {
	used := map[hypervisor.HostName]hypervisor.Bytes{}
	var moved hypervisor.Bytes
	for i := range q.plan.VMs {
		v := &q.plan.VMs[i]
		home := v.Home
		if to, moves := target[v.ID]; moves {
			home = to
			moved += v.Memory
		}
		used[home] += v.Memory
	}
	fullest := 0.0
	for host, bytes := range used {
		if at, known := q.plan.HostAt(host); known {
			fullest = max(fullest, float64(bytes)/float64(q.plan.Hosts[at].Memory))
		}
	}
	row.MovedGiB, row.Fullest = inGiB(moved), shareOf(fullest)
}

var errViolated = errors.New("an invariant was violated")

// kubeVirt drains the hosts with the decisions of KubeVirt, and its defaults.
func (q *drain) kubeVirt(ctx context.Context) (PlanRow, error) {
	s, err := q.scenario()
	if err != nil {
		return PlanRow{}, err
	}
	c := &s.Controller
	cluster := *c.Cluster
	cluster.Convergence = convergence.Legacy
	c.Cluster, c.Evacuation.Compatible, c.Migration.Compatible = &cluster, true, true
	for _, h := range q.hosts {
		s.Events = append(s.Events, config.Scheduled{What: sim.Drain{Host: h}})
	}
	sc := s.Config(s.Seed)
	sc.Tick = func(*sim.World) bool { return ctx.Err() == nil }
	w, err := s.Build(sc)
	if err != nil {
		return PlanRow{}, err
	}
	w.Run(240 * time.Hour)
	if ctx.Err() != nil {
		return PlanRow{}, context.Cause(ctx)
	}
	if len(w.Violations()) > 0 {
		return PlanRow{}, errViolated
	}
	r := w.Result()
	row := PlanRow{Set: q.name, Candidate: KubeVirt, Questions: 1, Moves: r.Migrations.Succeeded, Solved: 1}
	_, took, _ := r.Drained()
	for _, e := range r.Evacuations {
		if len(e.Left) > 0 {
			row.Solved = 0
		}
	}
	if row.Solved == 1 {
		row.Seconds = rounded(took)
	}
	target := map[hypervisor.VMID]hypervisor.HostName{}
	for i := range q.plan.VMs {
		v := &q.plan.VMs[i]
		if now := w.VM(v.ID); now != nil && now.Host != v.Home {
			target[v.ID] = now.Host
		}
	}
	q.fullness(&row, target)
	return row, nil
}

//go:embed hbal
var plansOfHbal embed.FS

// hbal returns the plan that hbal made of the same cluster when it was asked; false is that it was not.
func (q *drain) hbal(hosts int) ([]plan.Wave, bool) {
	text, err := plansOfHbal.ReadFile(fmt.Sprintf("hbal/ganeti-%d-%d.txt", hosts, len(q.hosts)))
	if err != nil {
		return nil, false
	}
	var wave plan.Wave
	for line := range strings.Lines(string(text)) {
		vm, target, is := strings.Cut(strings.TrimSpace(line), " ")
		if at, known := q.plan.VMAt(hypervisor.VMID("default/" + vm)); is && known {
			v := &q.plan.VMs[at]
			wave = append(wave, plan.Move{VM: v.ID, Source: v.Home, Target: hypervisor.HostName(target)})
		}
	}
	return []plan.Wave{wave}, true
}
