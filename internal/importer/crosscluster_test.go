package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// A VM that goes to another cluster, or comes from one, stays where it is until that has ended.
// KubeVirt counts its migration from the phase on in which it has a pod here.
func TestMigrationsBetweenClustersKeepTheirVMs(t *testing.T) {
	for _, tt := range []struct{ way, phase, want string }{
		{"sendTo", "", ""}, {"sendTo", "Synchronizing", "Pending"},
		{"sendTo", "Scheduling", "Pending"}, {"sendTo", "Scheduled", "Scheduled"},
		{"sendTo", "Running", "Running"}, {"receive", "WaitingForSync", "Pending"},
		{"receive", "Scheduling", "Scheduling"}, {"receive", "TargetReady", "TargetReady"},
	} {
		fleet, err := kubevirtRead(node + strings.Replace(instance, "status: {", "status: {conditions: "+
			"[{type: LiveMigratable, status: 'True'}], migrationState: {migrationUid: u, sourceNode: "+
			"n1, targetNode: n1}, ", 1) + strings.NewReplacer("vmiName: db", "vmiName: db, "+tt.way+
			": {migrationID: x}", "name: m", "name: m, uid: u").Replace(move) +
			"status: {phase: '" + tt.phase + "'}\n")
		if err != nil {
			t.Fatal(err)
		}
		v, m := fleet.VMs[0], fleet.Migrations[0]
		way, from := "moves it to another cluster", "n1"
		if tt.way == "receive" {
			way, from = "moves it here from another cluster", ""
		}
		got := fmt.Sprintf("%s %t %q %q %t %s", m.Phase, m.CrossCluster, m.Source, m.Chosen,
			v.Migratable, v.NotMigratableReason)
		want := fmt.Sprintf("%s true %q \"\" false the migration prod/m %s", tt.want, from, way)
		if got != want {
			t.Errorf("%s, %s: %s; want %s", tt.way, tt.phase, got, want)
		}
		if len(fleet.Warnings) > 0 {
			t.Errorf("%s: warnings %v", tt.way, fleet.Warnings)
		}
	}
}

// The two phases belong to migrations between clusters, and both ends may be in one cluster: then
// KubeVirt treats it as a local one.
func TestAMigrationWithBothEndsHereIsALocalOne(t *testing.T) {
	fleet, err := importer.ReadKubeVirt("f", strings.NewReader(node+instance+strings.Replace(move,
		"vmiName: db", "vmiName: db, sendTo: {migrationID: x}, receive: {migrationID: x}", 1)),
		inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if fleet.Migrations[0].CrossCluster {
		t.Error("it is one between clusters")
	}
}
