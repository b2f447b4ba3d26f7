package plan

import (
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Groups are the VMs of which one stands for several in a plan, since they leave their host together, by
// its ID.
type Groups map[hypervisor.VMID][]hypervisor.VMID

// of returns the VMs for which one stands: itself, if it stands for no others.
func (g Groups) of(vm hypervisor.VMID) []hypervisor.VMID {
	if all := g[vm]; all != nil {
		return all
	}
	return []hypervisor.VMID{vm}
}

// Each returns the VMs for which others stand, by ID.
func (g Groups) Each(vms []hypervisor.VMID) (all []hypervisor.VMID) {
	for _, vm := range vms {
		all = append(all, g.of(vm)...)
	}
	slices.Sort(all)
	return all
}

// Waves returns waves of moves with every VM's own.
func (g Groups) Waves(waves []Wave) []Wave {
	if len(g) == 0 {
		return waves
	}
	all := make([]Wave, len(waves))
	for i, wave := range waves {
		for _, m := range wave {
			for _, vm := range g.of(m.VM) {
				all[i] = append(all[i], Move{VM: vm, Source: m.Source, Target: m.Target})
			}
		}
	}
	return all
}

// more counts the VMs for which others stand, beside these.
func (g Groups) more(vms []hypervisor.VMID) (n int) {
	for _, vm := range vms {
		n += len(g.of(vm)) - 1
	}
	return n
}

// fold lets one VM stand for each group whose VMs are all on one of the hosts, and can all leave it by
// a migration: as the controller decides, they leave it together or not at all.
func fold(p *Fleet, hosts []hypervisor.HostName) Groups {
	groups := Groups{}
	seen := map[hypervisor.VMID]bool{}
	gone := map[hypervisor.VMID]bool{}
	var made []VM
	for i := range p.VMs {
		v := &p.VMs[i]
		if seen[v.ID] || !slices.Contains(hosts, v.Home) {
			continue
		}
		all := company(p, v)
		for _, o := range all {
			seen[o.ID] = true
		}
		one, ok := stands(p, all)
		if !ok {
			continue
		}
		for _, o := range all {
			gone[o.ID] = true
			groups[one.ID] = append(groups[one.ID], o.ID)
		}
		made = append(made, one)
	}
	p.VMs = slices.DeleteFunc(p.VMs, func(v VM) bool { return gone[v.ID] })
	for _, one := range made {
		at, _ := p.VMAt(one.ID)
		p.VMs = slices.Insert(p.VMs, at, one)
	}
	groups.rename(p)
	return groups
}

// rename lets VMs that ask to be with others, or without them, ask that of the VMs that stand for these.
func (g Groups) rename(p *Fleet) {
	one := map[hypervisor.VMID]hypervisor.VMID{}
	for id, all := range g {
		for _, vm := range all {
			one[vm] = id
		}
	}
	named := func(ids []hypervisor.VMID) []hypervisor.VMID {
		if !slices.ContainsFunc(ids, func(id hypervisor.VMID) bool { return one[id] != "" }) {
			return ids // it is the inventory's
		}
		ids = slices.Clone(ids)
		for i, id := range ids {
			if one[id] != "" {
				ids[i] = one[id]
			}
		}
		return ids
	}
	for i := range p.VMs {
		c := &p.VMs[i].Constraints
		c.With, c.Without = named(c.With), named(c.Without)
	}
}

// company lists the VMs that are to be on one host with a VM, directly or by others, and itself, by ID.
func company(p *Fleet, v *VM) []*VM {
	all := []*VM{v}
	if len(v.Constraints.With) == 0 && len(v.Constraints.Binding()) == 0 {
		return all
	}
	for i := 0; i < len(all); i++ {
		for k := range p.VMs {
			if o := &p.VMs[k]; o.Home != "" && bound(all[i], o) && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b *VM) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// bound reports whether a group keeps two VMs on one host, or each asks to be with the other.
func bound(a, b *VM) bool {
	groups := b.Constraints.Binding()
	return a.Paired(&b.VM) || slices.ContainsFunc(a.Constraints.Binding(), func(g string) bool {
		return slices.Contains(groups, g)
	})
}

// stands returns the VM that stands for others, and reserves room for it on their host in their place.
func stands(p *Fleet, all []*VM) (VM, bool) {
	if len(all) == 1 {
		return VM{}, false
	}
	vms, names := make([]*placement.VM, len(all)), make([]string, len(all))
	for i, o := range all {
		if o.Home != all[0].Home || o.Pinned != "" || o.Restarts {
			return VM{}, false
		}
		vms[i], names[i] = &o.VM, string(o.ID)
	}
	one, ok := placement.Together(vms)
	if !ok {
		return VM{}, false
	}
	one.ID = hypervisor.VMID(strings.Join(names, "+"))
	at, _ := p.HostAt(all[0].Home)
	h := p.Hosts[at].Clone()
	for _, vm := range vms {
		if h, ok = h.Without(vm, false); !ok {
			return VM{}, false
		}
	}
	if !h.Hold(&one) {
		return VM{}, false
	}
	p.Hosts[at] = h
	return VM{VM: one, Home: all[0].Home, Members: len(all)}, true
}
