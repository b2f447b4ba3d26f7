package store_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// What is stored about requests, debts and hosts is read again as it was: stores keep
// JSON.
func TestRequestsAndFactsSurviveAStore(t *testing.T) {
	debts := []placement.PolicyViolation{{VM: "a", Host: "n2", Action: placement.ForcedMigrate,
		Reason: placement.Reason{Check: "zone", Need: "z1", Have: "z2"}}}
	facts := &placement.Facts{Memory: placement.DeviceInventory{Total: 1 << 36, Reserved: 1 << 33,
		Ratio: 1.5}, Zone: "z1", Aggregates: []*placement.Aggregate{placement.NewAggregate("ssd",
		map[string]string{"disks": "8", "filter_tenant_id": "t1"})},
		CPU: &placement.CPU{Arch: "x86_64", Features: []string{"avx"}},
		Cells: []placement.Cell{{ID: 0, Memory: 1 << 30,
			Pages: []placement.Pool{{Size: hypervisor.GiB, Pages: 4}},
			Cores: []placement.CPUSet{placement.CPUSetOf(0, 1), placement.CPUSetOf(2, 3)}}},
		Devices: placement.Devices{{Class: "gpu", Count: 2}}}
	for _, r := range []struct{ stored, read any }{
		{&store.Host{Host: hypervisor.Host{Name: "n1"}, Facts: facts}, &store.Host{}},
		{&store.VM{VM: hypervisor.VM{ID: "a"}, Overhead: 1, Balloon: 2, Disk: 3,
			Placement: &placement.Constraints{Zones: []string{"z1"}, Tenant: "t1"},
			Forced: &store.Forced{Move: "a#1", Host: "n2", Action: placement.ForcedMigrate,
				Debts: debts}}, &store.VM{}},
		{&store.Migration{Spec: migration.Spec{ID: "a#1", Force: placement.Yes, Compat: true,
			Created: time.Unix(0, 0).UTC()}, Source: store.SourceReport{Ceded: true},
			Decision: &placement.Decision{Outcome: placement.Accepted, Host: "n2",
				Action: placement.ForcedMigrate, Debts: debts}}, &store.Migration{}},
	} {
		text, err := json.Marshal(r.stored)
		if err == nil {
			err = json.Unmarshal(text, r.read)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		exact := cmp.Exporter(func(reflect.Type) bool { return true })
		if diff := cmp.Diff(r.stored, r.read, exact, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-stored +read):\n%s", diff)
		}
	}
}
