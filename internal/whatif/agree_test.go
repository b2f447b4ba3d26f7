package whatif_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

// drawn draws a fleet as a scenario writes it: eviction strategies of the cluster and of VMs, VMs
// that cannot migrate, what becomes of these, closed hosts and hosts that are down, groups, selectors and tight or ample
// room. What is on a host fits there.
func drawnFleet(t *rapid.T) (text string, ample bool) {
	word := func(label string, all ...string) string { return rapid.SampledFrom(all).Draw(t, label) }
	ample = rapid.Bool().Draw(t, "ample room")
	memory := 16
	if ample {
		memory = 512
	}
	var b strings.Builder
	if s := word("cluster's strategy", "", "", "None", "LiveMigrate", "LiveMigrateIfPossible",
		"External"); s != "" {
		fmt.Fprintf(&b, "evictionStrategy: %s\n", s)
	}
	if u := word("on unmovable", "", "", "Keep", "ShutDown", "Restart"); u != "" {
		fmt.Fprintf(&b, "onUnmovable: %s\n", u)
	}
	fmt.Fprintf(&b, "limits: {perCluster: %d, perSource: %d}\n",
		rapid.IntRange(1, 5).Draw(t, "at once"), rapid.IntRange(1, 3).Draw(t, "out of a host"))
	b.WriteString("until: 12h\ngroups: {pair: {policy: affinity}}\nhosts:\n")
	hosts := rapid.IntRange(2, 4).Draw(t, "hosts")
	for i := range hosts {
		fmt.Fprintf(&b, "- {name: n%d, memory: %dGiB, cpus: 64, link: 10Gbit/s, labels: {rack: %s}%s}\n",
			i, memory, word("rack", "a", "a", "b"), word("state", "", "", "", ", cordoned: true"))
	}
	b.WriteString("vms:\n")
	room := make([]int, hosts)
	for i := range rapid.IntRange(1, 7).Draw(t, "VMs") {
		home, size := rapid.IntRange(0, hosts-1).Draw(t, "home"), rapid.IntRange(1, 5).Draw(t, "GiB")
		if room[home]+size > memory {
			continue
		}
		room[home] += size
		fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dGiB, cpus: 1, class: idle%s%s%s}\n", i,
			home, size, word("strategy", "", "", "", ", strategy: None", ", strategy: LiveMigrate",
				", strategy: LiveMigrateIfPossible", ", strategy: External"),
			word("why not", "", "", "", ", whyNot: it has a GPU"),
			word("asks", "", "", "", ", nodeSelector: {rack: a}", ", apart: g", ", groups: pair",
				", groups: pair"))
	}
	return b.String(), ample
}

// drawnQuota draws a quota on the number of VMs of some that are the same tenant's: with no room
// for a second copy, with room for one, or with ample room.
func drawnQuota(t *rapid.T, f *inventory.Fleet) {
	if !rapid.Bool().Draw(t, "quota") {
		return
	}
	charged := int64(0)
	for i := range f.VMs {
		if rapid.Bool().Draw(t, "charged") {
			f.VMs[i].Placement.Charges = []placement.QuotaCharge{{Quota: "t/q", Resource: "pods", Amount: 1}}
			charged++
		}
	}
	f.Quotas = []placement.QuotaLimit{{Quota: "t/q", Resource: "pods",
		Hard: charged + rapid.SampledFrom([]int64{0, 1, 9}).Draw(t, "room in the quota")}}
}

// What a plan says of who leaves is what the controller does in the simulator, and every VM that
// stays there has the controller's reasons.
func TestPlanSimulationAndControllerAgreeOnWhoLeaves(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		text, ample := drawnFleet(t)
		s, err := config.Parse("drawn.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		drawnQuota(t, s.Fleet)
		s.Controller.ResourceQuotas = s.Fleet.Quotas // as the reader of a file does
		d := plan.DrainFleet(s.Fleet, []hypervisor.HostName{"n0"}, s.Controller.Evacuation)
		fleet := d.Fleet
		a := plan.Drain(fleet, []hypervisor.HostName{"n0"})
		if err := whatif.CheckMoves(fleet, a.Waves); err != nil {
			t.Fatal(err)
		}
		whatif.Unfold(&a, d.Groups)
		serviced(t, s, &a, text)
		left := drained(t, s, text)
		for _, vm := range a.Cannot {
			if !slices.Contains(left, vm) {
				t.Fatalf("%s cannot leave by the plan, and leaves\n%s", vm, text)
			}
		}
		switch moves := plan.Count(a.Waves); {
		case a.FewestLeft && len(a.Left) > len(left):
			t.Fatalf("%v stay by the plan, and %v do\n%s", a.Left, left, text)
		case ample && moves == a.Least && (len(a.Left) != len(left) ||
			len(a.Left) == len(a.Cannot) && !slices.Equal(a.Left, left)): // else who stays is a choice
			t.Fatalf("%v stay by the plan, and %v do\n%s", a.Left, left, text)
		}
	})
}

// serviced fails unless a plan for the maintenance of n0 empties it exactly if one for its drain does, and
// names those of which a drain says that they cannot leave.
func serviced(t *rapid.T, s *config.Scenario, a *plan.DrainPlan, text string) {
	d := plan.Maintain(s.Fleet, []hypervisor.HostName{"n0"}, s.Controller.Evacuation)
	if len(d.ShutDown) > 0 && len(s.Fleet.Quotas) > 0 {
		return // a maintenance keeps the share of quotas of what is shut down
	}
	m := plan.Maintenance(&plan.Request{Fleet: d.Fleet, Hosts: []hypervisor.HostName{"n0"}})
	m.Unfold(d.Groups)
	var left, cannot []hypervisor.VMID
	for _, o := range m.Obstacles {
		left, cannot = append(left, o.Left...), append(cannot, o.Cannot...)
	}
	if !slices.Equal(left, a.Left) || !slices.Equal(cannot, a.Cannot) {
		t.Fatalf("%v stay (%v cannot leave) in a maintenance, and %v (%v) in a drain\n%s", left, cannot,
			a.Left, a.Cannot, text)
	}
}

// drained drains n0 in the simulator, and returns who stays.
func drained(t *rapid.T, s *config.Scenario, text string) []hypervisor.VMID {
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	w.At(time.Second, sim.Drain{Host: "n0"})
	w.Run(s.Until)
	var left []hypervisor.VMID
	for _, e := range w.Evacuations() {
		for _, l := range e.Left {
			if left = append(left, l.VM); len(l.Reasons) == 0 {
				t.Fatalf("%s stays for no reason\n%s", l.VM, text)
			}
		}
	}
	slices.Sort(left)
	return left
}

// Of one VM of 7 GiB and a group of 3 and 4 GiB one finds room: the planner leaves the one VM, not the two.
func TestAPlanLeavesOneVMRatherThanAGroupOfTwo(t *testing.T) {
	s, err := config.Parse("f.yaml", []byte(`
evictionStrategy: LiveMigrate
groups: {pair: {policy: affinity}}
hosts:
- {name: n0, memory: 32GiB, cpus: 8}
- {name: n1, memory: 7GiB, cpus: 8}
vms:
- {name: a, host: n0, memory: 3GiB, cpus: 1, class: idle, groups: pair}
- {name: b, host: n0, memory: 4GiB, cpus: 1, class: idle, groups: pair}
- {name: large, host: n0, memory: 7GiB, cpus: 1, class: idle}
`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := whatif.Ask(t.Context(), s, whatif.Question{Hosts: []hypervisor.HostName{"n0"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Left, []hypervisor.VMID{"default/large"}) || !f.FewestLeft || f.MustStay != 1 ||
		f.Moves != 2 || f.LeastMoves != 2 || !f.FewestMoves {
		t.Errorf("%v stay (fewest: %v, at least %d), %d moves of at least %d", f.Left, f.FewestLeft,
			f.MustStay, f.Moves, f.LeastMoves)
	}
}
