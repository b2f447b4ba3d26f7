package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// names are what records and hosts may be called.
var names = []string{"a", "A", "default/web", "/", "//", "..", "../x", " ", "two words", "a\tb\n",
	"\u00e9", "e\u0301", "機械", "🦆", "%2f", "a%20b", "a?b=c&d#e", `"quoted"\`, "<tag>", "a\x00b",
	"0", "-", "nil", strings.Repeat("n", 1024), strings.Repeat("機", 341)}

// Values checks that every kind of record is read as it was written, whatever its name,
// and a big one.
func Values(t *testing.T, open Open) {
	t.Run("every kind with every name", func(t *testing.T) { everyName(t, open(t)) })
	t.Run("a big record", func(t *testing.T) { big(t, open(t)) })
	t.Run("a name that is not text is kept, or refused", func(t *testing.T) { noText(t, open(t)) })
	t.Run("a stored record is a copy", func(t *testing.T) { copied(t, open(t)) })
}

// oneOfEach is a record of every kind with a name, that concerns a host of that name.
func oneOfEach(name string) []record.Record {
	host := hypervisor.HostName(name)
	return []record.Record{
		&record.Migration{Spec: migration.Spec{ID: migration.ID(name), VM: "v",
			Created: time.Unix(1, 2).UTC()},
			State: migration.State{Source: host, Target: "n2"}, Cancel: true},
		&record.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name), Memory: 1 << 40},
			Host: host, Boots: 3},
		&record.Host{Host: hypervisor.Host{Name: host, CPUs: 8}, Dead: name,
			Fencing: &record.Fencing{Boot: name, Asked: time.Unix(3, 0).UTC()}},
		&record.Rebuild{VM: hypervisor.VMID(name), Source: host, Target: "n2",
			Evidence: hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: host}},
		&record.Lease{Owner: name, Boot: "b", Session: name, Beats: 1<<64 - 1},
		&record.Leader{Name: name, Holder: name, Term: 1 << 63},
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
			holds(ctx, t, s.Store, key, r)
		}
		feeds := []record.Feed{record.Everything, record.Signs, {Host: "n2"}}
		for _, name := range names {
			feeds = append(feeds, record.Feed{Host: hypervisor.HostName(name)})
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
	vm.WhyNot = strings.Repeat("why not? ", 1<<20/9)
	stored := put(ctx, t, s.Store, vm)
	holds(ctx, t, s.Store, vm.Key(), stored)
	r := follow(record.Everything)
	r.pull(ctx, t, s.Store)
	same(t, "the feed", map[record.Key]record.Record{vm.Key(): stored}, r.known)
	small := *stored.(*record.VM)
	small.WhyNot = ""
	holds(ctx, t, s.Store, vm.Key(), put(ctx, t, s.Store, &small))
}

func noText(t *testing.T, s Subject) {
	ctx := patient(t)
	plain := put(ctx, t, s.Store, vmOn("a\ufffd", "n1"))
	odd := vmOn("a\xff", "n1")
	want := naive{plain.Key(): plain}
	if stored, err := s.Store.Put(ctx, odd); err == nil {
		want[odd.Key()] = stored
		holds(ctx, t, s.Store, odd.Key(), stored)
	} else {
		wantKind(t, err, record.Unreadable, record.Unavailable)
		if got, err := s.Store.Get(ctx, odd.Key()); err == nil && got != nil {
			t.Errorf("it was refused, and is there: %v", got)
		}
	}
	check := func() {
		t.Helper()
		r := follow(record.Everything)
		r.pull(ctx, t, s.Store)
		same(t, "the feed", map[record.Key]record.Record(want), r.known)
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
	holds(ctx, t, s.Store, vm.Key(), stored)
	if got := stored.(*record.VM).Host; got != "n1" {
		t.Errorf("the store's record changed to %s", got)
	}
}

// Errors checks that every error is a *[record.StoreError] that says what failed, and that
// whoever no longer waits is not told a wrong thing.
func Errors(t *testing.T, open Open) {
	s := open(t).Store
	ctx := patient(t)
	vm := put(ctx, t, s, vmOn("v", "n1"))
	_, err := s.Put(ctx, vmOn("v", "n2"))
	e, is := errors.AsType[*record.StoreError](err)
	if !is || e.Op != "Put" || e.Key != vm.Key() || !errors.Is(err, record.Stale) {
		t.Errorf("error %#v of a stale write", err)
	}
	err = s.Delete(ctx, vm.With(vm.At()+1))
	e, is = errors.AsType[*record.StoreError](err)
	if !is || e.Op != "Delete" || e.Key != vm.Key() || !errors.Is(err, record.Stale) {
		t.Errorf("error %#v of a stale deletion", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	gone := []record.StoreKind{record.Unanswered, record.Unavailable}
	if _, err := s.Get(ended, vm.Key()); err != nil {
		wantKind(t, err, gone...)
	}
	if _, err := s.Changes(ended, record.Everything, 0); err != nil {
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
	if errors.Is(err, record.Unavailable) || err == nil {
		same(t, "after a write whose context had ended", vm, got)
	}
	if err := s.Delete(ended, got); err != nil {
		wantKind(t, err, gone...)
	}
}
