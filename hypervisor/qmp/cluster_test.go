//go:build linux

package qmp_test

import (
	"fmt"
	"testing"
	"time"

	participant "github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// The participants that are simulated drain a host of real VMs. They and the hosts'
// processes are replaced on the way, as if they had died.
func TestTheControllerAndItsAgentsDrainAHost(t *testing.T) {
	l, ctx := newLab(t, accelerator(t), nil), t.Context()
	records := store.NewMemory()
	put := func(r store.Record) {
		t.Helper()
		if _, err := records.Put(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	var vms []vmid
	for i := range 3 {
		vm := l.vm(vmid(fmt.Sprintf("default/web-%d", i)), guest.Params{Fill: 32 << 20,
			WorkingSet: 1 << 20, Rate: 10 << 20, Random: true})
		if err := l.Host("n1").Do(ctx, vm.ID, hypervisor.Start{VM: vm}); err != nil {
			t.Fatal(err)
		}
		vms = append(vms, vm.ID)
		put(&store.VM{VM: vm, Host: "n1", Strategy: evacuation.LiveMigrate, Migratable: true})
	}
	for _, n := range []name{"n1", "n2"} {
		h, err := l.Host(n).Host(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r := &store.Host{Host: h}
		if n == "n1" {
			r.Taints = []placement.Taint{{Key: "kubevirt.io/drain", Effect: placement.NoSchedule}}
		}
		put(r)
	}
	boss := controller.New(controller.Config{}, records, store.DiscardEvents{})
	agents := map[name]*participant.Agent{}
	fresh := func(n name) {
		agents[n] = participant.New(n, participant.Config{Poll: 10 * time.Millisecond,
			Resync: 50 * time.Millisecond, Retry: 10 * time.Millisecond}, l.Host(n), records,
			store.DiscardEvents{})
	}
	fresh("n1")
	fresh("n2")
	moved := func(id vmid) bool {
		r, err := records.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(id) + "#1"})
		m, ok := r.(*store.Migration)
		if err != nil || !ok {
			return false
		}
		if m.State.Phase == migration.Failed {
			t.Fatalf("%s: %+v", id, m)
		}
		return m.State.Phase == migration.Succeeded && m.Source.Released
	}
	l.drain(boss, agents, fresh, func() bool {
		return moved(vms[0]) && moved(vms[1]) && moved(vms[2])
	})
	for _, id := range vms {
		if err := l.verify("n2", id); err != nil {
			t.Error(id, err)
		}
	}
	if left, err := l.hosts["n1"].Domains(ctx); err != nil || len(left) != 0 {
		t.Errorf("left on n1: %+v, %v", left, err)
	}
}

// drain lets every participant look, in turn, until it is done. Now and then one of the
// hosts' processes dies.
func (l *lab) drain(boss *controller.Controller, agents map[name]*participant.Agent,
	fresh func(name), done func() bool) {
	t, ctx := l.T, l.T.Context()
	t.Helper()
	deadline := time.Now().Add(testutil.Limit(testutil.DefaultLimit))
	for round := 1; !done(); round++ {
		if time.Now().After(deadline) {
			t.Fatalf("the host is not empty after %d rounds", round)
		}
		if _, err := boss.Reconcile(ctx, time.Now()); err != nil {
			t.Fatal(err)
		}
		for n, a := range agents {
			if _, err := a.Reconcile(ctx, time.Now()); err != nil {
				t.Logf("agent/%s: %v", n, err) // it tries again
			}
		}
		if n := []name{"n1", "n2"}[round%2]; round%20 == 0 { // its process dies now
			if _, err := l.open(n); err != nil {
				t.Fatal(err)
			}
			fresh(n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
