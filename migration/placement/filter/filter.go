// Package filter lists all conditions on the target of a move, by name.
//
// [All] has them in order, the basic ones of package placement first; [Select]
// takes the names that an operator has enabled; [Physical] are those that
// nobody's force overrules. Each is a pure predicate that cites its source, and
// every one is asked: a refusal has all reasons. Their order is the order of the
// reasons and changes no decision.
//
// A fact that nobody knows refuses nobody, unless the VM's constraints ask for
// it.
package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/migration/placement"
)

// options is short for what every condition takes.
type options = placement.Options

// A row is a [placement.Filter].
type row struct {
	name    string
	class   placement.Class
	refuses func(*placement.VM, *placement.Host, options) bool
	explain func(*placement.VM, *placement.Host, options) (need, have string)
}

// filters lists the conditions beyond the basic ones, the cheap ones first.
var filters = []row{
	{"disabled", placement.Policy, isDisabled, explainDisabled},
	{"maintenance", placement.Policy, inMaintenance, explainMaintenance},
	{"memory-exists", placement.Physics, memoryMissing, explainMemoryExists},
	{"disk", placement.Capacity, diskLacks, explainDisk},
	{"disk-exists", placement.Physics, diskMissing, explainDiskExists},
	{"units", placement.Policy, unitsDiffer, explainUnits},
	{"max-vms", placement.Capacity, tooManyVMs, explainMaxVMs},
	{"busy", placement.Capacity, isBusy, explainBusy},
	{"local-disks", placement.Physics, localDisksStay, explainLocalDisks},
	{"zone", placement.Policy, zoneDiffers, explainZone},
	{"arch", placement.Physics, archDiffers, explainArch},
	{"machine", placement.Physics, machineUnknown, explainMachine},
	{"cpu-model", placement.Physics, modelUnknown, explainModel},
	{"cpu-features", placement.Physics, featuresLack, explainFeatures},
	{"cpu-vendor", placement.Physics, vendorDiffers, explainVendor},
	{"cpu-older", placement.Physics, cpuOlder, explainOlderCPU},
	{"cpu-exact", placement.Physics, cpuDiffers, explainExactCPU},
	{"hypervisor", placement.Physics, hypervisorDiffers, explainHypervisor},
	{"hypervisor-version", placement.Physics, hypervisorOlder, explainVersion},
	{"networks", placement.Physics, networksLack, explainNetworks},
	{"devices", placement.Physics, devicesLack, explainDevices},
	{"live-devices", placement.Physics, devicesStay, explainLiveDevices},
	{"aggregates", placement.Policy, specsFail, explainSpecs},
	{"tenants", placement.Policy, tenantRepelled, explainTenants},
	{"same-host", placement.Policy, companyMissing, explainSameHost},
	{"different-host", placement.Policy, companyPresent, explainDifferentHost},
	{"group-affinity", placement.Policy, groupElsewhere, explainAffinity},
	{"group-anti-affinity", placement.Policy, groupFull, explainAntiAffinity},
	{"failure-domain", placement.Policy, domainFull, explainDomain},
	{"hugepages", placement.Physics, hugepagesLack, explainHugepages},
	{"numa", placement.Capacity, topologyFails, explainTopology},
}

// All returns every condition, in order.
func All() []placement.Filter {
	basic := placement.Basic()
	all := append(make([]placement.Filter, 0, len(basic)+len(filters)), basic...)
	for _, r := range filters {
		all = append(all, placement.Filter{
			Name: r.name, Class: r.class, Refuses: r.refuses, Explain: r.explain,
			Idle: idle[r.name], OfFacts: slices.Contains(ofFacts, r.name),
		})
	}
	return all
}

// Names lists the names of all conditions, in order.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Physical returns the conditions that force does not overrule.
func Physical() []placement.Filter {
	return slices.DeleteFunc(All(), func(f placement.Filter) bool {
		return f.Class != placement.Physics
	})
}

// Select returns the conditions with the given names, in the order of [All],
// and those of physics, which nobody can switch off. An unknown name is an
// error that lists the known ones.
func Select(names []string) ([]placement.Filter, error) {
	known := Names()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no filter is called %q: choose among %s", name,
				strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(All(), func(f placement.Filter) bool {
		return f.Class != placement.Physics && !slices.Contains(names, f.Name)
	}), nil
}

// ForcedMemory is the condition on memory of a forced move that the filters
// refuse: after it some memory must be left, reserved or not. It does not ask
// what the memory is reserved for.
func ForcedMemory() placement.Filter {
	return placement.Filter{Name: "memory-forced", Class: placement.Physics,
		Refuses: memoryExhausted, Explain: explainExhausted}
}
