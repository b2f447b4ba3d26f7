package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/durable"
)

// private is a new directory that only we can enter.
func private(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "private")
	must(t, durable.Private(dir))
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func own(t *testing.T, dir string) *durable.Lock {
	t.Helper()
	lock, err := durable.Own(dir)
	must(t, err)
	t.Cleanup(func() { _ = lock.Close() })
	return lock
}

func TestOwn(t *testing.T) {
	t.Run("a living process keeps others out, and is named", func(t *testing.T) {
		dir := private(t)
		owner := startOwner(t, dir)
		_, err := durable.Own(dir)
		want := durable.LockedError{Dir: dir, Owner: strconv.Itoa(owner.Process.Pid)}
		got, locked := errors.AsType[*durable.LockedError](err)
		if !locked || *got != want {
			t.Errorf("got %v, want %v", err, &want)
		}
	})
	t.Run("what a killed process leaves behind is free", func(t *testing.T) {
		dir := private(t)
		owner := startOwner(t, dir)
		must(t, owner.Process.Kill())
		_ = owner.Wait()
		own(t, dir)
		text, err := os.ReadFile(filepath.Join(dir, "lock"))
		if string(text) != strconv.Itoa(os.Getpid())+"\n" || err != nil {
			t.Errorf("the lock names %q, %v", text, err)
		}
	})
	t.Run("the same process cannot own it twice, and can again after Close", func(t *testing.T) {
		dir := private(t)
		first := own(t, dir)
		if _, err := durable.Own(dir); err == nil {
			t.Fatal("owned twice")
		}
		must(t, first.Close())
		own(t, dir)
	})
	t.Run("what is closed is free, though a child has the file still open", func(t *testing.T) {
		dir := private(t)
		lock := own(t, dir)
		child := forked(dir, "60")
		if len(child.ExtraFiles) != 1 {
			t.Fatalf("the lock is open %d times", len(child.ExtraFiles))
		}
		must(t, child.Start())
		t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
		must(t, child.ExtraFiles[0].Close())
		must(t, lock.Close())
		own(t, dir)
	})
	t.Run("the child of a killed process is waited for", func(t *testing.T) {
		dir := private(t)
		owner := startOwner(t, dir, childKey+"=1")
		must(t, owner.Process.Kill())
		_ = owner.Wait()
		own(t, dir)
	})
	t.Run("a directory that is not there has no owner", func(t *testing.T) {
		_, err := durable.Own(filepath.Join(t.TempDir(), "none"))
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPrivateRefuses(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"a directory that others can enter",
			func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o711)) },
			"has mode 0711 and is open to others: chmod 0700"},
		{"a directory that our group can read",
			func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o740)) }, "has mode 0740"},
		{"a directory of another user", func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			must(t, os.Chown(dir, 12345, -1))
		}, "belongs to user 12345"},
		{"a file", func(t *testing.T, dir string) {
			must(t, os.Remove(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		}, "not a directory"},
		{"a link to a private directory", func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+"2"))
			must(t, os.Symlink(dir+"2", dir))
		}, "is no directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			row.spoil(t, dir)
			err := durable.Private(dir)
			if err == nil || !strings.Contains(err.Error(), row.want) ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want the directory and %q", err, row.want)
			}
		})
	}
}

func TestPrivateMakesAndKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		must(t, durable.Private(dir))
	}
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if i, err := os.Stat(made); err != nil || i.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, i, err)
		}
	}
}

func TestOwnedAcceptsWhatOthersCanOnlyRead(t *testing.T) {
	for mode, want := range map[os.FileMode]string{
		0o700: "", 0o755: "", 0o750: "", 0o711: "",
		0o775: "has mode 0775, and others can replace the files in it: chmod go-w",
		0o702: "has mode 0702",
	} {
		dir := private(t)
		must(t, os.Chmod(dir, mode))
		err := durable.Owned(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("mode %#o: %v, want %q", mode, err, want)
		}
	}
	if os.Geteuid() == 0 {
		dir := private(t)
		must(t, os.Chown(dir, 12345, -1))
		if err := durable.Owned(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
			t.Errorf("a directory of another user: %v", err)
		}
	}
}
