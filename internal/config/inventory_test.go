package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// beside returns the path of a scenario that lies beside copies of the samples.
func beside(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cluster.yaml", "cluster.json", "fleet.yaml"} {
		data, err := os.ReadFile("../../inventory/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(data))
	}
	path := filepath.Join(dir, "scenario.yaml")
	write(t, path, text)
	return path
}

func TestAnInventoryIsFoundBesideTheScenario(t *testing.T) {
	const events = "events:\n- 0s drain worker-1\n- when prod/etcd-0=Running cancel prod/etcd-0\n"
	for _, file := range []string{"cluster.yaml", "cluster.json"} {
		t.Run(file, func(t *testing.T) {
			s, err := config.ReadFile(beside(t, "inventory: "+file+"\n"+events))
			if err != nil {
				t.Fatal(err)
			}
			want := []hypervisor.HostName{"worker-1", "worker-2", "worker-3", "worker-4"}
			if diff := cmp.Diff(want, s.Hosts()); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			if len(s.Fleet.VMs) != 9 || len(s.Events) != 2 {
				t.Errorf("%d VMs, %d events", len(s.Fleet.VMs), len(s.Events))
			}
			c := s.Controller
			if got := c.Cluster.ParallelMigrationsPerCluster; got != 10 {
				t.Errorf("%d migrations in the cluster, want the inventory's 10", got)
			}
			if c.Evacuation.Strategy != evacuation.LiveMigrate || len(c.Policies) != 1 {
				t.Errorf("strategy %v, policies %v", c.Evacuation.Strategy, c.Policies)
			}
		})
	}
}

func TestAnInventoryByItsWholePath(t *testing.T) {
	path := filepath.Join(filepath.Dir(beside(t, "")), "cluster.json")
	s, err := config.ReadFile(beside(t, "inventory: "+path+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Fleet.Hosts) != 4 {
		t.Errorf("%d hosts, want 4", len(s.Fleet.Hosts))
	}
}

func TestAnInventoryInOurOwnWords(t *testing.T) {
	s, err := config.ReadFile(beside(t, "inventory: fleet.yaml\nevents: [drain a1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []hypervisor.HostName{"a1", "a2", "b1", "b2"}
	if diff := cmp.Diff(want, s.Hosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if got := s.Controller.Evacuation.Strategy; got != evacuation.LiveMigrateIfPossible {
		t.Errorf("strategy %v, want the inventory's", got)
	}
}

// TestDefaultsSayWhatKubectlDoesNotKnow: links and workloads, also by label.
func TestDefaultsSayWhatKubectlDoesNotKnow(t *testing.T) {
	s, err := config.ReadFile(beside(t, `
inventory: cluster.yaml
defaults:
  link: 25Gbit/s
  class: idle
  overrides:
  - {hosts: {topology.kubernetes.io/zone: zone-b}, link: 1Gbit/s}
  - {vms: {app: db}, class: database}
limits: {perTarget: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Controller.Cluster.ParallelInboundMigrationsPerNode; got != 2 {
		t.Errorf("%d migrations to a host, want the scenario's 2", got)
	}
	slow := 0
	for _, h := range s.Fleet.Hosts {
		want := 25 * hypervisor.Gbit
		if h.Labels["topology.kubernetes.io/zone"] == "zone-b" {
			want = hypervisor.Gbit
			slow++
		}
		if h.Link != want {
			t.Errorf("the link of %s is %v, want %v", h.Name, h.Link, want)
		}
	}
	busy := 0
	for _, v := range s.Fleet.VMs {
		class := "idle"
		if v.Labels["app"] == "db" {
			class = "database"
			busy++
		}
		if want, _ := inventory.Class(class, v.Memory); v.Workload != want {
			t.Errorf("%s behaves like %+v, want %s", v.ID, v.Workload, class)
		}
	}
	if slow == 0 || slow == len(s.Fleet.Hosts) || busy == 0 || busy == len(s.Fleet.VMs) {
		t.Errorf("the overrides select %d hosts and %d VMs: the test shows nothing", slow, busy)
	}
}

func TestInventoriesThatAreRefused(t *testing.T) {
	const twice = "inventory: cluster.yaml\n"
	tests := []struct{ name, text, want string }{
		{"one that is not there", "name: x\ninventory: nowhere.json\n",
			"scenario.yaml:2: inventory: open "},
		{"a directory", "inventory: .\n", "the folder has neither JSON files"},
		{"the scenario itself", "inventory: scenario.yaml\n", "it is neither what kubectl"},
		{"hosts beside it", twice + "hosts:\n- {name: n1, memory: 1GiB, cpus: 1}\n",
			"scenario.yaml:1: inventory: the fleet is written in place, too: use one of the two"},
		{"VMs beside it", twice + "vms:\n- {name: a, memory: 1GiB}\n",
			"scenario.yaml:1: inventory: the fleet is written in place, too: use one of the two"},
		{"a configuration beside it", twice + "config: {progressTimeout: 1m}\n",
			"scenario.yaml:2: config: the inventory says this: write it there"},
		{"policies beside it", twice + "policies: [{name: p}]\n",
			"scenario.yaml:2: policies: the inventory says this: write it there"},
		{"namespaces beside it", twice + "namespaces: {a: {b: c}}\n",
			"scenario.yaml:2: namespaces: the inventory says this: write it there"},
		{"a strategy beside it", twice + "evictionStrategy: None\n",
			"scenario.yaml:2: evictionStrategy: the inventory says this: write it there"},
		{"aggregates beside it", twice + "aggregates: {fast: {disks: ssd}}\n",
			"scenario.yaml:2: aggregates: the inventory says this: write it there"},
		{"groups beside it", twice + "groups: {db: {policy: affinity}}\n",
			"scenario.yaml:2: groups: the inventory says this: write it there"},
		{"wrong defaults", twice + "defaults: {link: 10}\n",
			`scenario.yaml:2: defaults.link: "10" has no unit of speed`},
		{"an event on a VM that it does not have", twice + "events: [mark web-1]\n",
			`scenario.yaml:2: events[0]: there is no VM "default/web-1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.ReadFile(beside(t, tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is\n%v\nwant in it\n%s", err, tt.want)
			}
		})
	}
}

// TestAnInventoryComesAlive: what kubectl printed becomes a world. VMs that do not
// run are left out, and the migration that had not ended is taken over and waits.
func TestAnInventoryComesAlive(t *testing.T) {
	s, err := config.ReadFile(beside(t, "inventory: cluster.yaml\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	var left []hypervisor.VMID
	for _, v := range s.Fleet.VMs {
		switch r := w.VM(v.ID); {
		case r == nil:
			left = append(left, v.ID)
		case r.Host != v.Host || r.EvacuateFrom != v.EvacuateFrom || r.NotMigratableReason != v.NotMigratableReason:
			t.Errorf("%s is on %q, marked %q, not migratable for %q", v.ID, r.Host, r.EvacuateFrom,
				r.NotMigratableReason)
		}
	}
	if diff := cmp.Diff([]hypervisor.VMID{"lab/starting"}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if end := w.Run(s.Until); end != sim.AtRest {
		t.Errorf("the world is %v, want at rest", end)
	}
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	taken := w.Migrations("prod/etcd-2")
	if len(taken) != 1 || taken[0].Spec.ID != "prod/kubevirt-evacuation-lq8zd" ||
		taken[0].State.Phase != migration.Pending {
		t.Errorf("the migrations of etcd-2, which fits on no other host, are %+v", taken)
	}
}
