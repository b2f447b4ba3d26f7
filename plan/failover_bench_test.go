package plan_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// surviveGenerator is the xorshift64* generator with which the clusters that Ganeti's tools are
// measured with are made, so that they are the same.
type surviveGenerator uint64

func (g *surviveGenerator) below(n int) int {
	*g ^= *g >> 12
	*g ^= *g << 25
	*g ^= *g >> 27
	return int((uint64(*g) * 0x2545F4914F6CDD1D >> 11) % uint64(n))
}

// surviveCluster returns hosts of 252 GiB and 64 CPUs with up to 20 VMs each, of 2 to 32 GiB, that
// fill at most a part of them.
func surviveCluster(hosts int, fill float64) *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters()}
	seed := uint64(0x9E3779B97F4A7C15)
	g := surviveGenerator(seed + 1)
	sizes := [][2]int{{2, 1}, {2, 1}, {2, 1}, {4, 2}, {4, 2}, {4, 2}, {8, 4}, {8, 4}, {16, 4},
		{32, 8}}
	facts := &placement.Facts{}
	for i := range hosts {
		h := placement.Host{Name: hypervisor.HostName(fmt.Sprintf("node%05d", i)),
			Memory: 252 * gib, CPUs: 64 * 4, Facts: facts, Load: &placement.Load{}}
		for range 20 {
			s := sizes[g.below(len(sizes))]
			need := hypervisor.Bytes(s[0]) * gib
			if float64(h.UsedMemory+need) > fill*float64(h.Memory) {
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

// BenchmarkCheck asks about clusters like those that Ganeti's hcheck was measured with:
// 200 hosts with 3,848 VMs take it over two minutes. In those with room every host has
// so many GiB left, one in some has 40, and counting alone does not answer.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ hosts, failures, room, one int }{{200, 1, 0, 1},
		{1000, 1, 0, 1}, {1000, 2, 0, 1}, {1000, 3, 0, 1}, {200, 1, 6, 20}, {1000, 2, 2, 60},
		{1000, 2, 2, 100}} {
		b.Run(fmt.Sprintf("hosts=%d/failures=%d/room=%d-%d", c.hosts, c.failures, c.room, c.one),
			func(b *testing.B) {
				f := surviveCluster(c.hosts, 0.7)
				if c.room > 0 {
					squeeze(f, c.room, c.one)
				}
				for b.Loop() {
					a := plan.Failover(plan.FailoverQuestion{Fleet: f, Failures: c.failures})
					b.ReportMetric(float64(a.VMs), "VMs")
					b.ReportMetric(float64(a.Lower), "survived")
					b.ReportMetric(float64(a.Upper), "at-most")
					b.ReportMetric(float64(a.Searched), "searched")
				}
			})
	}
}

// squeeze takes memory from hosts until they have room GiB left, and every one in so many
// has 40.
func squeeze(f *plan.Fleet, room, one int) {
	for i := range f.Hosts {
		left := room
		if i%one == 0 {
			left = 40
		}
		f.Hosts[i].Memory = f.Hosts[i].UsedMemory + hypervisor.Bytes(left)*gib
	}
}
