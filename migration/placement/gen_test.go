package placement_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// The generators draw from few words and few sizes, so that conditions meet,
// fail and tie often.

var (
	keys   = rapid.SampledFrom([]string{"zone", "disk", "cores", ""})
	values = rapid.SampledFrom([]string{"a", "b", "4", "16", ""})
	groups = rapid.SampledFrom([]string{"db", "web", "cache"})
)

// unusual is true in about one of eight draws: most hosts should be usable.
func unusual(t *rapid.T, what string) bool { return rapid.IntRange(0, 7).Draw(t, what) == 7 }

func drawLabels(t *rapid.T, most int) placement.Labels {
	return rapid.MapOfN(keys, values, 0, most).Draw(t, "labels")
}

func drawTaint(t *rapid.T) placement.Taint {
	effects := rapid.SampledFrom([]placement.Effect{
		placement.NoSchedule, placement.PreferNoSchedule, placement.NoExecute})
	return placement.Taint{
		Key: keys.Draw(t, "key"), Value: values.Draw(t, "value"), Effect: effects.Draw(t, "effect"),
	}
}

func drawToleration(t *rapid.T) placement.Toleration {
	effects := rapid.SampledFrom([]placement.Effect{
		"", placement.NoSchedule, placement.PreferNoSchedule, placement.NoExecute})
	return placement.Toleration{
		Key: keys.Draw(t, "key"), Value: values.Draw(t, "value"),
		Exists: rapid.Bool().Draw(t, "exists"), Effect: effects.Draw(t, "effect"),
	}
}

func drawRequirement(t *rapid.T) placement.Requirement {
	operators := rapid.SampledFrom([]placement.Operator{placement.In, placement.NotIn,
		placement.Exists, placement.DoesNotExist, placement.Gt, placement.Lt, "Like"})
	return placement.Requirement{
		Key: keys.Draw(t, "key"), Operator: operators.Draw(t, "operator"),
		Values: rapid.SliceOfN(values, 0, 2).Draw(t, "values"),
	}
}

func drawHost(t *rapid.T, name hypervisor.HostName) placement.Host {
	gib := rapid.Int64Range(0, 8)
	cpus := rapid.IntRange(0, 8)
	h := placement.Host{
		Name:       name,
		Memory:     hypervisor.Bytes(gib.Draw(t, "memory")) * hypervisor.GiB,
		CPUs:       cpus.Draw(t, "cpus"),
		UsedMemory: hypervisor.Bytes(gib.Draw(t, "used")) * hypervisor.GiB / 2,
		UsedCPUs:   cpus.Draw(t, "usedCPUs") / 2,
		Labels:     drawLabels(t, 3),
		Down:       unusual(t, "down"), Cordoned: unusual(t, "closed"),
		Incoming: rapid.IntRange(0, 3).Draw(t, "incoming"),
	}
	if unusual(t, "tainted") {
		h.Taints = rapid.SliceOfN(rapid.Custom(drawTaint), 1, 2).Draw(t, "taints")
	}
	h.Groups = rapid.MapOfN(groups, rapid.IntRange(0, 2), 0, 2).Draw(t, "groups")
	return h
}

// drawHosts draws a few hosts with different names, in any order.
func drawHosts(t *rapid.T) []placement.Host {
	names := rapid.SliceOfNDistinct(rapid.IntRange(1, 20), 0, 12, rapid.ID[int]).Draw(t, "names")
	var hosts []placement.Host
	for _, n := range names {
		hosts = append(hosts, drawHost(t, hypervisor.HostName(fmt.Sprintf("n%d", n))))
	}
	return hosts
}

func drawVM(t *rapid.T) *placement.VM {
	vm := &placement.VM{
		ID:     "default/vm",
		Memory: hypervisor.Bytes(rapid.Int64Range(0, 4).Draw(t, "memory")) * hypervisor.GiB,
		CPUs:   rapid.IntRange(0, 3).Draw(t, "cpus"),
	}
	c := &vm.Constraints
	if unusual(t, "selects") {
		c.Selector = drawLabels(t, 2)
	}
	if unusual(t, "has affinity") {
		list := rapid.SliceOfN(rapid.Custom(drawRequirement), 0, 2)
		c.Affinity = rapid.SliceOfN(list, 1, 2).Draw(t, "affinity")
	}
	c.Tolerations = rapid.SliceOfN(rapid.Custom(drawToleration), 0, 2).Draw(t, "tolerations")
	c.Apart = rapid.SliceOfN(groups, 0, 2).Draw(t, "apart")
	return vm
}

func drawOptions(t *rapid.T) placement.Options {
	name := rapid.Custom(func(t *rapid.T) hypervisor.HostName {
		return hypervisor.HostName(fmt.Sprintf("n%d", rapid.IntRange(1, 20).Draw(t, "n")))
	})
	return placement.Options{
		Source:  name.Draw(t, "source"),
		Inbound: rapid.IntRange(0, 4).Draw(t, "inbound"),
		Avoid:   rapid.SliceOfN(name, 0, 2).Draw(t, "avoid"),
	}
}
