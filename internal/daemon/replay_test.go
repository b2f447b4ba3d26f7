package daemon_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// fleet runs modelled hypervisors in real time, with an agent each, until the test ends.
func fleet(t *testing.T, records store.Store, hosts ...hypervisor.HostName) *fake.Network {
	t.Helper()
	fabric := fake.NewNetwork(time.Now(), fake.QEMU())
	notifiers := map[hypervisor.HostName]*daemon.Notifier{}
	for _, name := range hosts {
		real, err := fabric.AddHost(hypervisor.Host{Name: name, Memory: hypervisor.GiB, CPUs: 8,
			Link: hypervisor.Gbit})
		if err != nil {
			t.Fatal(err)
		}
		a := daemon.Agent{Host: name, Hypervisor: real, Notifier: daemon.NewNotifier(), Store: records,
			Identity: store.Identity{ID: string(name)}}
		notifiers[name] = a.Notifier
		start(t, &a.Dependencies, func(ctx context.Context) error { return a.Run(ctx) })
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case now := <-tick.C:
				fabric.AdvanceTo(now)
				for _, h := range fabric.Hints() {
					notifiers[h.Host].Notify(h.VM)
				}
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return fabric
}

// leader runs a controller with a log of its own; end ends it and returns the log.
func leader(t *testing.T, store store.Store, name, conf string) (end func() []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit")
	file, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ParseSettings("test", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	c := daemon.Controller{Name: name, Store: store, Config: s.Controller, Settings: s.Text}
	ready := make(chan string, 1)
	c.Audit, c.HeartbeatInterval, c.Ready = file, beat, func(s string) { ready <- s }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-ready
	var log []byte
	end = func() []byte {
		if log != nil {
			return log
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		log, err = os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return log
	}
	t.Cleanup(func() { end() })
	return end
}

// drain drains a host, and waits until no VM is there.
func drain(t *testing.T, records store.Store, name hypervisor.HostName, vms ...string) {
	t.Helper()
	for done := false; !done; {
		r, err := records.Get(t.Context(), store.Key{Kind: store.HostKind, Name: string(name)})
		if err != nil {
			t.Fatal(err)
		}
		next := *r.(*store.Host)
		next.Taints = []placement.Taint{{Key: "kubevirt.io/drain", Effect: placement.NoSchedule}}
		_, err = records.Put(t.Context(), &next)
		done = err == nil
	}
	until(t, string(name)+" empty", func() bool {
		for _, vm := range vms {
			r, _ := records.Get(t.Context(), store.Key{Kind: store.VMKind, Name: vm})
			if v, is := r.(*store.VM); !is || v.Host == name || v.Host == "" || v.ActiveMigration != "" {
				return false
			}
		}
		return true
	})
}

// replayed replays a log, with its own configuration or another.
func replayed(t *testing.T, log []byte, conf string) *audit.Result {
	t.Helper()
	r, err := audit.Replay(bytes.NewReader(log), audit.Options{
		Configure: func(text string) (controller.Config, error) {
			if conf != "" {
				text = conf
			}
			s, err := config.ParseSettings("log", []byte(text))
			return s.Controller, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWhatADaemonDecidedIsDecidedAgain: two controllers lead in turn, each drains a host; the
// log of each is replayed to the last byte, and with other limits the first decision that
// differs is the one that they are about.
func TestWhatADaemonDecidedIsDecidedAgain(t *testing.T) {
	records := open(t)
	const config = "config: {parallelOutboundMigrationsPerNode: 3}\n"
	first := leader(t, records, "a", config)
	fabric := fleet(t, records, "n1", "n2", "n3")
	vms := []string{"default/a", "default/b", "default/c"}
	for _, id := range vms {
		vm := hypervisor.VM{ID: hypervisor.VMID(id), Memory: 16 * hypervisor.MiB, CPUs: 1}
		if err := fabric.Host("n1").Boot(vm, fake.Workload{}); err != nil {
			t.Fatal(err)
		}
		if _, err := records.Put(t.Context(), &store.VM{VM: vm, Host: "n1", Migratable: true,
			Size: store.SizeOf(vm)}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "hosts", func() bool {
		for _, h := range []string{"n1", "n2", "n3"} {
			key := store.Key{Kind: store.HostKind, Name: h}
			if r, _ := records.Get(t.Context(), key); r == nil {
				return false
			}
		}
		return true
	})
	drain(t, records, "n1", vms...)
	log := first()
	second := leader(t, records, "b", config)
	drain(t, records, "n2", vms...)
	logs := [][]byte{log, second()}
	for i, log := range logs {
		r := replayed(t, log, "")
		if !r.Same() || r.Wakes+r.Words > 0 || r.Writes < 10 || r.Terms != 1 {
			t.Errorf("log %d: %+v\n%s", i+1, r, log)
		}
		t.Logf("log %d: %d bytes; %d looks, %d writings", i+1, len(log), r.Looks, r.Writes)
	}
	r := replayed(t, logs[0], "config: {parallelOutboundMigrationsPerNode: 2}\n")
	var b strings.Builder
	if err := r.WriteText(&b, true); err != nil {
		t.Fatal(err)
	}
	if d := r.Difference; d == nil || d.Recorded == nil ||
		!strings.Contains(b.String(), "2 migrations from here") {
		t.Errorf("with other limits:\n%s", &b)
	}
}
