package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

// An Order says which moves of a wave begin first.
type Order string

// The orders.
const (
	// LargestFirst goes by memory and local disks, as the controller does by default.
	LargestFirst Order = "LargestFirst"
	// LongestFirst goes by how long a move takes alone, those first that do not end.
	LongestFirst Order = "LongestFirst"
	// SmallestFirst and ByName are for a [Question]: a search for settings tries the others.
	SmallestFirst Order = "SmallestFirst"
	ByName        Order = "ByName"
)

// Settings are what an operator can change about a drain.
type Settings struct {
	PerCluster int                  `json:"perCluster"`
	PerSource  int                  `json:"perSource"`
	PerTarget  int                  `json:"perTarget"` // 0 is no limit
	Bandwidth  hypervisor.Bandwidth `json:"bandwidth"` // of each migration; 0 is no cap
	Order      Order                `json:"order"`
}

// Present returns the settings of the scenario.
func (p *Play) Present() Settings { return SettingsOf(p.Scenario.Controller.Cluster) }

// SettingsOf returns the settings of a controller that is configured so.
func SettingsOf(c *migration.Cluster) Settings {
	return Settings{PerCluster: c.ParallelMigrationsPerCluster,
		PerSource: c.ParallelOutboundMigrationsPerNode,
		PerTarget: c.ParallelInboundMigrationsPerNode,
		Bandwidth: c.BandwidthPerMigration, Order: LargestFirst}
}

// With returns the play with other settings. The solos say how long each VM takes
// alone; they may be nil unless the longest go first.
func (p *Play) With(s Settings, solos map[hypervisor.VMID]MoveResult) *Play {
	scene, cluster := *p.Scenario, *p.Scenario.Controller.Cluster
	cluster.ParallelMigrationsPerCluster = s.PerCluster
	cluster.ParallelOutboundMigrationsPerNode = s.PerSource
	cluster.ParallelInboundMigrationsPerNode = s.PerTarget
	cluster.BandwidthPerMigration = s.Bandwidth
	scene.Controller.Cluster = &cluster
	size := map[hypervisor.VMID]hypervisor.Bytes{} // what is sent at least
	for i := range scene.Fleet.VMs {
		v := &scene.Fleet.VMs[i]
		size[v.ID] = v.Memory + v.LocalSize()
	}
	length := func(m plan.Move) time.Duration {
		switch solo := solos[m.VM]; {
		case s.Order == SmallestFirst:
			return -time.Duration(size[m.VM])
		case s.Order != LongestFirst:
			return time.Duration(size[m.VM])
		case !solo.Done:
			return hypervisor.Forever
		default:
			return solo.Took
		}
	}
	next := &Play{Scenario: &scene, Hosts: p.Hosts, Stops: p.Stops, InTurn: p.InTurn}
	for _, wave := range p.Waves {
		wave = slices.Clone(wave)
		slices.SortStableFunc(wave, func(a, b plan.Move) int {
			if c := cmp.Compare(p.turn(a), p.turn(b)); c != 0 {
				return c
			}
			if s.Order == ByName {
				return cmp.Compare(a.VM, b.VM)
			}
			return cmp.Compare(length(b), length(a))
		})
		next.Waves = append(next.Waves, wave)
	}
	return next
}

// turn returns when the moves of a host have their turn among those of a wave.
func (p *Play) turn(m plan.Move) int {
	if !p.InTurn {
		return 0
	}
	at := slices.Index(p.Hosts, m.Source)
	if at < 0 { // it makes room for others
		return -1
	}
	return at
}

// selectsHosts reports whether a policy is for the VMs on, or on their way to, some hosts.
func selectsHosts(p migration.Policy) bool {
	if p.Selectors == nil {
		return false
	}
	for label := range migration.PolicyLabels(nil, "", "") {
		if _, is := p.Selectors.VM[label]; is {
			return true
		}
	}
	return false
}

// Solos plays each VM's first move alone: see [Play.Solo]. VMs that are alike are
// played once.
func (p *Play) Solos(ctx context.Context) (map[hypervisor.VMID]MoveResult, error) {
	type wire struct {
		link, uplink hypervisor.Bandwidth
		rack         string
	}
	type kind struct {
		memory           hypervisor.Bytes
		disks, declared  hypervisor.Bytes
		load             string
		policy           string
		source, target   wire
		restarts, paused bool
		from, to         hypervisor.HostName // where policies tell hosts apart
	}
	wires := map[hypervisor.HostName]wire{}
	for i := range p.Scenario.Fleet.Hosts {
		h := &p.Scenario.Fleet.Hosts[i]
		w := wire{link: h.Link}
		if f := h.Facts; f != nil && f.Rack != "" {
			w.rack, w.uplink = f.Rack, f.Uplink
		}
		wires[h.Name] = w
	}
	vms := map[hypervisor.VMID]*inventory.VM{}
	for i := range p.Scenario.Fleet.VMs {
		vms[p.Scenario.Fleet.VMs[i].ID] = &p.Scenario.Fleet.VMs[i]
	}
	byHost := slices.ContainsFunc(slices.Concat(p.Scenario.Fleet.Policies, p.Scenario.Controller.Policies), selectsHosts)
	known, solos := map[kind]MoveResult{}, map[hypervisor.VMID]MoveResult{}
	for _, m := range slices.Concat(p.Waves...) {
		v := vms[m.VM]
		if _, again := solos[m.VM]; again || v == nil {
			continue
		}
		k := kind{memory: v.Memory, disks: v.LocalSize(), declared: v.Disk, load: fmt.Sprint(v.Workload),
			policy: v.Namespace + fmt.Sprint(v.Labels), source: wires[m.Source], target: wires[m.Target],
			restarts: p.Stops.restarts(m.VM), paused: v.Pause}
		if byHost {
			k.from, k.to = m.Source, m.Target
		}
		if _, alike := known[k]; !alike {
			result, err := p.Solo(ctx, m)
			if err != nil {
				return nil, err
			}
			known[k] = result
		}
		solos[m.VM] = known[k]
	}
	return solos, nil
}
