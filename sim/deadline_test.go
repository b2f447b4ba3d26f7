package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// drainingUntil drains a host with twenty VMs, two at once, until a deadline, and returns when it was empty and what was said.
func drainingUntil(t *testing.T, within time.Duration, d evacuation.Deadline) (took time.Duration, said []string) {
	c := sim.Config{Trace: func(e sim.Entry) {
		if _, text, is := strings.Cut(e.String(), "drain of n1: "); is {
			said = append(said, text)
		}
	}}
	c.Watch = func(at time.Duration, before, after *store.Migration) {
		if after.State.Phase == migration.Succeeded && before.State.Phase != migration.Succeeded {
			took = at
		}
	}
	cluster := migration.DefaultCluster()
	cluster.BandwidthPerMigration = 100 << 20 // so that the limits are what keeps it
	c.Controller = controller.Config{Cluster: &cluster}
	w := grid(t, c, 4, 1, 20)
	d.By = sim.Epoch.Add(within)
	w.At(0, sim.Drain{Host: "n1", By: &d})
	w.Run(24 * time.Hour)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	return took, said
}

// A drain that would be late is in time when its limits may be raised, and says early that it is late when they may not.
func TestADrainMeetsItsDeadlineWithWhatIsAllowed(t *testing.T) {
	slow, said := drainingUntil(t, time.Hour, evacuation.Deadline{})
	if len(said) > 0 {
		t.Errorf("it is in time, and says %q", said)
	}
	within := slow * 8 / 10
	took, said := drainingUntil(t, within, evacuation.Deadline{})
	if took != slow || len(said) == 0 || !strings.Contains(strings.Join(said, "\n"), "cannot be met: ") {
		t.Errorf("%v as before %v, and says %q", took, slow, said)
	}
	took, said = drainingUntil(t, within, evacuation.Deadline{PerSource: 8, PerCluster: 8})
	if took > within || len(said) == 0 || !strings.HasPrefix(said[0], "late: ") {
		t.Errorf("%v within %v, and says %q", took, within, said)
	}
}

// By hand: at 100 MiB/s each of four VMs of 8 GiB takes 82 s, and one of 5 GiB that writes 70 MiB/s some 120 s. Two at
// once, the largest first, need 2·82 + 120 = 284 s. When the drain is found to be late before the first two have left, and the
// fifth is next, the others are the last: 3·82 = 246 s.
func TestALateDrainLetsTheLongestLeaveFirst(t *testing.T) {
	const within = 265 * time.Second
	drain := func(measured *store.DirtyRates) (took time.Duration, said []string) {
		c := sim.Config{Trace: func(e sim.Entry) {
			if _, text, is := strings.Cut(e.String(), "drain of n1: "); is {
				said = append(said, text)
			}
		}, Watch: func(at time.Duration, before, after *store.Migration) {
			if after.State.Phase == migration.Succeeded && before.State.Phase != migration.Succeeded {
				took = at
			}
		}}
		cluster := migration.DefaultCluster()
		cluster.BandwidthPerMigration = 100 << 20
		c.Controller = controller.Config{Cluster: &cluster}
		w := sim.New(c)
		for _, name := range []hypervisor.HostName{"n1", "n2"} {
			if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: name, Memory: 64 * hypervisor.GiB, CPUs: 64,
				Link: 10 * hypervisor.Gbit}}); err != nil {
				t.Fatal(err)
			}
		}
		add := func(v store.VM, load fake.Workload) {
			v.VM.CPUs, v.Host, v.Migratable, v.Strategy = 1, "n1", true, evacuation.LiveMigrate
			if err := w.AddVM(v, load); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []hypervisor.VMID{"a", "b", "c", "d"} {
			add(store.VM{VM: hypervisor.VM{ID: id, Memory: 8 * hypervisor.GiB}}, fake.Workload{})
		}
		add(store.VM{VM: hypervisor.VM{ID: "hot", Memory: 5 * hypervisor.GiB}, Dirtied: measured},
			fake.Workload{Rate: 70 << 20, Hot: 5 * hypervisor.GiB})
		w.At(0, sim.Drain{Host: "n1", By: &evacuation.Deadline{By: sim.Epoch.Add(within)}})
		w.Run(24 * time.Hour)
		w.CheckAtRest()
		for _, v := range w.Violations() {
			t.Errorf("%s: %s", v.Invariant, v.Detail)
		}
		return took, said
	}
	if took, said := drain(nil); took <= within || strings.Contains(strings.Join(said, "\n"), "longest") {
		t.Errorf("without a measurement it takes %v, and says %q", took, said)
	}
	var none *store.DirtyRates
	took, said := drain(none.With(70<<20, sim.Epoch))
	if took > within || len(said) == 0 || !strings.HasSuffix(said[0], ": those leave first that take longest") {
		t.Errorf("with one it takes %v, and says %q", took, said)
	}
}

// A guest that writes as fast as its link sends leaves by post-copy when its drain is late, by KubeVirt's methods as by
// godwit's.
func TestALateDrainSwitchesToPostCopy(t *testing.T) {
	for _, method := range []convergence.Method{convergence.Watermark, convergence.Legacy, convergence.Stall} {
		drain := func(allowed bool) *store.VM {
			cluster := migration.DefaultCluster()
			cluster.Convergence, cluster.BandwidthPerMigration = method, 100<<20
			cluster.CompletionTimeoutPerGiB = 30 * time.Second
			w := grid(t, sim.Config{Controller: controller.Config{Cluster: &cluster}}, 2, 1, 0)
			v := store.VM{VM: hypervisor.VM{ID: "hot", Memory: 4 * hypervisor.GiB, CPUs: 1}, Host: "n1", Migratable: true,
				Strategy: evacuation.LiveMigrate}
			if err := w.AddVM(v, fake.Workload{Rate: 200 << 20, Hot: 4 * hypervisor.GiB}); err != nil {
				t.Fatal(err)
			}
			w.At(0, sim.Drain{Host: "n1", By: &evacuation.Deadline{By: sim.Epoch.Add(2 * time.Minute), PostCopy: allowed}})
			w.Run(time.Hour)
			for _, v := range w.Violations() {
				t.Errorf("%v: %s: %s", method, v.Invariant, v.Detail)
			}
			return w.VM("hot")
		}
		if v := drain(false); v.Host != "n1" {
			t.Errorf("%v: it leaves without post-copy, so nothing is tested", method)
		}
		if v := drain(true); v.Host != "n2" {
			t.Errorf("%v: it stays on %s", method, v.Host)
		}
	}
}
