package plan

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// The fleets of property tests: small, so that every arrangement can be looked at, and cramped, so
// that plans are hard.

// Cramped draws a small fleet in which room is short and most VMs have wishes. The VMs
// are where they are whatever they wish, and some hosts hold more than they have.
func Cramped(t *rapid.T) *Fleet {
	f := &Fleet{Filters: placement.AllFilters()}
	for i := range rapid.IntRange(2, 4).Draw(t, "hosts") {
		f.Hosts = append(f.Hosts, placement.Host{
			Name:     hypervisor.HostName(fmt.Sprintf("h%d", i)),
			Memory:   hypervisor.Bytes(rapid.IntRange(2, 9).Draw(t, "memory")),
			CPUs:     rapid.IntRange(3, 8).Draw(t, "cpus"),
			Labels:   placement.Labels{"rack": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rack")},
			Cordoned: chance(t, "closed", 15),
			Facts:    &placement.Facts{MaxVMs: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "max VMs")},
			Load:     &placement.Load{},
		})
	}
	vms := rapid.IntRange(1, 5).Draw(t, "VMs")
	for i := range vms {
		v := VM{VM: placement.VM{ID: id(i),
			Memory: hypervisor.Bytes(rapid.IntRange(0, 4).Draw(t, "needs")),
			CPUs:   rapid.IntRange(0, 3).Draw(t, "vCPUs"), Constraints: wishes(t, vms)},
			Home: f.Hosts[rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "home")].Name}
		if chance(t, "pinned", 15) {
			v.Pinned = "it has a device"
		}
		f.VMs = append(f.VMs, v)
	}
	return Settled(f)
}

// Packed draws a fleet of up to a dozen hosts that are up to nine tenths full: too many
// arrangements to look at.
func Packed(t *rapid.T) *Fleet {
	f := &Fleet{Filters: placement.AllFilters()}
	fill := rapid.IntRange(60, 90).Draw(t, "percent full")
	for i := range rapid.IntRange(4, 12).Draw(t, "hosts") {
		name := hypervisor.HostName(fmt.Sprintf("h%02d", i))
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 64, CPUs: 64,
			Load: &placement.Load{}})
		for used := 0; ; {
			size := rapid.SampledFrom([]int{2, 4, 4, 8, 8, 16, 24}).Draw(t, "size")
			if used += size; used*100 > fill*64 {
				break
			}
			f.VMs = append(f.VMs, VM{Home: name, VM: placement.VM{ID: id(len(f.VMs)),
				Memory: hypervisor.Bytes(size), CPUs: rapid.IntRange(1, 4).Draw(t, "CPUs")}})
			if chance(t, "apart", 10) {
				f.VMs[len(f.VMs)-1].Constraints.Apart = []string{"g"}
			}
		}
	}
	return Settled(f)
}

// chance draws whether something holds, once in so many times; what is not is simpler.
func chance(t *rapid.T, what string, times int) bool {
	return rapid.IntRange(1, times).Draw(t, what) == times
}

func id(i int) hypervisor.VMID { return hypervisor.VMID(fmt.Sprintf("v%03d", i)) }

func wishes(t *rapid.T, vms int) (c placement.Constraints) {
	other := func() []hypervisor.VMID {
		return []hypervisor.VMID{id(rapid.IntRange(0, vms-1).Draw(t, "other"))}
	}
	group := func(p placement.GroupPolicy, domain string) []placement.GroupRule {
		return []placement.GroupRule{{Group: rapid.SampledFrom([]string{"g", "k"}).Draw(t, "group"),
			Policy: p, Domain: domain, Max: rapid.IntRange(1, 2).Draw(t, "max")}}
	}
	switch rapid.IntRange(0, 14).Draw(t, "wish") {
	case 9:
		c.Selector = placement.Labels{"rack": "a"}
	case 1, 2:
		c.Apart = []string{"g"}
	case 3, 4:
		c.Groups = group(placement.AntiAffinity, "")
	case 5:
		c.Groups = group(placement.AntiAffinity, "rack")
	case 6:
		c.Groups = group(placement.Affinity, rapid.SampledFrom([]string{"", "rack"}).Draw(t, "of"))
	case 7:
		c.With = other()
	case 8:
		c.Without = other()
	}
	return c
}

// Settled reserves room for every VM where it is, and returns the fleet.
func Settled(f *Fleet) *Fleet {
	index := placement.NewIndex(0, f.Hosts...)
	for i := range f.VMs {
		if index.Reserve(&f.VMs[i].VM, f.VMs[i].Home) {
			index.Arrive(f.VMs[i].Home)
		}
	}
	f.Hosts = slices.Clone(index.Hosts())
	return f
}

// Some draws hosts to be emptied.
func Some(t *rapid.T, f *Fleet) []hypervisor.HostName {
	var all []hypervisor.HostName
	for range rapid.IntRange(1, min(2, len(f.Hosts)-1)).Draw(t, "drained") {
		all = append(all, f.Hosts[rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "drain")].Name)
	}
	return all
}
