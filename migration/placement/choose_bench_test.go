package placement_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func TestAnAcceptedHostCostsNoAllocation(t *testing.T) {
	all, vm, hosts := placement.AllFilters(), demanding(), racks(2)
	o := placement.Options{Source: "n00000", Inbound: 2, Avoid: []hypervisor.HostName{"n7"},
		Move: placement.CompareHosts(vm, "n00000", hosts)}
	if why := placement.CheckAll(all, vm, &hosts[1], o); len(why) > 0 {
		t.Fatalf("refused: %v", why)
	}
	n := testing.AllocsPerRun(100, func() { placement.CheckAll(all, vm, &hosts[1], o) })
	if n != 0 {
		t.Errorf("the check of an accepted host allocates %v times, want 0", n)
	}
}

// BenchmarkDecide is a whole decision: survey, all filters, and either the free
// memory alone or all weighers.
func BenchmarkDecide(b *testing.B) {
	vms := map[string]*placement.VM{
		"plain": {ID: "a", Memory: 8 * gib, CPUs: 2, Constraints: placement.Constraints{
			Tenant: "shop", Tolerations: []placement.Toleration{{Key: "gpu", Exists: true}}}},
		"demanding": demanding(),
	}
	configs := map[string]*placement.Config{"filters": {Weighers: placement.Spread()[:1]}, "all": {}}
	hosts := racks(10_000)
	for _, name := range []string{"plain", "demanding"} {
		for _, config := range []string{"filters", "all"} {
			b.Run(fmt.Sprintf("%s/%s/hosts=%d", name, config, len(hosts)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					d := placement.Decide(configs[config], request(vms[name]), hosts)
					if d.Outcome != placement.Accepted {
						b.Fatal(d)
					}
				}
			})
		}
	}
}
