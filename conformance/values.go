package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// names are what records and hosts may be called.
var names = []string{"a", "A", "default/web", "/", "//", "..", "../x", " ", "two words", "a\tb\n",
	"\u00e9", "e\u0301", "機械", "🦆", "%2f", "a%20b", "a?b=c&d#e", `"quoted"\`, "<tag>", "a\x00b",
	"0", "-", "nil", strings.Repeat("n", 1024), strings.Repeat("機", 341)}

// values checks that every kind of record is read as it was written, whatever its name,
// and a big one.
func values(t *testing.T, open storeOpener) {
	t.Run("every kind with every name", func(t *testing.T) { everyName(t, open(t)) })
	t.Run("a big record", func(t *testing.T) { big(t, open(t)) })
	t.Run("a name that is not text is kept, or refused", func(t *testing.T) { noText(t, open(t)) })
	t.Run("a stored record is a copy", func(t *testing.T) { copied(t, open(t)) })
}

// oneOfEach is a record of every kind with a name, that concerns a host of that name.
func oneOfEach(name string) []store.Record {
	host := hypervisor.HostName(name)
	return []store.Record{
		&store.Migration{Spec: migration.Spec{ID: migration.ID(name), VM: "v",
			Created: time.Unix(1, 2).UTC()},
			State: migration.State{Source: host, Target: "n2"}, Cancel: true},
		&store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name), Memory: 1 << 40},
			Host: host, Boots: 3},
		&store.Host{Host: hypervisor.Host{Name: host, CPUs: 8}, ConfirmedDownBy: name,
			Fencing: &store.Fencing{Boot: name, Asked: time.Unix(3, 0).UTC()}},
		&store.Rebuild{VM: hypervisor.VMID(name), Source: host, Target: "n2",
			Evidence: hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: host}},
		&store.Lease{Owner: name, Boot: "b", Session: name, Beats: 1<<64 - 1},
		&store.Leader{Name: name, Holder: name, Term: 1 << 63},
		&store.Plan{Name: name, Created: time.Unix(5, 0).UTC(), Hosts: []hypervisor.HostName{host},
			Moves: []store.PlannedMove{{VM: "v", Source: host, Target: "n2", State: store.MoveAsked, Asked: 1}}},
		&store.Maintenance{Name: name, Created: time.Unix(6, 0).UTC(), Batches: []store.MaintenanceBatch{
			{Hosts: []hypervisor.HostName{host}}}, Hosts: []store.ServicedHost{{Name: host, Phase: store.ServiceHook, Hooks: 1}}},
	}
}

func everyName(t *testing.T, s Subject) {
	ctx := patient(t)
	model := naive{}
	for _, name := range names {
		for _, r := range oneOfEach(name) {
			model[r.Key()] = put(ctx, t, s.Store, r)
		}
	}
	check := func() {
		t.Helper()
		for key, r := range model {
			storeHolds(ctx, t, s.Store, key, r)
		}
		feeds := []store.Feed{store.Everything, store.Leases, {Host: "n2"}}
		for _, name := range names {
			feeds = append(feeds, store.Feed{Host: hypervisor.HostName(name)})
		}
		for _, f := range feeds {
			r := follow(f)
			r.pull(ctx, t, s.Store)
			same(t, fmt.Sprintf("feed %+v", f), model.feed(f), r.known)
		}
	}
	check()
	if s.Again != nil {
		s.Store = s.Again(t)
		check()
	}
	for key, r := range model {
		remove(ctx, t, s.Store, r)
		delete(model, key)
	}
	check()
}

func big(t *testing.T, s Subject) {
	ctx := patient(t)
	vm := vmOn("big", "n1")
	vm.NotMigratableReason = strings.Repeat("why not? ", (1<<20-4096)/9)
	if err := store.Fits(vm); err != nil {
		t.Fatal(err)
	}
	stored := put(ctx, t, s.Store, vm)
	storeHolds(ctx, t, s.Store, vm.Key(), stored)
	r := follow(store.Everything)
	r.pull(ctx, t, s.Store)
	same(t, "the feed", map[store.Key]store.Record{vm.Key(): stored}, r.known)
	small := *stored.(*store.VM)
	small.NotMigratableReason = ""
	storeHolds(ctx, t, s.Store, vm.Key(), put(ctx, t, s.Store, &small))
}

func noText(t *testing.T, s Subject) {
	ctx := patient(t)
	plain := put(ctx, t, s.Store, vmOn("a\ufffd", "n1"))
	odd := vmOn("a\xff", "n1")
	want := naive{plain.Key(): plain}
	if stored, err := s.Store.Put(ctx, odd); err == nil {
		want[odd.Key()] = stored
		storeHolds(ctx, t, s.Store, odd.Key(), stored)
	} else {
		wantKind(t, err, store.Unreadable, store.Unavailable)
		if got, err := s.Store.Get(ctx, odd.Key()); err == nil && got != nil {
			t.Errorf("it was refused, and is there: %v", got)
		}
	}
	check := func() {
		t.Helper()
		r := follow(store.Everything)
		r.pull(ctx, t, s.Store)
		same(t, "the feed", map[store.Key]store.Record(want), r.known)
	}
	check()
	if s.Again != nil {
		s.Store = s.Again(t)
		check()
	}
}

func copied(t *testing.T, s Subject) {
	ctx := patient(t)
	vm := vmOn("v", "n1")
	stored := put(ctx, t, s.Store, vm)
	vm.Host = "n2"
	storeHolds(ctx, t, s.Store, vm.Key(), stored)
	if got := stored.(*store.VM).Host; got != "n1" {
		t.Errorf("the store's record changed to %s", got)
	}
}

// storeErrors checks that every error is a *[store.StoreError] that says what failed, and that
// a caller that no longer waits is not told a wrong thing.
func storeErrors(t *testing.T, open storeOpener) {
	s := open(t).Store
	ctx := patient(t)
	vm := put(ctx, t, s, vmOn("v", "n1"))
	_, err := s.Put(ctx, vmOn("v", "n2"))
	e, is := errors.AsType[*store.StoreError](err)
	if !is || e.Op != "Put" || e.Key != vm.Key() || !errors.Is(err, store.Stale) {
		t.Errorf("error %#v of a stale write", err)
	}
	err = s.Delete(ctx, vm.WithVersion(vm.RecordVersion()+1))
	e, is = errors.AsType[*store.StoreError](err)
	if !is || e.Op != "Delete" || e.Key != vm.Key() || !errors.Is(err, store.Stale) {
		t.Errorf("error %#v of a stale deletion", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	gone := []store.StoreKind{store.Unanswered, store.Unavailable}
	if _, err := s.Get(ended, vm.Key()); err != nil {
		wantKind(t, err, gone...)
	}
	if _, err := s.Changes(ended, store.Everything, 0); err != nil {
		wantKind(t, err, gone...)
	}
	next, err := s.Put(ended, moved(vm, "n2"))
	if err == nil {
		vm = next
	} else {
		wantKind(t, err, gone...)
	}
	got, again := s.Get(ctx, vm.Key())
	if again != nil {
		t.Fatal(again)
	}
	if errors.Is(err, store.Unavailable) || err == nil {
		same(t, "after a write whose context had ended", vm, got)
	}
	if err := s.Delete(ended, got); err != nil {
		wantKind(t, err, gone...)
	}
}
