package etcdstore_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/store"
)

// TestARestoredSnapshotIsNotTheStoreThatWasSeen: the keys of one etcd are in another one, as a
// snapshot that is restored makes it. A call with a mark is refused, whatever the mark is,
// until it is reconciled.
func TestARestoredSnapshotIsNotTheStoreThatWasSeen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := etcdtest.Start(t, 1)
	s := open(t, c, "/p")
	vm := put(t, s, vmOn("v", "n1"))
	h, instance, err := s.History(ctx)
	if err != nil || h.Cluster == "" || h.Instance != instance || instance == "" {
		t.Fatalf("%+v in %q: %v", h, instance, err)
	}
	mark := store.Mark{Cluster: h.Cluster, Instance: instance, Revision: store.Revision(vm.At())}
	seen := store.WithMark(ctx, mark)
	if _, err := s.Get(seen, vm.Key()); err != nil {
		t.Fatalf("the store that was seen: %v", err)
	}
	if vm, err = s.Put(seen, vm); err != nil {
		t.Fatalf("the store that was seen: %v", err)
	}
	future := mark
	future.Revision += 1000
	_, err = s.Get(store.WithMark(ctx, future), vm.Key())
	conformance.WantKind(t, err, store.SetBack)
	_, err = s.Changes(store.WithMark(ctx, future), store.Everything, 0)
	conformance.WantKind(t, err, store.SetBack)
	_, err = s.Put(store.WithMark(ctx, future), vm)
	conformance.WantKind(t, err, store.SetBack)
	foreign := mark
	foreign.Cluster = "another"
	_, err = s.Get(store.WithMark(ctx, foreign), vm.Key())
	conformance.WantKind(t, err, store.Foreign)

	other := open(t, c, "/p") // it does not know of the doubt until it writes
	if _, err := other.Get(seen, vm.Key()); err != nil {
		t.Fatal(err)
	}
	h.Doubt = &store.Doubt{By: "agent/n1", Why: "it was newer", Seen: future}
	if h, err = s.Amend(ctx, h); err != nil {
		t.Fatal(err)
	}
	_, err = other.Put(seen, vm)
	conformance.WantKind(t, err, store.SetBack)
	if h, err = s.Amend(ctx, h.Raised("alice", nil, instance, time.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Put(store.WithMark(ctx, future), vm); err != nil {
		t.Errorf("after a reconciliation: %v", err)
	}

	h.Instance = "restored from " + instance // as if this one had another id
	if _, err = s.Amend(ctx, h); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, c, "/p")
	_, err = fresh.Get(store.WithMark(ctx, store.Mark{}), vm.Key())
	conformance.WantKind(t, err, store.SetBack)
	if _, err := fresh.Get(ctx, vm.Key()); err != nil {
		t.Errorf("an operator is refused: %v", err)
	}
}
