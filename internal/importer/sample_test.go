package importer_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

func readSample(t *testing.T, name string) *inventory.Fleet {
	t.Helper()
	fleet, err := importer.ReadKubeVirtFile("../../inventory/testdata/"+name, inventory.Defaults{
		Link: 25 * hypervisor.Gbit,
		Overrides: []inventory.Override{
			{VMs: placement.Labels{"app": "db"}, Load: inventory.Load{Class: "database"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// summary is what the test of the VMs looks at.
type summary struct {
	ID              hypervisor.VMID
	Host            hypervisor.HostName
	Memory          hypervisor.Bytes
	CPUs            int
	Strategy        evacuation.Strategy
	WhyNot          string
	Marked          hypervisor.HostName
	Apart           []string
	Selector, Words string
}

func summarize(v inventory.VM) summary {
	words := ""
	for _, term := range v.Placement.Affinity {
		words += fmt.Sprint(term)
	}
	for _, t := range v.Placement.Tolerations {
		words += fmt.Sprintf(" tolerates %s=%s:%s", t.Key, t.Value, t.Effect)
	}
	selector := ""
	for name, value := range v.Placement.Selector {
		selector += name + "=" + value
	}
	return summary{
		v.ID, v.Host, v.Memory, v.CPUs, v.Strategy, v.NotMigratableReason, v.EvacuateFrom, v.Placement.Apart,
		selector, words,
	}
}

func TestSampleVMs(t *testing.T) {
	const g = hypervisor.GiB
	etcd := []string{`prod/app=etcd`}
	want := []summary{
		{ID: "lab/gpu-train", Host: "worker-2", Memory: 32 * g, CPUs: 8,
			Strategy: evacuation.LiveMigrate,
			WhyNot:   "HostDeviceNotLiveMigratable: VMI uses a PCI host device"},
		{ID: "lab/starting", Memory: 2 * g, CPUs: 1, Strategy: evacuation.LiveMigrate,
			Selector: "topology.kubernetes.io/zone=zone-b"},
		{ID: "prod/etcd-0", Host: "worker-1", Memory: 8 * g, CPUs: 2,
			Strategy: evacuation.LiveMigrate, Apart: etcd},
		{ID: "prod/etcd-1", Host: "worker-2", Memory: 8 * g, CPUs: 2,
			Strategy: evacuation.LiveMigrate, Apart: etcd},
		{ID: "prod/etcd-2", Host: "worker-4", Memory: 8 * g, CPUs: 2,
			Strategy: evacuation.LiveMigrate, Apart: etcd, Marked: "worker-4"},
		{ID: "prod/orders-db", Host: "worker-1", Memory: 64 * g, CPUs: 16,
			Strategy: evacuation.LiveMigrate,
			Words: "[{topology.kubernetes.io/zone In [zone-a]}]" +
				" tolerates dedicated=databases:NoSchedule"},
		{ID: "shop/legacy", Host: "worker-2", Memory: 2 * g, CPUs: 2,
			Strategy: evacuation.LiveMigrateIfPossible},
		{ID: "shop/web-1", Host: "worker-1", Memory: 4 * g, CPUs: 2},
		{ID: "shop/web-2", Host: "worker-2", Memory: 4 * g, CPUs: 2},
	}
	var got []summary
	for _, v := range readSample(t, "cluster.yaml").VMs {
		got = append(got, summarize(v))
		if v.Migratable != (v.NotMigratableReason == "") {
			t.Errorf("%s: migratable is %t, although %q", v.ID, v.Migratable, v.NotMigratableReason)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("VMs (-want +got):\n%s", diff)
	}
}

func TestSampleHosts(t *testing.T) {
	host := func(name hypervisor.HostName, kib hypervisor.Bytes, cpus int) inventory.Host {
		zone := map[hypervisor.HostName]string{"worker-1": "zone-a", "worker-2": "zone-a"}[name]
		return inventory.Host{
			Host: hypervisor.Host{
				Name: name, Memory: kib * hypervisor.KiB, CPUs: cpus, Link: 25 * hypervisor.Gbit,
			},
			Facts: &placement.Facts{
				Memory: placement.DeviceInventory{Total: int64(kib * hypervisor.KiB)},
				Zone:   cmp.Or(zone, "zone-b"), MaxVMs: 250,
				CPU:  &placement.CPU{Arch: "x86_64", Vendor: "Intel"},
				Link: 25 * hypervisor.Gbit,
			},
		}
	}
	w3 := host("worker-3", 131921312, 126) // 31.5 CPUs, four virtual ones on each
	w3.Taints = []placement.Taint{
		{Key: "dedicated", Value: "databases", Effect: placement.NoSchedule}}
	w4 := host("worker-4", 131921312, 126)
	w4.Cordoned = true
	w4.Taints = []placement.Taint{
		{Key: "node.kubernetes.io/unschedulable", Effect: placement.NoSchedule}}
	want := []inventory.Host{
		host("worker-1", 263842628, 254), host("worker-2", 263842628, 254), w3, w4,
	}
	fleet := readSample(t, "cluster.yaml")
	ignore := cmpopts.IgnoreFields(inventory.Host{}, "Labels")
	if diff := gocmp.Diff(want, fleet.Hosts, ignore); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if zone := fleet.Hosts[2].Labels["topology.kubernetes.io/zone"]; zone != "zone-b" {
		t.Errorf("worker-3 is in zone %q, want zone-b", zone)
	}
}

func TestSampleConfiguration(t *testing.T) {
	config := migration.DefaultCluster()
	config.ParallelMigrationsPerCluster = 10
	config.ParallelOutboundMigrationsPerNode = 3
	config.BandwidthPerMigration = hypervisor.Bandwidth(64 * hypervisor.MiB)
	zstd := migration.CompressionZstd
	want := &inventory.Fleet{
		Config:           config,
		EvictionStrategy: evacuation.LiveMigrate,
		Namespaces: map[string]placement.Labels{
			"lab":  {"kubernetes.io/metadata.name": "lab"},
			"prod": {"kubernetes.io/metadata.name": "prod", "tier": "critical"},
			"shop": {"kubernetes.io/metadata.name": "shop", "tier": "normal"},
		},
		Policies: []migration.Policy{{
			Name: "databases",
			Selectors: &migration.Selectors{
				VM:        migration.Labels{"app": "db"},
				Namespace: migration.Labels{"tier": "critical"},
			},
			OptionsOverrides: migration.OptionsOverrides{
				AllowPostCopy:           new(true),
				BandwidthPerMigration:   new(hypervisor.Bandwidth(hypervisor.GiB)),
				CompletionTimeoutPerGiB: new(300 * time.Second),
				MaxDowntime:             new(500 * time.Millisecond),
				Experimental:            &migration.Experimental{Compression: &zstd},
			},
		}},
		Migrations: []inventory.Migration{{
			Spec: migration.Spec{
				ID: "prod/kubevirt-evacuation-lq8zd", VM: "prod/etcd-2",
				Created:  time.Date(2025, 3, 2, 8, 14, 58, 0, time.UTC),
				Priority: migration.SystemCritical, By: migration.Evacuation,
			},
			Phase:   migration.Running,
			Leaving: "worker-4", Source: "worker-4", Chosen: "worker-3",
		}},
		Warnings: []inventory.Problem{{File: "../../inventory/testdata/cluster.yaml", Message: otherPods}},
	}
	ignore := cmpopts.IgnoreFields(inventory.Fleet{}, "Hosts", "VMs")
	if diff := gocmp.Diff(want, readSample(t, "cluster.yaml"), ignore); diff != "" {
		t.Errorf("fleet (-want +got):\n%s", diff)
	}
}

func TestSampleIsTheSameInJSON(t *testing.T) {
	ignore := cmpopts.IgnoreFields(inventory.Problem{}, "File", "Line")
	diff := gocmp.Diff(readSample(t, "cluster.yaml"), readSample(t, "cluster.json"), ignore)
	if diff != "" {
		t.Errorf("fleet (-YAML +JSON):\n%s", diff)
	}
}

func TestSampleWorkloads(t *testing.T) {
	for _, v := range readSample(t, "cluster.json").VMs {
		class := inventory.DefaultClass
		if v.ID == "prod/orders-db" {
			class = "database"
		}
		want, _ := inventory.Class(class, v.Memory)
		if v.Workload != want {
			t.Errorf("%s behaves like %+v, want %s", v.ID, v.Workload, class)
		}
	}
}

func ExampleRead() {
	const printed = `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node",
   "metadata": {"name": "n1", "labels": {"kubevirt.io/schedulable": "true"}},
   "status": {"allocatable": {"cpu": "16", "memory": "64Gi"},
     "conditions": [{"type": "Ready", "status": "True"}]}},
  {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
   "metadata": {"namespace": "prod", "name": "db"},
   "spec": {"domain": {"devices": {}, "memory": {"guest": "8Gi"}, "cpu": {"cores": 4}}},
   "status": {"nodeName": "n1", "phase": "Running"}}
]}`
	fleet, err := importer.ReadKubeVirt("fleet.json", strings.NewReader(printed), inventory.Defaults{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, vm := range fleet.VMs {
		fmt.Println(vm.ID, vm.Host, vm.Memory, vm.CPUs, vm.NotMigratableReason)
	}
	// Output: prod/db n1 8GiB 4 KubeVirt has not said yet whether it is migratable
}
