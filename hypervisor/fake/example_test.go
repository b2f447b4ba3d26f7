package fake_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A VM of 4 GiB that dirties 50 MB/s moves over a link of 10 Gbit/s.
func Example() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := fake.NewNetwork(start, fake.QEMU())
	for _, n := range []hypervisor.HostName{"n1", "n2"} {
		_, _ = f.AddHost(hypervisor.Host{Name: n, Memory: 64 * hypervisor.GiB, CPUs: 16,
			Link: 10 * hypervisor.Gbit})
	}
	source, target := f.Host("n1"), f.Host("n2")
	vm := hypervisor.VM{ID: "shop/web", Memory: 4 * hypervisor.GiB, CPUs: 2}
	_ = source.Boot(vm, fake.Workload{ColdRate: 50e6, Cold: hypervisor.GiB})

	address, _ := target.Receive(ctx, hypervisor.Incoming{Job: "j", VM: vm})
	_ = source.Migrate(ctx, hypervisor.Outgoing{Job: "j", VM: vm.ID, Address: address})
	for next, some := f.Next(); some; next, some = f.Next() {
		f.AdvanceTo(next)
	}
	p, _ := source.Progress(ctx, "j")
	fmt.Println(p.Status, p.Iteration, "passes", p.Downtime.Round(time.Millisecond), "downtime")
	for _, c := range f.Copies(vm.ID) {
		fmt.Println(c.Host, c.State)
	}
	fmt.Println(f.Now().Sub(start).Round(100 * time.Millisecond))
	// Output:
	// Succeeded 4 passes 277ms downtime
	// n1 HandedOver
	// n2 Running
	// 3.6s
}
