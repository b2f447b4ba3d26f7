package store_test

import (
	"context"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

func ExampleNewLife() {
	ctx, records := context.Background(), store.NewMemory() // or a store of your own
	life, err := store.NewLife(ctx, records, "3f6c1f1e")    // an id of yours that no other VM has
	if err != nil {
		fmt.Println(err)
	}
	added, err := records.Put(ctx, &store.VM{VM: hypervisor.VM{ID: "default/web", CPUs: 1,
		Memory: hypervisor.GiB}, Host: "n1", Life: life, Moves: 1, Migratable: true})
	fmt.Println(added.(*store.VM).Life.ID, err)
	// Output: 3f6c1f1e <nil>
}
