package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// childEnv makes the test binary one of the children of its tests: the word says which, and
// the argument is a file.
const childEnv = "GODWIT_BOLT_CHILD"

var ctx = context.Background()

func TestMain(m *testing.M) {
	if dir := os.Getenv(remoteChildEnv); dir != "" {
		fmt.Fprintln(os.Stderr, serveDir(dir))
		os.Exit(1)
	}
	if what := os.Getenv(childEnv); what != "" {
		if err := children[what](os.Getenv(childEnv + "_FILE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newPath is a file that is not there, in a directory that is closed to others.
func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store", "godwit.db")
}

// quickPath is a file in memory where there is a directory for such, else one on the disk:
// for tests that write a lot and end no process.
func quickPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "godwit-bolt-")
	if err != nil {
		return newPath(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "godwit.db")
}

func open(t testing.TB, path string) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func vmOn(name string, h hypervisor.HostName) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

func put(t testing.TB, s store.Store, r store.Record) store.Record {
	t.Helper()
	stored, err := s.Put(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everything is all that a store holds, but the heartbeats.
func everything(t testing.TB, s store.Store) []store.Record {
	t.Helper()
	c, err := s.Changes(ctx, store.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c.Records
}
