package sim_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// reversed is an order: the last name first. alone is a limit: one at a time.
var (
	reversed = evacuation.OrderFunc(func(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
		return cmp.Compare(b.VM, a.VM)
	})
	alone = evacuation.LimitFunc(func(hypervisor.Bandwidth, evacuation.EvacuatingVM,
		[]evacuation.EvacuatingVM) bool {
		return false
	})
)

// giveUp is a convergence policy that cancels what it sees.
func giveUp(_ convergence.Config, s convergence.State, _ hypervisor.Progress, _ time.Time) (
	convergence.State, convergence.Decision) {
	return s, convergence.Decision{Action: convergence.Abort, Why: convergence.Stalled}
}

// onceAnHour tries again an hour after a failure.
func onceAnHour(_ migration.ID, attempts []migration.Attempt) (at time.Time) {
	for _, a := range attempts {
		if a.Phase == migration.Failed {
			at = a.FailedAt.Add(time.Hour)
		}
	}
	return at
}

// A drainage is what became of a drain of n1, which has three VMs.
type drainage struct {
	order  []hypervisor.VMID // as they began to move
	most   int               // at once
	target map[hypervisor.HostName]int
	second time.Duration // when the first VM to fail was first tried again
}

// drained plays a drain of n1 with three VMs of 4 GiB for two hours.
func drained(t *testing.T, config sim.Config) drainage {
	t.Helper()
	var d drainage
	failed := map[hypervisor.VMID]bool{}
	under := map[migration.ID]bool{}
	config.Watch = func(at time.Duration, before, after *store.Migration) {
		now, id := after.State.Phase, after.Spec.ID
		if before.State.Phase == now {
			return
		}
		switch {
		case now == migration.Failed:
			failed[after.Spec.VM] = true
		case now == migration.Scheduling && failed[after.Spec.VM] && d.second == 0:
			d.second = at
		}
		if delete(under, id); now > migration.Pending && !now.Final() {
			if under[id] = true; !slices.Contains(d.order, after.Spec.VM) {
				d.order = append(d.order, after.Spec.VM)
			}
			d.most = max(d.most, len(under))
		}
	}
	config.Quiet = 2 * time.Hour // longer than anything here waits
	w := sim.New(config)
	fill(t, w, [3]int{3, 1, 3}, func(hypervisor.Bytes) fake.Workload { return fake.Workload{} })
	w.At(time.Second, sim.Drain{Host: "n1"})
	w.Run(2 * time.Hour)
	for _, v := range w.Violations() {
		t.Error(v)
	}
	d.target = map[hypervisor.HostName]int{}
	for _, vm := range w.VMs() {
		d.target[w.VM(vm).Host]++
	}
	return d
}

// Every decision that has a place for one's own takes it in one line of the configuration
// that production has, too, and keeps to it.
func TestDecisionsOfOnesOwn(t *testing.T) {
	notN2 := placement.Filter{Name: "not-n2",
		Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
			return h.Name == "n2"
		},
		Explain: func(_ *placement.VM, h *placement.Host, _ placement.Options) (string, string) {
			return "another host", string(h.Name)
		}}
	likesN3 := placement.Weigher{Name: "likes-n3", Multiplier: 100,
		Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
			return float64(len(h.Name)) + float64(h.Name[1]-'0')
		}}
	last := func(d drainage) bool { return d.order[0] == "default/v1-3" }
	onN3 := func(d drainage) bool { return d.target["n3"] == 3 }
	fails := sim.Config{Agent: agent.Config{Converge: giveUp}}
	hourly := fails
	hourly.Controller.Migration.Retry = onceAnHour
	lifted := migration.DefaultCluster()
	lifted.ParallelMigrationsPerCluster = migration.Unlimited
	lifted.ParallelOutboundMigrationsPerNode = migration.Unlimited
	with := func(c controller.Config) sim.Config { return sim.Config{Controller: c} }
	for _, test := range []struct {
		name        string
		plain, ours sim.Config
		obeyed      func(drainage) bool
	}{
		{"an order", sim.Config{},
			with(controller.Config{Evacuation: evacuation.Params{Policy: reversed}}), last},
		{"a limit", sim.Config{},
			with(controller.Config{Evacuation: evacuation.Params{Policy: alone}}),
			func(d drainage) bool { return d.most == 1 }},
		{"the adaptive order, which the daemon's file can switch on",
			with(controller.Config{Cluster: &lifted}),
			with(controller.Config{Cluster: &lifted, Adaptive: true}),
			func(d drainage) bool { return d.most == 2 }}, // what the link is worth
		{"a filter", sim.Config{}, with(controller.Config{Placement: placement.Config{
			Filters: append(placement.AllFilters(), notN2)}}), onN3},
		{"a weigher", sim.Config{}, with(controller.Config{Placement: placement.Config{
			Weighers: append(placement.Spread(), likesN3)}}), onN3},
		{"a convergence policy", sim.Config{}, fails,
			func(d drainage) bool { return d.target["n1"] == 3 }},
		{"a retry", fails, hourly, func(d drainage) bool { return d.second > time.Hour }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := drained(t, test.plain); test.obeyed(d) {
				t.Errorf("the default does the same: %+v", d)
			}
			if d := drained(t, test.ours); !test.obeyed(d) {
				t.Errorf("it is not kept to: %+v", d)
			}
		})
	}
}
