package controller_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A controller looks at the store once: a host is drained, so that a migration of
// its VM is created, accepted, and given a target.
func Example() {
	ctx, records := context.Background(), store.NewMemory()
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 64 * hypervisor.GiB, CPUs: 16},
			Taints: []placement.Taint{{Key: "kubevirt.io/drain", Effect: placement.NoSchedule}}},
		&store.Host{Host: hypervisor.Host{Name: "n2", Memory: 64 * hypervisor.GiB, CPUs: 16}},
		&store.VM{VM: hypervisor.VM{ID: "default/web", Memory: 8 * hypervisor.GiB, CPUs: 4},
			Host: "n1", Strategy: evacuation.LiveMigrate, Migratable: true},
	} {
		if _, err := records.Put(ctx, r); err != nil {
			fmt.Println(err)
		}
	}
	boss := controller.New(controller.Config{}, records, store.DiscardEvents{})
	if _, err := boss.Reconcile(ctx, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		fmt.Println(err)
	}
	r, _ := records.Get(ctx, store.Key{Kind: store.MigrationKind, Name: "default/web#1"})
	m := r.(*store.Migration)
	fmt.Println(m.State.Phase, m.State.Source, "→", m.State.Target)
	// Output:
	// Scheduling n1 → n2
}
