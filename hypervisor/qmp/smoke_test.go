package qmp_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

func host(t *testing.T, name hypervisor.HostName, change func(*qmp.Config)) *qmp.Host {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gw")
	if err != nil {
		t.Fatal(err)
	}
	c := qmp.Config{Name: name, Dir: dir, Memory: 8 << 30, CPUs: 64}
	if change != nil {
		change(&c)
	}
	h, err := qmp.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		ds, _ := h.Domains(ctx)
		for _, d := range ds {
			m, err := h.Monitor(d.VM.ID)
			if err == nil {
				m.Execute(ctx, "quit", nil, nil)
			}
		}
		time.Sleep(100 * time.Millisecond)
		h.Close()
		os.RemoveAll(dir)
	})
	return h
}

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	a, b := host(t, "a", nil), host(t, "b", nil)
	hh, _ := a.Host(ctx)
	t.Logf("%+v %v", hh, hh.Abilities.Names())
	vm := hypervisor.VM{ID: "d/web", Memory: 64 << 20, CPUs: 1}
	begin := time.Now()
	if err := a.Do(ctx, vm.ID, hypervisor.Start{VM: vm}); err != nil {
		t.Fatal(err)
	}
	t.Log("start", time.Since(begin))
	d, err := a.Domain(ctx, vm.ID)
	t.Logf("%+v %v", d, err)
	for i := range 4 {
		job := hypervisor.JobID([]string{"j1", "j2", "j3", "j4"}[i])
		begin = time.Now()
		addr, err := b.Receive(ctx, hypervisor.Incoming{Job: job, VM: vm})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(addr, "receive", time.Since(begin))
		begin = time.Now()
		err = a.Do(ctx, vm.ID, hypervisor.Pause{})
		err = a.Do(ctx, vm.ID, hypervisor.Unpause{})
		if err := a.Migrate(ctx, hypervisor.Outgoing{Job: job, VM: vm.ID, Target: "b", Address: addr}); err != nil {
			t.Fatal(err)
		}
		t.Log("migrate", time.Since(begin))
		for range 2000 {
			p, err := a.Progress(ctx, job)
			if err != nil {
				t.Fatal(err)
			}
			if p.Status.Final() {
				break
			}
			time.Sleep(time.Millisecond)
		}
		t.Log("done", time.Since(begin))
		p, _ := a.Progress(ctx, job)
		t.Logf("%+v", p)
		p, _ = b.Progress(ctx, job)
		t.Logf("%+v", p)
		da, _ := a.Domain(ctx, vm.ID)
		db, _ := b.Domain(ctx, vm.ID)
		t.Logf("%+v\n%+v", da, db)
		if da.State != hypervisor.HandedOver || db.State != hypervisor.Running {
			t.Fatal("states")
		}
		if err := a.Do(ctx, vm.ID, hypervisor.Release{Job: job, Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: vm.ID, Host: map[int]hypervisor.HostName{0: "b", 1: "a"}[i%2], Job: job}}); err != nil {
			hn, _ := b.Host(ctx)
			t.Fatal(err, hn.Name)
		}
		a, b = b, a
	}
}
