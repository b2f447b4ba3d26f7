package evacuation_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// thousand are candidates of 16 sizes, in no useful order.
func thousand() []evacuation.VM {
	vms := make([]evacuation.VM, 1000)
	for i := range vms {
		n := i * 389 % 1000
		vms[i] = movable(fmt.Sprintf("vm-%04d", n))
		vms[i].Memory = hypervisor.Bytes(1+n%16) * 2 * hypervisor.GiB
	}
	return vms
}

// BenchmarkPlan1000 decides about a host with 1,000 candidates.
func BenchmarkPlan1000(b *testing.B) {
	vms := thousand()
	for _, mode := range []evacuation.Mode{evacuation.QueueAll, evacuation.FreeSpots} {
		b.Run(mode.String(), func(b *testing.B) {
			p := evacuation.Params{Mode: mode, Limits: evacuation.DefaultLimits()}
			host := drained("n1")
			b.ReportAllocs()
			for b.Loop() {
				if d := evacuation.Plan(p, host, vms, evacuation.Load{}); len(d.Create) < 2 {
					b.Fatal("too few candidates")
				}
			}
		})
	}
}

// BenchmarkCount1000 counts 1,000 migrations against a host with 1,000 VMs.
func BenchmarkCount1000(b *testing.B) {
	vms := thousand()
	migrations := make([]evacuation.ActiveMigration, len(vms))
	for i := range migrations {
		migrations[i] = evacuation.ActiveMigration{VM: vms[i].ID, Phase: migration.Running}
	}
	b.ReportAllocs()
	for b.Loop() {
		evacuation.Count(evacuation.Params{}, migrations, vms)
	}
}
