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
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// TestEveryDamagedRecordIsNamed changes two records: the check names both, and leaves the file alone.
func TestEveryDamagedRecordIsNamed(t *testing.T) {
	path, _ := filled(t)
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("records"))
		return errors.Join(b.Put([]byte("vm/vm-002"), b.Get([]byte("vm/vm-001"))),
			b.Put([]byte("vm/vm-007"), []byte("short")))
	})
	before, err := os.ReadFile(path)
	must(t, err)
	s, err := boltstore.CheckFile(path)
	must(t, err)
	all := errors.Join(s.Wrong...).Error()
	for _, says := range []string{`checksum of "vm/vm-002"`, `"vm/vm-007" only 5 bytes`} {
		if !strings.Contains(all, says) {
			t.Errorf("the check does not say %q:\n%s", says, all)
		}
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the check has changed the file")
	}
}

// TestAFileThatIsOpenIsNeitherCheckedNorReplaced: its process would go on with a file that has no name.
func TestAFileThatIsOpenIsNeitherCheckedNorReplaced(t *testing.T) {
	backup, _ := filled(t)
	path := newPath(t)
	s := open(t, path)
	put(t, s, vmOn("v", "n1"))
	_, err := boltstore.CheckFile(path)
	if _, is := errors.AsType[*boltstore.LockedError](err); !is {
		t.Errorf("the check of a file that is open: %v", err)
	}
	_, _, err = boltstore.Restore(backup, path, time.Now())
	if _, is := errors.AsType[*boltstore.LockedError](err); !is {
		t.Errorf("a file that is open was replaced: %v", err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v is left", files, err)
	}
	must(t, s.Close())
}

// TestARestoredFileIsTheBackup keeps what was there, whole or not.
func TestARestoredFileIsTheBackup(t *testing.T) {
	backup, want := filled(t)
	for name, old := range map[string][]byte{"none": nil, "damaged": []byte("no store"), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if old != nil {
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, old, 0o600))
			}
			kept, s, err := boltstore.Restore(backup, path, time.Now())
			must(t, err)
			if s.Records != len(want) {
				t.Errorf("%d records are restored, of %d", s.Records, len(want))
			}
			if got, err := os.ReadFile(kept); old != nil && (err != nil || !bytes.Equal(got, old)) {
				t.Errorf("what was there is %q, %v in %q", got, err, kept)
			} else if old == nil && kept != "" {
				t.Errorf("nothing was there, and it is kept as %q", kept)
			}
			again := open(t, path)
			if is, was := fingerprint(t, everything(t, again)), fingerprint(t, want); is != was {
				t.Errorf("restored:\n%s\nwant:\n%s", is, was)
			}
			must(t, again.Close())
		})
	}
}

// TestADamagedBackupIsNotRestored: what is there stays.
func TestADamagedBackupIsNotRestored(t *testing.T) {
	backup, _ := filled(t)
	text, err := os.ReadFile(backup)
	must(t, err)
	must(t, os.WriteFile(backup, text[:len(text)/2], 0o600))
	path := newPath(t)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte("as it was"), 0o600))
	if _, _, err = boltstore.Restore(backup, path, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("half a backup is restored: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "as it was" {
		t.Errorf("what was there is %q, %v", got, err)
	}
	_, _, err = boltstore.Restore(backup+".missing", path, time.Now())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no backup: %v", err)
	}
}

// TestABackupThroughTheSocketIsAStore: a store that is in use is copied by the process that has it open.
func TestABackupThroughTheSocketIsAStore(t *testing.T) {
	path, want := filled(t)
	s := open(t, path)
	socket := newPath(t) + ".sock"
	defer serve(t, s, socket)()
	c, err := boltstore.Dial(socket)
	must(t, err)
	var copied bytes.Buffer
	n, err := c.Backup(ctx, &copied)
	must(t, err)
	if is := boltstore.Examine(copied.Bytes()); int64(copied.Len()) != n || len(is.Wrong) > 0 ||
		is.Records != len(want) {
		t.Errorf("Backup = %d: %v, %v", n, is, is.Wrong)
	}
	memory := newPath(t) + ".sock"
	defer serve(t, store.NewMemory(), memory)()
	c, err = boltstore.Dial(memory)
	must(t, err)
	_, err = c.Backup(ctx, &copied)
	wantError(t, err, store.Unreadable, "no copies")
}

// TestAControllerThatBeginsDuringARestoreServesWhatWasRestored: it waits for the lock of the file that is replaced.
func TestAControllerThatBeginsDuringARestoreServesWhatWasRestored(t *testing.T) {
	path, other := quickPath(t), quickPath(t)
	for at, vm := range map[string]string{path: "old", other: "restored"} {
		s, err := boltstore.Open(at)
		must(t, err)
		put(t, s, vmOn(vm, "n1"))
		must(t, s.Close())
	}
	held, err := os.Open(path)
	must(t, err)
	defer held.Close()
	must(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	type opened struct {
		*boltstore.Store
		error
	}
	begins := make(chan opened, 1)
	go func() {
		s, err := boltstore.Config{Path: path, LockTimeout: testutil.Limit(testutil.DefaultLimit)}.Open()
		begins <- opened{s, err}
	}()
	testutil.Eventually(t, "the controller has opened the file", func() error {
		if n := openTimes(t, path); n < 2 {
			return fmt.Errorf("it is open %d times", n)
		}
		return nil
	})
	must(t, os.Rename(other, path))
	must(t, held.Close())
	s := <-begins
	must(t, s.error)
	defer s.Close()
	if r, err := s.Get(ctx, vmOn("restored", "").Key()); err != nil || r == nil {
		t.Errorf("what was restored is not there: %v, %v; everything is %v", r, err, everything(t, s))
	}
}

// openTimes returns how often this process has a file open.
func openTimes(t *testing.T, path string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && at == path {
			n++
		}
	}
	return n
}

// copying is a store whose copies last until they are let go.
type copying struct {
	store.Store
	began, end chan bool
	size       int
}

func (c *copying) Backup(_ context.Context, w io.Writer) (int64, error) {
	c.began <- true
	<-c.end
	n, err := w.Write(make([]byte, c.size))
	return int64(n), err
}

// TestCopiesAreMadeOneAfterTheOther: each takes several times the store in memory. Others are answered meanwhile.
func TestCopiesAreMadeOneAfterTheOther(t *testing.T) {
	s := &copying{store.NewMemory(), make(chan bool), make(chan bool), 1}
	path := filepath.Join(newDir(t), "sock")
	serve(t, s, path)
	const clients = 3
	ended := make(chan error, clients)
	for range clients {
		go func() {
			_, err := dial(t, path).Backup(ctx, io.Discard)
			ended <- err
		}()
	}
	for range clients {
		<-s.began
		if _, err := dial(t, path).Put(soon(t), vmOn("v", "n1")); err != nil && !errors.Is(err, store.Stale) {
			t.Errorf("a write meanwhile: %v", err)
		}
		select {
		case <-s.began:
			t.Fatal("two copies are made at the same time")
		case s.end <- true:
		}
		if err := <-ended; err == nil {
			t.Error("what is no store is a copy of it")
		}
	}
}

// TestACopyThatIsTooLongIsRefusedBeforeItIsMade, and one whose size is not known before it is sent.
func TestACopyThatIsTooLongIsRefusedBeforeItIsMade(t *testing.T) {
	defer func(was int64) { *boltstore.MostCopied = was }(*boltstore.MostCopied)
	path := filepath.Join(newDir(t), "sock")
	s := open(t, quickPath(t))
	put(t, s, vmOn("v", "n1"))
	size, err := s.Size()
	must(t, err)
	stop := serve(t, s, path)
	*boltstore.MostCopied = size
	n, err := dial(t, path).Backup(ctx, io.Discard)
	if err != nil || n != size {
		t.Errorf("a copy has %d bytes, want %d: %v", n, size, err)
	}
	*boltstore.MostCopied = size - 1
	_, err = dial(t, path).Backup(ctx, io.Discard)
	wantError(t, err, store.Full, "stop the controller")
	stop()

	unsized := &copying{store.NewMemory(), make(chan bool, 1), make(chan bool, 1), int(size)}
	unsized.end <- true
	serve(t, unsized, path)
	_, err = dial(t, path).Backup(ctx, io.Discard)
	wantError(t, err, store.Full, "etcdctl snapshot save")
}
