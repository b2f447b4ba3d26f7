package evacuation_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	gocmp "github.com/google/go-cmp/cmp"
)

// drained is a host with the drain taint.
func drained(name hypervisor.HostName) evacuation.Host {
	return evacuation.Host{Name: name, Taints: []placement.Taint{drainTaint}}
}

// movable is a VM that gets a migration when it must leave.
func movable(name string) evacuation.VM {
	return evacuation.VM{ID: hypervisor.VMID("default/" + name), Migratable: true,
		Strategy: evacuation.LiveMigrate, Instances: 1}
}

func TestWhoMustLeave(t *testing.T) {
	marked := func(change func(*evacuation.VM)) evacuation.VM {
		g := movable("a")
		g.EvacuateFrom = "n1"
		change(&g)
		return g
	}
	taint := func(key string, effect placement.Effect) []placement.Taint {
		return []placement.Taint{{Key: "x", Effect: placement.NoSchedule},
			{Key: key, Value: "any", Effect: effect}}
	}
	tests := []struct {
		name   string
		key    string
		taints []placement.Taint
		guest  evacuation.VM
		leaves bool
	}{
		{"the drain taint takes an unmarked VM", "",
			taint("kubevirt.io/drain", placement.NoSchedule), movable("a"), true},
		{"the drain taint takes a VM that migrates by its own times", "",
			taint("kubevirt.io/drain", placement.NoSchedule),
			marked(func(g *evacuation.VM) { g.Migrating = true }), true},
		{"another effect of the drain taint takes no VM", "",
			taint("kubevirt.io/drain", placement.NoExecute), movable("a"), false},
		{"the default key means nothing when another is configured", "mine",
			taint("kubevirt.io/drain", placement.NoSchedule), movable("a"), false},
		{"the configured key drains", "mine",
			taint("mine", placement.NoSchedule), movable("a"), true},
		{"no VM leaves a host without taint and marks", "", nil, movable("a"), false},
		{"a marked VM leaves", "", nil, marked(func(*evacuation.VM) {}), true},
		{"a VM that was to leave another host stays", "", nil,
			marked(func(g *evacuation.VM) { g.EvacuateFrom = "n2" }), false},
		{"a marked VM that migrates by its own times is not asked again", "", nil,
			marked(func(g *evacuation.VM) { g.Migrating = true }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := evacuation.Plan(evacuation.Params{DrainKey: tt.key},
				evacuation.Host{Name: "n1", Taints: tt.taints},
				[]evacuation.VM{tt.guest}, evacuation.Load{})
			if leaves := len(d.Create) == 1; leaves != tt.leaves {
				t.Errorf("leaves = %v, want %v", leaves, tt.leaves)
			}
		})
	}
}

func TestAVMThatStaysSaysWhy(t *testing.T) {
	tests := []struct {
		name   string
		change func(*evacuation.VM)
		blocks bool
		want   []placement.Reason
	}{
		{"it has ended", func(g *evacuation.VM) { g.Final = true }, false,
			[]placement.Reason{{Check: "phase", Need: "unfinished", Have: "ended"}}},
		{"no strategy protects it", func(g *evacuation.VM) { g.Strategy = evacuation.Unset }, false,
			[]placement.Reason{{Check: "strategy",
				Need: "LiveMigrate or LiveMigrateIfPossible", Have: "no strategy"}}},
		{"an external controller moves it", func(g *evacuation.VM) {
			g.Strategy, g.Migratable = evacuation.External, false
		}, false, []placement.Reason{{Check: "strategy",
			Need: "LiveMigrate or LiveMigrateIfPossible", Have: "External"}}},
		{"it may be killed as it cannot move", func(g *evacuation.VM) {
			g.Strategy, g.Migratable = evacuation.LiveMigrateIfPossible, false
		}, false, []placement.Reason{{Check: "if-possible",
			Need: "a migratable VM", Have: "no"}, {Check: "drain", Need: "an empty host",
			Have: "will be shut down and started elsewhere: it cannot be migrated"}}},
		{"it must move and cannot", func(g *evacuation.VM) {
			g.Migratable, g.NotMigratableReason = false, "a host device"
		}, true, []placement.Reason{{Check: "migratable",
			Need: "yes", Have: "no: a host device"}}},
		{"everything is wrong with it", func(g *evacuation.VM) {
			g.Final, g.Deleting, g.Migratable, g.Moving, g.Instances = true, true, false, true, 3
		}, false, []placement.Reason{
			{Check: "phase", Need: "unfinished", Have: "ended"},
			{Check: "deletion", Need: "none", Have: "asked for"},
			{Check: "migratable", Need: "yes", Have: "no"},
			{Check: "migrations", Need: "none unfinished", Have: "one unfinished"},
			{Check: "instances", Need: "at most 1", Have: "3"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := movable("a")
			tt.change(&g)
			d := evacuation.Plan(evacuation.Params{}, drained("n1"), []evacuation.VM{g},
				evacuation.Load{})
			want := []evacuation.RemainingVM{{VM: g.ID, Blocks: tt.blocks, Reasons: tt.want}}
			if diff := gocmp.Diff(want, d.Stay); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One host, two candidates and a VM that cannot move, under all configurations.
func TestWhatTheModesMakeOfTheSameHost(t *testing.T) {
	stuck := movable("stuck")
	stuck.Migratable = false
	small, large := movable("a-small"), movable("b-large")
	small.Memory, large.Memory = hypervisor.GiB, 8*hypervisor.GiB
	vms := []evacuation.VM{stuck, small, large}
	const a, b, s hypervisor.VMID = "default/a-small", "default/b-large", "default/stuck"
	const critical, lowest = migration.SystemCritical, migration.Lowest

	queue, spots := evacuation.QueueAll, evacuation.FreeSpots
	tests := []struct {
		name       string
		mode       evacuation.Mode
		compatible bool
		spots      int
		create     []evacuation.MigrationRequest
		warn       []hypervisor.VMID
		again      time.Duration
	}{
		{"queueing all needs no spots", queue, false, 0,
			[]evacuation.MigrationRequest{{VM: b, Priority: critical}, {VM: a, Priority: critical}},
			[]hypervisor.VMID{s}, time.Minute},
		{"KubeVirt keeps silent about the one that blocks", queue, true, 0,
			[]evacuation.MigrationRequest{{VM: b, Priority: critical}, {VM: a, Priority: critical}},
			nil, 0},
		{"without spots every VM waits and the notice is given", spots, false, 0, nil,
			[]hypervisor.VMID{s}, 5 * time.Second},
		{"KubeVirt delays the notice until there is a spot", spots, true, 0, nil, nil,
			5 * time.Second},
		{"the only spot goes to the largest", spots, false, 1,
			[]evacuation.MigrationRequest{{VM: b, Priority: critical}}, []hypervisor.VMID{s},
			5 * time.Second},
		{"KubeVirt waits for an event after it has created something", spots, true, 1,
			[]evacuation.MigrationRequest{{VM: b, Priority: lowest}}, nil, 0},
		{"a spot left over pays for KubeVirt's notice", spots, true, 3,
			[]evacuation.MigrationRequest{{VM: b, Priority: lowest}, {VM: a, Priority: lowest}},
			[]hypervisor.VMID{s}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := evacuation.Params{Mode: tt.mode, Compatible: tt.compatible,
				Limits: evacuation.Limits{PerCluster: tt.spots, PerNode: 9}}
			got := evacuation.Plan(p, drained("n1"), vms, evacuation.Load{})
			got.Stay = nil
			want := evacuation.Decision{Create: tt.create, Warn: tt.warn, Again: tt.again}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrders(t *testing.T) {
	vms := []evacuation.VM{movable("a"), movable("b"), movable("c"), movable("d")}
	for i, gib := range []hypervisor.Bytes{2, 8, 2, 9} {
		vms[i].Memory = gib * hypervisor.GiB
	}
	vms[3].Descheduled = true // the largest, but not urgent
	tests := []struct {
		order evacuation.Order
		want  []hypervisor.VMID
	}{
		{evacuation.LargestFirst,
			[]hypervisor.VMID{"default/b", "default/a", "default/c", "default/d"}},
		{evacuation.SmallestFirst,
			[]hypervisor.VMID{"default/a", "default/c", "default/b", "default/d"}},
		{evacuation.ByID,
			[]hypervisor.VMID{"default/a", "default/b", "default/c", "default/d"}},
	}
	for _, tt := range tests {
		t.Run(tt.order.String(), func(t *testing.T) {
			d := evacuation.Plan(evacuation.Params{Order: tt.order}, drained("n1"), vms,
				evacuation.Load{})
			if diff := gocmp.Diff(tt.want, createdVMs(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
