package sim_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// grouped is a world of three hosts of 8 GiB. Two VMs of 4 GiB on n1 are to be on one host, and one of 2 GiB
// is on n3: planned moves the two to n2, which they fill.
func grouped(t testing.TB, c sim.Config) (w *sim.World, moves store.Plan) {
	w = sim.New(c)
	for _, n := range []hostName{"n1", "n2", "n3"} {
		if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: n, Memory: 8 * hypervisor.GiB, CPUs: 64,
			Link: 10 * hypervisor.Gbit}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		id     vmid
		host   hostName
		memory hypervisor.Bytes
		groups []placement.GroupRule
	}{
		{"default/v1-1", "n1", 4 * hypervisor.GiB, []placement.GroupRule{{Group: "g", Policy: placement.Affinity}}},
		{"default/v1-2", "n1", 4 * hypervisor.GiB, []placement.GroupRule{{Group: "g", Policy: placement.Affinity}}},
		{"default/v3-1", "n3", 2 * hypervisor.GiB, nil},
	} {
		r := store.VM{VM: hypervisor.VM{ID: v.id, Memory: v.memory, CPUs: 2}, Migratable: true,
			Strategy: evacuation.LiveMigrate, Host: v.host, Placement: &placement.Constraints{Groups: v.groups}}
		if err := w.AddVM(r, fake.Workload{}); err != nil {
			t.Fatal(err)
		}
	}
	moves = planned()
	moves.Moves = moves.Moves[:2]
	return w, moves
}

// A plan moves the VMs of an affinity group to the host that it chose for them, which they fill.
func TestAPlanMovesAGroup(t *testing.T) {
	w, p := grouped(t, sim.Config{})
	w.At(time.Second, sim.Apply{Plan: p})
	for _, m := range settled(t, w).Moves {
		if m.State != store.MoveDone || m.Late || w.VM(m.VM).Host != "n2" {
			t.Errorf("%+v; its VM is on %s", m, w.VM(m.VM).Host)
		}
	}
}

// A host that has room for one of a group only is refused for all of it: none leaves.
func TestAPlanDoesNotTearAGroupApart(t *testing.T) {
	w, p := grouped(t, sim.Config{})
	p.Strict = true
	w.At(0, sim.Migrate{VM: "default/v3-1", Target: "n2"})
	w.At(time.Minute, sim.Apply{Plan: p})
	for _, m := range settled(t, w).Moves {
		if m.State != store.MoveSkipped || m.Because == "" || w.VM(m.VM).Host != "n1" {
			t.Errorf("%+v; its VM is on %s", m, w.VM(m.VM).Host)
		}
	}
}

// Whatever happens while a plan moves a group, all of it is on one host in the end.
func TestAGroupIsWholeWhateverBecomesOfItsPlan(t *testing.T) {
	moved := 0
	rapid.Check(t, func(r *rapid.T) {
		w, p := grouped(t, sim.Config{Chooser: sim.Seeded(rapid.Uint64().Draw(r, "seed"))})
		p.Strict = rapid.Bool().Draw(r, "strict")
		after := rapid.IntRange(0, 9).Draw(r, "writings")
		w.At(time.Second, sim.Apply{Plan: p})
		for range rapid.IntRange(1, 4).Draw(r, "events") {
			at := time.Duration(rapid.IntRange(0, 20_000).Draw(r, "at")) * time.Millisecond
			host := hostName(fmt.Sprintf("n%d", rapid.IntRange(1, 3).Draw(r, "host")))
			w.At(at, rapid.SampledFrom([]sim.Event{sim.CrashController{For: time.Minute, After: &after},
				sim.CrashAgent{Host: host, For: 10 * time.Second}, sim.Migrate{VM: "default/v3-1", Target: "n2"},
				sim.WishPlan{Name: "weekend", Wish: store.PausePlan}, sim.WishPlan{Name: "weekend", Wish: store.AbortPlan},
			}).Draw(r, "what"))
		}
		w.Run(time.Hour)
		if w.Plan("weekend").Wish == store.PausePlan {
			w.At(w.Now(), sim.WishPlan{Name: "weekend", Wish: store.RunPlan})
		}
		w.Run(48 * time.Hour)
		for _, v := range w.Violations() {
			r.Errorf("%s: %s", v.Invariant, v.Detail)
		}
		one, other := w.VM("default/v1-1").Host, w.VM("default/v1-2").Host
		if one != other {
			r.Errorf("one is on %s, the other on %s: %+v", one, other, w.Plan("weekend"))
		}
		if one == "n2" {
			moved++
		}
		if w.Plan("weekend").Ended.IsZero() && w.VM("default/v3-1").Host == "n3" {
			r.Errorf("it has not ended: %+v", w.Plan("weekend"))
		}
	})
	if moved == 0 {
		t.Error("none has moved")
	}
}
