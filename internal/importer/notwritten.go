package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A lostKind is a kind of thing that the text format of htools cannot hold.
type lostKind[T any] struct {
	what string
	has  func(*T) string // what of it one has, for the example; "" is nothing
}

// lostOfVMs are the kinds that VMs have.
var lostOfVMs = []lostKind[inventory.VM]{
	{"conditions on labels of hosts", func(v *inventory.VM) string {
		c := &v.Placement
		switch {
		case len(c.Selector) > 0:
			return pairs(c.Selector)
		case len(c.Affinity) > 0 && !staysOnItsNode(v):
			return requirements(c.Affinity)
		}
		return ""
	}},
	{"availability zones", func(v *inventory.VM) string { return strings.Join(v.Placement.Zones, ", ") }},
	{"conditions on aggregates of hosts", func(v *inventory.VM) string { return pairs(v.Placement.Specs) }},
	{"groups of VMs", func(v *inventory.VM) string {
		var names []string
		for _, g := range v.Placement.Groups {
			names = append(names, g.Group)
		}
		return strings.Join(names, ", ")
	}},
	{"with or without certain other VMs", func(v *inventory.VM) string {
		all := slices.Concat(v.Placement.With, v.Placement.Without)
		if len(all) == 0 {
			return ""
		}
		return string(all[0])
	}},
	{"conditions on processors and hypervisors", func(v *inventory.VM) string {
		p := &v.Placement.Platform
		for _, word := range []string{p.Arch, p.Machine, p.CPUModel, p.HostModel, p.Hypervisor} {
			if word != "" {
				return word
			}
		}
		if p.CPUExact || len(p.CPUFeatures) > 0 {
			return "features of the processor"
		}
		return ""
	}},
	{"dedicated CPUs, NUMA nodes and huge pages", func(v *inventory.VM) string {
		return when(v.Placement.Topology != nil, "a layout")
	}},
	{"devices of hosts", func(v *inventory.VM) string {
		if len(v.Placement.Devices) == 0 {
			return ""
		}
		return v.Placement.Devices[0].Class
	}},
	{"networks", func(v *inventory.VM) string { return strings.Join(v.Placement.Networks, ", ") }},
	{"quotas", func(v *inventory.VM) string {
		return when(len(v.Placement.Charges) > 0, "it is charged against one")
	}},
	{"sizes of local disks", func(v *inventory.VM) string { return when(v.Disk > 0, v.Disk.String()) }},
	{"eviction strategies", func(v *inventory.VM) string {
		return when(v.Strategy != evacuation.Unset, v.Strategy.String())
	}},
	{"evacuations that were asked for", func(v *inventory.VM) string { return string(v.EvacuateFrom) }},
}

// lostOfHosts are the kinds that hosts have.
var lostOfHosts = []lostKind[inventory.Host]{
	{"taints", func(h *inventory.Host) string {
		if len(h.Taints) == 0 {
			return ""
		}
		return h.Taints[0].Key
	}},
	{"sizes before what is reserved and given away more than once", func(h *inventory.Host) string {
		f := h.Facts
		switch {
		case f == nil:
			return ""
		case f.CPUs.Total > 0 && f.CPUs.Total != int64(h.CPUs):
			return fmt.Sprintf("%s, written are %d", humanize.Count(int(f.CPUs.Total), "CPU"), h.CPUs)
		case f.Memory.Total > 0 && f.Memory.Total != int64(h.Memory):
			return fmt.Sprintf("%v, written are %v", hypervisor.Bytes(f.Memory.Total), h.Memory)
		}
		return ""
	}},
	{"sizes of local disks", func(h *inventory.Host) string {
		return when(h.Facts != nil && h.Facts.Disk.Total > 0, "disks are written as shared")
	}},
	{"aggregates", func(h *inventory.Host) string {
		if h.Facts == nil || len(h.Facts.Aggregates) == 0 {
			return ""
		}
		return h.Facts.Aggregates[0].Name
	}},
	{"limits of VMs, and of moves at once", func(h *inventory.Host) string {
		switch {
		case h.Facts == nil:
			return ""
		case h.Facts.MaxVMs > 0:
			return humanize.Count(h.Facts.MaxVMs, "VM")
		case h.Facts.MaxBusy > 0:
			return humanize.Count(h.Facts.MaxBusy, "move") + " at once"
		}
		return ""
	}},
}

// NotWritten says what [WriteGaneti] leaves out of a fleet and that decides where VMs may be, or what becomes of them:
// each kind with how many have it, and one of them.
func NotWritten(f *inventory.Fleet) (all []string) {
	for _, kind := range lostOfVMs {
		all = append(all, lost(kind, f.VMs, "VM", func(v *inventory.VM) string { return string(v.ID) })...)
	}
	for _, kind := range lostOfHosts {
		all = append(all, lost(kind, f.Hosts, "host", func(h *inventory.Host) string { return string(h.Name) })...)
	}
	if n := len(f.Policies); n > 0 {
		all = append(all, fmt.Sprintf("not written: migration policies: %d, such as %s", n, f.Policies[0].Name))
	}
	if n := len(f.Migrations); n > 0 {
		all = append(all, fmt.Sprintf("not written: migrations under way: %d, such as that of %s", n, f.Migrations[0].VM))
	}
	return all
}

// lost says how many of all have something of a kind.
func lost[T any](kind lostKind[T], all []T, one string, name func(*T) string) []string {
	n, example := 0, ""
	for i := range all {
		has := kind.has(&all[i])
		if has == "" {
			continue
		}
		if n++; n == 1 {
			example = fmt.Sprintf("%s (%s)", name(&all[i]), has)
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("not written: %s: %s, such as %s", kind.what, humanize.Count(n, one), example)}
}

// staysOnItsNode reports whether all that a VM's affinity says is that it stays: instances with plain disks do.
func staysOnItsNode(v *inventory.VM) bool {
	return !v.Migratable && v.Host != "" && requirements(v.Placement.Affinity) == requirements(onOneOf(string(v.Host)))
}

// pairs writes keys and values.
func pairs[M ~map[string]string](of M) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+of[key])
	}
	return strings.Join(all, ", ")
}

// requirements writes the first conditions of an affinity.
func requirements(lists [][]placement.Requirement) string {
	var all []string
	for _, r := range lists[0] {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ","))))
	}
	return cmp.Or(strings.Join(all, ", "), "no host fits")
}

// when returns a text if something holds.
func when(holds bool, text string) string {
	if !holds {
		return ""
	}
	return text
}
