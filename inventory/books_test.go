package inventory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

const gib = hypervisor.GiB

const text = `groups: {g: {policy: anti-affinity}}
config: {parallelInboundMigrationsPerNode: 3}
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 16, devices: {gpu: 4}, disk: 1TiB}
- {name: dead, memory: 64GiB, cpus: 16, down: true}
- {name: shut, memory: 64GiB, cpus: 16, cordoned: true, taints: ["k:NoSchedule"]}
vms:
- name: a
  host: n1
  memory: 8GiB
  cpus: 4
  overhead: 1GiB
  balloon: 3GiB
  groups: g
  apart: old
  devices: [{class: gpu, count: 3}]
  hardware: {disks: [{name: d, size: 100GiB}]}
- {name: fixed, host: n1, memory: 1GiB, whyNot: it is pinned}
- {name: lost, host: dead, memory: 1GiB}
- {name: later, memory: 1GiB}
- {name: staying, host: shut, memory: 1GiB}
`

func fleet(t *testing.T) *inventory.Fleet {
	t.Helper()
	f, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func host(t *testing.T, all []placement.Host, name hypervisor.HostName) placement.Host {
	t.Helper()
	i := slices.IndexFunc(all, func(h placement.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("there is no host %s", name)
	}
	return all[i]
}

func TestHostsHaveWhatTheirVMsTake(t *testing.T) {
	f := fleet(t)
	f.Migrations = []inventory.Migration{
		{Spec: migration.Spec{ID: "m1", VM: "default/a"}, Source: "n1", Chosen: "n2"},
		{Spec: migration.Spec{ID: "m2", VM: "default/fixed"}}, // has no target yet
		{Spec: migration.Spec{ID: "m3", VM: "default/lost"}, Chosen: "dead"},
	}
	hosts := inventory.OpenLedger(f)
	type taken struct {
		Memory         hypervisor.Bytes
		CPUs, Incoming int
		Disk           hypervisor.Bytes
		Gpus           int
		Groups         map[string]int
		VMs            int
	}
	both := map[string]int{"g": 1, "old": 1}
	want := map[hypervisor.HostName]taken{
		"n1":   {7 * gib, 5, 0, 100 * gib, 3, both, 2}, // 8+1-3 and 1 GiB
		"n2":   {6 * gib, 4, 1, 100 * gib, 3, both, 1},
		"n3":   {},
		"dead": {Memory: gib, CPUs: 1, VMs: 1},
		"shut": {Memory: gib, CPUs: 1, VMs: 1},
	}
	got := map[hypervisor.HostName]taken{}
	for _, h := range hosts {
		got[h.Name] = taken{h.UsedMemory, h.UsedCPUs, h.Incoming, h.Load.Disk,
			h.Load.Devices.Of("gpu"), h.Groups, h.Load.VMs}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if !host(t, hosts, "dead").Down || !host(t, hosts, "shut").Cordoned ||
		len(host(t, hosts, "shut").Taints) != 1 || host(t, hosts, "n1").Facts == nil {
		t.Error("a mark of a host got lost")
	}
	if !slices.IsSortedFunc(hosts, func(a, b placement.Host) int {
		return strings.Compare(string(a.Name), string(b.Name))
	}) {
		t.Error("the hosts are not ordered by name")
	}
}

func TestAsk(t *testing.T) {
	tests := []struct {
		vm      hypervisor.VMID
		source  hypervisor.HostName
		rebuild bool
		note    string
	}{
		{"default/a", "n1", false, "[default/m moves it already, to n2]"},
		{"default/fixed", "n1", false, "[it cannot be moved while it runs: it is pinned]"},
		{"default/lost", "dead", true, "[dead is down: it would be started anew, not moved, once " +
			"dead is known to be dead]"},
		{"default/staying", "shut", false, "[]"},
		{"default/later", "", true, "[it does not run: it would be started there]"},
	}
	for _, tt := range tests {
		t.Run(string(tt.vm), func(t *testing.T) {
			f := fleet(t)
			f.Migrations = []inventory.Migration{
				{Spec: migration.Spec{ID: "default/m", VM: "default/a"}, Chosen: "n2"}}
			q, found := inventory.Ask(f, tt.vm)
			if !found {
				t.Fatal("it is not found")
			}
			r := q.Request
			if r.VM.ID != tt.vm || r.Source != tt.source || r.Rebuild != tt.rebuild ||
				r.Inbound != 3 {
				t.Errorf("request %+v", r)
			}
			if got := fmt.Sprint(q.Notes); got != tt.note {
				t.Errorf("notes %s, want %s", got, tt.note)
			}
			on := host(t, q.Hosts, "n2").Load.VMs
			if moving := tt.vm == "default/a"; moving != (on == 0) {
				t.Errorf("%d VMs are on their way to n2", on)
			}
		})
	}
	if _, found := inventory.Ask(fleet(t), "default/missing"); found {
		t.Error("a VM that is not there is found")
	}
}

// TestAskIsAnswered: whatever VM is asked about, the answer is about its own fleet,
// and a target is never the host that it is on.
func TestAskIsAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		hosts := rapid.IntRange(1, 4).Draw(t, "hosts")
		fmt.Fprintf(&b, "hosts:\n- {name: \"n[1-%d]\", memory: 16GiB, cpus: 8}\nvms:\n", hosts)
		vms := rapid.IntRange(1, 8).Draw(t, "VMs")
		for i := range vms {
			fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dGiB, apart: %s}\n", i,
				rapid.IntRange(1, hosts).Draw(t, "on"), rapid.IntRange(1, 9).Draw(t, "memory"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "group"))
		}
		f, err := inventory.ReadFleet("f", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		id := hypervisor.VMID(fmt.Sprintf("default/v%d", rapid.IntRange(0, vms-1).Draw(t, "asked")))
		q, _ := inventory.Ask(f, id)
		d := placement.Decide(&placement.Config{}, &q.Request, q.Hosts)
		switch d.Outcome {
		case placement.NoHost:
		case placement.Accepted:
			at := slices.IndexFunc(q.Hosts, func(h placement.Host) bool { return h.Name == d.Host })
			h, vm := q.Hosts[at], q.Request.VM
			if d.Host == q.Request.Source || h.FreeMemory() < vm.Memory ||
				h.Groups[vm.Constraints.Apart[0]] > 0 {
				t.Errorf("%s may not go to %+v", id, h)
			}
		default:
			t.Errorf("%s of %s: %+v", id, b.String(), d)
		}
	})
}
