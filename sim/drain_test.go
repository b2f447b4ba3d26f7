package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// grid builds a world of equal hosts, the first of which are full of equal VMs.
func grid(t testing.TB, c sim.Config, hosts, sources, vms int) *sim.World {
	w := sim.New(c)
	fill(t, w, [3]int{hosts, sources, vms}, func(memory hypervisor.Bytes) fake.Workload {
		return fake.Workload{Rate: 50e6, Hot: memory / 10 * 9}
	})
	return w
}

// fill adds hosts, and to so many of them so many VMs each.
func fill(t testing.TB, w *sim.World, size [3]int, load func(hypervisor.Bytes) fake.Workload) {
	hosts, sources, vms := size[0], size[1], size[2]
	for i := range hosts {
		h := store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("n%d", i+1)),
			Memory: 256 * hypervisor.GiB, CPUs: 64, Link: 10 * hypervisor.Gbit}}
		if err := w.AddHost(h); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sources * vms {
		host, n := i/vms+1, i%vms+1
		v := store.VM{VM: hypervisor.VM{
			ID:     hypervisor.VMID(fmt.Sprintf("default/v%d-%d", host, n)),
			Memory: 4 * hypervisor.GiB, CPUs: 2}, Strategy: evacuation.LiveMigrate,
			Migratable: true, Host: hypervisor.HostName(fmt.Sprintf("n%d", host))}
		if err := w.AddVM(v, load(v.VM.Memory)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDrainsOneHost(t *testing.T) {
	w := grid(t, sim.Config{Trace: func(e sim.Entry) { t.Log(e) }}, 3, 1, 3)
	w.At(time.Second, sim.Drain{Host: "n1"})
	if end := w.Run(time.Hour); end != sim.AtRest {
		t.Error(end)
	}
	w.CheckAtRest()
	r := w.Result()
	if want := (sim.Totals{Total: 3, Succeeded: 3}); r.Migrations != want {
		t.Errorf("migrations %+v, want %+v", r.Migrations, want)
	}
	if e := r.Evacuations[0]; e.EmptySeconds == nil || len(e.Left) > 0 {
		t.Errorf("the host is not empty: %+v", e)
	}
	for _, v := range w.Violations() {
		t.Error(v)
	}
}
