package whatif

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// CheckCertificate returns what is wrong with the proof that the hosts cannot be emptied.
func CheckCertificate(f *plan.Fleet, hosts []hypervisor.HostName, c *plan.Certificate) error {
	for _, name := range hosts {
		if _, ok := f.HostAt(name); !ok {
			return fmt.Errorf("there is no host %s", name)
		}
	}
	for _, id := range c.VMs {
		if _, ok := f.VMAt(id); !ok {
			return fmt.Errorf("there is no VM %s", id)
		}
	}
	switch c.Kind {
	case plan.Stuck:
		return stuck(f, hosts, c)
	case plan.Short:
		return short(f, hosts, c)
	case plan.Exhausted:
		return exhausted(f, hosts, c)
	}
	return fmt.Errorf("a proof of kind %q is not known", c.Kind)
}

// alone returns the fleet with no VM in it but those to keep and those that cannot
// move; no VM enters the hosts to be emptied.
func alone(f *plan.Fleet, drained []hypervisor.HostName, keep []hypervisor.VMID) *occupancy {
	b := occupancyOf(f)
	for _, v := range f.VMs {
		at, runs := b.at[v.Home]
		if runs && v.Pinned == "" && !slices.Contains(keep, v.ID) {
			b.hosts[at], _ = b.hosts[at].Without(&v.VM, false)
		}
	}
	for _, name := range drained {
		b.hosts[b.at[name]].Cordoned = true
	}
	return b
}

// refused reports whether a host refuses v whatever the VMs do that are not kept:
// conditions that ask for the company of one of them do not count.
func (b *occupancy) refused(v plan.VM, host int, keep []hypervisor.VMID) bool {
	stays := func(o plan.VM) bool { return o.Pinned != "" || slices.Contains(keep, o.ID) }
	c := &v.Constraints
	if slices.ContainsFunc(c.With, func(id hypervisor.VMID) bool { return !stays(b.vms[id]) }) {
		c.With = nil
	}
	c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(r placement.GroupRule) bool {
		for _, o := range b.vms {
			if plan.InGroup(&o.VM, r.Group) && !stays(o) && r.Policy == placement.Affinity {
				return true
			}
		}
		return false
	})
	o := b.asks(&v, v.Home)
	return v.Pinned != "" || !placement.FitsAll(b.rules, &v.VM, &b.hosts[host], o)
}

func stuck(f *plan.Fleet, drained []hypervisor.HostName, c *plan.Certificate) error {
	b := alone(f, drained, c.VMs)
	mustLeave := false
	for _, id := range c.VMs {
		v := b.vms[id]
		if c.Pinned != v.Pinned && c.Pinned != "" {
			return fmt.Errorf("%s is not pinned because %s", id, c.Pinned)
		}
		mustLeave = mustLeave || slices.Contains(drained, v.Home)
		for i := range b.hosts {
			if !b.refused(v, i, c.VMs) {
				return fmt.Errorf("%s could move to %s", id, b.hosts[i].Name)
			}
		}
	}
	if !mustLeave {
		return fmt.Errorf("none of %v must leave", c.VMs)
	}
	return nil
}
