package plan_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// BenchmarkPlan plans the evacuation of some of 200 hosts with 3,848 VMs: the cluster
// for which Ganeti's hbal takes 7.8 s (one host, 17 moves) and 131 s (four, 75 moves)
// of CPU time.
func BenchmarkPlan(b *testing.B) {
	for _, drained := range []int{1, 4, 40} {
		b.Run(fmt.Sprintf("hosts=%d", drained), func(b *testing.B) {
			f := ganeti(200, 20, 0.70)
			var hosts []hypervisor.HostName
			for i := range drained { // those that the baseline drains
				hosts = append(hosts, f.Hosts[1+i].Name)
			}
			var a plan.DrainPlan
			for b.Loop() {
				a = plan.Drain(f, hosts)
			}
			if err := whatif.CheckEmpties(f, a.Waves, hosts); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(plan.Count(a.Waves)), "moves")
			b.ReportMetric(float64(len(f.VMs)), "VMs")
		})
	}
}

// ganeti returns a cluster of hosts with 256 GiB of memory (4 of them the system's)
// and 64 CPUs, each given away four times, with VMs of 2 to 32 GiB: up to so many on
// each host, until a part of its memory is full. It is the cluster that the baseline of
// Ganeti's tools was measured with, number by number.
func ganeti(hosts, vmsPerHost int, fill float64) *plan.Fleet {
	sizes := [][2]int{{2048, 1}, {2048, 1}, {2048, 1}, {4096, 2}, {4096, 2}, {4096, 2},
		{8192, 4}, {8192, 4}, {16384, 4}, {32768, 8}}
	const usable = 262144 - 4096
	chance := xorshift(0x9E3779B97F4A7C15 + 1)
	f := &plan.Fleet{Filters: placement.AllFilters()}
	for i := range hosts {
		name, used := hypervisor.HostName(fmt.Sprintf("node%05d", i)), 0
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: usable << 20, CPUs: 4 * 64,
			Load: &placement.Load{}})
		for range vmsPerHost {
			size := sizes[chance.below(uint64(len(sizes)))]
			if float64(used+size[0]) > fill*usable {
				continue
			}
			chance.below(4) // its disk, which is shared
			used += size[0]
			f.VMs = append(f.VMs, plan.VM{Home: name, VM: placement.VM{CPUs: size[1],
				ID:     hypervisor.VMID(fmt.Sprintf("vm%06d", len(f.VMs))),
				Memory: hypervisor.Bytes(size[0]) << 20}})
		}
	}
	return plan.Settled(f)
}

// xorshift is the generator xorshift64*.
type xorshift uint64

func (x *xorshift) below(n uint64) uint64 {
	v := *x
	v ^= v >> 12
	v ^= v << 25
	v ^= v >> 27
	*x = v
	return (uint64(v) * 0x2545F4914F6CDD1D >> 11) % n
}

// TestGanetiCluster: the generator makes the cluster that the baseline has.
func TestGanetiCluster(t *testing.T) {
	f := ganeti(200, 20, 0.70)
	if len(f.Hosts) != 200 || len(f.VMs) != 3848 {
		t.Errorf("%d hosts, %d VMs", len(f.Hosts), len(f.VMs))
	}
}
