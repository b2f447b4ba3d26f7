package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
)

const gib = hypervisor.GiB

// Sizes of VMs, the smallest first.
var (
	even  = []hypervisor.Bytes{8 * gib}
	small = []hypervisor.Bytes{gib, gib, 2 * gib}
	mixed = []hypervisor.Bytes{2 * gib, 4 * gib, 4 * gib, 8 * gib, 8 * gib, 16 * gib, 32 * gib}
	large = []hypervisor.Bytes{8 * gib, 16 * gib, 64 * gib, 128 * gib}
)

// web writes a small working set at up to 40 MB/s.
func web(c sim.Chooser, memory hypervisor.Bytes) fake.Workload {
	return fake.Workload{Rate: hypervisor.Bandwidth(1+c.Choose("rate", 40)) * 1e6,
		Hot: memory / 20, ColdRate: 1e6, Cold: memory / 4}
}

// some makes one guest in n as it says, and the others web servers.
func some(n int, load func(sim.Chooser, hypervisor.Bytes) fake.Workload,
) func(sim.Chooser, hypervisor.Bytes) fake.Workload {
	return func(c sim.Chooser, memory hypervisor.Bytes) fake.Workload {
		if c.Choose("kind", n) == 0 {
			return load(c, memory)
		}
		return web(c, memory)
	}
}

// database writes a fifth of its memory at 150 to 400 MB/s: it converges well on a link of
// 10 Gbit/s that it has alone, and badly on a share.
func database(c sim.Chooser, memory hypervisor.Bytes) fake.Workload {
	return fake.Workload{Rate: hypervisor.Bandwidth(150+c.Choose("rate", 250)) * 1e6,
		Hot: memory / 5}
}

// cache rewrites most of its memory faster than the link carries it.
func cache(_ sim.Chooser, memory hypervisor.Bytes) fake.Workload {
	return fake.Workload{Rate: 1.5e9, Hot: memory / 10 * 6}
}

// fresh has never touched half of its memory.
func fresh(c sim.Chooser, memory hypervisor.Bytes) fake.Workload {
	w := web(c, memory)
	w.Zero = 500
	return w
}

// Set returns the twelve clusters.
func Set() []Cluster {
	ten := 10 * hypervisor.Gbit
	rack := shape{24, 12, 256 * gib, ten, 75, 10, mixed, web}
	with := func(change func(*shape)) shape {
		s := rack
		change(&s)
		return s
	}
	one := with(func(s *shape) { s.hosts, s.drained = 8, 1 })
	set := []Cluster{
		one.build("one host", "a single host: two at once keep its link busy anyway", 1),
		rack.build("rack", "twelve of 24 hosts, VMs of all sizes", 2),
		with(func(s *shape) { s.sizes = even }).build("even", "a rack of equal VMs", 3),
		with(func(s *shape) { s.sizes, s.fill = small, 30 }).build("small",
			"a rack of hundreds of small VMs: preparing costs as much as moving", 4),
		with(func(s *shape) { s.sizes, s.memory = large, 768*gib }).build("large",
			"a rack of few, large VMs", 5),
		with(func(s *shape) { s.load = some(4, database) }).build("databases",
			"one VM in four converges only on a link that it has nearly alone", 6),
		with(func(s *shape) { s.load = some(24, cache) }).build("caches",
			"some VMs dirty more than the link carries; post-copy is allowed", 7),
		with(func(s *shape) { s.link, s.fill = hypervisor.Gbit, 30 }).build("slow links",
			"a rack on links of 1 Gbit/s", 8),
		with(func(s *shape) { s.hosts, s.drained = 40, 20 }).build("room",
			"two of four racks of ten hosts; what leaves a rack shares 40 Gbit/s", 9),
		with(func(s *shape) { s.load = some(2, fresh) }).build("faults",
			"links are cut, agents and the controller die", 10),
		rack.build("uneven links", "hosts that are drained have links of 25 Gbit/s, "+
			"hosts that stay 10", 11),
		rack.build("limits", "the operator allows eight at once, two from each host and one "+
			"to each", 12),
	}
	set[6].PostCopy = true
	set[8].RackSize, set[8].Uplink = 10, 4*ten
	set[9].Faults = trouble(12)
	for i := range set[10].Drained {
		set[10].Hosts[i].Link = 25 * hypervisor.Gbit
	}
	set[11].Limits.PerCluster, set[11].Limits.PerSource, set[11].Limits.PerTarget = 8, 2, 1
	return set
}

// trouble is what breaks in the cluster of faults, between hosts that are drained and hosts
// that stay.
func trouble(drained int) []Fault {
	second := time.Second
	list := []Fault{
		{20 * second, sim.CrashController{For: 5 * second}},
		{40 * second, sim.CrashAgent{Host: host(1), For: 10 * second}},
		{45 * second, sim.CrashAgent{Host: host(drained + 2), For: 10 * second}},
	}
	for i := range 6 {
		list = append(list, Fault{time.Duration(10+15*i) * second, sim.CutLink{A: host(i),
			B: host(drained + i), For: 8 * second}})
	}
	return list
}

// Find returns the clusters with these names, all of them when there are none.
func Find(names ...string) ([]Cluster, error) {
	set := Set()
	if len(names) == 0 {
		return set, nil
	}
	var found []Cluster
	for _, name := range names {
		i := slices.IndexFunc(set, func(c Cluster) bool { return c.Name == name })
		if i < 0 {
			known := make([]string, len(set))
			for k := range set {
				known[k] = set[k].Name
			}
			return nil, fmt.Errorf("there is no cluster %q in the set; use %s", name,
				strings.Join(known, ", "))
		}
		found = append(found, set[i])
	}
	return found, nil
}
