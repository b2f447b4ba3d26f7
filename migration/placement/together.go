package placement

import (
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// mostAlternatives is how many lists of requirements a group may have together.
const mostAlternatives = 64

// Together returns one VM that takes what VMs take together that leave their host for one and the same
// other host, and asks for what all of them ask for: a host takes it that takes them all. What they ask
// for about each other holds then, and is left out. It is false when they ask for something that one
// VM cannot ask for. It has the ID of the first.
// Source: Proxmox VE HA (a bundle with a positive resource affinity moves as a unit); oVirt (a positive
// enforcing affinity group is migrated together).
func Together(vms []*VM) (VM, bool) {
	all := *vms[0]
	members := map[hypervisor.VMID]bool{}
	for _, vm := range vms {
		members[vm.ID] = true
	}
	c := &all.Constraints
	groups, possible := grouped(vms)
	c.Groups, c.With, c.Without = groups, nil, slices.Clone(c.Without)
	for i, vm := range vms {
		o := &vm.Constraints
		if o.Topology != nil || !company(c, vm, members) {
			return VM{}, false
		}
		possible = possible && !slices.ContainsFunc(o.Without, func(id hypervisor.VMID) bool {
			return members[id]
		}) && !slices.ContainsFunc(vms, func(other *VM) bool { return other != vm && other.avoids(vm) })
		if i == 0 {
			continue
		}
		all.Memory += vm.Memory
		all.Overhead += vm.Overhead
		all.Balloon += vm.Balloon
		all.Disk += vm.Disk
		all.CPURequest = all.DemandCPUs() + vm.DemandCPUs()
		all.CPUs += vm.CPUs
		fits, ok := c.and(o)
		if !ok {
			return VM{}, false
		}
		possible = possible && fits
	}
	if all.CPURequest == all.CPUs {
		all.CPURequest = 0
	}
	if !possible {
		c.Affinity = [][]Requirement{{}} // which never holds
	}
	return all, true
}

// avoids reports whether a VM may not be on a host with another, by a group of both.
func (vm *VM) avoids(o *VM) bool {
	return slices.ContainsFunc(o.groups(), func(g string) bool {
		return slices.Contains(vm.Constraints.Apart, g)
	})
}

// company adds the VMs that a VM asks to be with, unless that is one of the members.
func company(c *Constraints, vm *VM, members map[hypervisor.VMID]bool) bool {
	with := vm.Constraints.With
	if slices.ContainsFunc(with, func(id hypervisor.VMID) bool { return members[id] }) ||
		len(with) == 0 {
		return true
	}
	if c.With != nil && !slices.Equal(c.With, with) {
		return false
	}
	c.With = with
	return true
}

// and adds what another VM asks for. fits is false when no host can have both, ok when one VM cannot
// ask for both.
func (c *Constraints) and(o *Constraints) (fits, ok bool) {
	fits = true
	if len(o.Selector) > 0 {
		c.Selector = maps.Clone(c.Selector)
		if c.Selector == nil {
			c.Selector = Labels{}
		}
		for k, v := range o.Selector {
			if old, both := c.Selector[k]; both && old != v {
				fits = false
			}
			c.Selector[k] = v
		}
	}
	if c.Affinity, ok = cross(c.Affinity, o.Affinity); !ok {
		return false, false
	}
	c.Tolerations = slices.DeleteFunc(slices.Clone(c.Tolerations), func(t Toleration) bool {
		return !slices.Contains(o.Tolerations, t)
	})
	c.Apart = slices.Concat(c.Apart, o.Apart)
	switch {
	case len(c.Zones) == 0:
		c.Zones = o.Zones
	case len(o.Zones) > 0:
		c.Zones = slices.DeleteFunc(slices.Clone(c.Zones), func(z string) bool {
			return !slices.Contains(o.Zones, z)
		})
		fits = fits && len(c.Zones) > 0
	}
	c.Without = slices.Concat(c.Without, o.Without)
	c.Devices = slices.Concat(c.Devices, o.Devices)
	c.Networks = slices.Concat(c.Networks, o.Networks)
	c.Charges = slices.Concat(c.Charges, o.Charges)
	same := maps.Equal(c.Specs, o.Specs) && c.Tenant == o.Tenant &&
		c.Platform.same(&o.Platform)
	return fits, same
}

// cross returns the lists of requirements of which one holds when one of a and one of b does.
func cross(a, b [][]Requirement) ([][]Requirement, bool) {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b), true
	}
	if len(a)*len(b) > mostAlternatives {
		return nil, false
	}
	var all [][]Requirement
	for _, x := range a {
		for _, y := range b {
			if len(x) == 0 || len(y) == 0 {
				all = append(all, []Requirement{}) // never holds
				continue
			}
			all = append(all, slices.Concat(x, y))
		}
	}
	return all, true
}

// binds reports whether a rule keeps the members of its group on one host.
func (r *GroupRule) binds() bool { return r.Policy == Affinity && r.Domain == "" }

// Binding lists the groups whose rules keep the VM with others on one host.
func (c *Constraints) Binding() (names []string) {
	for i := range c.Groups {
		if r := &c.Groups[i]; r.binds() && !slices.Contains(names, r.Group) {
			names = append(names, r.Group)
		}
	}
	return names
}

// Paired reports whether each of two VMs asks to be with the other.
func (vm *VM) Paired(o *VM) bool {
	return slices.Contains(vm.Constraints.With, o.ID) && slices.Contains(o.Constraints.With, vm.ID)
}

// grouped returns the rules of VMs that move together, without those that bind them to each other. Of
// those that are to be apart as many fewer may be there already as come; it is false when they may not
// be together at all.
func grouped(vms []*VM) (all []GroupRule, fits bool) {
	fits = true
	for i, vm := range vms {
		for _, r := range vm.Constraints.Groups {
			if r.binds() || slices.ContainsFunc(vms[:i], func(o *VM) bool { return o.obeys(r) }) {
				continue
			}
			more := -1
			for _, o := range vms {
				if o.obeys(r) {
					more++
				}
			}
			if r.Policy == AntiAffinity && more > 0 {
				fits = fits && more < r.Limit()
				r.Max = r.Limit() - more
			}
			all = append(all, r)
		}
	}
	return all, fits
}

// obeys reports whether the VM has a rule, whatever its limit.
func (vm *VM) obeys(r GroupRule) bool {
	return slices.ContainsFunc(vm.Constraints.Groups, func(o GroupRule) bool {
		return o.Group == r.Group && o.Policy == r.Policy && o.Domain == r.Domain
	})
}

func (p *Platform) same(o *Platform) bool {
	return p.Arch == o.Arch && p.Machine == o.Machine && p.CPUModel == o.CPUModel &&
		p.CPUExact == o.CPUExact && p.Hypervisor == o.Hypervisor && p.MinVersion == o.MinVersion &&
		slices.Equal(p.CPUFeatures, o.CPUFeatures) && p.HostModel == o.HostModel &&
		slices.Equal(p.HostFeatures, o.HostFeatures)
}
