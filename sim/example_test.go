package sim_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A host of two is drained; its VM moves to the other.
func Example() {
	w := sim.New(sim.Config{Chooser: sim.Seeded(1)})
	for _, name := range []hypervisor.HostName{"n1", "n2"} {
		err := w.AddHost(store.Host{Host: hypervisor.Host{Name: name,
			Memory: 64 * hypervisor.GiB, CPUs: 16, Link: 10 * hypervisor.Gbit}})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	vm := hypervisor.VM{ID: "default/web", Memory: 8 * hypervisor.GiB, CPUs: 4}
	err := w.AddVM(store.VM{VM: vm, Host: "n1", Migratable: true,
		Strategy: evacuation.LiveMigrate}, fake.Workload{Rate: 50e6, Hot: hypervisor.GiB})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.At(10*time.Second, sim.Drain{Host: "n1"})
	fmt.Println(w.Run(time.Hour))
	w.CheckAtRest()

	r := w.Result()
	fmt.Println(r.Migrations.Succeeded, "of", r.Migrations.Total, "migrations succeeded")
	fmt.Println("web is on", w.VM("default/web").Host)
	fmt.Println("n1 is empty:", r.Evacuations[0].EmptySeconds != nil)
	fmt.Println("violations:", len(r.Violations))
	// Output:
	// at rest
	// 1 of 1 migrations succeeded
	// web is on n2
	// n1 is empty: true
	// violations: 0
}
