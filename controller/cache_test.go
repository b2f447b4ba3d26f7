package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

var viewHosts = []hypervisor.HostName{"n1", "n2", "n3"}

// seen is all that a view has worked out, of every host.
type seen struct {
	Running  int
	From, To map[hypervisor.HostName]int
	Hosts    map[hypervisor.HostName]placement.Host
	Guests   map[hypervisor.HostName]int
	Marked   map[hypervisor.HostName]int
}

func booksOf(v *cache) seen {
	b := seen{v.slots.Running(), map[hypervisor.HostName]int{}, map[hypervisor.HostName]int{},
		map[hypervisor.HostName]placement.Host{}, map[hypervisor.HostName]int{},
		map[hypervisor.HostName]int{}}
	for _, name := range viewHosts {
		s := v.host(name) // one that no record has named yet is empty and not ready
		b.From[name], b.To[name] = v.slots.From(name), v.slots.To(name)
		b.Guests[name], b.Marked[name] = len(s.vms), s.marked
		b.Hosts[name], _ = v.reservations.Get(name)
	}
	return b
}

// blank is a view that knows nothing.
func blank() *cache { return New(Config{}, nil, nil).cache }

// rebuilt is a view that sees all records for the first time, in this order.
func rebuilt(all []store.Record) *cache {
	v := blank()
	for _, r := range all {
		v.learn(r)
	}
	return v
}

func drawRecord(t *rapid.T) store.Record {
	hosts := rapid.SampledFrom(viewHosts)
	n := rapid.IntRange(1, 3).Draw(t, "number")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return &store.Host{Host: hypervisor.Host{Name: hosts.Draw(t, "host"),
			Memory: hypervisor.Bytes(n) * 16 * hypervisor.GiB, CPUs: 8},
			Cordoned: rapid.Bool().Draw(t, "closed"), NotReady: rapid.Bool().Draw(t, "lost")}
	case 1, 2:
		v := &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(fmt.Sprint("vm", n)), CPUs: n,
			Memory: hypervisor.GiB * hypervisor.Bytes(rapid.IntRange(1, 3).Draw(t, "size"))},
			Host: hosts.Draw(t, "host")}
		if rapid.Bool().Draw(t, "marked") {
			v.EvacuateFrom = v.Host
		}
		if rapid.Bool().Draw(t, "apart") {
			v.Placement = &placement.Constraints{Apart: []string{"db"}}
		}
		return v
	}
	s := migration.State{Phase: rapid.SampledFrom(migration.Phases()).Draw(t, "phase"),
		Source: hosts.Draw(t, "source")}
	if s.Phase.Active() || rapid.Bool().Draw(t, "aims") {
		s.Target = hosts.Draw(t, "target")
	}
	return &store.Migration{State: s, Spec: migration.Spec{
		ID: migration.ID(fmt.Sprint("m", n)), VM: hypervisor.VMID(fmt.Sprint("vm", n))}}
}

// What the controller keeps up to date with every change is what it would make
// of the store if it started now, in whatever order it reads.
func TestTheViewIsWhatTheStoreSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := blank()
		stored := map[store.Key]store.Record{}
		version := store.Version(0)
		var old []store.Record
		t.Repeat(map[string]func(*rapid.T){
			"a record is written": func(t *rapid.T) {
				version++
				r := drawRecord(t).WithVersion(version)
				stored[r.Key()] = r
				old = append(old, r)
				v.learn(r)
			},
			"a VM is claimed, or let go": func(t *rapid.T) {
				n := rapid.IntRange(1, 3).Draw(t, "number")
				key := store.Key{Kind: store.VMKind, Name: fmt.Sprint("vm", n)}
				vm, _ := stored[key].(*store.VM)
				if vm == nil {
					t.Skip("no VM")
				}
				version++
				next := vm.WithVersion(version).(*store.VM)
				if next.ActiveMigration = ""; vm.ActiveMigration == "" {
					next.ActiveMigration = migration.ID(fmt.Sprint("m", n))
				}
				stored[key] = next
				old = append(old, next)
				v.learn(next)
			},
			"news arrive late, or again": func(t *rapid.T) {
				if len(old) == 0 {
					t.Skip("no news")
				}
				r := rapid.SampledFrom(old).Draw(t, "news")
				if stored[r.Key()] != nil {
					v.learn(r)
				}
			},
			"a record is deleted": func(t *rapid.T) {
				key := drawRecord(t).Key()
				delete(stored, key)
				v.forget(key)
			},
			"": func(t *rapid.T) {
				var all []store.Record
				for _, r := range stored {
					all = append(all, r)
				}
				slices.SortFunc(all, func(a, b store.Record) int { return int(a.RecordVersion() - b.RecordVersion()) })
				want := booksOf(rebuilt(rapid.Permutation(all).Draw(t, "order")))
				if diff := cmp.Diff(want, booksOf(v)); diff != "" {
					t.Fatalf("reservations (-rebuilt +kept):\n%s", diff)
				}
			},
		})
	})
}
