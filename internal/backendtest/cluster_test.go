//go:build linux

package backendtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// settingsText configures the controllers: moves that last long enough to be disturbed, and
// failures that are tried again soon. A host is lost when its agent is silent for a while.
const settingsText = `
config:
  parallelMigrationsPerCluster: 4
  parallelOutboundMigrationsPerNode: 3
  bandwidthPerMigration: %s
backoff: {base: 1s, cap: 4s}
failover: {grace: %s}
`

// hosts are those of every cluster. The first one is drained.
var hosts = []hostName{"h1", "h2", "h3"}

// controllers are those of every cluster: its first daemons.
var controllers = []string{"a", "b"}

// address is where a host is reached by the others. Members of etcd have others.
func address(h hostName) string { return "127.0.0.1" + strings.TrimPrefix(string(h), "h") }

// features asks the installed QEMU once what it can do. GODWIT_CRASHES_ACCEL=tcg does
// without KVM.
var features = sync.OnceValues(func() (qemu.Features, error) {
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return qemu.Features{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	f, err := qemu.Probe(ctx, path)
	f.Accelerator = cmp.Or(os.Getenv("GODWIT_CRASHES_ACCEL"), f.Accelerator)
	return f, err
})

// A cluster is everything that runs.
type cluster struct {
	*checker
	etcd    *etcdtest.Cluster
	store   *etcdstore.Store
	url     string // the store, for what starts from now on
	files   string // the certificates of operators; "": they need none
	program string
	daemons []*daemon // controllers, then agents
	vms     []vmid
	killed  map[vmid]int // how many QEMUs of each VM
}

// newCluster starts etcd, two controllers and the agents of all hosts.
func newCluster(t *testing.T, members int, grace time.Duration) *cluster {
	t.Helper()
	c := newEmpty(t, members, grace, "24MiB/s")
	for _, name := range controllers {
		c.controller(name)
	}
	for _, h := range hosts {
		c.agent(h)
	}
	return c
}

// newEmpty starts etcd, and a checker of the VMs that are to come.
func newEmpty(t *testing.T, members int, grace time.Duration, bandwidth string) *cluster {
	t.Helper()
	inside(t)
	f, err := features()
	if err != nil {
		t.Skipf("no QEMU runs here: %v", err)
	}
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(settingsText, bandwidth, grace)
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{etcd: etcdtest.Start(t, members), program: program, killed: map[vmid]int{}}
	c.url = "etcd://" + strings.ReplaceAll(strings.Join(c.etcd.Endpoints, ","), "http://", "") +
		"/crash"
	c.store, err = etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: c.etcd.Endpoints,
		Prefix: "/crash"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() }) // the cluster may be gone
	c.checker = newChecker(t, dir, f)
	t.Cleanup(c.keep)
	return c
}

// controller starts a controller.
func (c *cluster) controller(name string, more ...string) {
	c.start("controller/"+name, append([]string{"controller", "--name", name, "--config", filepath.Join(c.dir, "c.yaml"),
		"--lease-duration", "3s"}, more...)...)
}

// agent starts the agent of a host.
func (c *cluster) agent(h hostName, more ...string) {
	f, err := features()
	if err != nil {
		c.t.Fatal(err)
	}
	c.start("agent/"+string(h), append([]string{"agent", "--host", string(h), "--dir",
		filepath.Join(c.dir, string(h)), "--locks", filepath.Join(c.dir, "locks"), "--qemu", filepath.Join(c.bin, "qemu-system-x86_64"),
		"--accelerator", f.Accelerator, "--address", address(h), "--memory", "4GiB",
		"--cpus", "64", "--poll", "200ms"}, more...)...)
}

// keep copies the logs to where GODWIT_CRASHES_KEEP says, to be looked at.
func (c *cluster) keep() {
	dir := os.Getenv("GODWIT_CRASHES_KEEP")
	if dir == "" {
		return
	}
	to := filepath.Join(dir, strings.ReplaceAll(c.t.Name(), "/", "-"))
	for _, d := range c.daemons {
		for _, path := range []string{d.log, strings.TrimSuffix(d.log, ".log") + ".audit"} {
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.MkdirAll(to, 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600)
			}
			if err != nil {
				c.t.Log(err)
			}
		}
	}
}

// start starts a daemon and its supervisor.
func (c *cluster) start(name string, args ...string) {
	file := filepath.Join(c.dir, strings.ReplaceAll(name, "/", "-"))
	argv := append([]string{c.program}, args...)
	argv = append(argv, "--store", c.url, "--heartbeat-interval", "500ms", "--audit", file+".audit")
	d := supervise(c.t, &daemon{name: name, argv: argv, log: file + ".log"})
	c.daemons = append(c.daemons, d)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("the end of the log of %s:\n%s", name, d.tail(6000))
		}
	})
}

// daemon finds one by its name.
func (c *cluster) daemon(name string) *daemon {
	i := slices.IndexFunc(c.daemons, func(d *daemon) bool { return d.name == name })
	return c.daemons[i]
}

// environ is the environment of a command of an operator.
func (c *cluster) environ() []string {
	return append(os.Environ(), "GODWIT_STORE="+c.url, "GODWIT_TLS_DIR="+c.files)
}

// godwit runs a command of an operator, again while the store does not answer.
func (c *cluster) godwit(args ...string) (string, error) {
	var out []byte
	var err error
	for range 10 {
		cmd := exec.Command(c.program, args...)
		cmd.Env = c.environ()
		if out, err = cmd.CombinedOutput(); err == nil {
			return string(out), nil
		}
		time.Sleep(time.Second)
	}
	return string(out), fmt.Errorf("godwit %s: %w: %s", strings.Join(args, " "), err, out)
}

// populate starts VMs on the first host, as soon as it is known, and waits until they beat.
func (c *cluster) populate(n int) {
	c.t.Helper()
	ctx := testutil.Context(c.t, 3*time.Minute)
	for {
		l, err := read(ctx, c.store)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(l.hosts) == len(hosts) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	desk := client.Client{Store: c.store, Now: time.Now}
	for i := range n {
		id := vmid(fmt.Sprintf("crash/vm-%02d", i+1))
		_, err := desk.AddVM(ctx, &store.VM{VM: c.vm(id), Namespace: "crash", Host: hosts[0],
			Strategy: evacuation.LiveMigrate, Migratable: true})
		if err != nil {
			c.t.Fatal(err)
		}
		c.vms = append(c.vms, id)
	}
	if err := c.await(c.vms, 3*time.Minute); err != nil {
		c.t.Fatal(err)
	}
	for _, id := range c.vms {
		c.pulse(id).Mark()
	}
}

// leader answers which controller leads, and which does not.
func (c *cluster) leader(ctx context.Context) (leads, other *daemon) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, _ := c.store.Get(ctx, store.Key{Kind: store.LeaderKind, Name: "cluster"})
	if l, is := r.(*store.Leader); is && strings.HasSuffix(l.Holder, "/b") {
		return c.daemons[1], c.daemons[0]
	}
	return c.daemons[0], c.daemons[1]
}

// end lets all daemons end by themselves: the VMs run on. Then the memory of the VMs is
// checked, and whether anything is left.
func (c *cluster) end(l *ledger) error {
	var bad []error
	for _, d := range c.daemons {
		if err := d.stop(syscall.SIGTERM); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", d.name, err))
		}
		bad = append(bad, d.troubles(), d.audited())
		if ends := d.unexpected(); ends != "" {
			bad = append(bad, fmt.Errorf("%s ended by itself: %s", d.name, ends))
		}
	}
	bad = append(bad, c.await(c.vms, 3*time.Minute), c.whole(c.vms), c.left(l, hosts),
		c.sound(l, c.vms, c.killed), c.strangers())
	if more := c.homeless(l, c.vms); len(more) > 0 {
		bad = append(bad, errors.New(strings.Join(more, "\n")))
	}
	return errors.Join(bad...)
}
