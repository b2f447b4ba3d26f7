package boltstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

func TestTheFileIsPrivate(t *testing.T) {
	path := newPath(t)
	open(t, path)
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		is, err := os.Stat(name)
		must(t, err)
		if is.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", name, is.Mode().Perm(), want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the store there is %v, %v", left, err)
	}
}

// TestADirectoryThatOthersCanRead: the mode of the file protects the store, also one that was
// open to others.
func TestADirectoryThatOthersCanRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "usual")
	must(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "godwit.db")
	for range 2 {
		s, err := boltstore.Open(path)
		must(t, err)
		must(t, s.Close())
		is, err := os.Stat(path)
		must(t, err)
		if is.Mode().Perm() != 0o600 {
			t.Errorf("the file has the mode %o, want 600", is.Mode().Perm())
		}
		must(t, os.Chmod(path, 0o644))
	}
}

func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chmod(dir, 0o775))
	path := filepath.Join(dir, "godwit.db")
	_, err := boltstore.Open(path)
	wantError(t, err, store.Unavailable, dir, "chmod go-w")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	_, err = boltstore.Open("")
	wantError(t, err, store.Unavailable)
	_, err = boltstore.Open(t.TempDir())
	wantError(t, err, store.Unavailable)
}

func TestABackupIsAStore(t *testing.T) {
	path := quickPath(t)
	s := open(t, path)
	old := put(t, s, vmOn("v", "n1"))
	seen, err := s.Changes(ctx, store.Everything, 0)
	must(t, err)
	var copied bytes.Buffer
	n, err := s.Backup(ctx, &copied)
	if err != nil || n != int64(copied.Len()) {
		t.Fatalf("Backup = %d, %v, and %d bytes", n, err, copied.Len())
	}
	lost := put(t, s, old)
	must(t, s.Close())

	must(t, os.WriteFile(path, copied.Bytes(), 0o600)) // it takes the place of the store
	s = open(t, path)
	checkSame(t, s, []store.Record{old})
	c, err := s.Changes(ctx, store.Everything, seen.Next+1)
	if err != nil || !c.Reset {
		t.Errorf("a reader that saw what is lost is answered %+v, %v", c, err)
	}
	_, err = s.Put(ctx, lost)
	wantError(t, err, store.Stale)
	if next := put(t, s, old); next.RecordVersion() <= lost.RecordVersion() {
		t.Errorf("version %d after %d, which is lost", next.RecordVersion(), lost.RecordVersion())
	}
	_, err = s.Put(ctx, lost)
	wantError(t, err, store.Stale)
}

// TestABackupOfAStoreThatIsInUse copies while others write: every copy is whole.
func TestABackupOfAStoreThatIsInUse(t *testing.T) {
	s := open(t, quickPath(t))
	var group sync.WaitGroup
	defer group.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for _, name := range []string{"a", "b"} {
		group.Go(func() {
			var r store.Record = vmOn(name, "n1")
			for {
				select {
				case <-stop:
					return
				default:
				}
				next, err := s.Put(ctx, r)
				if err != nil {
					t.Error(err)
					return
				}
				vm := *next.(*store.VM)
				vm.NotMigratableReason = strings.Repeat("why", vm.Boots%5000)
				vm.Boots += 500
				r = &vm
			}
		})
	}
	for range 10 {
		var copied bytes.Buffer
		_, err := s.Backup(ctx, &copied)
		must(t, err)
		if _, err := boltstore.Check(copied.Bytes()); err != nil {
			t.Errorf("a copy cannot be opened: %v", err)
		}
	}
	_, err := s.Backup(ctx, brokenWriter{})
	wantError(t, err, store.Unavailable, "broken")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

var _ io.Writer = brokenWriter{}

func TestWaitersOfAStoreThatIsClosed(t *testing.T) {
	s := open(t, quickPath(t))
	c, err := s.Changes(ctx, store.Everything, 0)
	must(t, err)
	ended := make(chan error)
	go func() { ended <- s.Wait(ctx, store.Everything, c.Next) }()
	must(t, s.Close())
	wantError(t, <-ended, store.Unavailable, "closed")
	_, err = s.Put(ctx, vmOn("v", "n1"))
	wantError(t, err, store.Unavailable, "closed")
	wantError(t, s.Delete(ctx, vmOn("v", "n1")), store.Unavailable, "closed")
	_, err = s.Backup(ctx, io.Discard)
	wantError(t, err, store.Unavailable, "closed")
}

func TestANameThatCannotBeKept(t *testing.T) {
	s := open(t, quickPath(t))
	for _, name := range []string{strings.Repeat("n", 1<<15), "a\xff"} {
		_, err := s.Put(ctx, vmOn(name, "n1"))
		wantError(t, err, store.Unreadable, "its name")
	}
	put(t, s, vmOn(strings.Repeat("n", 32000), "n1"))
}

func BenchmarkPut(b *testing.B) {
	s := open(b, newPath(b))
	var r store.Record = vmOn("v", "n1")
	for b.Loop() {
		r = put(b, s, r)
	}
}

// TestNothingIsKeptOfAWaitThatHasEnded: neither of one that was woken nor of one that was given up, and the others go on.
func TestNothingIsKeptOfAWaitThatHasEnded(t *testing.T) {
	s := open(t, quickPath(t))
	now := put(t, s, vmOn("v", "n1")).RecordVersion()
	last, cancel := context.WithCancel(ctx)
	woken := make(chan error, 1)
	go func() { woken <- s.Wait(ctx, store.Feed{Host: "n1"}, store.Revision(now)) }()
	testutil.Eventually(t, "one waits", func() error { return wantWaiting(s, 1) })
	cancel()
	for i := range 100 {
		f := store.Feed{Host: hypervisor.HostName(fmt.Sprint("n", i))}
		if err := s.Wait(last, f, store.Revision(now)); err == nil {
			t.Fatal("a wait that was given up has an end")
		}
		ended := make(chan error, 1)
		short, end := context.WithCancel(ctx)
		go func() { ended <- s.Wait(short, f, store.Revision(now)) }()
		testutil.Eventually(t, "it waits", func() error { return wantWaiting(s, 2) })
		end()
		<-ended
	}
	if err := wantWaiting(s, 1); err != nil {
		t.Error(err)
	}
	put(t, s, vmOn("w", "n1"))
	must(t, <-woken)
	if err := wantWaiting(s, 0); err != nil {
		t.Error(err)
	}
}

func wantWaiting(s *boltstore.Store, calls int) error {
	if is := s.Waiting(); is != calls {
		return fmt.Errorf("%d calls wait, want %d", is, calls)
	}
	return nil
}

// TestARecordThatIsTooLargeIsRefused: an agent would not keep it, and etcd would not take it.
func TestARecordThatIsTooLargeIsRefused(t *testing.T) {
	s := open(t, quickPath(t))
	large := vmOn("v", "n1")
	large.Labels = map[string]string{"a": strings.Repeat("x", 1<<20)}
	_, err := s.Put(ctx, large)
	wantError(t, err, store.Full, "a store takes 1048576 in one record")
	large.Labels["a"] = strings.Repeat("x", 1<<20-1000)
	put(t, s, large)
}

// A file that is no store is left as it is, its mode too.
func TestTheModeOfWhatIsNoStoreStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	must(t, os.WriteFile(path, []byte("buy milk"), 0o600))
	must(t, os.Chmod(path, 0o644))
	if _, err := boltstore.Open(path); err == nil {
		t.Fatal("it is opened")
	}
	if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o644 {
		t.Errorf("its mode is %v, %v", at.Mode(), err)
	}
}
