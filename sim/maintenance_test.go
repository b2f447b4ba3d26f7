package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// rolling is a run over three hosts in two batches.
func rolling() store.Maintenance {
	return store.Maintenance{Name: "patch", Batches: []store.MaintenanceBatch{{Hosts: []hostName{"n1"}},
		{Hosts: []hostName{"n2", "n3"}}}, DrainWithin: time.Hour, HookWithin: time.Hour, BackWithin: time.Hour}
}

// A hookCall is a hook that began, and what executed on its host then.
type hookCall struct {
	host hostName
	vms  []vmid
}

// maintained is a world of five hosts, the first three with two VMs each, and the hooks that began there.
func maintained(t testing.TB, c sim.Config, m store.Maintenance) (*sim.World, *[]hookCall) {
	calls := &[]hookCall{}
	c.Claims, c.Marks = true, true
	w := grid(t, c, 5, 3, 2)
	w.At(time.Second, sim.Maintain{Run: m})
	w.At(2*time.Second, sim.RunHooks{Run: m.Name, Begins: func(host hostName, vms []vmid) {
		*calls = append(*calls, hookCall{host, vms})
	}})
	return w, calls
}

// maintenanceEnds runs a world until its run has ended, and checks what must hold whatever breaks.
func maintenanceEnds(t rapid.TB, w *sim.World, calls []hookCall) *store.Maintenance {
	w.Run(w.Now() + 24*time.Hour)
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	seen := map[hostName]int{}
	for _, c := range calls {
		if len(c.vms) > 0 {
			t.Errorf("the hook of %s began with %v on it", c.host, c.vms)
		}
		if seen[c.host]++; seen[c.host] > 1 {
			t.Errorf("the hook of %s ran %d times", c.host, seen[c.host])
		}
	}
	m := w.Maintenance("patch")
	if m.Ended.IsZero() {
		t.Fatalf("it has not ended: %+v", m)
	}
	for _, name := range []hostName{"n1", "n2", "n3"} {
		h, host := m.Host(name), w.HostRecord(name)
		left := h != nil && h.Phase == store.ServiceLeft
		if left != host.Cordoned || len(host.Taints) > 0 {
			t.Errorf("%s: %+v, and its record: cordoned %v for %q, taints %v", name, h, host.Cordoned, host.CordonedFor, host.Taints)
		}
	}
	return m
}

func TestMaintenanceServicesBatchAfterBatch(t *testing.T) {
	w, calls := maintained(t, sim.Config{}, rolling())
	m := maintenanceEnds(t, w, *calls)
	w.CheckAtRest()
	if len(*calls) != 3 || (*calls)[0].host != "n1" || m.Batch != 2 || len(w.Violations()) > 0 {
		t.Errorf("%v, %+v, %v", *calls, m, w.Violations())
	}
	for _, h := range m.Hosts {
		if h.Phase != store.ServiceDone || h.Hooks != 1 {
			t.Errorf("%+v", h)
		}
	}
}

// The moves of the plan are carried out, and a host that was cordoned before the run stays so.
func TestMaintenanceCarriesOutMovesAndLeavesOperatorsCordons(t *testing.T) {
	m := rolling()
	for n := 1; n <= 2; n++ {
		m.Batches[0].Moves = append(m.Batches[0].Moves, store.PlannedMove{VM: vmid(fmt.Sprintf("default/v1-%d", n)),
			Source: "n1", Target: "n5"})
	}
	m.Return = true
	w, _ := maintained(t, sim.Config{}, m)
	w.At(0, sim.Close{Host: "n3"})
	w.Run(24 * time.Hour)
	p := w.Plan("patch.1")
	if p == nil || p.Moves[0].Host != "n5" || p.Moves[1].Host != "n5" {
		t.Errorf("%+v", p)
	}
	if r := w.Maintenance("patch"); r.Ended.IsZero() || !w.HostRecord("n3").Cordoned || w.HostRecord("n1").Cordoned {
		t.Errorf("%+v; n3 %+v", r, w.HostRecord("n3"))
	}
	for _, vm := range []vmid{"default/v1-1", "default/v1-2", "default/v2-1", "default/v2-2"} {
		if home := hostName("n" + string(vm[9])); w.VM(vm).Host != home {
			t.Errorf("%s is on %s", vm, w.VM(vm).Host)
		}
	}
}

// A host that an operator uncordons while its hook runs, or while it is checked, takes VMs that die with its reboot: the
// run stops.
func TestAHostThatIsUncordonedUnderItsHookStopsTheRun(t *testing.T) {
	for _, state := range []store.HookState{store.HookBegan, store.HookDone} {
		w := grid(t, sim.Config{Claims: true, Marks: true}, 5, 3, 2)
		m := rolling()
		m.Software = "QEMU 99" // the check does not pass
		w.At(time.Second, sim.Maintain{Run: m})
		w.At(10*time.Minute, sim.Answer{Run: "patch", Answer: store.ServiceAnswer{Host: "n1", Hook: 1, State: state,
			By: "ann", Began: sim.Epoch.Add(10 * time.Minute)}})
		w.Run(11 * time.Minute)
		if m := w.Maintenance("patch"); m.Stopped != "" {
			t.Fatalf("%v: it has stopped before: %s", state, m.Stopped)
		}
		w.At(12*time.Minute, sim.Open{Host: "n1"})
		w.Run(13 * time.Minute)
		if m := w.Maintenance("patch"); m.Stopped != "n1 was uncordoned by an operator" {
			t.Errorf("%v: %q; %+v", state, m.Stopped, m.Host("n1"))
		}
	}
}

// The deadline that an operator gives the drain of a run ends with that drain, and so does what it allowed: later
// migrations from the host go neither by post-copy nor slowed down.
func TestTheDeadlineOfADrainEndsWithIt(t *testing.T) {
	w, _ := maintained(t, sim.Config{}, rolling())
	for len(w.HostRecord("n1").Taints) == 0 {
		w.Run(w.Now() + time.Second)
	}
	h := *w.HostRecord("n1")
	h.DrainBy = &evacuation.Deadline{By: sim.Epoch.Add(w.Now() + time.Second)}
	h.DrainPace = &evacuation.Pace{}
	if _, err := w.Store().Put(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
	w.Run(24 * time.Hour)
	if h := w.HostRecord("n1"); len(h.Taints) > 0 || h.DrainBy != nil || h.DrainPace != nil {
		t.Errorf("%+v", h)
	}
}

// Nothing is drained and no hook begins outside the windows; a batch begins only in one that is long enough.
func TestMaintenanceKeepsToItsWindows(t *testing.T) {
	m := rolling()
	at := func(d time.Duration) time.Time { return sim.Epoch.Add(d) }
	m.Windows = []store.Window{{Begin: at(time.Hour), End: at(65 * time.Minute)}, {Begin: at(3 * time.Hour), End: at(4 * time.Hour)}}
	m.Batches[1].Needs = 30 * time.Minute
	began := map[vmid]time.Duration{}
	w, calls := maintained(t, sim.Config{Watch: func(at time.Duration, before, after *store.Migration) {
		if before.Version == 0 {
			began[after.Spec.VM] = at
		}
	}}, m)
	maintenanceEnds(t, w, *calls)
	for vm, at := range began {
		if first := strings.Contains(string(vm), "v1-"); first && (at < time.Hour || at > 65*time.Minute) ||
			!first && (at < 3*time.Hour || at > 4*time.Hour) {
			t.Errorf("%s left after %v", vm, at)
		}
	}
	if len(*calls) != 3 {
		t.Error(*calls)
	}
}

func TestMaintenanceStopsAndSaysWhy(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*store.Maintenance)
		event  sim.Event
		want   string
	}{
		"unknown host":     {func(m *store.Maintenance) { m.Batches[0].Hosts[0] = "n9" }, nil, "there is no host n9"},
		"software":         {func(m *store.Maintenance) { m.Software = "QEMU 99" }, nil, `n1 has not passed its check after 1h0m0s: it runs "`},
		"no window":        {func(m *store.Maintenance) { m.Windows = []store.Window{{Begin: sim.Epoch, End: sim.Epoch.Add(1)}} }, nil, "batch 1 needs 0s, and no window"},
		"uncordoned":       {nil, sim.Open{Host: "n1"}, "n1 was uncordoned by an operator"},
		"cannot migrate":   {nil, sim.Change{VM: "default/v1-1", What: "is pinned", How: func(v *store.VM) { v.Migratable = false }}, "n1 cannot be emptied: default/v1-1 cannot be migrated"},
		"too slow":         {func(m *store.Maintenance) { m.DrainWithin = time.Millisecond }, nil, "n1 is not empty after 1ms: it has default/v1-1, default/v1-2"},
		"its hook failed":  {nil, sim.Answer{Run: "patch", Answer: store.ServiceAnswer{Host: "n1", Hook: 1, State: store.HookFailed, Why: "exit status 3"}}, "the hook of n1 failed: exit status 3"},
		"its hook is lost": {nil, sim.Answer{Run: "patch", Answer: store.ServiceAnswer{Host: "n1", Hook: 1, State: store.HookBegan, By: "ann", Began: sim.Epoch}}, "the hook of n1 has not ended after 1h0m0s, by ann"},
	} {
		t.Run(what, func(t *testing.T) {
			m := rolling()
			if c.change != nil {
				c.change(&m)
			}
			w := grid(t, sim.Config{Claims: true, Marks: true, Quiet: 2 * time.Hour}, 5, 3, 2)
			w.At(time.Second, sim.Maintain{Run: m})
			if c.event == nil {
				w.At(time.Minute, sim.RunHooks{Run: "patch"})
			} else if _, is := c.event.(sim.Change); is {
				w.At(0, c.event)
			} else {
				w.At(2*time.Second, sim.Change{VM: "default/v1-1", What: "is pinned", How: func(v *store.VM) {}})
				w.At(10*time.Minute, c.event)
			}
			w.Run(5 * time.Hour)
			r := w.Maintenance("patch")
			if !strings.Contains(r.Stopped, c.want) || !r.Ended.IsZero() {
				t.Errorf("%q, want %q", r.Stopped, c.want)
			}
			// An aborted run leaves no host cordoned whose hook has not begun.
			w.At(w.Now(), sim.WishMaintenance{Name: "patch", Wish: store.AbortPlan})
			w.Run(w.Now() + 5*time.Hour)
			for i := range w.Maintenance("patch").Hosts {
				h := &w.Maintenance("patch").Hosts[i]
				if host := w.HostRecord(h.Name); host.Cordoned != (h.Phase == store.ServiceLeft) {
					t.Errorf("%+v, cordoned %v", h, host.Cordoned)
				}
			}
			if w.Maintenance("patch").Ended.IsZero() {
				t.Errorf("it has not ended: %+v", w.Maintenance("patch"))
			}
		})
	}
}

// An operator says that a hook has ended, or has it called for again.
func TestMaintenanceGoesOnAfterAFailedHook(t *testing.T) {
	for again, hooks := range map[bool]int{false: 1, true: 2} {
		w := grid(t, sim.Config{Claims: true, Marks: true, Quiet: 2 * time.Hour}, 5, 1, 2)
		m := rolling()
		m.Batches, m.SameStart = m.Batches[:1], true
		w.At(time.Second, sim.Maintain{Run: m})
		failed := store.ServiceAnswer{Host: "n1", Hook: 1, State: store.HookFailed, Why: "exit status 3"}
		w.At(time.Hour, sim.Answer{Run: "patch", Answer: failed})
		next := failed
		if next.Again = again; !again {
			next.State = store.HookDone
		}
		w.At(2*time.Hour, sim.Answer{Run: "patch", Answer: next})
		w.At(2*time.Hour, sim.WishMaintenance{Name: "patch"})
		w.At(3*time.Hour, sim.Answer{Run: "patch", Answer: store.ServiceAnswer{Host: "n1", Hook: hooks, State: store.HookDone}})
		w.Run(24 * time.Hour)
		if r := w.Maintenance("patch"); r.Ended.IsZero() || r.Hosts[0].Hooks != hooks {
			t.Errorf("again %v: %+v", again, r)
		}
	}
}

// Whatever breaks, no hook begins with a VM on its host, none runs twice, no VM is lost, and the run ends.
func TestMaintenanceSurvivesWhatBreaks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := rolling()
		m.Return = rapid.Bool().Draw(r, "return")
		m.DrainWithin, m.HookWithin, m.BackWithin = 0, 0, 0
		w, calls := maintained(t, sim.Config{Chooser: sim.Seeded(rapid.Uint64().Draw(r, "seed"))}, m)
		after := rapid.IntRange(0, 12).Draw(r, "writings")
		for range rapid.IntRange(1, 6).Draw(r, "faults") {
			at := time.Duration(rapid.IntRange(0, 400_000).Draw(r, "at")) * time.Millisecond
			host := hostName(fmt.Sprintf("n%d", rapid.IntRange(1, 5).Draw(r, "host")))
			vm := vmid(fmt.Sprintf("default/v%d-%d", rapid.IntRange(1, 3).Draw(r, "of"), rapid.IntRange(1, 2).Draw(r, "vm")))
			w.At(at, []sim.Event{sim.CrashController{For: time.Second}, sim.CrashController{For: time.Minute, After: &after},
				sim.CrashAgent{Host: host, For: 10 * time.Second}, sim.Migrate{VM: vm, Target: host}, sim.Cancel{VM: vm},
				sim.Stop{VM: vm}, sim.Delete{VM: vm}, sim.DropAnswers{Times: 3},
				sim.WishMaintenance{Name: "patch", Wish: store.PausePlan}}[rapid.IntRange(0, 8).Draw(r, "what")])
		}
		end := store.RunPlan
		if rapid.IntRange(0, 4).Draw(r, "abort") == 0 {
			end = store.AbortPlan
		}
		w.At(time.Duration(rapid.IntRange(60, 600).Draw(r, "end"))*time.Second, sim.WishMaintenance{Name: "patch", Wish: end})
		w.At(20*time.Minute, sim.WishMaintenance{Name: "patch", Wish: end})
		maintenanceEnds(r, w, *calls)
	})
}

// A run survives that a controller dies before each of its writings.
func TestMaintenanceSurvivesADeathBeforeEachWriting(t *testing.T) {
	for after := range 60 {
		m := rolling()
		m.Batches[0].Moves = []store.PlannedMove{{VM: "default/v1-1", Source: "n1", Target: "n5"}}
		w, calls := maintained(t, sim.Config{}, m)
		w.At(time.Millisecond, sim.CrashController{For: 10 * time.Second, After: &after})
		r := maintenanceEnds(t, w, *calls)
		if len(*calls) != 3 || slices.ContainsFunc(r.Hosts, func(h store.ServicedHost) bool { return h.Phase != store.ServiceDone }) {
			t.Errorf("after %d writings: %v, %+v", after, *calls, r)
		}
	}
}
