package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// open opens a store in a cluster. t.Cleanup closes it.
func open(t testing.TB, c *etcdtest.Cluster, prefix string) *etcdstore.Store {
	t.Helper()
	return openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Prefix: prefix})
}

func openWith(t testing.TB, config etcdstore.Config) *etcdstore.Store {
	t.Helper()
	config.DialTimeout = time.Minute // the machine may be busy
	s, err := etcdstore.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func vmOn(name string, h hypervisor.HostName) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

// put stores a record that must be stored.
func put(t testing.TB, s store.Store, r store.Record, while ...store.Record) store.Record {
	t.Helper()
	stored, err := s.Put(t.Context(), r, while...)
	if err != nil {
		t.Fatalf("Put %v: %v", r.Key(), err)
	}
	return stored
}

// changes asks for changes that must be answered, again where the cluster takes longer than the store waits.
func changes(t testing.TB, s store.Store, of store.Feed, since store.Revision) (c store.Changes) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := testutil.Poll(ctx, testutil.DefaultLimit, func() (err error) {
		c, err = s.Changes(ctx, of, since)
		if err != nil && !errors.Is(err, store.Unavailable) && !errors.Is(err, store.Unanswered) {
			return testutil.Stop(err)
		}
		return err
	})
	if err != nil {
		t.Fatalf("Changes of %+v since %d: %v", of, since, err)
	}
	return c
}

// TestConformance runs every case in a part of its own of one member, which is paused and
// killed under some of them.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	parts := 0
	var mu sync.Mutex
	conformance.Store(t, func(t *testing.T) conformance.Subject {
		testutil.Sample(t, 3)
		mu.Lock()
		parts++
		prefix := fmt.Sprintf("/part %d/", parts)
		mu.Unlock()
		s := open(t, c, prefix)
		last := s
		return conformance.Subject{Store: s,
			Again: func(t *testing.T) store.Store {
				last = open(t, c, prefix)
				return last
			},
			Compact: func() error {
				s.Forget()
				return c.Compact()
			},
			Cut:  func() { c.Pause(0) },
			Heal: func() { c.Continue(0) },
			Crash: func() { // of etcd, and then of the client: it would go on with the next
				c.Kill(0)
				_ = last.Close() // it is told that no server is there
				c.Restart(0)
				c.Ready()
			},
		}
	})
}

// TestEtcdTakesWhatFits: a record of the largest size that godwit stores is no larger than etcd's
// default limit for a request, with everything else that is in it.
func TestEtcdTakesWhatFits(t *testing.T) {
	testutil.Sample(t, 3)
	s := open(t, etcdtest.Start(t, 1), "/large")
	chance := rand.New(rand.NewPCG(1, 1))
	holdings := make([]store.Holding, 16_000)
	for i := range holdings {
		id := hypervisor.VMID("vm-")
		for range 16 { // no packing makes much less of it
			id += hypervisor.VMID(fmt.Sprintf("%016x", chance.Uint64()))
		}
		holdings[i] = store.Holding{VM: id, Record: vmOn(string(id), "n1")}
	}
	of := func(n int) *store.Host {
		return &store.Host{Host: hypervisor.Host{Name: "n1"},
			Account: &store.HostInventory{VMs: slices.Clip(holdings[:n])}}
	}
	const step = 500
	n := sort.Search(len(holdings)/step, func(i int) bool { return store.Fits(of((i+1)*step)) != nil })
	h := of(n * step)
	if got := len(h.Account.VMs); got < 5000 || got == len(holdings) {
		t.Fatalf("an account of %d VMs fits, and no larger one", got)
	}
	stored := put(t, s, h).(*store.Host)
	got, err := s.Get(t.Context(), h.Key())
	if err != nil || len(got.(*store.Host).Account.VMs) != len(h.Account.VMs) {
		t.Fatalf("%v, %v", got, err)
	}
	t.Logf("%d VMs fit", len(h.Account.VMs))
	twice := *stored
	twice.Account = &store.HostInventory{}
	for range 3 {
		for _, v := range h.Account.VMs {
			v.VM = hypervisor.VMID(fmt.Sprintf("vm-%016x%016x", chance.Uint64(), chance.Uint64()))
			twice.Account.VMs = append(twice.Account.VMs, v)
		}
	}
	if _, err := s.Put(t.Context(), &twice); !errors.Is(err, store.Full) {
		t.Errorf("three times as much: %v", err)
	}
}
