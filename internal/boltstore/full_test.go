package boltstore_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// limit is how large a file a filling child may write, in bytes.
const limit = 512 << 10

// fill puts VMs until the store answers an error, and answers what is there then.
func fill(s *boltstore.Store) (stored []store.Record, err error) {
	for i := 0; ; i++ {
		vm := vmOn(fmt.Sprintf("vm-%05d", i), "n1")
		vm.NotMigratableReason = strings.Repeat("x", 5000)
		r, err := s.Put(ctx, vm)
		if err != nil {
			return stored, err
		}
		stored = append(stored, r)
		if len(stored) > 100_000 {
			return nil, errors.New("it is never full")
		}
	}
}

// checkFull has a store that is full hold what it has, and refuse the rest.
func checkFull(t *testing.T, s *boltstore.Store, stored []store.Record, err error) {
	t.Helper()
	wantError(t, err, store.Full, "make room")
	if len(stored) == 0 {
		t.Fatal("nothing fits")
	}
	for _, refused := range []store.Record{vmOn("new", ""), stored[0]} {
		big := *refused.(*store.VM)
		big.NotMigratableReason = strings.Repeat("big", 1<<20)
		_, err := s.Put(ctx, &big)
		wantError(t, err, store.Full)
	}
	if was, is := fingerprint(t, stored), fingerprint(t, everything(t, s)); was != is {
		t.Errorf("a store that is full holds\n%s, want\n%s", is, was)
	}
}

func TestAStoreThatIsAsLargeAsItMay(t *testing.T) {
	path := quickPath(t)
	s, err := boltstore.Config{Path: path, MaxSize: limit}.Open()
	must(t, err)
	stored, err := fill(s)
	checkFull(t, s, stored, err)
	must(t, s.Close())
	s = open(t, path)
	checkSame(t, s, stored)
	put(t, s, vmOn("more", "n1"))
	_, err = boltstore.Config{Path: quickPath(t), MaxSize: 100}.Open()
	wantError(t, err, store.Full)
}

func checkSame(t *testing.T, s store.Store, want []store.Record) {
	t.Helper()
	if was, is := fingerprint(t, want), fingerprint(t, everything(t, s)); was != is {
		t.Errorf("the store holds\n%s, want\n%s", is, was)
	}
}

// fillUp fills a store whose process may write no larger files, and tells how it went.
func fillUp(path string) error {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	s, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	stored, err := fill(s)
	if !errors.Is(err, store.Full) {
		return fmt.Errorf("filling it ended with %w", err)
	}
	fmt.Println(len(stored))
	return s.Close()
}

func TestAProcessThatMayWriteNoMore(t *testing.T) {
	path := quickPath(t)
	c, lines := child(t, "fill", path)
	n := 0
	if !lines.Scan() {
		t.Fatal("the child says nothing")
	}
	if _, err := fmt.Sscan(lines.Text(), &n); err != nil || n == 0 {
		t.Fatalf("the child says %q: %v", lines.Text(), err)
	}
	must(t, c.Wait())
	s := open(t, path)
	if got := len(everything(t, s)); got != n {
		t.Errorf("%d records, and %d were acknowledged", got, n)
	}
	put(t, s, vmOn("more", "n1"))
}

// TestADiskThatIsFull fills a small disk, makes room, and goes on.
func TestADiskThatIsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	must(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("a small disk cannot be mounted (root is needed): %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	path := filepath.Join(dir, "godwit.db")
	s := open(t, path)
	stored, err := fill(s)
	checkFull(t, s, stored, err)
	must(t, os.Remove(ballast))
	stored = append(stored, put(t, s, vmOn("more", "n1")))
	must(t, s.Close())
	s = open(t, path)
	checkSame(t, s, stored)
	must(t, s.Close())
	must(t, fillDisk(ballast))
	_, err = boltstore.Open(filepath.Join(dir, "other.db"))
	wantError(t, err, store.Full)
	checkSame(t, open(t, path), stored) // to open asks for no room
	left, err := filepath.Glob(filepath.Join(dir, "other*"))
	if err != nil || len(left) > 0 {
		t.Errorf("a store that could not be made has left %v, %v", left, err)
	}
}

// fillDisk writes a file until no room is left.
func fillDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = io.WriteString(f, strings.Repeat("x", 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	return f.Close()
}
