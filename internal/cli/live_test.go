package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// TestAPlanOfAStoreTakesWhatWasMeasured: the last rate, or the mean of the hour where that is higher; and each VM
// says where its figure comes from.
func TestAPlanOfAStoreTakesWhatWasMeasured(t *testing.T) {
	now := time.Date(2026, 5, 2, 3, 30, 0, 0, time.UTC)
	var begin time.Time // now
	vm := func(name hypervisor.VMID, d *store.DirtyRates) *store.VM {
		return &store.VM{VM: hypervisor.VM{ID: name, Memory: 4 * hypervisor.GiB}, Host: "n1", Dirtied: d}
	}
	fleet := func(all ...*store.VM) *inventory.Fleet {
		records := store.NewMemory()
		for _, v := range all {
			if _, err := records.Put(context.Background(), v); err != nil {
				t.Fatal(err)
			}
		}
		var c client.Cluster
		if err := c.Pull(context.Background(), records); err != nil {
			t.Fatal(err)
		}
		return fleetOf(&c, now, begin)
	}
	var none *store.DirtyRates
	night := none.With(80e6, now.Add(-24*time.Hour)).With(5e6, now.Add(-2*time.Hour))
	day := none.With(7e6, now.Add(-30*time.Minute))
	guess, _ := inventory.Class("web", 4*hypervisor.GiB)
	f := fleet(vm("a", night), vm("b", day), vm("c", nil))
	for i, want := range []struct {
		rate hypervisor.Bandwidth
		from string
	}{{80e6, "measured by its agent 2h00m ago"}, {7e6, "measured by its agent 30m00s ago"},
		{guess.Rate, "taken for a web server: it was not measured"}} {
		if v := f.VMs[i]; v.Workload.Rate != want.rate || v.WorkloadFrom != want.from || v.Workload.Hot != guess.Hot {
			t.Errorf("%s: %v, %q, want %v, %q", v.ID, v.Workload.Rate, v.WorkloadFrom, want.rate, want.from)
		}
		if v := f.VMs[i]; v.Unmeasured != (i == 2) {
			t.Errorf("%s: unmeasured %t", v.ID, v.Unmeasured)
		}
	}
	for hour, want := range map[int]hypervisor.Bandwidth{1: 5e6, 3: 80e6, 7: 80e6} { // nothing is known of the seventh
		begin = now.Add(time.Duration(21+hour) * time.Hour)
		if v := fleet(vm("a", night)).VMs[0]; v.Workload.Rate != want ||
			(v.WorkloadFrom == "measured by its agent at this time of the day") != (hour != 7) {
			t.Errorf("at %v: %v, %q, want %v", begin, v.Workload.Rate, v.WorkloadFrom, want)
		}
	}
	begin = time.Time{}
	for _, tt := range []struct {
		fleet *inventory.Fleet
		want  string
	}{{f, "what 2 of 3 guests write was measured by their agents, 2h00m ago or later; the others are taken for web servers"},
		{fleet(vm("b", day)), "what guests write was measured by their agents, 30m00s ago or later"},
		{fleet(vm("c", nil)), "what guests write is not in a store: they are taken for web servers; --workloads FILE"}} {
		if got := tt.fleet.Warnings[0].Message; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q, want %q…", got, tt.want)
		}
	}
}

// TestAPlanOfAStoreTakesVMsAsTheControllerDoes: with the local disks that their hardware has, with what keeps them from
// migrating, paused or not, and with what moves.
func TestAPlanOfAStoreTakesVMsAsTheControllerDoes(t *testing.T) {
	const gib = hypervisor.GiB
	hardware := &hypervisor.Hardware{Disks: []hypervisor.Disk{{Name: "root", Size: 20 * gib, Format: "qcow2"}}}
	v := &store.VM{VM: hypervisor.VM{ID: "default/a", Memory: 4 * gib, CPUs: 2, Hardware: hardware}, Host: "n1",
		Migratable: true, Pause: true, Overhead: gib, Balloon: gib / 2, CPURequest: 1,
		Placement: &placement.Constraints{Apart: []string{"db"}},
		Snapshots: []store.Snapshot{{Disk: "root", Name: "before"}}}
	moves := &store.Migration{Spec: migration.Spec{ID: "default/a#1", VM: "default/a"},
		State: migration.State{Phase: migration.Running, Source: "n1", Target: "n2"}}
	over := &store.Migration{Spec: migration.Spec{ID: "default/a#0", VM: "default/a"},
		State: migration.State{Phase: migration.Succeeded, Source: "n2", Target: "n1"}}
	records := store.NewMemory()
	for _, r := range []store.Record{v, moves, over} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var c client.Cluster
	if err := c.Pull(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	f := fleetOf(&c, time.Now(), time.Time{})
	got, can, why := f.VMs[0], false, ""
	if diff := cmp.Diff(*v.Place(), inventory.PlacementVM(&got)); diff != "" {
		t.Errorf("what it takes of a host (-controller +plan):\n%s", diff)
	}
	if can, why = v.CanMigrate(); got.Migratable != can || got.NotMigratableReason != why || !got.Pause {
		t.Errorf("it is %+v; the controller says %v, %q", got, can, why)
	}
	want := []inventory.Migration{{Spec: moves.Spec, Phase: migration.Running, Source: "n1", Chosen: "n2"}}
	if diff := cmp.Diff(want, f.Migrations); diff != "" {
		t.Errorf("what moves (-want +got):\n%s", diff)
	}
	if last := f.Warnings[len(f.Warnings)-1].Message; !strings.HasPrefix(last, "1 migration under way") {
		t.Errorf("it says %q", last)
	}
}

// TestAPlanOfAStoreEncryptsAsTheControllerDoes: where two hosts have certificates, migrations are as slow as
// encryption, and the range is that of encryption.
func TestAPlanOfAStoreEncryptsAsTheControllerDoes(t *testing.T) {
	const gib = hypervisor.GiB
	settings, err := config.ReadSettings("")
	if err != nil {
		t.Fatal(err)
	}
	const (
		plain = fake.Abilities &^ hypervisor.CanLoseChannels
		tls   = plain | hypervisor.CanEncrypt
	)
	for _, tt := range []struct {
		abilities  []hypervisor.Abilities
		encryption fake.Encryption
		class      string
		atLeast    time.Duration
		warning    string
	}{
		{[]hypervisor.Abilities{plain, plain}, fake.Plain, "uncapped kvm", 0, ""},
		{[]hypervisor.Abilities{tls, plain}, fake.Plain, "uncapped kvm", 0, ""},
		{[]hypervisor.Abilities{tls, tls}, fake.TLSX509, "tls", 15 * time.Second, ""},
		{[]hypervisor.Abilities{tls, tls, plain}, fake.TLSX509, "tls", 15 * time.Second,
			"2 of 3 hosts have certificates: all migrations are taken for encrypted"},
	} {
		records := store.NewMemory()
		put := func(r store.Record) {
			if _, err := records.Put(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for i, able := range tt.abilities {
			put(&store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(fmt.Sprint("n", i+1)), Memory: 64 * gib,
				CPUs: 16, Link: 10 * hypervisor.Gbit, Abilities: able}})
		}
		put(&store.VM{VM: hypervisor.VM{ID: "default/a", Memory: 8 * gib, CPUs: 2}, Host: "n1", Migratable: true})
		var c client.Cluster
		if err := c.Pull(t.Context(), records); err != nil {
			t.Fatal(err)
		}
		s, err := scenarioOf("store", &c, settings, time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := whatif.Ask(t.Context(), s, whatif.Question{Hosts: []hypervisor.HostName{"n1"}})
		if err != nil || len(f.Waves) != 1 {
			t.Fatalf("%v: %v %+v", tt.abilities, err, f)
		}
		p := f.Waves[0][0].Predicted
		if s.Encryption != tt.encryption || p.Class != tt.class || p.Seconds.P50 < tt.atLeast.Seconds() {
			t.Errorf("%v: %q, %+v, want %q of class %s", tt.abilities, s.Encryption, p, tt.encryption, tt.class)
		}
		warned := slices.ContainsFunc(s.Fleet.Warnings, func(w inventory.Problem) bool {
			return strings.Contains(w.Message, "certificates")
		})
		if warned != (tt.warning != "") {
			t.Errorf("%v: %+v, want %q", tt.abilities, s.Fleet.Warnings, tt.warning)
		}
	}
}

// Off and on count more than certificates.
func TestEncryptionIsWhatTheConfigurationWants(t *testing.T) {
	able := inventory.Host{Host: hypervisor.Host{Abilities: hypervisor.CanEncrypt}}
	for _, tt := range []struct {
		hosts []inventory.Host
		want  map[migration.Encryption]fake.Encryption
	}{
		{[]inventory.Host{able, able}, map[migration.Encryption]fake.Encryption{migration.EncryptionAuto: fake.TLSX509,
			migration.EncryptionOff: fake.Plain, migration.EncryptionRequired: fake.TLSX509}},
		{[]inventory.Host{able, {}}, map[migration.Encryption]fake.Encryption{migration.EncryptionAuto: fake.Plain,
			migration.EncryptionOff: fake.Plain, migration.EncryptionRequired: fake.TLSX509}},
	} {
		for wanted, want := range tt.want {
			if got := encryptionOf(tt.hosts, wanted); got != want {
				t.Errorf("%d hosts, %v: %q, want %q", len(tt.hosts), wanted, got, want)
			}
		}
	}
}

// TestAPlanOfAStoreHasTheSettingsOfItsController: limits, timeouts, quotas, policies and eviction strategy.
func TestAPlanOfAStoreHasTheSettingsOfItsController(t *testing.T) {
	const gib = hypervisor.GiB
	records := store.NewMemory()
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 64 * gib, CPUs: 16, Link: 10 * hypervisor.Gbit}},
		&store.VM{VM: hypervisor.VM{ID: "default/a", Memory: 8 * gib, CPUs: 2}, Host: "n1", Migratable: true}} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var c client.Cluster
	if err := c.Pull(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	settings, err := config.ParseSettings("controller.yaml", []byte(`
limits: {perCluster: 12, perSource: 6}
timeouts: {transfer: 3h}
evictionStrategy: None
order: SmallestFirst
quotas: {gold: {cpus: 3}}
namespaces: {default: {tier: gold}}
policies: [{name: slow, bandwidthPerMigration: 1Gbit/s}]
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenarioOf("store", &c, settings, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(settings.Controller, s.Controller) {
		t.Errorf("its controller: %+v, want %+v", s.Controller, settings.Controller)
	}
	if f := s.Fleet; f.Config.ParallelMigrationsPerCluster != 12 || len(f.Policies) != 1 ||
		f.EvictionStrategy != evacuation.None || f.Namespaces["default"]["tier"] != "gold" {
		t.Errorf("its fleet has %+v, %+v, %v, %v", f.Config, f.Policies, f.EvictionStrategy, f.Namespaces)
	}
}

// TestAStoreOverTLSIsAStore: it is not looked for as a file, and its certificates come from the flags or the
// environment.
func TestAStoreOverTLSIsAStore(t *testing.T) {
	const url = "tls://127.0.0.1:1"
	t.Setenv(tlsVariable, "")
	if _, err := (&FleetFlags{}).read(url); err == nil || !strings.Contains(err.Error(), "give --tls-dir DIR") {
		t.Errorf("without certificates: %v", err)
	}
	t.Setenv(tlsVariable, "/nowhere/env")
	if _, err := (&FleetFlags{}).read(url); err == nil || !strings.Contains(err.Error(), "/nowhere/env") {
		t.Errorf("with those of the environment: %v", err)
	}
	f := FleetFlags{files: StoreFlags{dir: "/nowhere/flag"}}
	if _, err := f.read(url); err == nil || !strings.Contains(err.Error(), "/nowhere/flag") {
		t.Errorf("with those of the flag: %v", err)
	}
	if _, err := f.read("fleet.yaml"); err == nil || !strings.Contains(err.Error(), "--tls-dir is for the URL of a store") {
		t.Errorf("a file: %v", err)
	}
}
