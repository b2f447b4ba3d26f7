package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim"
)

// grid builds hosts hosts with vms VMs each on the first sources of them.
func grid(t testing.TB, c sim.Config, hosts, sources, vms int) *sim.World {
	w := sim.New(c)
	for i := range hosts {
		h := record.Host{Host: hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("n%d", i+1)),
			Memory: 256 * hypervisor.GiB, CPUs: 64, Link: 10 * hypervisor.Gbit}}
		if err := w.AddHost(h); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sources {
		for k := range vms {
			v := record.VM{VM: hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("default/v%d-%d", i+1, k+1)),
				Memory: 4 * hypervisor.GiB, CPUs: 2}, Strategy: evacuation.LiveMigrate,
				Migratable: true, Host: hypervisor.HostName(fmt.Sprintf("n%d", i+1))}
			load := fake.Workload{Rate: 50e6, Hot: v.VM.Memory / 10 * 9}
			if err := w.AddVM(v, load); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

func TestDrainsOneHost(t *testing.T) {
	w := grid(t, sim.Config{Trace: func(e sim.Entry) { t.Log(e) }, Verbose: true}, 3, 1, 3)
	w.At(time.Second, sim.Drain{Host: "n1"})
	rest := w.Run(time.Hour)
	w.CheckAtRest()
	t.Logf("%v %+v", rest, w.Result())
	for _, v := range w.Violations() {
		t.Error(v)
	}
}
