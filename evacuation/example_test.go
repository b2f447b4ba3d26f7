package evacuation_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A host drains: the VMs that can move get migrations, the largest first, and
// the others say what keeps them.
func ExamplePlan() {
	host := evacuation.Host{Name: "n1", Taints: []placement.Taint{
		{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}}
	vms := []evacuation.VM{
		{ID: "shop/web", Migratable: true, Instances: 1, Memory: 4 * hypervisor.GiB},
		{ID: "shop/db", Migratable: true, Instances: 1, Memory: 64 * hypervisor.GiB},
		{ID: "lab/gpu", NotMigratableReason: "host device", Instances: 1},
		{ID: "lab/toy", Strategy: evacuation.None, Instances: 1},
	}
	p := evacuation.Params{Strategy: evacuation.LiveMigrate}
	d := evacuation.Plan(p, host, vms, evacuation.Load{})
	for _, c := range d.Create {
		fmt.Println("move", c.VM, "at priority", c.Priority)
	}
	for _, l := range d.Stay {
		for _, r := range l.Reasons {
			fmt.Printf("keep %s: %s: %s; %s\n", l.VM, r.Check, r.Need, r.Have)
		}
	}
	// Output:
	// move shop/db at priority 100
	// move shop/web at priority 100
	// keep lab/gpu: migratable: yes; no: host device
	// keep lab/toy: strategy: LiveMigrate or LiveMigrateIfPossible; None
}

// With the limits of older KubeVirts only as many migrations are created as may
// start now. The caller counts what moves already.
func ExamplePlan_freeSpots() {
	host := evacuation.Host{Name: "n1"}
	vms := []evacuation.VM{
		{ID: "shop/a", EvacuateFrom: "n1", Migratable: true, Instances: 1, Moving: true},
		{ID: "shop/b", EvacuateFrom: "n1", Migratable: true, Instances: 1},
		{ID: "shop/c", EvacuateFrom: "n1", Migratable: true, Instances: 1},
	}
	migrations := []evacuation.ActiveMigration{
		{VM: "shop/a", Phase: migration.Running},
		{VM: "lab/x", Phase: migration.TargetReady},
	}
	p := evacuation.Params{
		Strategy: evacuation.LiveMigrate,
		Mode:     evacuation.FreeSpots,
		Limits:   evacuation.DefaultLimits(),
	}
	d := evacuation.Plan(p, host, vms, evacuation.Count(p, migrations, vms))
	fmt.Println("create", d.Create)
	for _, l := range d.Stay {
		r := l.Reasons[0]
		fmt.Printf("keep %s: %s: needs %s\n  has %s\n", l.VM, r.Check, r.Need, r.Have)
	}
	fmt.Println("look again in", d.Again)
	// Output:
	// create [{shop/b 100}]
	// keep shop/a: migrations: needs none unfinished
	//   has one unfinished
	// keep shop/c: spots: needs one
	//   has 1 free for 2 VMs (taken: 2 of 5 in the cluster, 1 of 2 from the host)
	// look again in 5s
}

// A drain is withdrawn: what has not been handed over stays.
func ExampleCancel() {
	vms := []evacuation.VM{{ID: "shop/a", EvacuateFrom: "n1"}, {ID: "shop/b", EvacuateFrom: "n1"}}
	migrations := []evacuation.ActiveMigration{
		{ID: "m1", VM: "shop/a", Phase: migration.Running, By: migration.Evacuation, From: "n1"},
		{ID: "m2", VM: "shop/b", Phase: migration.Pending, By: migration.Evacuation, From: "n1"},
	}
	host := evacuation.Host{Name: "n1"}
	w := evacuation.Cancel(evacuation.Params{}, host, vms, migrations)
	fmt.Println("unmark", w.Clear, "and cancel", w.Cancel)
	// Output: unmark [shop/a shop/b] and cancel [m2]
}

// An operator drains the host by evicting its instances one by one.
func ExampleEvict() {
	v := evacuation.Evict(evacuation.Params{}, evacuation.Eviction{
		Instance:   evacuation.Compute,
		On:         "n1",
		Home:       "n1",
		Strategy:   evacuation.LiveMigrate,
		Migratable: true,
	})
	fmt.Println(v.Allow, v.Cause, v.EvacuateFrom)
	fmt.Println(v.Message("shop/web"))
	// Output:
	// false EvacuationTriggered n1
	// Eviction triggered evacuation of VMI "shop/web"
}
