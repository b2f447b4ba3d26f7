package sim_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A fleet is hosts and guests; the first drained hosts are emptied.
type fleet struct {
	hosts   []hypervisor.Host
	vms     []store.VM
	loads   map[hypervisor.VMID]fake.Workload
	drained int
}

// drawFleet draws a fleet whose guests fit onto any one host that stays.
func drawFleet(t *rapid.T) fleet {
	f := fleet{loads: map[hypervisor.VMID]fake.Workload{},
		drained: rapid.IntRange(1, 3).Draw(t, "drained")}
	for i := range f.drained + rapid.IntRange(1, 3).Draw(t, "others") {
		link := rapid.SampledFrom([]hypervisor.Bandwidth{1, 10, 25}).Draw(t, "link")
		f.hosts = append(f.hosts, hypervisor.Host{Memory: hypervisor.TiB, CPUs: 64,
			Name: hypervisor.HostName(fmt.Sprintf("n%d", i)), Link: link * hypervisor.Gbit})
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "VMs") {
		id := hypervisor.VMID(fmt.Sprintf("x/v%d", i))
		memory := hypervisor.Bytes(rapid.IntRange(1, 16).Draw(t, "GiB")) * hypervisor.GiB
		on := rapid.IntRange(0, f.drained-1).Draw(t, "on")
		f.vms = append(f.vms, store.VM{VM: hypervisor.VM{ID: id, Memory: memory, CPUs: 1},
			Strategy: evacuation.LiveMigrate, Migratable: true, Host: f.hosts[on].Name})
		rate := rapid.SampledFrom([]hypervisor.Bandwidth{0, 2e7, 3e8, 4e9}).Draw(t, "rate")
		f.loads[id] = fake.Workload{Hot: memory / 2, Rate: rate}
	}
	return f
}

// drawLimits draws what an operator allows: often nothing special, seldom none at all.
func drawLimits(t *rapid.T) *migration.Cluster {
	c := migration.DefaultCluster()
	limit := func(what string) int {
		return rapid.SampledFrom([]int{1, 2, 3, 1000}).Draw(t, what)
	}
	c.ParallelMigrationsPerCluster = limit("per cluster")
	c.ParallelOutboundMigrationsPerNode = limit("per source")
	c.ParallelInboundMigrationsPerNode = limit("per target")
	c.AllowPostCopy, c.AllowWorkloadDisruption = true, true // so that every transfer ends
	return &c
}

// drain empties the fleet's hosts, and returns the world at rest.
func (f fleet) drain(t *rapid.T, c *migration.Cluster, faults []sim.Event) *sim.World {
	w := sim.New(sim.Config{Controller: controller.Config{Cluster: c, Adaptive: true}})
	for _, h := range f.hosts {
		if err := w.AddHost(store.Host{Host: h}); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range f.vms {
		v.Dirtied = sim.DirtyRates(v.VM, f.loads[v.VM.ID])
		if err := w.AddVM(v, f.loads[v.VM.ID]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range f.drained {
		w.At(time.Second, sim.Drain{Host: f.hosts[i].Name})
	}
	for i, e := range faults {
		w.At(time.Duration(2+3*i)*time.Second, e)
	}
	if end := w.Run(24 * time.Hour); end != sim.AtRest {
		t.Fatalf("it ended because %v", end)
	}
	w.CheckAtRest()
	return w
}

// The simulator's invariants hold the limits against every migration.
func TestAllVMsLeaveAndNoLimitIsExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		var faults []sim.Event
		for range rapid.IntRange(0, 2).Draw(t, "faults") {
			a := rapid.IntRange(0, len(f.hosts)-1).Draw(t, "host")
			b := (a + 1) % len(f.hosts)
			faults = append(faults, rapid.SampledFrom([]sim.Event{
				sim.CrashController{For: time.Second},
				sim.CrashAgent{Host: f.hosts[a].Name, For: time.Second},
				sim.CutLink{A: f.hosts[a].Name, B: f.hosts[b].Name, For: 2 * time.Second},
			}).Draw(t, "fault"))
		}
		w := f.drain(t, drawLimits(t), faults)
		for _, v := range w.Violations() {
			t.Errorf("violated %s: %s", v.Invariant, v.Detail)
		}
		for _, e := range w.Evacuations() {
			if len(e.Left) > 0 || e.EmptySeconds == nil {
				t.Errorf("%s is not empty: %+v", e.Host, e.Left)
			}
		}
	})
}

func TestNothingMovesWhereNothingMay(t *testing.T) {
	c := migration.DefaultCluster()
	c.ParallelMigrationsPerCluster = 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		r := f.drain(t, &c, nil).Result()
		if r.Migrations.Succeeded != 0 || len(r.Violations) > 0 {
			t.Fatalf("%+v under a limit of none", r)
		}
	})
}
