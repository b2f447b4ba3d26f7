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

// A backup holds the VM that is the first to go, and there is one place. The other VM leaves at once, and
// the first one as soon as the backup has ended.
func TestAHeldVMKeepsNoPlaceFromOthers(t *testing.T) {
	p := playText(t, 1, `
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: held, host: n1, memory: 8GiB, class: idle}
- {name: free, host: n1, memory: 1GiB, class: idle}
limits: {perCluster: 1, perSource: 1}
mode: FreeSpots
events:
- 0s hold held backup
- 1s drain n1
- 10m unhold held backup
`)
	for vm, earliest := range map[hypervisor.VMID]time.Duration{"default/held": 10 * time.Minute, "default/free": 0} {
		m := p.Migrations(vm)
		if len(m) != 1 || p.VM(vm).Host != "n2" {
			t.Fatalf("%s has %d migrations and is on %s\n%s", vm, len(m), p.VM(vm).Host, p.trace.String())
		}
		if at := m[0].Spec.Created.Sub(sim.Epoch); at < earliest || at > earliest+10*time.Second {
			t.Errorf("the migration of %s was created at %v, want %v", vm, at, earliest)
		}
	}
}
