//go:build linux

package qemu

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// A process that was killed and not waited for has no arguments and no environment any more, and
// is not found; one that lives is.
func TestWhatWasKilledIsNotFound(t *testing.T) {
	cmd := exec.Command("sleep", "371")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	pid := cmd.Process.Pid
	sees := func() bool {
		all, err := FindAll(func(argv []string) bool { return slices.Contains(argv, "371") })
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(f Found) bool { return f.Identity.PID == pid })
	}
	testutil.Eventually(t, "it is found", testutil.Holds(sees))
	if ending(pid) {
		t.Error("it lives, and is said to end")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it is said to end, as it was killed",
		testutil.Holds(func() bool { return ending(pid) }))
	if sees() {
		t.Error("it was killed, and is found")
	}
}

// A process that was killed is known to be at once, however long the kernel takes to clear it away.
func TestWhatWasKilledIsKnownToBeKilledAtOnce(t *testing.T) {
	for range 100 {
		cmd := exec.Command("sleep", "373")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var found []Found
		testutil.Eventually(t, "it is found", func() (err error) {
			found, err = FindAll(func(argv []string) bool { return slices.Contains(argv, "373") })
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("%d are found", len(found))
			}
			return err
		})
		if found[0].killed() {
			t.Error("it lives, and is said to be killed")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if !found[0].killed() {
			t.Error("it was killed, and is not said to be")
		}
		_ = cmd.Wait()
		if !found[0].killed() {
			t.Error("it is gone, and is not said to be killed")
		}
	}
}
