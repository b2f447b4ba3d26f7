package evacuation_test

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCancel(t *testing.T) {
	host := evacuation.Host{Name: "n1"}
	marked := func(name string, mark hypervisor.HostName) evacuation.VM {
		g := movable(name)
		g.EvacuateFrom = mark
		return g
	}
	ours := func(phase migration.Phase) evacuation.ActiveMigration {
		return evacuation.ActiveMigration{ID: "m1", VM: "default/a", Phase: phase,
			By: migration.Evacuation, From: "n1"}
	}
	byUser, elsewhere, stranger := ours(migration.Pending), ours(migration.Pending),
		ours(migration.Pending)
	byUser.By, elsewhere.From, stranger.VM = migration.User, "n2", "default/z"
	clear, cancel := []hypervisor.VMID{"default/a"}, []migration.ID{"m1"}
	tests := []struct {
		name       string
		compatible bool
		host       evacuation.Host
		guest      evacuation.VM
		flight     evacuation.ActiveMigration
		want       evacuation.Cancellation
	}{
		{"the mark goes and the waiting migration with it", false, host, marked("a", "n1"),
			ours(migration.Pending), evacuation.Cancellation{Clear: clear, Cancel: cancel}},
		{"after a taint there is no mark, only the migration", false, host, movable("a"),
			ours(migration.Unset), evacuation.Cancellation{Cancel: cancel}},
		{"a target that is ready but not handed over is given up", false, host, marked("a", "n1"),
			ours(migration.Scheduled), evacuation.Cancellation{Clear: clear, Cancel: cancel}},
		{"a migration that was handed over finishes", false, host, marked("a", "n1"),
			ours(migration.PreparingTarget), evacuation.Cancellation{Clear: clear}},
		{"a finished migration is left alone", false, host, marked("a", "n1"),
			ours(migration.Failed), evacuation.Cancellation{Clear: clear}},
		{"a user's migration is left alone", false, host, marked("a", "n1"), byUser,
			evacuation.Cancellation{Clear: clear}},
		{"the evacuation of another host is left alone", false, host, marked("a", "n2"),
			elsewhere, evacuation.Cancellation{}},
		{"a VM that was not asked about is left alone", false, host, marked("a", "n1"), stranger,
			evacuation.Cancellation{Clear: clear}},
		{"KubeVirt lets even unstarted migrations go on", true, host, marked("a", "n1"),
			ours(migration.Pending), evacuation.Cancellation{Clear: clear}},
		{"while the taint is there it is refused", false, drained("n1"), marked("a", "n1"),
			ours(migration.Pending), refused()},
		{"KubeVirt refuses it, too", true, drained("n1"), marked("a", "n1"),
			ours(migration.Pending), refused()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := evacuation.Cancel(evacuation.Params{Compatible: tt.compatible}, tt.host,
				[]evacuation.VM{tt.guest}, []evacuation.ActiveMigration{tt.flight})
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func refused() evacuation.Cancellation {
	return evacuation.Cancellation{Refused: []placement.Reason{{Check: "taint",
		Need: "no kubevirt.io/drain:NoSchedule", Have: "n1 carries it"}}}
}

// After a withdrawal has been carried out nothing of the evacuation is left:
// neither does Plan start it again, nor does a second Cancel find anything.
func TestACancelledDrainStaysCancelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		q.host.Taints, q.p.Compatible = nil, false
		migrations := anyFlights(t, q.guests)
		w := evacuation.Cancel(q.p, q.host, q.guests, migrations)
		for i := range q.guests {
			if slices.Contains(w.Clear, q.guests[i].ID) {
				q.guests[i].EvacuateFrom = ""
			}
		}
		for i := range migrations {
			if slices.Contains(w.Cancel, migrations[i].ID) {
				if migrations[i].Phase.HandedOver() {
					t.Fatalf("%+v is cancelled", migrations[i])
				}
				migrations[i].Phase = migration.Failed
			}
		}
		if diff := gocmp.Diff(evacuation.Decision{}, q.plan()); diff != "" {
			t.Fatalf("planned afterwards (-want +got):\n%s", diff)
		}
		again := evacuation.Cancel(q.p, q.host, q.guests, migrations)
		if diff := gocmp.Diff(evacuation.Cancellation{}, again); diff != "" {
			t.Fatalf("the second time (-want +got):\n%s", diff)
		}
	})
}
