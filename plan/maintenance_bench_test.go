package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// generator is the xorshift64* generator with which the clusters that Ganeti's tools are
// measured with are made, so that they are the same.
type generator uint64

func (g *generator) below(n int) int {
	*g ^= *g >> 12
	*g ^= *g << 25
	*g ^= *g >> 27
	return int((uint64(*g) * 0x2545F4914F6CDD1D >> 11) % uint64(n))
}

// cluster returns hosts of 252 GiB and 256 CPUs with up to 20 VMs each, of 2 to 32 GiB, that
// fill at most 70 % of them.
func cluster(hosts int) *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters()}
	seed := uint64(0x9E3779B97F4A7C15)
	g := generator(seed + 1)
	sizes := [][2]int{{2, 1}, {2, 1}, {2, 1}, {4, 2}, {4, 2}, {4, 2}, {8, 4}, {8, 4}, {16, 4},
		{32, 8}}
	facts := &placement.Facts{}
	for i := range hosts {
		h := placement.Host{Name: hypervisor.HostName(fmt.Sprintf("node%05d", i)),
			Memory: 252 * gib, CPUs: 256, Facts: facts, Load: &placement.Load{}}
		for range 20 {
			s := sizes[g.below(len(sizes))]
			need := hypervisor.Bytes(s[0]) * gib
			if 10*(h.UsedMemory+need) > 7*h.Memory {
				continue
			}
			g.below(4) // a disk, which is shared
			v := plan.VM{Home: h.Name, VM: placement.VM{Memory: need, CPUs: s[1],
				ID: hypervisor.VMID(fmt.Sprintf("vm%06d", len(f.VMs)))}}
			h, _ = h.With(&v.VM)
			h.Incoming = 0
			f.VMs = append(f.VMs, v)
		}
		f.Hosts = append(f.Hosts, h)
	}
	return f
}

// BenchmarkMaintenancePlan services every host of a cluster. Ganeti's hroller plans three groups, moves
// each VM twice, and fills hosts up to 99 %; it takes 0.3 s for 200 hosts.
func BenchmarkMaintenancePlan(b *testing.B) {
	for _, c := range []struct {
		hosts, keep   int
		service, each time.Duration
	}{{200, 0, 1, 0}, {200, 1, 1, 0}, {1000, 1, 1, 0}, {200, 1, 10 * time.Minute, 2 * time.Second},
		{200, 1, 0, 1}} {
		b.Run(fmt.Sprintf("hosts=%d/keep=%d/service=%v/each=%v", c.hosts, c.keep, c.service,
			c.each),
			func(b *testing.B) {
				r := plan.Request{Fleet: cluster(c.hosts), Keep: c.keep, Service: c.service,
					Each: c.each}
				for _, h := range r.Fleet.Hosts {
					r.Hosts = append(r.Hosts, h.Name)
				}
				for b.Loop() {
					a := plan.Maintenance(&r)
					fullest := 0
					for _, batch := range a.Batches {
						fullest = max(fullest, batch.Fill)
					}
					b.ReportMetric(float64(len(a.Batches)), "batches")
					b.ReportMetric(float64(a.Least), "least-batches")
					b.ReportMetric(float64(a.Moves)/float64(a.VMs), "moves/VM")
					b.ReportMetric(float64(fullest), "fullest%")
					b.ReportMetric(float64(len(a.Obstacles)), "obstacles")
				}
			})
	}
}
