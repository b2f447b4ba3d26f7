package boltstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// TestARestoredCopyIsNotTheStoreThatWasSeen: a file is copied, written on, and replaced by the
// copy. Who has seen what was written since is refused, also when the copy has been written to
// and opened again; who has not is not; and an operator, who shows no mark, reads it.
func TestARestoredCopyIsNotTheStoreThatWasSeen(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "d", "c.db")
	reopen := func(s *boltstore.Store) *boltstore.Store {
		t.Helper()
		if s != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := boltstore.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	put := func(s *boltstore.Store, name string) store.Revision {
		t.Helper()
		r, err := s.Put(ctx, &store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(name)}})
		if err != nil {
			t.Fatal(err)
		}
		return store.Revision(r.RecordVersion())
	}
	s := reopen(nil)
	before := put(s, "a")
	h, instance, err := s.History(ctx)
	if err != nil || h.Cluster == "" || instance != "" {
		t.Fatalf("%+v in %q: %v", h, instance, err)
	}
	s = reopen(s) // an ordinary restart
	again := put(s, "b")
	if got, _, err := s.History(ctx); err != nil || got.Cluster != h.Cluster {
		t.Fatalf("the cluster's id has changed: %+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(nil)
	after := put(s, "c")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(nil)
	defer func() { s.Close() }()
	get := func(seen store.Revision) error {
		_, err := s.Get(store.WithMark(ctx, store.Mark{Cluster: h.Cluster, Revision: seen}),
			store.Key{Kind: store.HostKind, Name: "a"})
		return err
	}
	for range 2 {
		if a, b := get(before), get(again); a != nil || b != nil {
			t.Errorf("a client that has seen nothing newer is refused: %v, %v", a, b)
		}
		conformance.WantKind(t, get(after), store.SetBack)
		if _, err := s.Get(ctx, store.Key{Kind: store.HostKind, Name: "a"}); err != nil {
			t.Errorf("an operator is refused: %v", err)
		}
		put(s, "d")
		s = reopen(s)
		if err := s.Delete(ctx, hostAt(t, s, "d")); err != nil {
			t.Fatal(err)
		}
	}
	now, _, err := s.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Amend(ctx, now.Raised("alice", nil, "", time.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Amend(ctx, now); err == nil {
		t.Error("an old history replaces a newer one")
	}
	s = reopen(s)
	if err := get(after); err != nil {
		t.Errorf("after a reconciliation it is refused: %v", err)
	}
}

func hostAt(t *testing.T, s *boltstore.Store, name string) store.Record {
	t.Helper()
	r, err := s.Get(t.Context(), store.Key{Kind: store.HostKind, Name: name})
	if err != nil || r == nil {
		t.Fatalf("%v, %v", r, err)
	}
	return r
}
