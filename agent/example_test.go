package agent_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// The agent of a target finds a migration that wants room on its host, and says
// that there is some.
func Example() {
	ctx, records := context.Background(), store.NewMemory()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	host, err := fake.NewNetwork(began, fake.QEMU()).AddHost(hypervisor.Host{Name: "n2",
		Memory: 64 * hypervisor.GiB, CPUs: 16, Link: 10 * hypervisor.Gbit})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm := &store.VM{VM: hypervisor.VM{ID: "default/web", Memory: 8 * hypervisor.GiB}, Host: "n1"}
	move := &store.Migration{Spec: migration.Spec{ID: "default/web#1", VM: "default/web"},
		State: migration.State{Phase: migration.Scheduling, Source: "n1", Target: "n2"}}
	for _, r := range []store.Record{vm, move} {
		if _, err := records.Put(ctx, r); err != nil {
			fmt.Println(err)
		}
	}
	a := agent.New("n2", agent.Config{}, host, records, store.DiscardEvents{})
	if _, err := a.Reconcile(ctx, began); err != nil {
		fmt.Println(err)
	}
	r, _ := records.Get(ctx, move.Key())
	fmt.Println("ready:", r.(*store.Migration).Target.Ready)
	// Output:
	// ready: true
}
