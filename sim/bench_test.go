package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim"
)

// BenchmarkDrain drains half of the hosts, 20 VMs each, onto the other half with
// KubeVirt's limits.
func BenchmarkDrain(b *testing.B) {
	for _, vms := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("vms=%d", vms), func(b *testing.B) {
			began, runs := time.Now(), 0
			for b.Loop() {
				runs++
				w := grid(b, sim.Config{}, vms/10, vms/20, 20)
				for i := range vms / 20 {
					w.At(time.Second, sim.Drain{Host: hypervisor.HostName(fmt.Sprintf("n%d", i+1))})
				}
				if end := w.Run(100 * 24 * time.Hour); end != sim.AtRest {
					b.Fatal(end)
				}
				if w.CheckAtRest(); len(w.Violations()) > 0 {
					b.Fatal(w.Violations()[0])
				}
				r := w.Result()
				if r.Migrations.Succeeded != vms {
					b.Fatal(r.Migrations)
				}
				b.ReportMetric(r.VirtualSeconds, "virtual-s")
				spent := float64(time.Since(began).Nanoseconds())
				b.ReportMetric(spent/float64(runs*vms), "ns/migration")
			}
		})
	}
}
