package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}

// A cluster is real agents over modelled hypervisors and a real controller whose looks are
// recorded, in virtual time.
type cluster struct {
	t      tester
	now    time.Time
	config string // of the controller
	fabric *fake.Network
	store  *store.Memory
	line   *sim.FlakyStore // of the controller
	memory *amnesiac       // at the other end of the line
	path   string          // of the log
	file   *audit.File
	full   audit.Rotation
	name   string
	term   uint64
	brains map[hypervisor.HostName]store.Participant
	wakes  workqueue.Timers[hypervisor.HostName]
}

// amnesiac is a store that may have forgotten what has changed.
type amnesiac struct {
	store.Store
	forgot bool // it answers everything, once
}

// Changes implements store.Store.
func (a *amnesiac) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	if a.forgot {
		a.forgot, since = false, 0
	}
	return a.Store.Changes(ctx, f, since)
}

// newCluster has hosts n1 to n4 of 64 GiB, and a controller that knows nothing yet.
func newCluster(t tester, dir, config string) *cluster {
	c := &cluster{t: t, now: epoch, config: config, fabric: fake.NewNetwork(epoch, fake.QEMU()),
		store: store.NewMemory(), path: filepath.Join(dir, "audit"), name: "controller/a",
		brains: map[hypervisor.HostName]store.Participant{}}
	c.memory = &amnesiac{Store: c.store}
	c.line = &sim.FlakyStore{Real: c.memory}
	for _, h := range []hypervisor.HostName{"n1", "n2", "n3", "n4"} {
		c.addHost(h, 64)
	}
	c.begin()
	return c
}

func (c *cluster) addHost(name hypervisor.HostName, gib int) {
	host := hypervisor.Host{Name: name, Memory: hypervisor.Bytes(gib) * hypervisor.GiB, CPUs: gib,
		Link: 10 * hypervisor.Gbit}
	real, err := c.fabric.AddHost(host)
	c.must(err)
	c.put(&store.Host{Host: host})
	c.brains[name] = agent.New(name, agent.Config{}, real, c.store, store.DiscardEvents{})
	c.wakes.Set(name, epoch)
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%v", err)
	}
}

// begin lets a new controller begin, with a log of its own process.
func (c *cluster) begin() {
	c.close()
	var err error
	c.file, err = audit.OpenRotating(c.path, c.full)
	c.must(err)
	s, err := config.ParseSettings("configuration", []byte(c.config))
	c.must(err)
	c.term++
	term := c.term
	c.line.Died, c.line.Dies = false, false
	c.brains[""] = &audit.Recorder{Store: c.line, Recorder: store.DiscardEvents{}, Config: s.Text,
		History: &audit.History{File: c.file, By: c.name, Now: func() time.Time { return c.now },
			Term: func() uint64 { return term }},
		Begin: func(s2 store.Store, n store.EventRecorder) store.Participant {
			return controller.New(s.Controller, s2, n)
		}}
	c.wakes.Set("", c.now)
}

func (c *cluster) close() {
	if c.file != nil {
		c.must(c.file.Close())
	}
}

// log is what the controller has written.
func (c *cluster) log() []byte {
	text, err := os.ReadFile(c.path)
	c.must(err)
	return text
}

func (c *cluster) put(r store.Record) {
	c.t.Helper()
	_, err := c.store.Put(context.Background(), r)
	c.must(err)
}

func (c *cluster) vm(id hypervisor.VMID, on hypervisor.HostName, gib int, load fake.Workload) {
	vm := hypervisor.VM{ID: id, Memory: hypervisor.Bytes(gib) * hypervisor.GiB, CPUs: 1}
	c.must(c.fabric.Host(on).Boot(vm, load))
	c.put(&store.VM{VM: vm, Host: on, Migratable: true, Size: store.SizeOf(vm)})
}

// change changes a record, as an operator does.
func change[R store.Record](c *cluster, kind store.Kind, name string, how func(R) store.Record) {
	r, _ := c.store.Get(context.Background(), store.Key{Kind: kind, Name: name})
	if r, is := r.(R); is {
		c.put(how(r))
	}
}

func (c *cluster) host(name string, how func(*store.Host)) {
	change(c, store.HostKind, name, func(h *store.Host) store.Record {
		next := *h
		how(&next)
		return &next
	})
}

func (c *cluster) drain(name string, on bool) {
	c.host(name, func(h *store.Host) {
		h.Taints = nil
		if on {
			h.Taints = []placement.Taint{{Key: "kubevirt.io/drain",
				Effect: placement.NoSchedule}}
		}
	})
}

func (c *cluster) migrate(id hypervisor.VMID, n int, to hypervisor.HostName) {
	c.put(&store.Migration{Spec: migration.Spec{ID: migration.ID(fmt.Sprintf("%s#u%d", id, n)),
		VM: id, Created: c.now, Target: to, Priority: migration.UserTriggered}})
}

// run lets time pass.
func (c *cluster) run(d time.Duration) {
	for end := c.now.Add(d); ; {
		c.hint()
		next := c.wakes.Next()
		if at, ok := c.fabric.Next(); ok {
			next = workqueue.Earliest(next, at)
		}
		if next.IsZero() || next.After(end) {
			c.now = end
			c.fabric.AdvanceTo(end)
			return
		}
		if next.After(c.now) {
			c.now = next
		}
		c.fabric.AdvanceTo(c.now)
		c.hint()
		for who, ok := c.wakes.Pop(c.now); ok; who, ok = c.wakes.Pop(c.now) {
			c.reconcile(who)
		}
	}
}

func (c *cluster) reconcile(who hypervisor.HostName) {
	wake, _ := c.brains[who].Reconcile(context.Background(), c.now)
	if who == "" && c.line.Died {
		c.begin()
	}
	if !wake.After(c.now) {
		wake = c.now.Add(time.Millisecond)
	}
	c.wakes.Set(who, wake)
	c.hint()
}

// hint tells every participant of what concerns it, a little later.
func (c *cluster) hint() {
	const late = 5 * time.Millisecond
	for _, h := range c.fabric.Hints() {
		c.brains[h.Host].(*agent.Agent).Hint(h.VM)
		c.wakes.Set(h.Host, c.now.Add(late))
	}
	for _, f := range c.store.Changed() {
		if _, known := c.brains[f.Host]; known && !f.Leases {
			c.wakes.Set(f.Host, c.now.Add(late))
		}
	}
}

// configure reads a configuration as the command does.
func configure(text string) (controller.Config, error) {
	s, err := config.ParseSettings("configuration", []byte(text))
	return s.Controller, err
}

// replay replays a log with what it says, or with another configuration.
func replay(t tester, log []byte, config ...string) *audit.Result {
	t.Helper()
	o := audit.Options{Configure: configure}
	if len(config) > 0 {
		o.Configure = func(string) (controller.Config, error) { return configure(config[0]) }
	}
	r, err := audit.Replay(bytes.NewReader(log), o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

// wantSame checks that a log is replayed to the last byte.
func wantSame(t tester, r *audit.Result) {
	t.Helper()
	if !r.Same() || r.Wakes+r.Words > 0 {
		var b strings.Builder
		_ = r.WriteText(&b, true)
		t.Errorf("%d looks want another time, %d say something else\n%s", r.Wakes, r.Words, &b)
	}
}

// drawWorld fills a cluster, and lets operators and fate do to it what is drawn.
func drawWorld(t *rapid.T, c *cluster) {
	const most = 5
	hosts := rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"})
	var vms []hypervisor.VMID
	for i := range rapid.IntRange(1, most).Draw(t, "VMs") {
		vms = append(vms, hypervisor.VMID(fmt.Sprintf("default/v%d", i)))
		c.vm(vms[i], hypervisor.HostName(hosts.Draw(t, "host")),
			rapid.SampledFrom([]int{1, 4, 8}).Draw(t, "GiB"),
			fake.Workload{Rate: rapid.SampledFrom([]hypervisor.Bandwidth{0, 100 << 20, 4 << 30}).
				Draw(t, "rate"), Hot: hypervisor.GiB})
	}
	vm := rapid.SampledFrom(vms)
	asked := 0
	operators := map[string]func(){
		"drain":   func() { c.drain(hosts.Draw(t, "host"), true) },
		"undrain": func() { c.drain(hosts.Draw(t, "host"), false) },
		"close": func() {
			c.host(hosts.Draw(t, "host"), func(h *store.Host) { h.Cordoned = !h.Cordoned })
		},
		"lose": func() {
			c.host(hosts.Draw(t, "host"), func(h *store.Host) { h.NotReady = !h.NotReady })
		},
		"migrate": func() {
			asked++
			c.migrate(vm.Draw(t, "VM"), asked, hypervisor.HostName(rapid.SampledFrom([]string{"",
				"n1", "n2", "n9"}).Draw(t, "to")))
		},
		"cancel": func() {
			id := string(vm.Draw(t, "VM")) + "#1"
			change(c, store.MigrationKind, id, func(m *store.Migration) store.Record {
				next := *m
				next.Cancel = true
				return &next
			})
		},
		"delete": func() {
			r, _ := c.store.Get(context.Background(), store.Key{Kind: store.VMKind,
				Name: string(vm.Draw(t, "VM"))})
			if r != nil {
				c.must(c.store.Delete(context.Background(), r))
			}
		},
		"mute":   func() { c.line.DropAnswers = rapid.IntRange(1, 3).Draw(t, "answers") },
		"full":   func() { c.line.Full = !c.line.Full },
		"forget": func() { c.memory.forgot = true },
		"deaf":   func() { c.line.StaleReads = !c.line.StaleReads },
		"crash": func() {
			c.line.Dies, c.line.After = true, rapid.IntRange(0, 4).Draw(t, "after")
		},
	}
	names := slices.Sorted(maps.Keys(operators))
	for range rapid.IntRange(1, most).Draw(t, "events") {
		operators[rapid.SampledFrom(names).Draw(t, "event")]()
		c.run(rapid.SampledFrom([]time.Duration{0, 100 * time.Millisecond, 3 * time.Second,
			time.Minute}).Draw(t, "then"))
	}
	c.line.Full, c.line.StaleReads, c.line.DropAnswers = false, false, 0
	c.run(3 * time.Minute)
}

// folder is a place for the logs of one test.
func folder(t testing.TB) func() string {
	n, dir := 0, t.TempDir()
	return func() string {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
}
