package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

const grouped = `
evictionStrategy: LiveMigrate
groups: {shop: {policy: affinity}, split: {policy: affinity}, stuck: {policy: affinity}}
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 32}
- {name: n3, memory: 12GiB, cpus: 8}
vms:
- {name: web, host: n1, memory: 4GiB, cpus: 2, groups: shop}
- {name: cache, host: n1, memory: 6GiB, cpus: 1, groups: shop}
- {name: a, host: n1, memory: 1GiB, cpus: 1, with: b}
- {name: b, host: n1, memory: 1GiB, cpus: 1, with: a}
- {name: side, host: n1, memory: 1GiB, cpus: 1, with: b}
- {name: here, host: n1, memory: 1GiB, cpus: 1, groups: split}
- {name: there, host: n3, memory: 1GiB, cpus: 1, groups: split}
- {name: goes, host: n1, memory: 1GiB, cpus: 1, groups: stuck}
- {name: gpu, host: n1, memory: 1GiB, cpus: 1, groups: stuck, whyNot: it has a GPU}
- {name: rest, host: n2, memory: 60GiB, cpus: 2}
`

// One VM stands for a group whose VMs are all on the host and can all leave it, and for two that ask to
// be with each other. Others that ask to be with one of them ask for that.
func TestAGroupOnADrainedHostIsPlannedAsOne(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(grouped))
	if err != nil {
		t.Fatal(err)
	}
	d := plan.DrainFleet(f, []hypervisor.HostName{"n1"}, evacuation.Params{})
	want := plan.Groups{"default/a+default/b": {"default/a", "default/b"},
		"default/cache+default/web": {"default/cache", "default/web"}}
	if diff := cmp.Diff(want, d.Groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	at, ok := d.Fleet.VMAt("default/cache+default/web")
	if !ok || d.Fleet.VMs[at].Demand() != 10<<30 || d.Fleet.VMs[at].DemandCPUs() != 3 {
		t.Errorf("the group is %+v", d.Fleet.VMs[at])
	}
	if at, _ = d.Fleet.VMAt("default/side"); d.Fleet.VMs[at].Constraints.With[0] != "default/a+default/b" {
		t.Errorf("side asks to be with %v", d.Fleet.VMs[at].Constraints.With)
	}
	a := plan.Drain(d.Fleet, []hypervisor.HostName{"n1"})
	to := map[hypervisor.VMID]hypervisor.HostName{}
	for _, wave := range d.Groups.Waves(a.Waves) {
		for _, m := range wave {
			to[m.VM] = m.Target
		}
	}
	if to["default/cache"] != "n3" || to["default/web"] != "n3" || to["default/here"] != "n3" ||
		to["default/a"] != to["default/b"] || to["default/a"] != to["default/side"] {
		t.Errorf("they go to %v", to)
	}
	left := d.Groups.Each(a.Left)
	if diff := cmp.Diff([]hypervisor.VMID{"default/goes", "default/gpu"}, left); diff != "" {
		t.Errorf("VMs that stay (-want +got):\n%s", diff)
	}
	if d = plan.DrainFleet(f, []hypervisor.HostName{"n1"}, evacuation.Params{Compatible: true}); len(d.Groups) > 0 {
		t.Errorf("KubeVirt moves %v together", d.Groups)
	}
}

// What is shut down is not planned for, and what restarts moves; a VM on a host that is not drained is
// neither.
func TestWhatCannotBeMigratedLeavesADrainedHostAsItsTermsSay(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		choice    evacuation.Unmovable
		host      hypervisor.HostName
		restarts  []hypervisor.VMID
		shutsDown []hypervisor.VMID
	}{
		{evacuation.ByStrategy, "n1", []hypervisor.VMID{"default/may"}, nil},
		{evacuation.Keep, "n1", nil, nil},
		{evacuation.ShutDown, "n1", nil, []hypervisor.VMID{"default/may", "default/none"}},
		{evacuation.Restart, "n1", []hypervisor.VMID{"default/may", "default/none"}, nil},
		{evacuation.Restart, "n2", nil, nil},
	} {
		d := plan.DrainFleet(f, []hypervisor.HostName{tt.host}, evacuation.Params{
			Terms: evacuation.Terms{OnUnmovable: tt.choice}})
		var restarts []hypervisor.VMID
		for _, v := range d.Fleet.VMs {
			if v.Restarts {
				restarts = append(restarts, v.ID)
			}
			if v.Restarts && v.Pinned != "" {
				t.Errorf("%v: %s is to restart and is pinned", tt.choice, v.ID)
			}
		}
		if diff := cmp.Diff([][]hypervisor.VMID{tt.restarts, tt.shutsDown},
			[][]hypervisor.VMID{restarts, d.ShutDown}); diff != "" {
			t.Errorf("%v on %s (-want +got):\n%s", tt.choice, tt.host, diff)
		}
	}
}

// Until the turn of its host a VM that is shut down in a maintenance runs, and is to be started there
// again: its room is kept.
func TestTheRoomOfAVMThatAMaintenanceShutsDownIsKept(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	params := evacuation.Params{Terms: evacuation.Terms{OnUnmovable: evacuation.ShutDown}}
	d := plan.Maintain(f, []hypervisor.HostName{"n1"}, params)
	free := plan.DrainFleet(f, []hypervisor.HostName{"n1"}, params)
	all := plan.FromInventory(f)
	if diff := cmp.Diff(free.ShutDown, d.ShutDown); diff != "" || len(d.ShutDown) == 0 {
		t.Fatalf("shut down %v (-want +got):\n%s", d.ShutDown, diff)
	}
	at, _ := all.HostAt("n1")
	if was, now := all.Hosts[at].UsedMemory, d.Fleet.Hosts[at].UsedMemory; was != now {
		t.Errorf("n1 uses %v, then %v", was, now)
	}
	if len(d.Fleet.VMs) != len(free.Fleet.VMs) {
		t.Errorf("%d VMs are planned for, in a drain %d", len(d.Fleet.VMs), len(free.Fleet.VMs))
	}
}

// One of a group that is shut down does not keep the others on their host.
func TestWhatAMaintenanceShutsDownKeepsNoOthers(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(grouped))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.VMs {
		if f.VMs[i].ID == "default/gpu" {
			f.VMs[i].Strategy = evacuation.None
		}
	}
	params := evacuation.Params{Terms: evacuation.Terms{OnUnmovable: evacuation.ShutDown}}
	d := plan.Maintain(f, []hypervisor.HostName{"n1"}, params)
	if a := plan.Drain(d.Fleet, []hypervisor.HostName{"n1"}); len(a.Left) > 0 ||
		!slices.Equal(d.ShutDown, []hypervisor.VMID{"default/gpu"}) {
		t.Errorf("%v stay, %v are shut down", a.Left, d.ShutDown)
	}
}

// A VM that leaves by a restart is asked about as the controller asks about it: what only a live move needs keeps it
// nowhere. Its host device stays behind when it moves live, and the other processor is another maker's.
func TestAVMThatLeavesByARestartGoesWhereItCanStart(t *testing.T) {
	const text = `
evictionStrategy: LiveMigrateIfPossible
hosts:
- {name: n1, memory: 8GiB, cpus: 4, devices: {gpu: 1}, cpuVendor: Intel}
- {name: n2, memory: 8GiB, cpus: 4, devices: {gpu: 1}, cpuVendor: AMD}
vms:
- {name: gpu, host: n1, memory: 1GiB, whyNot: it has a GPU, devices: [{class: gpu, stays: true}]}
`
	f, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	vm := inventory.PlacementVM(&f.VMs[0])
	for _, rebuild := range []bool{true, false} { // the controller's question is the judge
		a := placement.Decide(&placement.Config{}, &placement.Request{VM: &vm, Source: "n1", Rebuild: rebuild}, inventory.OpenLedger(f))
		if can := a.Outcome == placement.Accepted; can != rebuild {
			t.Fatalf("with Rebuild %v it is %+v", rebuild, a)
		}
	}
	d := plan.DrainFleet(f, []hypervisor.HostName{"n1"}, evacuation.Params{Strategy: f.EvictionStrategy})
	p := plan.Drain(d.Fleet, []hypervisor.HostName{"n1"})
	if len(p.Left) > 0 || plan.Count(p.Waves) != 1 || p.Waves[0][0].Target != "n2" {
		t.Errorf("the plan is %+v", p)
	}
}
