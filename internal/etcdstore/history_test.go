package etcdstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/store"
)

// TestARestoredSnapshotIsNotTheStoreThatWasSeen: the keys of one etcd are in another one, as a
// snapshot that is restored with another token makes it. A call with a mark is refused, whatever the mark is,
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
	mark := store.Mark{Cluster: h.Cluster, Instance: instance, Revision: store.Revision(vm.RecordVersion())}
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

// TestAnEtcdThatIsSetBackIsRecognised: its data are put back as they were, or with another cluster id,
// as from a snapshot that was restored with another token. Who has seen more, or the cluster with the
// other id, is refused; an operator is not.
func TestAnEtcdThatIsSetBackIsRecognised(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]func(c *etcdtest.Cluster){
		"the same cluster id": func(*etcdtest.Cluster) {},
		"another cluster id":  func(c *etcdtest.Cluster) { c.Rename(0) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c := etcdtest.Start(t, 1)
			s := open(t, c, "/p")
			put(t, s, vmOn("old", "n1"))
			h, instance, err := s.History(ctx)
			if err != nil {
				t.Fatal(err)
			}
			c.Kill(0)
			backup := c.Backup(0)
			c.Restart(0)
			c.Ready()
			var late store.Record
			eventually(t, func() (err error) {
				late, err = s.Put(ctx, vmOn("late", "n1"))
				return err
			}, store.Unavailable, store.Unanswered)
			mark := store.Mark{Cluster: h.Cluster, Instance: instance, Revision: store.Revision(late.RecordVersion())}
			if got := changes(t, s, store.Everything, 0); len(got.Records) != 2 {
				t.Fatalf("before: %v", got.Records)
			}
			put(t, s, vmOn("later", "n1"))
			changes(t, s, store.Everything, store.Revision(late.RecordVersion()))
			c.Kill(0)
			c.Restore(0, backup)
			restored(c)
			c.Restart(0)
			c.Ready()

			fresh := open(t, c, "/p")
			if got, err := fresh.Get(ctx, late.Key()); got != nil || err != nil {
				t.Fatalf("what was stored after the backup is there: %v, %v", got, err)
			}
			if got, err := fresh.Get(ctx, vmOn("old", "").Key()); got == nil || err != nil {
				t.Fatalf("an operator reads %v, %v", got, err)
			}
			now, is, err := fresh.History(ctx)
			if err != nil || now.Cluster != h.Cluster || (is == instance) != (name == "the same cluster id") {
				t.Errorf("it was %+v in %q and is %+v in %q: %v", h, instance, now, is, err)
			}
			for what, s := range map[string]*etcdstore.Store{"a client that lived on": s, "a new one": fresh} {
				_, err = s.Get(store.WithMark(ctx, mark), late.Key())
				conformance.WantKind(t, err, store.SetBack)
				_, err = s.Put(store.WithMark(ctx, mark), vmOn("next", "n1"))
				conformance.WantKind(t, err, store.SetBack)
				if t.Failed() {
					t.Fatal(what)
				}
			}
			// What is remembered of the time that is gone is void, also when the same revisions come again.
			since := changes(t, s, store.Everything, 0).Next
			var want []store.Key
			for _, name := range []string{"another", "and another"} {
				want = append(want, put(t, fresh, vmOn(name, "n1")).Key())
			}
			var got []store.Key
			for _, r := range changes(t, s, store.Everything, since).Records {
				got = append(got, r.Key())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("changed since (-want +got):\n%s", diff)
			}
		})
	}
}
