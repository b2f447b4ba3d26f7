package record_test

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
	"github.com/godwit-vm/godwit/migration/placement/aggregate"
	"github.com/godwit-vm/godwit/migration/placement/choose"
	"github.com/godwit-vm/godwit/migration/placement/resource"
	"github.com/godwit-vm/godwit/migration/placement/topology"
	"github.com/godwit-vm/godwit/record"
)

// What is stored about requests, debts and hosts is read again as it was: stores keep
// JSON.
func TestRequestsAndFactsSurviveAStore(t *testing.T) {
	debts := []choose.Debt{{VM: "a", Host: "n2", Action: choose.ForcedMigrate,
		Reason: placement.Reason{Check: "zone", Need: "z1", Have: "z2"}}}
	facts := &placement.Facts{Memory: resource.Inventory{Total: 1 << 36, Reserved: 1 << 33,
		Ratio: 1.5}, Zone: "z1", Aggregates: []*aggregate.Aggregate{aggregate.New("ssd",
		map[string]string{"disks": "8", "filter_tenant_id": "t1"})},
		CPU: &placement.CPU{Arch: "x86_64", Features: []string{"avx"}},
		Cells: []topology.Cell{{ID: 0, Memory: 1 << 30,
			Pages: []topology.Pool{{Size: hypervisor.GiB, Pages: 4}},
			Cores: []topology.Set{topology.SetOf(0, 1), topology.SetOf(2, 3)}}},
		Devices: resource.Devices{{Class: "gpu", Count: 2}}}
	for _, r := range []struct{ stored, read any }{
		{&record.Host{Host: hypervisor.Host{Name: "n1"}, Facts: facts}, &record.Host{}},
		{&record.VM{VM: hypervisor.VM{ID: "a"}, Overhead: 1, Balloon: 2, Disk: 3,
			Placement: &placement.Constraints{Zones: []string{"z1"}, Tenant: "t1"},
			Forced: &record.Forced{Move: "a#1", Host: "n2", Action: choose.ForcedMigrate,
				Debts: debts}}, &record.VM{}},
		{&record.Migration{Spec: migration.Spec{ID: "a#1", Force: choose.Yes, Compat: true,
			Created: time.Unix(0, 0).UTC()}, Source: record.SourceReport{Ceded: true},
			Decision: &choose.Decision{Outcome: choose.Accepted, Host: "n2",
				Action: choose.ForcedMigrate, Debts: debts}}, &record.Migration{}},
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
