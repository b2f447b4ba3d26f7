package sim

import (
	"flag"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

var hosts = []hypervisor.HostName{"", "n1", "n2", "n3"}

// What fails is printed whole, and reproduced by its seed.
func init() { _ = flag.Set("rapid.nofailfile", "true") }

// Whatever is written, repeated, overtaken and deleted: the tally says what counting all
// records says.
func TestTheBookIsWhatIsCountedAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally, last, homes := newStats(), map[migration.ID]*store.Migration{},
			map[hypervisor.VMID]hypervisor.HostName{}
		gone := map[migration.ID]bool{}
		var version store.Version
		name, host := rapid.IntRange(0, 4), rapid.SampledFrom(hosts)
		t.Repeat(map[string]func(*rapid.T){
			"a migration is written": func(t *rapid.T) {
				id := migration.ID(fmt.Sprint("m", name.Draw(t, "migration")))
				if gone[id] {
					return // no name is given twice
				}
				version++
				m := &store.Migration{Version: version}
				m.Spec.ID, m.Spec.VM = id, hypervisor.VMID("v"+id[1:])
				m.State.Phase = rapid.SampledFrom([]migration.Phase{migration.Pending,
					migration.PreparingTarget, migration.Running}).Draw(t, "phase")
				m.State.Source, m.State.Target = host.Draw(t, "source"), host.Draw(t, "target")
				before := tally.Put(m, 0)
				want := last[id]
				if want == nil {
					want = &store.Migration{Spec: m.Spec}
				}
				if !reflect.DeepEqual(before, want) {
					t.Fatalf("before: %+v, want %+v", before, want)
				}
				last[id] = m
			},
			"a writing is repeated": func(t *rapid.T) {
				for _, m := range last {
					if before := tally.Put(m, 0); before != nil {
						t.Fatalf("%s is entered twice", m.Spec.ID)
					}
				}
			},
			"a migration is deleted": func(t *rapid.T) {
				id := migration.ID(fmt.Sprint("m", name.Draw(t, "migration")))
				m := &store.Migration{}
				m.Spec.ID, m.Spec.VM = id, hypervisor.VMID("v"+id[1:])
				tally.Gone(m, 0)
				gone[id] = gone[id] || last[id] != nil
				delete(last, id)
				if tally.Has(m.Spec.VM, id) != gone[id] {
					t.Fatalf("there was %s: %t, want %t", id, !gone[id], gone[id])
				}
			},
			"a VM moves": func(t *rapid.T) {
				id := hypervisor.VMID(fmt.Sprint("v", name.Draw(t, "VM")))
				to := rapid.SampledFrom(hosts[1:]).Draw(t, "to")
				tally.PutVM(&store.VM{VM: hypervisor.VM{ID: id}, Host: to}, 0)
				homes[id] = to
			},
			"a VM is deleted": func(t *rapid.T) {
				id := hypervisor.VMID(fmt.Sprint("v", name.Draw(t, "VM")))
				tally.Gone(&store.VM{VM: hypervisor.VM{ID: id}}, 0)
				delete(homes, id)
			},
			"": func(t *rapid.T) { compare(t, &tally, last, homes) },
		})
	})
}

// compare counts anew.
func compare(t *rapid.T, tally *stats, last map[migration.ID]*store.Migration,
	homes map[hypervisor.VMID]hypervisor.HostName) {
	var slots migration.Slots
	for _, m := range last {
		if s := &m.State; migration.HoldsSlot(s.Phase, s.Target != "", true) {
			slots.Take(migration.Slot{Source: s.Source, Recorded: s.Source, Target: s.Target})
		}
		if of := tally.Of(m.Spec.VM); len(of) != 1 || of[0].Last != m {
			t.Fatalf("of %s there is %v", m.Spec.VM, of)
		}
	}
	if got, want := tally.Slots.Running(), slots.Running(); got != want {
		t.Fatalf("%d slots are held, want %d", got, want)
	}
	for _, h := range hosts {
		if tally.Slots.From(h) != slots.From(h) || tally.Slots.To(h) != slots.To(h) {
			t.Fatalf("%q: from %d to %d, want from %d to %d", h, tally.Slots.From(h),
				tally.Slots.To(h), slots.From(h), slots.To(h))
		}
	}
	got := map[hypervisor.VMID]hypervisor.HostName{}
	for _, vm := range tally.VMs() {
		got[vm] = tally.Home(vm)
	}
	if diff := cmp.Diff(homes, got); diff != "" {
		t.Fatalf("homes (-want +got):\n%s", diff)
	}
}

func TestEndsAreCountedOnceAndByTheirReason(t *testing.T) {
	tally := newStats()
	put := func(id migration.ID, v store.Version, p migration.Phase, because string) {
		m := &store.Migration{Version: v}
		m.Spec.ID, m.Spec.VM = id, "default/web"
		m.State.Phase, m.State.Because = p, because
		tally.Put(m, time.Duration(v))
	}
	for v := range store.Version(8) { // again and again: the last is nothing new
		put(migration.ID(fmt.Sprint("f", v)), v+1, migration.Failed, "target-down")
	}
	if want := time.Duration(6); tally.News != want {
		t.Errorf("news at %d, want %d", tally.News, want)
	}
	put("c", 10, migration.Failed, "canceled")
	put("s", 11, migration.Running, "")
	put("s", 12, migration.Succeeded, migration.MemoryLost)
	put("s", 13, migration.Succeeded, migration.MemoryLost) // cleaned up
	want := Totals{Total: 10, Succeeded: 1, Failed: 8, Aborted: 1, MemoryLost: 1}
	if tally.Totals != want || tally.Done != 10 || len(tally.Moved) != 1 || tally.News != 12 {
		t.Errorf("%+v, %d done, %d moved, news at %d", tally.Totals, tally.Done,
			len(tally.Moved), tally.News)
	}
}

// What guests were slowed down counts also when the records of their migrations are gone.
func TestBrownoutsOfForgottenMigrationsAreKept(t *testing.T) {
	tally := newStats()
	for i, lasted := range []time.Duration{3 * time.Second, 0, 5 * time.Second} {
		m := &store.Migration{Version: store.Version(i + 1)}
		m.Spec.ID, m.Spec.VM, m.State.Phase = migration.ID(fmt.Sprint("m", i)), "v", migration.Failed
		m.Source.Brownout = store.Brownout{Lasted: lasted, Taken: lasted / 4, Percent: 30}
		tally.Put(m, 0)
		if i < 2 {
			tally.Gone(m, 0)
		}
	}
	want := &Brownout{Migrations: 2, MaxPercent: 30, P50Seconds: 3, P99Seconds: 5, MaxSeconds: 5, MeanPercent: 25}
	if diff := cmp.Diff(want, brownout(tally.brownoutsOf())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
