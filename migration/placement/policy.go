package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// zoneDiffers: the host is in none of the availability zones that the VM asks for.
// Source: Nova scheduler/request_filter.py (map_az_to_placement_aggregate); bug
// 1452568, in which a named target crossed the zone.
func zoneDiffers(vm *VM, h *Host, _ options) bool {
	zones := vm.Constraints.Zones
	return len(zones) > 0 && (h.Facts == nil || !slices.Contains(zones, h.Facts.Zone))
}

func explainZone(vm *VM, h *Host, _ options) (need, have string) {
	if h.Facts != nil {
		have = h.Facts.Zone
	}
	return strings.Join(vm.Constraints.Zones, " or "), cmp.Or(have, "no zone")
}

func aggregatesOf(h *Host) []*Aggregate {
	if h.Facts == nil {
		return nil
	}
	return h.Facts.Aggregates
}

// specsFail: something that the VM's flavor asks of the host's aggregates is
// not there.
// Source: Nova scheduler/filters/aggregate_instance_extra_specs.py (host_passes).
func specsFail(vm *VM, h *Host, o options) bool {
	wants := o.asked(vm)
	for i := range wants {
		if !wants[i].satisfied(aggregatesOf(h)) {
			return true
		}
	}
	return false
}

func explainSpecs(vm *VM, h *Host, o options) (need, have string) {
	var needs, haves []string
	all := aggregatesOf(h)
	for _, want := range o.asked(vm) {
		if want.satisfied(all) {
			continue
		}
		var values []string
		for _, a := range all {
			for _, v := range a.Values[want.Key] {
				values = append(values, v.Text)
			}
		}
		slices.Sort(values)
		needs = append(needs, want.Key+" "+want.Text)
		have := "no " + want.Key
		if len(values) > 0 {
			have = want.Key + " " + strings.Join(slices.Compact(values), "|")
		}
		haves = append(haves, have)
	}
	return strings.Join(needs, ", "), strings.Join(haves, ", ")
}

// tenantRepelled: the host is set aside for other tenants.
// Source: Nova scheduler/filters/aggregate_multitenancy_isolation.py (host_passes).
func tenantRepelled(vm *VM, h *Host, _ options) bool {
	return h.Facts != nil && len(h.Facts.Aggregates) > 0 &&
		!admits(h.Facts.Aggregates, vm.Constraints.Tenant)
}

func explainTenants(vm *VM, h *Host, _ options) (string, string) {
	var tenants []string
	for _, a := range h.Facts.Aggregates {
		tenants = append(tenants, a.Tenants...)
	}
	slices.Sort(tenants)
	return "a host for " + cmp.Or(vm.Constraints.Tenant, "no tenant"),
		"only for " + strings.Join(slices.Compact(tenants), ", ")
}

// companyMissing: the VM asks to be with one of some VMs, and none is there.
// Source: Nova scheduler/filters/affinity_filter.py (SameHostFilter).
func companyMissing(vm *VM, h *Host, _ options) bool {
	for _, other := range vm.Constraints.With {
		if has, _ := h.HasVM(other); has {
			return false
		}
	}
	return len(vm.Constraints.With) > 0
}

func explainSameHost(vm *VM, _ *Host, _ options) (string, string) {
	return "a host with " + join(vm.Constraints.With, " or "), "none of them"
}

// companyPresent: a VM that this one asks to be away from is there, or the
// VMs there are not known.
// Source: Nova scheduler/filters/affinity_filter.py (DifferentHostFilter).
func companyPresent(vm *VM, h *Host, _ options) bool {
	for _, other := range vm.Constraints.Without {
		if has, known := h.HasVM(other); has || !known {
			return true
		}
	}
	return false
}

func explainDifferentHost(
	vm *VM, h *Host, _ options,
) (need, have string) {
	var there []hypervisor.VMID
	for _, other := range vm.Constraints.Without {
		if has, _ := h.HasVM(other); has {
			there = append(there, other)
		}
	}
	return "a host without " + join(vm.Constraints.Without, ", "),
		cmp.Or(join(there, ", "), "unknown VMs")
}

func join(ids []hypervisor.VMID, by string) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, by)
}

// groupElsewhere: the VM asks to be with its group, and the group is elsewhere.
// A group that has no other member is anywhere: Nova counts the VM itself, so
// that the last member of such a group cannot be moved.
// Source: Nova scheduler/filters/affinity_filter.py (_GroupAffinityFilter), corrected.
func groupElsewhere(vm *VM, h *Host, o options) bool {
	for i := range vm.Constraints.Groups {
		if apartFromGroup(&vm.Constraints.Groups[i], h, o) {
			return true
		}
	}
	return false
}

func apartFromGroup(r *GroupRule, h *Host, o options) bool {
	if r.Policy != Affinity || o.Move == nil || o.Move.Members[r.Group] == 0 {
		return false
	}
	here, _ := together(r, h, o)
	return here == 0
}

// together counts the other members of a group in the host's failure domain, or
// on the host itself; known is false for a host whose domain is not known.
func together(r *GroupRule, h *Host, o options) (n int, known bool) {
	if r.Domain == "" {
		return h.others(r.Group, o.Source), true
	}
	value, known := h.Labels[r.Domain]
	if !known || o.Move == nil {
		return 0, known
	}
	d := Domain{Group: r.Group, Label: r.Domain, Value: value}
	return o.Move.Domains[d], true
}

func explainGroup(vm *VM, h *Host, o options) (need, have string) {
	var groups []string
	have = "none of them"
	for i := range vm.Constraints.Groups {
		r := &vm.Constraints.Groups[i]
		if !apartFromGroup(r, h, o) {
			continue
		}
		if groups = append(groups, r.Group); r.Domain != "" {
			have = "none of them, and no drain moves a group from one " + r.Domain + " to another"
		}
	}
	return "with the VMs of " + strings.Join(groups, ", "), have
}

// groupFull: as many members as may be together are on the host.
// Source: Nova scheduler/filters/affinity_filter.py (ServerGroupAntiAffinityFilter:
// max_server_per_host, and the instance's own host passes).
func groupFull(vm *VM, h *Host, o options) bool {
	for i := range vm.Constraints.Groups {
		if r := &vm.Constraints.Groups[i]; r.Domain == "" && crowded(r, h, o) {
			return true
		}
	}
	return false
}

// crowded holds when a rule to be apart is broken by one more member.
func crowded(r *GroupRule, h *Host, o options) bool {
	if r.Policy != AntiAffinity || h.Name == o.Source && o.Source != "" {
		return false
	}
	n, known := together(r, h, o)
	return !known || n >= r.Limit()
}

func explainAntiAffinity(vm *VM, h *Host, o options) (string, string) {
	return explainCrowd(vm, h, o, "")
}

func explainCrowd(
	vm *VM, h *Host, o options, where string,
) (need, have string) {
	var needs, haves []string
	for i := range vm.Constraints.Groups {
		r := &vm.Constraints.Groups[i]
		if (r.Domain != "") != (where != "") || !crowded(r, h, o) {
			continue
		}
		n, known := together(r, h, o)
		need, have := fmt.Sprintf("fewer than %d of %s", r.Limit(), r.Group), fmt.Sprint(n)
		if where != "" {
			need += " in one " + r.Domain
			have += fmt.Sprintf(" in %s %s", r.Domain, h.Labels[r.Domain])
		}
		if !known {
			have = "no " + r.Domain
		}
		needs, haves = append(needs, need), append(haves, have)
	}
	return strings.Join(needs, ", "), strings.Join(haves, ", ")
}

// domainFull: as many members as may be together are in the host's failure
// domain, or its domain is not known.
// Source: Kubernetes v1.34.1 plugins/interpodaffinity/filtering.go:367
// (satisfyPodAntiAffinity, any topology key); Ganeti htools Cluster/Metrics.hs
// (location exclusion).
func domainFull(vm *VM, h *Host, o options) bool {
	for i := range vm.Constraints.Groups {
		if r := &vm.Constraints.Groups[i]; r.Domain != "" && crowded(r, h, o) {
			return true
		}
	}
	return false
}

func explainDomain(vm *VM, h *Host, o options) (need, have string) {
	return explainCrowd(vm, h, o, "domain")
}
