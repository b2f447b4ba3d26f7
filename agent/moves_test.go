package agent

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Whatever is stored, a migration knows what is stored about its VM if that is at home: a hint goes by it.
func TestAMigrationKnowsItsVM(t *testing.T) {
	hosts := rapid.SampledFrom([]hypervisor.HostName{"n1", "n1", "n2"})
	vms := rapid.SampledFrom([]hypervisor.VMID{"a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		ctx, records := context.Background(), store.NewMemory()
		a := New("n1", Config{}, nil, records, store.DiscardEvents{})
		put := func(r store.Record) {
			if old, _ := records.Get(ctx, r.Key()); old != nil {
				r = r.WithVersion(old.RecordVersion())
			}
			if _, err := records.Put(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"a VM is stored": func(t *rapid.T) {
				claim := rapid.SampledFrom([]migration.ID{"", "a1"}).Draw(t, "claim")
				put(&store.VM{VM: hypervisor.VM{ID: vms.Draw(t, "vm")}, Host: hosts.Draw(t, "host"),
					ActiveMigration: claim})
			},
			"a VM is deleted": func(t *rapid.T) {
				if v, _ := store.VMNamed(ctx, records, vms.Draw(t, "vm")); v != nil {
					_ = records.Delete(ctx, v)
				}
			},
			"a migration is stored": func(t *rapid.T) {
				vm := vms.Draw(t, "vm")
				id := migration.ID(vm) + rapid.SampledFrom([]migration.ID{"1", "2"}).Draw(t, "number")
				put(&store.Migration{Spec: migration.Spec{ID: id, VM: vm}, State: migration.State{
					Phase:  rapid.SampledFrom([]migration.Phase{migration.Scheduling, migration.Running}).Draw(t, "phase"),
					Source: hosts.Draw(t, "source"), Target: hosts.Draw(t, "target")}})
			},
			"it has missed too much": func(*rapid.T) { a.seen = 0 },
			"": func(t *rapid.T) {
				if err := a.pull(ctx); err != nil {
					t.Fatal(err)
				}
				for _, m := range a.moves.Sorted() {
					if home := a.home.Get(m.Spec.VM); m.local != home {
						t.Fatalf("%s knows of its VM %+v, and stored is %+v", m.Spec.ID, m.local, home)
					}
				}
			},
		})
	})
}
