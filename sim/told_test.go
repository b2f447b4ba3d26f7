package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A recordingPolicy is a policy that keeps what the controller tells it, and lets so many go at
// once.
type recordingPolicy struct {
	most int
	told *[]told
}

type told struct {
	link   hypervisor.Bandwidth
	next   evacuation.EvacuatingVM
	others []evacuation.EvacuatingVM
}

func (recordingPolicy) Compare(hypervisor.Bandwidth, evacuation.EvacuatingVM, evacuation.EvacuatingVM) int {
	return 0
}

func (w recordingPolicy) Admit(link hypervisor.Bandwidth, next evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	*w.told = append(*w.told, told{link, next, others})
	return len(others) < w.most
}

const memory = 64 * hypervisor.GiB

// evacuate drains n1 and n2, of three VMs each, onto n3, whose link is faster.
func evacuate(t *testing.T, p evacuation.Policy, faults map[time.Duration]sim.Event) *sim.World {
	t.Helper()
	cluster := migration.DefaultCluster()
	cluster.ParallelMigrationsPerCluster, cluster.ParallelOutboundMigrationsPerNode = 100, 100
	w := sim.New(sim.Config{Controller: controller.Config{Cluster: &cluster,
		Evacuation: evacuation.Params{Policy: p}}})
	for i, gbit := range []hypervisor.Bandwidth{10, 10, 25} {
		h := hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("n%d", i+1)), CPUs: 64,
			Memory: hypervisor.TiB, Link: gbit * hypervisor.Gbit}
		if err := w.AddHost(store.Host{Host: h}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		v := store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("x/v%d", i)),
			Memory: memory}, Strategy: evacuation.LiveMigrate, Migratable: true,
			Host: hypervisor.HostName(fmt.Sprintf("n%d", 1+i/3))}
		if err := w.AddVM(v, fake.Workload{}); err != nil {
			t.Fatal(err)
		}
	}
	w.At(time.Second, sim.Drain{Host: "n1"})
	w.At(time.Second, sim.Drain{Host: "n2"})
	for at, e := range faults {
		w.At(at, e)
	}
	w.Run(24 * time.Hour)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("violated %s: %s", v.Invariant, v.Detail)
	}
	return w
}

// A host that no VM leaves is open whatever a policy says.
func TestAPolicyCanHoldNoVMBackForEver(t *testing.T) {
	var all []told
	w := evacuate(t, recordingPolicy{0, &all}, nil)
	if r := w.Result(); r.Migrations.Succeeded != 6 {
		t.Errorf("%+v, want all to have left", r.Migrations)
	}
	for _, o := range all {
		if len(o.others) != 1 {
			t.Errorf("%d are under way, want one after the other: %+v", len(o.others), o)
		}
	}
}

func TestAPolicyIsToldWhatIsUnderWay(t *testing.T) {
	var all []told
	evacuate(t, recordingPolicy{1, &all}, map[time.Duration]sim.Event{
		3 * time.Second: sim.ResetLink{A: "n1", B: "n3"}})
	sharing, failed := 0, 0
	for _, o := range all {
		if o.link != 10*hypervisor.Gbit || o.next.Sharing != 0 || o.next.Memory != memory {
			t.Errorf("told %+v of those that wait", o)
		}
		failed = max(failed, o.next.Failed)
		for _, l := range o.others {
			if l.Target != 25*hypervisor.Gbit || l.Sharing < 1 || l.Sharing > 2 {
				t.Errorf("told %+v of those under way", l)
			}
			sharing, failed = max(sharing, l.Sharing), max(failed, l.Failed)
		}
	}
	if sharing != 2 || failed == 0 {
		t.Errorf("at most %d were said to share the target's link, want 2; %d to have failed",
			sharing, failed)
	}
}
