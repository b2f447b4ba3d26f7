//go:build linux

package qemu_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// TestALockLivesAsLongAsItsProcess: neither longer nor shorter, and for any process.
func TestALockLivesAsLongAsItsProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "locks")
	lock, err := qemu.TakeLock(file, "a")
	if err != nil {
		t.Fatal(err)
	}
	p := processStart(t, qemu.Spec{Path: sleepPath(t), Args: []string{"1000"}, Lock: lock})
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := qemu.TakeLock(file, "a"); !errors.Is(err, qemu.ErrLocked) {
		t.Errorf("while its process lives: %v", err)
	}
	for name, want := range map[string]bool{"a": true, "b": false} {
		if held, err := qemu.Locked(file, name); held != want || err != nil {
			t.Errorf("%s is held: %t, %v", name, held, err)
		}
	}
	if held, err := qemu.Locked(file+" of none", "a"); held || err != nil {
		t.Errorf("in no file it is held: %t, %v", held, err)
	}
	other, err := qemu.TakeLock(file, "b")
	if err != nil {
		t.Errorf("another name: %v", err)
	} else if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	again, err := qemu.TakeLock(file, "a")
	if err != nil {
		t.Fatalf("its process has ended: %v", err)
	}
	if _, err := qemu.TakeLock(file, "a"); !errors.Is(err, qemu.ErrLocked) {
		t.Errorf("while the same process has it: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatAnEnvironmentSays: a process that a test has started has the one that it was given.
func TestWhatAnEnvironmentSays(t *testing.T) {
	p := processStart(t, qemu.Spec{Path: sleepPath(t), Args: []string{"1000.25"},
		Env: []string{"A=1", "B=2"}})
	var found []qemu.Found
	eventually(t, "it has its arguments", func() bool {
		all, err := qemu.FindAll(func(argv []string) bool {
			return len(argv) == 2 && argv[1] == "1000.25"
		})
		if err != nil {
			t.Fatal(err)
		}
		found = all
		return len(all) == 1 && len(all[0].Env) == 2
	})
	if found[0].Identity != p.Identity() || found[0].Env[0] != "A=1" || found[0].Env[1] != "B=2" {
		t.Errorf("found %+v", found)
	}
}
