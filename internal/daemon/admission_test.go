package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// TestAnAgentStartsNothingBeforeAControllerAdmitsIt, and it says that it lives meanwhile.
func TestAnAgentStartsNothingBeforeAControllerAdmitsIt(t *testing.T) {
	records, h := open(t), newHost()
	if _, err := records.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "default/web",
		Memory: hypervisor.MiB, CPUs: 1}, Migratable: true, Host: "n1"}); err != nil {
		t.Fatal(err)
	}
	a := daemon.Agent{Host: "n1", Hypervisor: h, Notifier: h.notifier, Store: records,
		Identity: store.Identity{ID: "one"}}
	start(t, &a.Dependencies, func(ctx context.Context) error { return a.Run(ctx) })
	until(t, "heartbeats", func() bool {
		r, _ := records.Get(t.Context(), (&store.Lease{Owner: store.HostLease("n1")}).Key())
		l, is := r.(*store.Lease)
		return is && l.Beats > 5
	})
	if h.runs("default/web") {
		t.Error("it has started a VM on the word of a store that was not vouched for")
	}
	c := daemon.Controller{Name: "a", Store: records, Alone: true}
	start(t, &c.Dependencies, func(ctx context.Context) error { return c.Run(ctx) })
	until(t, "the VM's start", func() bool { return h.runs("default/web") })
}

// TestAnAgentThatSleptIsAdmittedAnew: it cannot know what was stored meanwhile, and whether that is
// gone again. A clock that is set back meanwhile does not hide it.
func TestAnAgentThatSleptIsAdmittedAnew(t *testing.T) {
	for name, slept := range map[string]struct{ clock, uptime time.Duration }{
		"a machine that was suspended":                          {time.Minute, 0},
		"a process that was stopped":                            {25 * time.Second, 25 * time.Second},
		"a process that was stopped, with a clock that was set": {-time.Hour, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sleeps(t, slept.clock, slept.uptime)
		})
	}
}

func sleeps(t *testing.T, clock, uptime time.Duration) {
	records, h := open(t), newHost()
	c := daemon.Controller{Name: "a", Store: records, Alone: true}
	start(t, &c.Dependencies, func(ctx context.Context) error { return c.Run(ctx) })
	var slept atomic.Bool
	after := func(d time.Duration) time.Duration {
		if slept.Load() {
			return d
		}
		return 0
	}
	a := daemon.Agent{Host: "n1", Hypervisor: h, Notifier: h.notifier, Store: records, Lock: "lock",
		Identity: store.Identity{ID: "one"}}
	a.Boot = "boot"
	began := time.Now()
	a.Now = func() time.Time { return time.Now().Add(after(clock)) }
	a.Uptime = func() time.Duration { return time.Since(began) + after(uptime) }
	start(t, &a.Dependencies, func(ctx context.Context) error { return a.Run(ctx) })
	stored := func() *store.Host {
		got, err := store.HostNamed(t.Context(), records, "n1")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	until(t, "that it is admitted", func() bool { return stored().Session != "" && !stored().Unadmitted() })
	first := stored().Session
	slept.Store(true)
	until(t, "that it is admitted anew", func() bool {
		return stored().Session != first && !stored().Unadmitted()
	})
	if _, err := records.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "default/web",
		Memory: hypervisor.MiB, CPUs: 1}, Migratable: true, Host: "n1"}); err != nil {
		t.Fatal(err)
	}
	until(t, "the VM's start", func() bool { return h.runs("default/web") })
}

// TestAHostWithTooManyVMsForOneRecordSaysSo, and what to do, where it tells what it has.
func TestAHostWithTooManyVMsForOneRecordSaysSo(t *testing.T) {
	testutil.Unraced(t)
	testutil.Sample(t, 5)
	records, h := open(t), newHost()
	gate, err := daemon.Remember(t.Context(), records, "", "agent/n1")
	if err != nil {
		t.Fatal(err)
	}
	past, _, err := records.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	past.Doubt = &store.Doubt{By: "agent/n2", Why: "it is older"}
	if _, err := records.Amend(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(1, 1))
	for range 60_000 {
		id := hypervisor.VMID(fmt.Sprintf("vm-%016x%016x", chance.Uint64(), chance.Uint64()))
		h.running[id] = hypervisor.VM{ID: id}
	}
	var log syncBuffer
	a := daemon.Agent{Host: "n1", Hypervisor: h, Notifier: h.notifier, Store: gate,
		Identity: store.Identity{ID: "one"}}
	a.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	a.HeartbeatInterval = time.Minute // it looks once
	go func() { ended <- a.Run(ctx) }()
	until(t, "why what it has is not stored", func() bool {
		return strings.Contains(log.String(), "what n1 knows of 60000 VMs cannot be stored")
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, err := store.HostNamed(t.Context(), records, "n1"); err != nil || got.Account != nil {
		t.Errorf("%v, %v", got, err)
	}
}
