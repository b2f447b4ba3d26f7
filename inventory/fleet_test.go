package inventory_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

const mibps = hypervisor.Bandwidth(hypervisor.MiB)

func readSample(t *testing.T) *inventory.Fleet {
	t.Helper()
	file, err := os.Open("testdata/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fleet, err := inventory.ReadFleet("fleet.yaml", file)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func TestReadFleetHosts(t *testing.T) {
	host := func(name hypervisor.HostName, gib hypervisor.Bytes, cpus int, rack string,
		link hypervisor.Bandwidth) inventory.Host {
		return inventory.Host{
			Host: hypervisor.Host{
				Name: name, Memory: gib * hypervisor.GiB, CPUs: cpus, Link: link,
			},
			Labels: placement.Labels{"rack": rack},
			Facts: &placement.Facts{Memory: placement.DeviceInventory{Total: int64(gib * hypervisor.GiB)},
				CPUs: placement.DeviceInventory{Total: int64(cpus)}, Link: link},
		}
	}
	b1 := host("b1", 128, 32, "b", hypervisor.Gbit)
	b1.Taints = []placement.Taint{{Key: "dedicated", Value: "db", Effect: placement.NoSchedule}}
	b2 := host("b2", 128, 32, "b", hypervisor.Gbit)
	b2.Cordoned = true
	want := []inventory.Host{
		host("a1", 256, 64, "a", 25*hypervisor.Gbit), host("a2", 256, 64, "a", 25*hypervisor.Gbit),
		b1, b2,
	}
	if diff := cmp.Diff(want, readSample(t).Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestReadFleetVMs(t *testing.T) {
	vm := func(id hypervisor.VMID, host hypervisor.HostName, gib hypervisor.Bytes, cpus int,
		app string) inventory.VM {
		namespace, _, _ := strings.Cut(string(id), "/")
		return inventory.VM{
			VM:   hypervisor.VM{ID: id, Memory: gib * hypervisor.GiB, CPUs: cpus},
			Host: host, Namespace: namespace, Labels: placement.Labels{"app": app},
			Migratable: true,
		}
	}
	cache := vm("default/cache", "", 4, 1, "cache")
	cache.Workload, _ = inventory.Class("in-memory", 4*hypervisor.GiB)
	cache.Placement.Affinity = [][]placement.Requirement{
		{{Key: "rack", Operator: placement.In, Values: []string{"a"}}}}
	gpu := vm("default/gpu", "b2", 16, 8, "")
	gpu.Labels, gpu.Migratable, gpu.NotMigratableReason, gpu.EvacuateFrom = nil, false, "PCI passthrough", "b2"
	gpu.Workload, _ = inventory.Class("web", 16*hypervisor.GiB)
	db := vm("prod/db", "b1", 64, 16, "db")
	db.Placement = placement.Constraints{
		Selector: placement.Labels{"rack": "b"},
		Tolerations: []placement.Toleration{
			{Key: "dedicated", Value: "db", Effect: placement.NoSchedule}},
	}
	db.Workload = fake.Workload{
		Rate: 800 * mibps, Hot: 6 * hypervisor.GiB, Cold: 58 * hypervisor.GiB}
	want := []inventory.VM{cache, gpu}
	for i, host := range []hypervisor.HostName{"a1", "a2", "a1", "a2"} {
		web := vm(hypervisor.VMID(fmt.Sprintf("default/web-%d", i+1)), host, 8, 4, "web")
		web.Strategy = evacuation.LiveMigrate
		web.Placement.Apart = []string{"web"}
		web.Workload, _ = inventory.Class("idle", 8*hypervisor.GiB)
		want = append(want, web)
	}
	want = append(want, db)
	if diff := cmp.Diff(want, readSample(t).VMs, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("VMs (-want +got):\n%s", diff)
	}
}

func TestReadFleetConfiguration(t *testing.T) {
	fleet := readSample(t)
	config := migration.DefaultCluster()
	config.ParallelMigrationsPerCluster = 10
	config.BandwidthPerMigration = hypervisor.Gbit / 2
	config.ProgressTimeout = 2 * time.Minute
	want := &inventory.Fleet{
		Config:           config,
		EvictionStrategy: evacuation.LiveMigrateIfPossible,
		Namespaces:       map[string]placement.Labels{"prod": {"tier": "critical"}},
		Policies: []migration.Policy{{
			Name: "databases",
			Selectors: &migration.Selectors{
				VM:        migration.Labels{"app": "db"},
				Namespace: migration.Labels{"tier": "critical"},
			},
			OptionsOverrides: migration.OptionsOverrides{
				AllowPostCopy:           new(true),
				BandwidthPerMigration:   new(1024 * mibps),
				CompletionTimeoutPerGiB: new(300 * time.Second),
				Experimental: &migration.Experimental{
					StallDetector: &migration.StallDetectorOverrides{
						StallMargin:       new(5),
						SwitchoverTimeout: new(time.Minute),
					},
				},
			},
		}},
	}
	ignore := cmpopts.IgnoreFields(inventory.Fleet{}, "Hosts", "VMs")
	if diff := cmp.Diff(want, fleet, ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("fleet (-want +got):\n%s", diff)
	}
}

func TestReadFleetWarns(t *testing.T) {
	text := `hosts:
- {name: small, memory: 8GiB, cpus: 2}
vms:
- {name: "a[1-3]", host: small, memory: 3GiB}
policies:
- {name: matchless}
- {name: one, selectors: {}}
- {name: two, selectors: {}}
`
	fleet, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"f: selectors of two: needs labels that no other policy selects, " +
			"has those of one, which always wins",
		"f:2: host small: its VMs need 9GiB of memory, it has 8GiB",
		"f:2: host small: its VMs need 3 CPUs, it has 2",
		"f:6: policy matchless: without selectors it matches no VM",
	}
	var got []string
	for _, p := range fleet.Warnings {
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// scenario is a larger file with a fleet in it.
type scenario struct {
	Title          string `yaml:"title"`
	inventory.Spec `yaml:",inline"`
}

func TestSpecIsEmbedded(t *testing.T) {
	text := "title: drain\nhosts:\n- {name: n1, memory: 8GiB, cpus: 2, linq: 1}\n" +
		"vms:\n- {name: a, host: n1, memory: 1}\n"
	doc, err := yamldoc.Parse("s.yaml", 1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var s scenario
	want := `s.yaml:3: hosts[0].linq: unknown field "linq"`
	if got := fmt.Sprint(doc.Decode(&s)); got != want {
		t.Errorf("Decode() = %q, want %q", got, want)
	}
	_, err = s.Fleet("s.yaml", doc.Line)
	want = `s.yaml:5: vms[0].memory: "1" has no unit of memory; write 64GiB, 512MiB or 4KiB`
	if got := fmt.Sprint(err); s.Title != "drain" || !strings.Contains(got, want) {
		t.Errorf("Fleet() = %q, want %q", got, want)
	}
	if _, err := (&inventory.Spec{}).Fleet("s.yaml", nil); err != nil {
		t.Errorf("an empty fleet is an error: %v", err)
	}
}

func ExampleReadFleet() {
	fleet, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(`
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "web-[1-4]", host: "n[1-3]", memory: 8GiB, cpus: 2}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, vm := range fleet.VMs {
		fmt.Println(vm.ID, vm.Host, vm.Memory)
	}
	// Output:
	// default/web-1 n1 8GiB
	// default/web-2 n2 8GiB
	// default/web-3 n3 8GiB
	// default/web-4 n1 8GiB
}

func ExampleReadFleet_problems() {
	_, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(`
hosts:
- {name: n1, memory: 64, cpus: 16}
vms:
- {name: web, host: n2, memory: 8GiB, class: buzy}
`))
	fmt.Println(err)
	// Output:
	// fleet.yaml:3: hosts[0].memory: "64" has no unit of memory; write 64GiB, 512MiB or 4KiB
	// fleet.yaml:5: vms[0].class: unknown class "buzy"; use idle, web, database, busy, in-memory
	// fleet.yaml:5: vm default/web host: there is no host "n2"
}
