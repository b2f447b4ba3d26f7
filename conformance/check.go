package conformance

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// words lets records be compared.
var words = cmpopts.EquateComparable(migration.Conditions{})

// A tb is what checks need of a *testing.T, or of a *rapid.T.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func vmOn(name string, h hypervisor.HostName) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

// moved is a VM on another host.
func moved(r store.Record, h hypervisor.HostName) store.Record {
	c := *r.(*store.VM)
	c.Host = h
	return &c
}

// WantKind fails the test unless err is a *[store.StoreError] of one of the kinds.
func WantKind(t testing.TB, err error, kinds ...store.StoreKind) {
	t.Helper()
	wantKind(t, err, kinds...)
}

func wantKind(t tb, err error, kinds ...store.StoreKind) {
	t.Helper()
	e, is := errors.AsType[*store.StoreError](err)
	if !is {
		t.Errorf("error %v (%T), want a *record.StoreError", err, err)
		return
	}
	for _, k := range kinds {
		if e.Kind == k {
			return
		}
	}
	t.Errorf("error %v, want kind %v", err, kinds)
}

// put stores a record, and checks what is answered.
func put(ctx context.Context, t tb, s store.Store, r store.Record,
	while ...store.Record) store.Record {
	t.Helper()
	stored, err := s.Put(ctx, r, while...)
	if err != nil {
		t.Fatalf("Put %v: %v", r.Key(), err)
	}
	if stored.RecordVersion() == 0 || stored.RecordVersion() == r.RecordVersion() {
		t.Fatalf("Put %v: version %d after %d", r.Key(), stored.RecordVersion(), r.RecordVersion())
	}
	same(t, "what Put answers", r.WithVersion(stored.RecordVersion()), stored)
	return stored
}

// remove deletes a record.
func remove(ctx context.Context, t tb, s store.Store, r store.Record) {
	t.Helper()
	if err := s.Delete(ctx, r); err != nil {
		t.Fatalf("Delete %v: %v", r.Key(), err)
	}
}

// storeHolds checks that a store answers a record as it was stored; nil says that it has none.
func storeHolds(ctx context.Context, t tb, s store.Store, key store.Key, want store.Record) {
	t.Helper()
	got, err := s.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get %v: %v", key, err)
	}
	same(t, "what Get answers", want, got)
}

func same(t tb, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, words, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
