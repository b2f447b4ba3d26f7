package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// surviveDrawFleet draws a small fleet that is tight, and whose VMs may have rules.
func surviveDrawFleet(t *rapid.T) *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters()}
	ruled := rapid.Bool().Draw(t, "ruled")
	spread := rapid.SampledFrom([]placement.GroupRule{
		{Group: "g", Policy: placement.AntiAffinity},
		{Group: "g", Policy: placement.AntiAffinity, Max: 2},
		{Group: "g", Policy: placement.AntiAffinity, Domain: "rack"},
		{Group: "g", Policy: placement.Affinity},
		{Group: "g", Policy: placement.SoftAntiAffinity}}).Draw(t, "group")
	facts := &placement.Facts{}
	if ruled && rapid.IntRange(0, 4).Draw(t, "few") == 0 {
		facts.MaxVMs = 3
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "hosts") {
		h := placement.Host{Name: hypervisor.HostName(fmt.Sprintf("n%d", i)),
			Memory: hypervisor.Bytes(rapid.IntRange(2, 6).Draw(t, "memory")) * gib,
			CPUs:   rapid.IntRange(3, 8).Draw(t, "cpus"), Facts: facts, Load: &placement.Load{},
			Labels: placement.Labels{"rack": rapid.SampledFrom([]string{"a", "b", "c"}).
				Draw(t, "rack")}}
		if ruled {
			odd := rapid.IntRange(0, 9).Draw(t, "odd")
			h.Cordoned, h.Down = odd == 0, odd == 1
			if odd == 2 {
				h.Taints = []placement.Taint{{Key: "k", Effect: placement.NoSchedule}}
			}
		}
		f.Hosts = append(f.Hosts, h)
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "VMs") {
		v := plan.VM{VM: placement.VM{ID: hypervisor.VMID(fmt.Sprintf("v%d", i)),
			Memory: hypervisor.Bytes(rapid.IntRange(1, 3).Draw(t, "needs")) * gib,
			CPUs:   rapid.IntRange(1, 2).Draw(t, "needs CPUs")}}
		if ruled {
			constrain(t, &v.Constraints, i, spread)
		}
		at := rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "home")
		h, ok := f.Hosts[at].With(&v.VM)
		if !ok || h.FreeMemory() < 0 || h.FreeCPUs() < 0 {
			continue
		}
		h.Incoming, v.Home = 0, h.Name
		f.Hosts[at], f.VMs = h, append(f.VMs, v)
	}
	return f
}

func constrain(t *rapid.T, c *placement.Constraints, i int, group placement.GroupRule) {
	switch rapid.IntRange(0, 9).Draw(t, "rule") {
	case 0, 1:
		c.Groups = []placement.GroupRule{group}
	case 2:
		c.Apart = []string{"x"}
	case 3:
		c.Selector = placement.Labels{"rack": "a"}
	case 4:
		c.Tolerations = []placement.Toleration{{Exists: true}}
	case 5:
		c.With = []hypervisor.VMID{hypervisor.VMID(fmt.Sprintf("v%d", i/2))}
	}
}

// A world is what brute force works on: nothing but the hosts that are left, with their reservations.
type world struct {
	f    *plan.Fleet
	left []placement.Host
	at   map[hypervisor.VMID]hypervisor.HostName
	// careless: every placement must do, not one.
	careless bool
}

// survives plays the game as its definition says.
func (w world) survives(label string, k int) bool {
	if k == 0 {
		return true
	}
	return !slices.ContainsFunc(units(w.left, label), func(out []hypervisor.HostName) bool {
		var vms []*placement.VM
		after := world{w.f, nil, w.at, w.careless}
		for _, h := range w.left {
			if !slices.Contains(out, h.Name) {
				after.left = append(after.left, h)
			}
		}
		for i := range w.f.VMs {
			if v := &w.f.VMs[i]; slices.Contains(out, w.at[v.ID]) {
				vms = append(vms, &v.VM)
			}
		}
		return !after.restart(vms, label, k-1)
	})
}

func units(hosts []placement.Host, label string) (all [][]hypervisor.HostName) {
	by := map[string]int{}
	for _, h := range hosts {
		key := string(h.Name)
		if label != "" {
			key = h.Labels[label]
		}
		at, ok := by[key]
		if !ok {
			at, by[key] = len(all), len(all)
			all = append(all, nil)
		}
		all[at] = append(all[at], h.Name)
	}
	return all
}

// restart tries every order and every host.
func (w world) restart(vms []*placement.VM, label string, k int) bool {
	if len(vms) == 0 {
		return w.survives(label, k)
	}
	for i, vm := range vms {
		rest, fits := slices.Delete(slices.Clone(vms), i, i+1), 0
		m := placement.CompareHosts(vm, "", w.left)
		m.Rebuild = true
		for h := range w.left {
			if !placement.FitsAll(w.f.Rules(), vm, &w.left[h], placement.Options{Move: m}) {
				continue
			}
			after := world{w.f, slices.Clone(w.left), map[hypervisor.VMID]hypervisor.HostName{},
				w.careless}
			for id, on := range w.at {
				after.at[id] = on
			}
			after.left[h], _ = w.left[h].With(vm)
			after.left[h].Incoming, after.at[vm.ID] = 0, w.left[h].Name
			if fits++; after.restart(rest, label, k) != w.careless {
				return !w.careless
			}
		}
		if w.careless {
			return fits > 0
		}
		if len(vm.Constraints.With)+len(vm.Constraints.Groups) == 0 && i == 0 {
			return false // a VM that asks for no company may as well be the first
		}
	}
	return false
}

// brute answers a question by playing everything.
func brute(q plan.FailoverQuestion) bool { return play(q, false) }

func play(q plan.FailoverQuestion, careless bool) bool {
	w := world{f: &plan.Fleet{Filters: q.Fleet.Filters}, careless: careless,
		at: map[hypervisor.VMID]hypervisor.HostName{}}
	for _, h := range q.Fleet.Hosts {
		if !h.Down {
			w.left = append(w.left, h)
		}
	}
	for _, v := range q.Fleet.VMs {
		if q.Protected == nil || q.Protected[v.ID] {
			w.f.VMs = append(w.f.VMs, v)
			w.at[v.ID] = v.Home
		}
	}
	return w.survives(q.Domain, q.Failures)
}

// TestAnswersEqualBruteForce: the answer is exact, any placement does when that is said,
// the bounds are those of fewer failures, and a counterexample says what is true.
func TestAnswersEqualBruteForce(t *testing.T) {
	verdicts, proofs := map[plan.FailoverOutcome]int{}, map[plan.Proof]int{}
	whys := map[plan.Why]int{}
	world := func(t *rapid.T) {
		q := plan.FailoverQuestion{Fleet: surviveDrawFleet(t), Failures: rapid.IntRange(1, 2).Draw(t, "k")}
		if rapid.IntRange(0, 3).Draw(t, "racks") == 0 {
			q.Domain = "rack"
		}
		if rapid.IntRange(0, 3).Draw(t, "some") == 0 {
			q.Protected = map[hypervisor.VMID]bool{"v0": true, "v1": true, "v4": true}
		}
		if q.Validate() != nil {
			return
		}
		a := plan.Failover(q)
		verdicts[a.Verdict]++
		proofs[a.Proof]++
		for k := 1; k <= a.Failures; k++ {
			q.Failures = k
			if is := brute(q); is != (k <= a.Lower) || is != (k <= a.Upper) {
				t.Fatalf("%d failures: brute force says %v, Check %+v", k, is, a)
			}
		}
		if q.Failures = a.Failures; a.Proof == plan.AnyPlacement && !play(q, true) {
			t.Fatal("some placement leaves no room")
		}
		if (a.Verdict == plan.Yes) != (a.Lower == a.Failures) || a.Verdict == plan.Open {
			t.Fatalf("the verdict is %+v", a)
		}
		if c := a.Counterexample; c != nil {
			whys[c.Why]++
			if err := c.Verify(q.Fleet); err != nil {
				t.Fatalf("counterexample %+v: %v", c, err)
			}
		} else if a.Verdict == plan.No {
			t.Fatal("no, and no counterexample")
		}
	}
	for range 20 { // thousands of them
		rapid.Check(t, world)
	}
	t.Log(verdicts, proofs, whys)
}
