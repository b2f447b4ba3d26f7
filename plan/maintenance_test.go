package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

const gib = hypervisor.GiB

// drawFleet draws a fleet with rules.
func drawFleet(t *rapid.T, hosts, vms int) *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters()}
	for i := range rapid.IntRange(2, hosts).Draw(t, "hosts") {
		f.Hosts = append(f.Hosts, placement.Host{
			Name:   hypervisor.HostName(fmt.Sprintf("n%d", i)),
			Memory: hypervisor.Bytes(rapid.IntRange(5, 12).Draw(t, "memory")) * gib, CPUs: 8,
			Facts: &placement.Facts{}, Load: &placement.Load{},
			Cordoned: rapid.IntRange(0, 9).Draw(t, "closed") == 0,
			Labels:   placement.Labels{"rack": fmt.Sprint(i % 2)}})
	}
	for i := range rapid.IntRange(0, vms).Draw(t, "VMs") {
		v := plan.VM{VM: placement.VM{ID: hypervisor.VMID(fmt.Sprintf("v%02d", i)),
			Memory: hypervisor.Bytes(rapid.IntRange(1, 4).Draw(t, "needs")) * gib,
			CPUs:   rapid.IntRange(1, 3).Draw(t, "needs CPUs")}}
		c := &v.Constraints
		switch rapid.IntRange(0, 12).Draw(t, "rule") {
		case 0:
			c.Apart = []string{"x"}
		case 1:
			c.Selector = placement.Labels{"rack": "1"}
		case 2:
			c.Groups = []placement.GroupRule{{Group: "g", Policy: placement.AntiAffinity}}
		}
		if rapid.IntRange(0, 19).Draw(t, "pinned") == 0 {
			v.Pinned = "it is pinned"
		}
		at := rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "home")
		h, ok := f.Hosts[at].With(&v.VM)
		if !ok || h.FreeMemory() < 0 || h.FreeCPUs() < 0 || slices.Contains(c.Apart, "x") &&
			h.Groups["x"] > 1 || h.Groups["g"] > 1 {
			continue
		}
		h.Incoming, v.Home = 0, h.Name
		f.Hosts[at], f.VMs = h, append(f.VMs, v)
	}
	return f
}

// TestEveryPlanIsPossible: the verifier accepts every batch, the failures that were asked
// for are survived while its hosts are away, every host is serviced once or has an
// obstacle, and the obstacle is true.
func TestEveryPlanIsPossible(t *testing.T) {
	batches, obstacles, proofs := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := plan.Request{Fleet: drawFleet(t, 6, 14),
			Keep:     rapid.IntRange(0, 1).Draw(t, "k"),
			Together: rapid.IntRange(0, 3).Draw(t, "together")}
		if rapid.Bool().Draw(t, "weighed") {
			r.Service, r.Each = time.Minute, time.Minute
		}
		for _, h := range r.Fleet.Hosts {
			if rapid.IntRange(0, 3).Draw(t, "serviced") > 0 {
				r.Hosts = append(r.Hosts, h.Name)
			}
		}
		if r.Validate() != nil {
			return
		}
		a := plan.Maintenance(&r)
		now, moves := r.Fleet, 0
		var done []hypervisor.HostName
		for _, b := range a.Batches {
			batches++
			moves += plan.Count(b.Waves)
			now = follow(t, now, &r, b)
			done = append(done, b.Hosts...)
			if len(b.Hosts) > a.Most || r.Together > 0 && len(b.Hosts) > r.Together {
				t.Fatalf("%v at once, at most %d, asked for %d", b.Hosts, a.Most, r.Together)
			}
		}
		for _, o := range a.Obstacles {
			obstacles++
			done = append(done, o.Host)
			if o.Proof != nil {
				proofs++
				hosts := []hypervisor.HostName{o.Host}
				if err := whatif.CheckCertificate(now, hosts, o.Proof); err != nil {
					t.Fatalf("obstacle %+v: %v", o, err)
				}
			}
			if len(o.Left) == 0 && o.Failures == nil && len(r.Fleet.Hosts) > 2 {
				t.Fatalf("obstacle %+v says nothing", o)
			}
			if o.Failures != nil {
				if err := o.Failures.Verify(without(moved(now, o.Moves), o.Host)); err != nil {
					t.Fatalf("obstacle %+v: %v", o, err)
				}
			}
		}
		slices.Sort(done)
		if !slices.Equal(done, slices.Sorted(slices.Values(r.Hosts))) {
			t.Fatalf("serviced or not are %v, want %v", done, r.Hosts)
		}
		if moves != a.Moves || len(a.Obstacles) == 0 && len(a.Batches) < a.Least {
			t.Fatalf("%d moves in %d batches: %+v", moves, len(a.Batches), a)
		}
	})
	t.Logf("%d batches, %d obstacles, %d of them proven", batches, obstacles, proofs)
}

// follow checks one batch, and returns the fleet after it.
func follow(t *rapid.T, now *plan.Fleet, r *plan.Request, b plan.Batch) *plan.Fleet {
	closed := clone(now)
	for _, name := range b.Hosts {
		at, _ := now.HostAt(name)
		closed.Hosts[at].Cordoned = true
	}
	if err := whatif.CheckEmpties(closed, b.Waves, b.Hosts); err != nil {
		t.Fatalf("batch %v: %v", b.Hosts, err)
	}
	next := moved(now, slices.Concat(b.Waves...))
	if r.Keep > 0 {
		q := plan.FailoverQuestion{Fleet: without(next, b.Hosts...), Failures: r.Keep}
		if a := plan.Failover(q); q.Validate() != nil || a.Verdict != plan.Yes {
			t.Fatalf("without %v: %+v", b.Hosts, a)
		}
	}
	return next
}

func clone(f *plan.Fleet) *plan.Fleet {
	c := *f
	c.Hosts, c.VMs = slices.Clone(f.Hosts), slices.Clone(f.VMs)
	return &c
}

// moved returns the fleet after moves, by placement's own reservations.
func moved(f *plan.Fleet, moves []plan.Move) *plan.Fleet {
	f = clone(f)
	for _, m := range moves {
		vm, _ := f.VMAt(m.VM)
		from, _ := f.HostAt(m.Source)
		to, _ := f.HostAt(m.Target)
		f.Hosts[to], _ = f.Hosts[to].With(&f.VMs[vm].VM)
		f.Hosts[to].Incoming--
		f.Hosts[from], _ = f.Hosts[from].Without(&f.VMs[vm].VM, false)
		f.VMs[vm].Home = m.Target
	}
	return f
}

func without(f *plan.Fleet, hosts ...hypervisor.HostName) *plan.Fleet {
	f = clone(f)
	for _, name := range hosts {
		at, _ := f.HostAt(name)
		f.Hosts[at].Down = true
	}
	return f
}

// TestTheWayBackEqualsBruteForce: all VMs come home exactly when some order of moves
// brings them home, and the verifier accepts the way.
func TestTheWayBackEqualsBruteForce(t *testing.T) {
	parked, stuck := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		before := drawFleet(t, 3, 6)
		now := shuffled(t, before)
		r := plan.PlanReturn(now, before)
		if err := whatif.CheckMoves(now, r.Waves); err != nil {
			t.Fatal(err)
		}
		if len(r.Parked) > 0 {
			parked++
		}
		end := moved(now, slices.Concat(r.Waves...))
		home := 0
		for i := range end.VMs {
			if end.VMs[i].Home == before.VMs[i].Home {
				home++
			}
		}
		if home+len(r.Left) != len(now.VMs) {
			t.Fatalf("%d are at home, %v are not", home, r.Left)
		}
		if can := reach(now, before); can != (len(r.Left) == 0) || !can && !r.Proven {
			t.Fatalf("brute force says %v, Back %+v", can, r)
		}
		if len(r.Left) > 0 {
			stuck++
		}
	})
	t.Logf("%d ways park a VM, %d do not exist", parked, stuck)
}

// shuffled exchanges VMs of a fleet between hosts, as far as both fit then.
func shuffled(t *rapid.T, f *plan.Fleet) *plan.Fleet {
	for range rapid.IntRange(1, 6).Draw(t, "exchanges") {
		if len(f.VMs) == 0 {
			break
		}
		next := clone(f)
		for range rapid.IntRange(1, 2).Draw(t, "of") {
			v := next.VMs[rapid.IntRange(0, len(f.VMs)-1).Draw(t, "who")]
			target := next.Hosts[rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "where")].Name
			if v.Pinned == "" && v.Home != target {
				next = moved(next, []plan.Move{{VM: v.ID, Source: v.Home, Target: target}})
			}
		}
		if !slices.ContainsFunc(next.Hosts, func(h placement.Host) bool {
			return h.FreeMemory() < 0 || h.FreeCPUs() < 0
		}) {
			f = next
		}
	}
	return f
}

// reach looks at every arrangement that moves, one after another, can reach.
func reach(now, goal *plan.Fleet) bool {
	seen, queue := map[string]bool{where(now): true}, []*plan.Fleet{now}
	for len(queue) > 0 {
		f := queue[0]
		if queue = queue[1:]; where(f) == where(goal) {
			return true
		}
		for _, v := range f.VMs {
			for h := range f.Hosts {
				o := placement.Options{Source: v.Home,
					Move: placement.CompareHosts(&v.VM, v.Home, f.Hosts)}
				if v.Pinned != "" || !placement.FitsAll(f.Rules(), &v.VM, &f.Hosts[h], o) {
					continue
				}
				next := moved(f, []plan.Move{{VM: v.ID, Source: v.Home, Target: f.Hosts[h].Name}})
				if !seen[where(next)] {
					seen[where(next)] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return false
}

func where(f *plan.Fleet) (key string) {
	for _, v := range f.VMs {
		key += string(v.Home) + " "
	}
	return key
}

// The judge is the plan that is made when every batch is tried: a bound may save trials only.
func TestABoundOnBatchesChangesNoPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &plan.Fleet{}
		var hosts []hypervisor.HostName
		for i := range rapid.IntRange(2, 8).Draw(t, "hosts") {
			h := placement.Host{Name: hypervisor.HostName(fmt.Sprintf("h%d", i)), Memory: 100, CPUs: 100}
			for j := range rapid.IntRange(0, 5).Draw(t, "VMs") {
				v := placement.VM{ID: hypervisor.VMID(fmt.Sprintf("v%d-%d", i, j)), CPUs: rapid.IntRange(1, 15).Draw(t, "cpus"),
					Memory: hypervisor.Bytes(rapid.IntRange(1, 18).Draw(t, "memory"))}
				f.VMs = append(f.VMs, plan.VM{VM: v, Home: h.Name})
				h.UsedMemory, h.UsedCPUs = h.UsedMemory+v.Memory, h.UsedCPUs+v.CPUs
			}
			f.Hosts = append(f.Hosts, h)
			hosts = append(hosts, h.Name)
		}
		r := plan.Request{Fleet: f, Hosts: hosts[:rapid.IntRange(1, len(hosts)).Draw(t, "serviced")],
			Fill: rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "fill")}
		with, without := plan.Maintenance(&r), plan.MaintenanceUnbounded(&r)
		if diff := gocmp.Diff(without.Batches, with.Batches); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// The judges are a look at all hosts for each VM, and the check of failures in a fleet that is written anew.
func TestABatchIsEmptiedAsByALookAtAllHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t, 8, 24)
		r := plan.Request{Fleet: f, Fill: rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "fill"),
			Keep: rapid.IntRange(0, 2).Draw(t, "keep"), Effort: 2000}
		for _, h := range f.Hosts[:rapid.IntRange(1, len(f.Hosts)).Draw(t, "serviced")] {
			r.Hosts = append(r.Hosts, h.Name)
		}
		found, want, by, anew := plan.Emptied(&r, rapid.IntRange(1, len(r.Hosts)).Draw(t, "batch"),
			rapid.Bool().Draw(t, "again"), rapid.Bool().Draw(t, "full"))
		if diff := gocmp.Diff(want, found); diff != "" {
			t.Fatalf("targets (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(anew, by); diff != "" {
			t.Fatalf("failures (-want +got):\n%s", diff)
		}
	})
}
