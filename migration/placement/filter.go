package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// options is short for what every condition takes.
type options = Options

// A row is a [Filter]. Three lists in filter_skip.go say when a row need not be asked. ofFacts names the rows that look
// at nothing of a host but its Facts, and idle those that refuse no host when a VM asks for nothing of their
// kind. dormant names those that refuse only where [AsksMore] or [SaysMore] holds: until then controllers and
// the simulator do not ask them. A row that looks at something else, such as the labels of a host, must not be there: it is a
// basic condition, in check.go. A row that is in none of the lists is always asked.
type row struct {
	name    string
	class   Class
	refuses func(*VM, *Host, options) bool
	explain func(*VM, *Host, options) (need, have string)
}

// conditions lists the conditions beyond the basic ones, the cheap ones first.
var conditions = []row{
	{"disabled", Policy, isDisabled, explainDisabled},
	{"maintenance", Policy, inMaintenance, explainMaintenance},
	{"memory-exists", Physics, memoryMissing, explainMemoryExists},
	{"disk", Capacity, diskLacks, explainDisk},
	{"disk-exists", Physics, diskMissing, explainDiskExists},
	{"units", Policy, unitsDiffer, explainUnits},
	{"max-vms", Capacity, tooManyVMs, explainMaxVMs},
	{"busy", Capacity, isBusy, explainBusy},
	{"local-disks", Physics, localDisksStay, explainLocalDisks},
	{"zone", Policy, zoneDiffers, explainZone},
	{"arch", Physics, archDiffers, explainArch},
	{"machine", Physics, machineUnknown, explainMachine},
	{"cpu-model", Physics, modelUnknown, explainModel},
	{"cpu-features", Physics, featuresLack, explainFeatures},
	{"cpu-vendor", Physics, vendorDiffers, explainVendor},
	{"cpu-older", Physics, cpuOlder, explainOlderCPU},
	{"cpu-exact", Physics, cpuDiffers, explainExactCPU},
	{"hypervisor", Physics, hypervisorDiffers, explainHypervisor},
	{"hypervisor-version", Physics, hypervisorOlder, explainVersion},
	{"networks", Physics, networksLack, explainNetworks},
	{"devices", Physics, devicesLack, explainDevices},
	{"live-devices", Physics, devicesStay, explainLiveDevices},
	{"aggregates", Policy, specsFail, explainSpecs},
	{"tenants", Policy, tenantRepelled, explainTenants},
	{"same-host", Policy, companyMissing, explainSameHost},
	{"different-host", Policy, companyPresent, explainDifferentHost},
	{"group-affinity", Policy, groupElsewhere, explainGroup},
	{"group-anti-affinity", Policy, groupFull, explainAntiAffinity},
	{"failure-domain", Policy, domainFull, explainDomain},
	{"hugepages", Physics, hugepagesLack, explainHugepages},
	{"numa", Capacity, topologyFails, explainTopology},
}

// AllFilters returns every condition, in order.
func AllFilters() []Filter { return slices.Clone(everything) }

// everything is what AllFilters returns.
var everything = allFilters()

func allFilters() []Filter {
	all := append(make([]Filter, 0, len(filters)+len(conditions)), filters...)
	for _, r := range conditions {
		all = append(all, Filter{
			Name: r.name, Class: r.class, Refuses: r.refuses, Explain: r.explain,
			Idle: idle[r.name], OfFacts: slices.Contains(ofFacts, r.name),
		})
	}
	return all
}

// filterNames lists the names of all conditions, in order.
func filterNames() []string {
	var names []string
	for _, f := range AllFilters() {
		names = append(names, f.Name)
	}
	return names
}

// HardFilters returns the conditions that force does not overrule.
func HardFilters() []Filter {
	return slices.DeleteFunc(AllFilters(), func(f Filter) bool {
		return f.Class != Physics
	})
}

// SelectFilters returns the conditions with the given names, in the order of [AllFilters],
// and the hard ones, which cannot be switched off. The name closed is read as cordon. An unknown name is an
// error that lists the known ones.
func SelectFilters(names []string) ([]Filter, error) {
	known, names := filterNames(), slices.Clone(names)
	for i, name := range names {
		names[i] = cmp.Or(formerNames[name], name)
		name = names[i]
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no filter is called %q: choose among %s", name,
				strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(AllFilters(), func(f Filter) bool {
		return f.Class != Physics && !slices.Contains(names, f.Name)
	}), nil
}

// formerNames are the names that filters had, and have now. The former are read.
var formerNames = map[string]string{"closed": "cordon"}

// ForcedMemory is the condition on memory of a forced move that the filters
// refuse: after it some memory must be left, reserved or not. It does not ask
// what the memory is reserved for.
func ForcedMemory() Filter {
	return Filter{Name: "memory-forced", Class: Physics,
		Refuses: memoryExhausted, Explain: explainExhausted}
}
