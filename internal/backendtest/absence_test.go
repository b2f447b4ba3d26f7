//go:build linux

package backendtest_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// grace is how long an agent may be silent until its host counts as lost, and away how long
// it stays dead after that.
const grace, away = 2 * time.Second, 3 * time.Second

// The agent of a host is dead for a while. The cluster notices; the host's VMs run on and
// are started nowhere else. When the agent returns it adopts them as they are, and does
// what was asked in the meantime.
func TestVMsRunOnWithoutTheirAgent(t *testing.T) {
	testutil.Sample(t, 4)
	noLeaks(t)
	c := newCluster(t, 1, grace)
	c.populate(3)
	before, err := read(t.Context(), c.store)
	if err != nil {
		t.Fatal(err)
	}
	qemus := fmt.Sprint(c.living())
	agent := c.daemon("agent/h1")
	agent.kill(time.Hour)
	c.lost(hosts[0])
	for began := time.Now(); time.Since(began) < away; {
		if err := c.await(c.vms, time.Minute); err != nil {
			t.Fatalf("without its agent: %v", err)
		}
	}
	desk := client.Client{Store: c.store, Now: time.Now}
	if _, err := desk.StopVM(t.Context(), c.vms[0], false); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.living()); got != qemus {
		t.Errorf("the QEMUs were %s and are %s", qemus, got)
	}
	agent.wake <- struct{}{}
	c.returned(before)
}

// lost waits until a host counts as lost.
func (c *cluster) lost(h hostName) {
	c.t.Helper()
	ctx := testutil.Context(c.t, 3*time.Minute)
	for {
		l, err := read(ctx, c.store)
		if err != nil {
			c.t.Fatalf("%s is not lost: %v", h, err)
		}
		if l.hosts[h].NotReady {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// returned waits until the agent is back, and checks that it has adopted the VMs, and
// stopped the one that it was to stop.
func (c *cluster) returned(before *ledger) {
	c.t.Helper()
	ctx := testutil.Context(c.t, 3*time.Minute)
	stopped, rest := c.vms[0], c.vms[1:]
	for {
		l, err := read(ctx, c.store)
		if err != nil {
			c.t.Fatal(err)
		}
		if v := l.vms[stopped]; v.Ended && !l.hosts[hosts[0]].NotReady {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := c.await(rest, time.Minute); err != nil {
		c.t.Error(err)
	}
	after, err := read(ctx, c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, id := range rest {
		if b, a := before.vms[id], after.vms[id]; a.Boots != b.Boots || a.Host != b.Host {
			c.t.Errorf("%s had booted %d times on %s, and now %d times on %s", id, b.Boots, b.Host,
				a.Boots, a.Host)
		}
	}
	for _, d := range c.daemons {
		if err := d.stop(syscall.SIGTERM); err != nil {
			c.t.Errorf("%s: %v", d.name, err)
		}
		if err := d.troubles(); err != nil {
			c.t.Error(err)
		}
	}
	for _, err := range []error{c.await(rest, time.Minute), c.sound(after, c.vms, nil),
		c.whole(rest)} {
		if err != nil {
			c.t.Error(err)
		}
	}
	if !c.rhythm(stopped).Off {
		c.t.Errorf("%s was not told to shut down", stopped)
	}
}
