package whatif

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
)

// Of the hosts with the most free memory some take part besides those of the plan: a move that is tried
// again may go there. They are so many for each move, within bounds. A fleet with hardly more hosts is
// played whole.
const (
	sparesPerMove = 2
	fewestSpares  = 20
	mostSpares    = 100
)

// spares returns how many they are.
func (p *Play) spares() int {
	moves := plan.Count(p.Waves)
	return min(max(sparesPerMove*moves, fewestSpares), mostSpares)
}

// narrow returns the play without the hosts that have no part in it, so that a drain in a large
// fleet is played as fast as in a small one. It is the play itself where others matter: by quotas,
// by VMs that ask for company or to be apart, by faults of hosts or VMs that are not named, or by
// limits that follow from the whole fleet.
func (p *Play) narrow() *Play {
	f := p.Scenario.Fleet
	part := p.partakers()
	if len(f.Hosts) <= 2*(len(part)+p.spares()) || len(f.Quotas) > 0 || len(p.Scenario.Controller.Quotas) > 0 ||
		p.Scenario.Controller.Adaptive {
		return p
	}
	for _, fault := range p.Scenario.Vary.Faults {
		if !slices.ContainsFunc(fault.Event, func(word string) bool {
			return part[hypervisor.HostName(word)]
		}) {
			return p
		}
	}
	for i := range f.VMs {
		if c := &f.VMs[i].Placement; part[f.VMs[i].Host] &&
			len(c.With)+len(c.Without)+len(c.Groups)+len(c.Apart) > 0 {
			return p
		}
	}
	p.addSpares(part)
	return p.among(part)
}

// partakers are the hosts that are drained, and those of the plan's moves.
func (p *Play) partakers() map[hypervisor.HostName]bool {
	part := map[hypervisor.HostName]bool{}
	for _, host := range p.Hosts {
		part[host] = true
	}
	for _, wave := range p.Waves {
		for _, m := range wave {
			part[m.Source], part[m.Target] = true, true
		}
	}
	return part
}

// addSpares adds the open hosts with the most free memory.
func (p *Play) addSpares(part map[hypervisor.HostName]bool) {
	f := p.Scenario.Fleet
	used := make(map[hypervisor.HostName]hypervisor.Bytes, len(f.Hosts))
	for i := range f.VMs {
		used[f.VMs[i].Host] += f.VMs[i].Memory
	}
	var others []*inventory.Host
	for i := range f.Hosts {
		if h := &f.Hosts[i]; !part[h.Name] && !h.Cordoned && !h.Down {
			others = append(others, h)
		}
	}
	slices.SortFunc(others, func(a, b *inventory.Host) int {
		return cmp.Or(cmp.Compare(b.Memory-used[b.Name], a.Memory-used[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	for _, h := range others[:min(p.spares(), len(others))] {
		part[h.Name] = true
	}
}

// among returns the play with some hosts only, and the VMs on them.
func (p *Play) among(part map[hypervisor.HostName]bool) *Play {
	next, s, f := *p, *p.Scenario, *p.Scenario.Fleet
	f.Hosts, f.VMs = nil, nil
	for i := range p.Scenario.Fleet.Hosts {
		if h := &p.Scenario.Fleet.Hosts[i]; part[h.Name] {
			f.Hosts = append(f.Hosts, *h)
		}
	}
	for i := range p.Scenario.Fleet.VMs {
		if v := &p.Scenario.Fleet.VMs[i]; part[v.Host] {
			f.VMs = append(f.VMs, *v)
		}
	}
	s.Fleet = &f
	next.Scenario = &s
	return &next
}
