//go:build linux

package backendtest_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestVMsRunOnWhileTheirAgentsDirectoryIsReadOnly: the file system with the directory of an agent can
// only be read for a while, whether the agent lives through it or begins meanwhile. Its VMs run on, it
// says what is wrong, and goes on when it can write again.
func TestVMsRunOnWhileTheirAgentsDirectoryIsReadOnly(t *testing.T) {
	testutil.Long(t)
	noLeaks(t)
	c := newCluster(t, 1, 30*time.Second)
	c.populate(2)
	qemu := fmt.Sprint(c.of()[c.vms[0]])
	agent := c.daemon("agent/h1")
	dir := filepath.Join(c.dir, "h1")
	says := func() int { return strings.Count(agent.tail(1<<20), "read-only file system") }
	told := func(since int) {
		t.Helper()
		testutil.Eventually(t, "that the agent says why", func() error {
			if says() == since {
				return errors.New("it does not")
			}
			return nil
		})
	}

	writable := readOnly(t, dir)
	c.must("migrate", string(c.vms[1]), "--to", "h2")
	told(0)
	if err := c.await(c.vms, time.Minute); err != nil {
		t.Fatalf("while the directory is read-only: %v", err)
	}
	if n := says(); n > 20 {
		t.Errorf("it says so %d times", n)
	}
	since := says()
	agent.kill(0)
	told(since)
	if err := c.await(c.vms, time.Minute); err != nil {
		t.Fatalf("while the directory is read-only, and the agent began meanwhile: %v", err)
	}
	writable()
	if _, err := c.settle(t.Context(), c.store, c.vms, "", 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	c.must("migrate", string(c.vms[1]), "--to", "h3", "--wait")
	l, err := c.settle(t.Context(), c.store, c.vms, "", 3*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.of()[c.vms[0]]); got != qemu {
		t.Errorf("%s ran in %s, and runs in %s", c.vms[0], qemu, got)
	}
	agent.forgive()
	if err := c.end(l); err != nil {
		t.Error(err)
	}
}

// forgive forgets how a daemon has ended by itself: it could not begin.
func (d *daemon) forgive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = nil
}

// readOnly lets no process open a file below a directory for writing, until writable is called. What is
// open stays so.
func readOnly(t *testing.T, dir string) (writable func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("this machine forbids mounts: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	done := false
	writable = func() {
		if !done {
			done = true
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(writable)
	return writable
}
