package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

type (
	vmid     = hypervisor.VMID
	hostName = hypervisor.HostName
)

// planned is a plan that empties n1: wave 1 with two VMs to n2, wave 2 with one to n3.
func planned() store.Plan {
	move := func(vm vmid, to hostName, wave int) store.PlannedMove {
		return store.PlannedMove{VM: "default/" + vm, Source: "n1", Target: to, Wave: wave}
	}
	return store.Plan{Name: "weekend", Hosts: []hostName{"n1"}, Moves: []store.PlannedMove{
		move("v1-1", "n2", 0), move("v1-2", "n2", 0), move("v1-3", "n3", 1)}}
}

// A began is when the memory of a VM began to move, and onto which host.
type began struct {
	vm vmid
	to hostName
}

// applying is a world of three hosts, the first with three VMs, that notes what begins.
func applying(t *testing.T, c sim.Config) (*sim.World, *[]began) {
	order := &[]began{}
	c.Watch = func(_ time.Duration, before, after *store.Migration) {
		if after.State.Phase == migration.Running && before.State.Phase != migration.Running {
			*order = append(*order, began{after.Spec.VM, after.State.Target})
		}
	}
	return grid(t, c, 3, 1, 3), order
}

// settled checks that the world is at rest, that no invariant broke and that the plan has ended.
func settled(t *testing.T, w *sim.World) *store.Plan {
	t.Helper()
	w.Run(24 * time.Hour)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	p := w.Plan("weekend")
	if p == nil || p.Ended.IsZero() {
		t.Fatalf("the plan has not ended: %+v", p)
	}
	return p
}

func TestAPlanIsCarriedOutInItsWaves(t *testing.T) {
	w, order := applying(t, sim.Config{})
	w.At(time.Second, sim.Apply{Plan: planned()})
	for _, m := range settled(t, w).Moves {
		if m.State != store.MoveDone || m.Host != m.Target || w.VM(m.VM).Host != m.Target {
			t.Errorf("%+v; its VM is on %s", m, w.VM(m.VM).Host)
		}
	}
	want := []began{{"default/v1-1", "n2"}, {"default/v1-2", "n2"}, {"default/v1-3", "n3"}}
	if !slices.Equal(*order, want) {
		t.Errorf("began: %v, want %v", *order, want)
	}
	if !w.HostRecord("n1").Cordoned {
		t.Error("n1 takes VMs")
	}
}

// What has become stale is skipped with its reason, or goes to another host.
func TestWhatHasBecomeStaleIsSkippedOrPlannedAnew(t *testing.T) {
	w, _ := applying(t, sim.Config{})
	w.At(0, sim.Delete{VM: "default/v1-1"})
	w.At(0, sim.Close{Host: "n2"}) // so it refuses v1-2
	w.At(time.Second, sim.Stop{VM: "default/v1-3"})
	w.At(time.Minute, sim.Apply{Plan: planned()})
	moves := settled(t, w).Moves
	for i, want := range []string{"the VM does not exist", "conflict: cordon", "the VM is stopped"} {
		if len(moves[i].Because) < len(want) || moves[i].Because[:len(want)] != want {
			t.Errorf("move %d: %q, want %q", i, moves[i].Because, want)
		}
	}
	if m := moves[1]; !m.Late || m.State != store.MoveDone || m.Host != "n3" {
		t.Errorf("v1-2 did not go elsewhere: %+v", m)
	}
	if moves[0].State != store.MoveSkipped || moves[2].State != store.MoveSkipped {
		t.Errorf("not skipped: %+v", moves)
	}
}

// A VM that got a snapshot of a local disk since the plan was made is not asked to migrate.
func TestAMoveOfAVMWithASnapshotIsSkipped(t *testing.T) {
	w, _ := applying(t, sim.Config{})
	v := *w.VM("default/v1-1")
	v.VM.Hardware = &hypervisor.Hardware{Disks: []hypervisor.Disk{{Name: "root", Size: hypervisor.GiB}}}
	v.Snapshots = []store.Snapshot{{Disk: "root", Name: "before"}}
	if _, err := w.Store().Put(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	w.At(3*time.Second, sim.Apply{Plan: planned()})
	_, why := v.CanMigrate()
	if m := settled(t, w).Moves[0]; m.State != store.MoveSkipped || !strings.Contains(m.Because, why) || m.Asked > 0 {
		t.Errorf("%+v, want it skipped: %s", m, why)
	}
}

func TestAMoveInTheWayIsWaitedFor(t *testing.T) {
	w, _ := applying(t, sim.Config{})
	w.At(0, sim.Migrate{VM: "default/v1-1", Target: "n3"})
	w.At(3*time.Second, sim.Apply{Plan: planned()})
	m := settled(t, w).Moves[0]
	if m.State != store.MoveSkipped || m.Because != "the VM is on n3, not on n1" || m.Asked > 0 {
		t.Errorf("%+v", m)
	}
}

func TestAStrictPlanMovesNothingElsewhere(t *testing.T) {
	w, _ := applying(t, sim.Config{})
	p := planned()
	p.Strict = true
	w.At(0, sim.Close{Host: "n2"})
	w.At(time.Second, sim.Apply{Plan: p})
	settled(t, w)
	if on := w.VM("default/v1-1").Host; on != "n1" {
		t.Errorf("v1-1 is on %s", on)
	}
}

func TestAPausedPlanGoesOnWhenItIsResumed(t *testing.T) {
	w, order := applying(t, sim.Config{})
	w.At(0, sim.Apply{Plan: planned()})
	w.At(time.Second, sim.WishPlan{Name: "weekend", Wish: store.PausePlan})
	w.Run(time.Hour)
	if n := len(*order); n > 2 || !w.Plan("weekend").Ended.IsZero() {
		t.Errorf("%d moves began in a pause: %+v", n, w.Plan("weekend"))
	}
	w.At(w.Now(), sim.WishPlan{Name: "weekend", Wish: store.RunPlan})
	for _, m := range settled(t, w).Moves {
		if m.State != store.MoveDone || m.Failed > 0 {
			t.Errorf("%+v", m)
		}
	}
}

func TestAnAbortedPlanEnds(t *testing.T) {
	w, order := applying(t, sim.Config{})
	w.At(0, sim.Apply{Plan: planned()})
	w.At(2*time.Second, sim.WishPlan{Name: "weekend", Wish: store.AbortPlan})
	p := settled(t, w)
	for _, m := range p.Moves {
		left := slices.ContainsFunc(*order, func(b began) bool { return b.vm == m.VM })
		if left != (m.State == store.MoveDone) {
			t.Errorf("%+v", m)
		}
	}
	if last := p.Moves[2]; last.State != store.MoveSkipped || last.Because != "the plan was aborted" {
		t.Errorf("%+v", last)
	}
}

// Whatever breaks meanwhile, no invariant does, the plan ends, and every VM that it did not skip has
// left.
func TestAPlanSurvivesWhatBreaks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := grid(t, sim.Config{Chooser: sim.Seeded(rapid.Uint64().Draw(r, "seed"))}, 4, 2, 3)
		p := planned()
		after := rapid.IntRange(0, 6).Draw(r, "writings")
		p.Strict = rapid.Bool().Draw(r, "strict")
		w.At(time.Second, sim.Apply{Plan: p})
		for range rapid.IntRange(1, 6).Draw(r, "faults") {
			at := time.Duration(rapid.IntRange(0, 60_000).Draw(r, "at")) * time.Millisecond
			host := hostName(fmt.Sprintf("n%d", rapid.IntRange(1, 4).Draw(r, "host")))
			vm := vmid(fmt.Sprintf("default/v%d-%d", rapid.IntRange(1, 2).Draw(r, "of"), rapid.IntRange(1, 3).Draw(r, "vm")))
			w.At(at, []sim.Event{sim.CrashController{For: time.Second}, sim.CrashController{For: time.Minute, After: &after},
				sim.CrashAgent{Host: host, For: 10 * time.Second}, sim.Migrate{VM: vm, Target: host},
				sim.Cancel{VM: vm}, sim.Close{Host: host}, sim.Drain{Host: host}, sim.Stop{VM: vm}, sim.Delete{VM: vm},
				sim.WishPlan{Name: "weekend", Wish: store.PausePlan}}[rapid.IntRange(0, 9).Draw(r, "what")])
		}
		w.Run(time.Hour)
		w.At(w.Now(), sim.WishPlan{Name: "weekend", Wish: store.RunPlan})
		if open := func(h hostName) bool { return !w.HostRecord(h).Cordoned && !w.Draining(h) }; !slices.ContainsFunc(
			w.Hosts()[1:], open) { // a plan whose VMs find no host waits, a day for each migration
			w.At(w.Now(), sim.Undrain{Host: "n2"})
			w.At(w.Now(), sim.Open{Host: "n2"})
		}
		w.Run(24 * time.Hour)
		for _, v := range w.Violations() {
			r.Errorf("%s: %s", v.Invariant, v.Detail)
		}
		for _, m := range w.Plan("weekend").Moves {
			if v := w.VM(m.VM); m.State == store.MoveDone && v != nil && m.Host == "" {
				r.Errorf("done, and nowhere: %+v", m)
			}
		}
		if w.Plan("weekend").Ended.IsZero() {
			r.Errorf("it has not ended: %+v", w.Plan("weekend"))
		}
	})
}
