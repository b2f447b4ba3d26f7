package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// beat is how often daemons give a heartbeat here.
const beat = 100 * time.Millisecond

func open(t *testing.T) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(filepath.Join(t.TempDir(), "d", "c.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start runs a daemon until the test ends, and answers where it listens.
func start(t *testing.T, s *daemon.Dependencies, run func(context.Context) error) string {
	t.Helper()
	listening := make(chan string, 1)
	s.Listen, s.HeartbeatInterval = "0", beat
	s.Ready = func(address string) { listening <- address }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
	})
	select {
	case address := <-listening:
		return "http://" + address
	case err := <-ended:
		ended <- nil
		t.Fatalf("the daemon ends with %v", err)
		return ""
	}
}

// until waits for something to come about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	testutil.Eventually(t, what, testutil.Holds(is))
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// host is a hypervisor that runs what it is told to.
type host struct {
	hypervisor.Hypervisor // what is not needed here panics
	notifier              *daemon.Notifier

	mu      sync.Mutex
	size    hypervisor.Host
	running map[hypervisor.VMID]hypervisor.VM
	down    error
}

func newHost() *host {
	return &host{notifier: daemon.NewNotifier(), running: map[hypervisor.VMID]hypervisor.VM{},
		size: hypervisor.Host{Memory: hypervisor.GiB, CPUs: 4}}
}

func (h *host) Host(context.Context) (hypervisor.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.size, h.down
}

func (h *host) Domains(context.Context) ([]hypervisor.Domain, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []hypervisor.Domain
	for _, vm := range h.running {
		list = append(list, hypervisor.Domain{VM: vm, State: hypervisor.Running})
	}
	return list, nil
}

func (h *host) Domain(_ context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if vm, is := h.running[id]; is {
		return hypervisor.Domain{VM: vm, State: hypervisor.Running}, nil
	}
	return hypervisor.Domain{VM: hypervisor.VM{ID: id}}, nil
}

func (h *host) Do(_ context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, is := c.(hypervisor.Start); is {
		h.running[id] = s.VM
	}
	return nil
}

func (h *host) runs(id hypervisor.VMID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.running[id]
	return is
}

func (h *host) kill(id hypervisor.VMID) {
	h.mu.Lock()
	delete(h.running, id)
	h.mu.Unlock()
	h.notifier.Notify(id)
}

// TestAClusterOfOneHost: the host becomes known, a VM is placed and started there, and
// started again when it has died and the hypervisor notifies it; health, metrics, log and audit say so.
func TestAClusterOfOneHost(t *testing.T) {
	records, h := open(t), newHost()
	var log syncBuffer
	file, err := audit.Open(filepath.Join(t.TempDir(), "audit"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := daemon.Controller{Name: "a", Store: records, Alone: true}
	c.Log, c.Audit = slog.New(slog.NewTextHandler(&log, nil)), file
	boss := start(t, &c.Dependencies, func(ctx context.Context) error { return c.Run(ctx) })
	a := daemon.Agent{Host: "n1", Hypervisor: h, Notifier: h.notifier, Store: records,
		Identity: store.Identity{ID: "one"},
		Config:   agent.Config{Resync: time.Hour}} // what is not notified is not noticed
	acting := start(t, &a.Dependencies, func(ctx context.Context) error { return a.Run(ctx) })

	if _, err := records.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "default/web",
		Memory: hypervisor.MiB, CPUs: 1}, Migratable: true}); err != nil {
		t.Fatal(err)
	}
	until(t, "the VM's start", func() bool { return h.runs("default/web") })
	until(t, "that the agent has nothing more to do", func() bool {
		r, _ := records.Get(t.Context(), store.Key{Kind: store.VMKind, Name: "default/web"})
		v, is := r.(*store.VM)
		return is && v.Boots == 1 && v.Operation == store.Nothing
	})
	time.Sleep(2 * time.Second) // what it has begun to look at, by the clock, is over
	h.kill("default/web")
	until(t, "the VM's second start", func() bool { return h.runs("default/web") })

	var state daemon.State
	until(t, "health", func() bool {
		err := json.Unmarshal([]byte(get(t, acting+"/healthz")), &state)
		return err == nil && state.OK && len(state.Parts) == 3
	})
	for _, want := range []string{"godwit_reconcile_duration_seconds_count{participant=\"agent\"}",
		"godwit_reconcile_duration_seconds_count{participant=\"lease\"}", "process_open_fds"} {
		if text := get(t, acting+"/metrics"); !strings.Contains(text, want) {
			t.Errorf("the agent's metrics lack %s:\n%s", want, text)
		}
	}
	for _, want := range []string{"godwit_controller_leading_status 1",
		`godwit_host_info{node="n1",state="ready"} 1`, `godwit_number_of_vms{node="n1"} 1`} {
		until(t, want, func() bool { return strings.Contains(get(t, boss+"/metrics"), want) })
	}
	if text := log.String(); !strings.Contains(text, "msg=leads controller=a term=1") {
		t.Errorf("the log is\n%s", text)
	}
	h.mu.Lock()
	h.down = &hypervisor.Error{Op: "Host", Kind: hypervisor.Transient}
	h.mu.Unlock()
	if text := get(t, acting+"/readyz"); !strings.Contains(text, `"name":"hypervisor","ok":false`) {
		t.Errorf("without a hypervisor the agent is %s", text)
	}
}

// TestTwoOfOneName: the second one ends and says why; the first goes on.
func TestTwoOfOneName(t *testing.T) {
	records := open(t)
	first := daemon.Controller{Name: "a", Store: records}
	url := start(t, &first.Dependencies, func(ctx context.Context) error { return first.Run(ctx) })
	leads := func() bool {
		return strings.Contains(get(t, url+"/metrics"), "godwit_controller_leading_status 1")
	}
	until(t, "leading", leads)
	second := daemon.Controller{Name: "a", Store: records}
	second.HeartbeatInterval = time.Second // a first one that is held up for less is not taken for dead
	ctx, stop := context.WithTimeout(t.Context(), testutil.Limit(testutil.DefaultLimit))
	defer stop()
	err := second.Run(ctx)
	if two, is := errors.AsType[*store.IdentityError](err); !is || two.Owner != "controller/a" {
		t.Errorf("the second one ends with %v", err)
	}
	until(t, "that the first goes on", leads)
}

// TestTheNextTakesOver when the leader ends, at once.
func TestTheNextTakesOver(t *testing.T) {
	records := open(t)
	// It would wait for an hour without the resignation.
	b := daemon.Controller{Name: "b", Store: records, LeaseDuration: time.Hour}
	ctx, stop := context.WithCancel(t.Context())
	a := daemon.Controller{Name: "a", Store: records}
	ready := make(chan string, 1)
	a.HeartbeatInterval, a.Ready = beat, func(s string) { ready <- s }
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-ready
	holder := func() string {
		r, _ := records.Get(t.Context(), store.Key{Kind: store.LeaderKind, Name: "cluster"})
		if l, is := r.(*store.Leader); is {
			return l.Holder
		}
		return ""
	}
	until(t, "that a leads", func() bool { return holder() == "controller/a" })
	start(t, &b.Dependencies, func(ctx context.Context) error { return b.Run(ctx) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	until(t, "that b leads", func() bool { return holder() == "controller/b" })
}

// TestRegistrar writes what the hypervisor says, and nothing that is the operator's.
func TestRegistrar(t *testing.T) {
	records, h := store.NewMemory(), newHost()
	r := &daemon.Registrar{Host: "n1", Hypervisor: h, Store: records}
	now := time.Unix(0, 0)
	look := func() *store.Host {
		t.Helper()
		wake, err := r.Reconcile(t.Context(), now)
		if err != nil || !wake.After(now) {
			t.Fatalf("%v, %v", wake, err)
		}
		got, _ := records.Get(t.Context(), store.Key{Kind: store.HostKind, Name: "n1"})
		return got.(*store.Host)
	}
	first := look()
	if first.Host.Memory != hypervisor.GiB || first.Host.Name != "n1" {
		t.Errorf("%+v", first)
	}
	closed := *first
	closed.Cordoned = true
	if _, err := records.Put(t.Context(), &closed); err != nil {
		t.Fatal(err)
	}
	if second := look(); second.Version != 2 {
		t.Errorf("nothing has changed, and it is written: %+v", second)
	}
	h.size.CPUs = 8
	if third := look(); third.Host.CPUs != 8 || !third.Cordoned {
		t.Errorf("%+v", third)
	}
	h.down = &hypervisor.Error{Kind: hypervisor.Transient}
	if wake, err := r.Reconcile(t.Context(), now); err == nil || !wake.After(now) {
		t.Errorf("without a hypervisor: %v, %v", wake, err)
	}
}

// TestASocketHasOneListener: what cannot listen does not begin.
func TestASocketHasOneListener(t *testing.T) {
	store := open(t)
	first := daemon.Controller{Name: "a", Store: store}
	url := start(t, &first.Dependencies, func(ctx context.Context) error { return first.Run(ctx) })
	second := daemon.Controller{Name: "b", Store: store}
	second.Listen = strings.TrimPrefix(url, "http://")
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("it runs at an address in use: %v", err)
	}
}

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var _ controller.Reconciler = (*daemon.Registrar)(nil)

// TestASecondAgentStartsNothing: it is refused the host before it acts, and that is shown.
func TestASecondAgentStartsNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		second store.Identity
		want   func(error) bool
	}{
		{"another directory", store.Identity{ID: "two"}, func(err error) bool {
			_, is := errors.AsType[*store.ForeignError](err)
			return is
		}},
		{"a copied directory", store.Identity{ID: "one"}, func(err error) bool {
			_, is := errors.AsType[*store.IdentityError](err)
			return is
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			records, h, empty := open(t), newHost(), newHost()
			var log syncBuffer
			a := daemon.Agent{Host: "n1", Hypervisor: h, Notifier: h.notifier, Store: records,
				Identity: store.Identity{ID: "one"}}
			a.Log = slog.New(slog.NewTextHandler(&log, nil))
			start(t, &a.Dependencies, func(ctx context.Context) error { return a.Run(ctx) })
			c := daemon.Controller{Name: "a", Store: records, Alone: true}
			start(t, &c.Dependencies, func(ctx context.Context) error { return c.Run(ctx) })
			if _, err := records.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "default/web",
				Memory: hypervisor.MiB, CPUs: 1}, Migratable: true, Host: "n1"}); err != nil {
				t.Fatal(err)
			}
			until(t, "the VM's start", func() bool { return h.runs("default/web") })
			second := daemon.Agent{Host: "n1", Hypervisor: empty, Notifier: empty.notifier, Store: records,
				Identity: row.second}
			second.HeartbeatInterval, second.Boot = 2*time.Second, "another"
			ctx, stop := context.WithTimeout(t.Context(), testutil.Limit(testutil.DefaultLimit))
			defer stop()
			if err := second.Run(ctx); !row.want(err) {
				t.Errorf("the second agent ends with %v", err)
			}
			if empty.runs("default/web") {
				t.Error("the second agent has started the VM beside itself")
			}
			until(t, "that the first one tells", func() bool {
				return strings.Contains(log.String(), "another agent calls itself n1 and was refused")
			})
		})
	}
}
