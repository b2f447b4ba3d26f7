//go:build linux

package backendtest_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestNoVMRunsTwiceOverAnEtcdThatIsSetBack: a VM moves, and then etcd's data are put back as they were
// before, while all agents and controllers live but the one of the VM's old host, which begins anew.
// Every participant is told, the guests run on as they did, and when it is reconciled the VMs move again.
func TestNoVMRunsTwiceOverAnEtcdThatIsSetBack(t *testing.T) {
	testutil.Sample(t, 3)
	setBack(t, func(*cluster) {})
}

// TestNoVMRunsTwiceOverASnapshotOfEtcd: the same, and etcd has another cluster id.
func TestNoVMRunsTwiceOverASnapshotOfEtcd(t *testing.T) {
	testutil.Long(t)
	setBack(t, func(c *cluster) { c.etcd.Rename(0) })
}

func setBack(t *testing.T, restored func(*cluster)) {
	noLeaks(t)
	c := newCluster(t, 1, 30*time.Second)
	c.populate(2)
	c.etcd.Kill(0)
	backup := c.etcd.Backup(0)
	c.etcd.Restart(0)
	c.etcd.Ready()
	moved, stays := c.vms[0], c.vms[1]
	c.must("migrate", string(moved), "--to", "h2", "--wait")
	if testutil.InLongTier() { // this one was away meanwhile
		c.must("migrate", string(stays), "--to", "h3", "--wait")
		c.must("migrate", string(stays), "--to", "h1", "--wait")
	}
	c.oneEach()
	before := fmt.Sprint(c.living())

	agent := c.daemon("agent/h1")
	c.etcd.Kill(0)
	agent.kill(time.Hour)
	c.etcd.Restore(0, backup)
	restored(c)
	c.etcd.Restart(0)
	c.etcd.Ready()
	agent.wake <- struct{}{}
	c.alarmed()
	if err := c.await(c.vms, time.Minute); err != nil {
		t.Fatalf("over a store that was set back: %v", err)
	}
	if got := fmt.Sprint(c.living()); got != before {
		t.Errorf("the QEMUs were %s, and are %s", before, got)
	}

	testutil.Eventually(t, "that all hosts have told", func() error {
		_, err := c.ask("store", "reconcile", "--write", "--by", "alice")
		return err
	})
	l, err := c.settle(t.Context(), c.store, c.vms, "", 3*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for id, host := range map[vmid]hostName{moved: "h2", stays: "h1"} {
		if got := l.vms[id].Host; got != host {
			t.Errorf("%s is on %s, and its record says %s", id, host, got)
		}
	}
	if got := fmt.Sprint(c.living()); got != before {
		t.Errorf("the QEMUs were %s, and after the reconciliation are %s", before, got)
	}
	c.must("migrate", string(moved), "--to", "h3", "--wait")
	if l, err = c.settle(t.Context(), c.store, c.vms, "", 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := c.end(l); err != nil {
		t.Error(err)
	}
}

// oneEach waits until each VM has one QEMU: a migration succeeds before the QEMU of its source has ended.
func (c *cluster) oneEach() {
	c.t.Helper()
	testutil.Eventually(c.t, "that each VM has one QEMU", func() error {
		of := c.of()
		for _, id := range c.vms {
			if n := len(of[id]); n != 1 {
				return fmt.Errorf("%s has %d: %v", id, n, of[id])
			}
		}
		return nil
	})
}

// alarmed waits until an operator is told that the store was set back.
func (c *cluster) alarmed() {
	c.t.Helper()
	testutil.Eventually(c.t, "that the operator is told", func() error {
		out, err := c.ask("status")
		ended, _ := errors.AsType[*exec.ExitError](err)
		switch {
		case ended == nil || ended.ExitCode() != 4,
			!strings.Contains(out, "ALARM  the store is older than it was"):
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// must runs a command that must succeed.
func (c *cluster) must(args ...string) {
	c.t.Helper()
	if out, err := c.godwit(args...); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// ask runs a command once.
func (c *cluster) ask(args ...string) (string, error) {
	cmd := exec.Command(c.program, args...)
	cmd.Env = c.environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
