//go:build linux

package backendtest_test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// newServed starts etcd of one member, two controllers that serve it over TLS, and the agents of all hosts, which
// reach it through them alone. Agents differ in which controller they ask first. Moves take some seconds: longer than it takes to kill.
func newServed(t *testing.T) *cluster {
	t.Helper()
	c := newEmpty(t, 1, 30*time.Second, "6MiB/s")
	own, err := pki.Init(filepath.Join(c.dir, "pki"), "test", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(r pki.Request) string {
		r.Lasts = time.Hour
		files, err := own.Issue(r, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	var served []string
	for i, name := range controllers {
		ip := net.IPv4(127, 0, 2, byte(1+i))
		at := net.JoinHostPort(ip.String(), "7443")
		served = append(served, at)
		c.controller(name, "--store-listen", at, "--operators", "alice", "--tls-dir",
			issue(pki.Request{Name: "controller-" + name, Controller: true, IPs: []net.IP{ip}}))
	}
	for _, h := range hosts {
		c.url = "tls://" + strings.Join(served, ",")
		c.agent(h, "--tls-dir", issue(pki.Request{Name: string(h), IPs: []net.IP{net.ParseIP(address(h))}}))
		slices.Reverse(served)
	}
	c.files = issue(pki.Request{Name: "alice", ClientOnly: true})
	return c
}

// TestControllersThatServeTheStoreFailOver: one of two controllers, which serve etcd to the agents, is killed while a VM
// moves, comes back, and the other one is killed while a host is drained; then each once more, together with the agent
// of the source of a move, and with that of its target. Every migration succeeds over the controller that is left, while
// the other stays dead, no guest runs twice or loses a heartbeat, and no alarm is left.
func TestControllersThatServeTheStoreFailOver(t *testing.T) {
	testutil.Long(t)
	noLeaks(t)
	c := newServed(t)
	c.populate(2)
	moved, drained := c.vms[0], c.vms[1]

	c.must("migrate", string(moved), "--to", "h2")
	first := c.failOver(moved)
	c.arrived("", map[vmid]hostName{moved: "h2", drained: "h1"})

	c.returns(first)
	c.must("drain", "h1")
	second := c.failOver(drained)
	if second == first {
		t.Errorf("%s led twice", first.name)
	}
	c.arrived("h1", map[vmid]hostName{moved: "h2"})

	c.returns(second)
	c.must("migrate", string(moved), "--to", "h3")
	third := c.failOver(moved, "agent/h2")
	c.arrived("h1", map[vmid]hostName{moved: "h3"})

	c.returns(third)
	c.must("migrate", string(moved), "--to", "h2")
	fourth := c.failOver(moved, "agent/h2")
	c.arrived("h1", map[vmid]hostName{moved: "h2"})

	c.returns(fourth)
	l := c.arrived("h1", map[vmid]hostName{moved: "h2"})
	for _, m := range l.moves {
		if m.State.Phase != migration.Succeeded {
			t.Errorf("%s is %s: %s", m.Spec.ID, m.State.Phase, m.State.Because)
		}
	}
	if len(l.moves) != 4 {
		t.Errorf("%d migrations, want 4", len(l.moves))
	}
	if err := c.end(l); err != nil {
		t.Error(err)
	}
}

// failOver kills the leading controller, which stays dead, and agents with it, which come back soon, while a VM moves.
func (c *cluster) failOver(vm vmid, agents ...string) (dead *daemon) {
	c.t.Helper()
	testutil.Eventually(c.t, fmt.Sprintf("that %s moves", vm), func() error {
		if n := len(c.of()[vm]); n != 2 {
			return fmt.Errorf("it has %d QEMUs", n)
		}
		return nil
	})
	dead, other := c.leader(c.t.Context())
	killed := dead.kill(time.Hour)
	for _, a := range agents {
		killed = c.daemon(a).kill(500*time.Millisecond) && killed
	}
	l, err := read(c.t.Context(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	if !killed || !slices.ContainsFunc(l.moves, func(m *store.Migration) bool { return m.Spec.VM == vm && !m.State.Phase.Final() }) {
		c.t.Fatalf("%s and %v were not killed while %s moved", dead.name, agents, vm)
	}
	testutil.Eventually(c.t, "that the other controller leads", func() error {
		if leads, _ := c.leader(c.t.Context()); leads != other {
			return fmt.Errorf("%s leads", leads.name)
		}
		return nil
	})
	return dead
}

// returns starts a controller that was killed, and waits until it serves.
func (c *cluster) returns(d *daemon) {
	c.t.Helper()
	d.wake <- struct{}{}
	at := d.argv[slices.Index(d.argv, "--store-listen")+1]
	testutil.Eventually(c.t, fmt.Sprintf("that %s serves", d.name), func() error {
		out, err := c.ask("host", "list", "--store", "tls://"+at)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// arrived waits until no VM moves, and none is on a host that is drained: each has to be where it is wanted, and no
// alarm may be left.
func (c *cluster) arrived(drained hostName, want map[vmid]hostName) *ledger {
	c.t.Helper()
	l, err := c.settle(c.t.Context(), c.store, c.vms, drained, 3*time.Minute)
	if err != nil {
		c.t.Fatal(err)
	}
	for vm, host := range want {
		if got := l.vms[vm].Host; got != host {
			c.t.Errorf("%s is on %s, want %s", vm, got, host)
		}
	}
	if err := errors.Join(c.await(c.vms, time.Minute), c.sound(l, c.vms, nil)); err != nil {
		c.t.Error(err)
	}
	testutil.Eventually(c.t, "that no alarm is left", func() error {
		if out, err := c.ask("status"); err != nil || strings.Contains(out, "ALARM") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return l
}
