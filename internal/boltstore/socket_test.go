package boltstore_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

func TestTheSocketIsPrivate(t *testing.T) {
	path := filepath.Join(newDir(t), "run", "sock")
	l := listen(t, path)
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		is, err := os.Stat(name)
		must(t, err)
		if is.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", name, is.Mode().Perm(), want)
		}
	}
	must(t, l.Close())
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 || left[0].Name() != "sock.lock" {
		t.Errorf("a listener that is closed has left %v, %v", left, err)
	}
}

func TestASocketOfADeadServerIsReplaced(t *testing.T) {
	dir := newDir(t)
	path := filepath.Join(dir, "sock")
	kill := startServer(t, dir)
	if _, err := boltstore.Listen(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a living server is there, and Listen says %v", err)
	}
	client := dial(t, path)
	if _, err := client.Put(ctx, vmOn("v", "n1")); err != nil {
		t.Errorf("the living server is disturbed: %v", err)
	}
	kill()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("the dead server has not left its socket: %v", err)
	}
	_, err := client.Get(ctx, vmOn("v", "").Key())
	wantError(t, err, store.Unavailable, path)
	serve(t, newStore(t, dir), path)
	if r, err := client.Get(ctx, vmOn("v", "").Key()); err != nil || r == nil {
		t.Errorf("Get = %v, %v", r, err)
	}
}

func TestWhereNoSocketCanBe(t *testing.T) {
	dir := newDir(t)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("kept"), 0o600))
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Chmod(open, 0o777))
	long := filepath.Join(dir, strings.Repeat("long", 40))
	for path, says := range map[string]string{
		file:                        "no socket",
		filepath.Join(open, "sock"): "chmod go-w",
		long:                        "107 bytes",
		"":                          "107 bytes",
	} {
		l, err := boltstore.Listen(path)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Listen(%q): %v, want %q", path, err, says)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "kept" || err != nil {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if _, err := boltstore.Dial(long); err == nil {
		t.Error("there can be no socket, and Dial does not say so")
	}
}

// TestASocketInAUsualDirectoryIsClosedToOthers from the moment at which it is there.
func TestASocketInAUsualDirectoryIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(newDir(t), "usual")
	must(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "sock")
	for range 20 {
		seen := make(chan os.FileMode)
		stop := make(chan struct{})
		go func() { // another user, who looks all the time
			var all os.FileMode
			for {
				if at, err := os.Lstat(path); err == nil {
					all |= at.Mode().Perm()
				}
				select {
				case <-stop:
					seen <- all
					return
				default:
				}
			}
		}()
		l := listen(t, path)
		at, err := os.Lstat(path)
		must(t, err)
		close(stop)
		if all := <-seen | at.Mode().Perm(); all != 0o600 {
			t.Fatalf("the socket had the mode %o, want 600", all)
		}
		must(t, l.Close())
	}
}

func TestOfManyServersOneListens(t *testing.T) {
	path := filepath.Join(newDir(t), "sock")
	for range 100 {
		stale := listen(t, path)
		stale.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
		must(t, stale.Close())
		listeners := make(chan net.Listener, 8)
		var group sync.WaitGroup
		for range cap(listeners) {
			group.Go(func() {
				if l, err := boltstore.Listen(path); err == nil {
					listeners <- l
				}
			})
		}
		group.Wait()
		close(listeners)
		won := 0
		for l := range listeners {
			won++
			must(t, l.Close())
		}
		if won != 1 {
			t.Fatalf("%d servers listen", won)
		}
	}
}

func TestWithoutAServer(t *testing.T) {
	path := filepath.Join(newDir(t), "sock")
	client := dial(t, path)
	vm := vmOn("v", "n1")
	_, err := client.Put(ctx, vm)
	wantError(t, err, store.Unavailable, path)
	wantError(t, client.Delete(ctx, vm), store.Unavailable, path)
	_, err = client.Changes(ctx, store.Everything, 0)
	wantError(t, err, store.Unavailable, path)
	wantError(t, client.Wait(ctx, store.Everything, 0), store.Unavailable, path)
	if errors.Is(err, store.Unanswered) {
		t.Error("no server can have got it")
	}
}
