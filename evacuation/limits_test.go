package evacuation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/migration"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFreeIsTheSmallerOfWhatIsAllowed(t *testing.T) {
	tests := []struct {
		name                string
		inCluster, fromNode int
		want                int
	}{
		{"nothing moves", 0, 0, 2},
		{"the cluster decides", 4, 0, 1},
		{"the node decides", 0, 1, 1},
		{"the cluster is full", 5, 0, 0},
		{"the node is more than full", 0, 9, 0},
		{"both are more than full", 9, 9, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := evacuation.DefaultLimits().Free(tt.inCluster, tt.fromNode); got != tt.want {
				t.Errorf("Free = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestWhatCounts(t *testing.T) {
	spots, old := evacuation.FreeSpots, evacuation.FreeSpotsV059
	here := func(phase migration.Phase) evacuation.ActiveMigration {
		return evacuation.ActiveMigration{VM: "default/a", Phase: phase}
	}
	abroad := func(phase migration.Phase) evacuation.ActiveMigration {
		return evacuation.ActiveMigration{VM: "default/a", Phase: phase, Abroad: true}
	}
	none, one := evacuation.Load{}, evacuation.Load{InCluster: 1, FromHost: 1}
	tests := []struct {
		name       string
		mode       evacuation.Mode
		compatible bool
		flight     evacuation.ActiveMigration
		want       evacuation.Load
	}{
		{"a migration that is not accepted yet takes a spot", spots, false,
			here(migration.Unset), one},
		{"a migration that waits takes a spot", spots, false, here(migration.Pending), one},
		{"which KubeVirt overlooked, accepted", spots, true, here(migration.Pending), none},
		{"or not", spots, true, here(migration.Unset), none},
		{"a migration to another cluster that waits takes none", spots, false,
			abroad(migration.Pending), none},
		{"a migration that waits took a spot in v0.59", old, false, here(migration.Pending), one},
		{"so did one that is not accepted yet", old, false, here(migration.Unset), one},
		{"a target that is being prepared takes a spot", spots, false,
			here(migration.Scheduling), one},
		{"unless it is in another cluster", spots, false, abroad(migration.Scheduling), none},
		{"whose migration counts from Scheduled on", spots, false,
			abroad(migration.Scheduled), one},
		{"a running migration takes a spot", spots, false, here(migration.Running), one},
		{"a finished one takes none", spots, false, here(migration.Succeeded), none},
		{"a finished one took none in v0.59", old, false, here(migration.Failed), none},
		{"a VM elsewhere counts in the cluster only", spots, false,
			evacuation.ActiveMigration{VM: "default/b", Phase: migration.Running},
			evacuation.Load{InCluster: 1}},
		{"an equal name in another namespace is another VM", spots, false,
			evacuation.ActiveMigration{VM: "other/a", Phase: migration.Running},
			evacuation.Load{InCluster: 1}},
		{"which KubeVirt overlooked", spots, true,
			evacuation.ActiveMigration{VM: "other/a", Phase: migration.Running}, one},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := evacuation.Params{Mode: tt.mode, Compatible: tt.compatible}
			got := evacuation.Count(p, []evacuation.ActiveMigration{tt.flight},
				[]evacuation.VM{movable("a")})
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was created at the first look is there at the second, not accepted yet.
func TestASecondLookCreatesNoMoreThanThereAreSpots(t *testing.T) {
	p := evacuation.Params{Strategy: evacuation.LiveMigrate, Mode: evacuation.FreeSpots,
		Limits: evacuation.DefaultLimits()}
	var vms []evacuation.VM
	for i := range 8 {
		vms = append(vms, movable(fmt.Sprint(i)))
	}
	var migrations []evacuation.ActiveMigration
	for range 2 {
		d := evacuation.Plan(p, drained("n1"), vms, evacuation.Count(p, migrations, vms))
		for _, c := range d.Create {
			migrations = append(migrations, evacuation.ActiveMigration{ID: migration.ID(c.VM), VM: c.VM,
				By: migration.Evacuation, From: "n1"})
			i := slices.IndexFunc(vms, func(g evacuation.VM) bool { return g.ID == c.VM })
			vms[i].Moving = true
		}
	}
	if len(migrations) != 2 {
		t.Errorf("%d migrations for 2 spots", len(migrations))
	}
}

func TestAFlightThatIsGivenTwiceCountsOnce(t *testing.T) {
	f := evacuation.ActiveMigration{ID: "m1", VM: "default/a", Phase: migration.Running}
	got := evacuation.Count(evacuation.Params{}, []evacuation.ActiveMigration{f, f},
		[]evacuation.VM{movable("a")})
	if want := (evacuation.Load{InCluster: 1, FromHost: 1}); got != want {
		t.Errorf("Count = %+v, want %+v", got, want)
	}
}

func TestNamesAloneNeverCountFewerFromTheHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		migrations := anyFlights(t, q.guests)
		q.p.Mode = rapid.SampledFrom([]evacuation.Mode{evacuation.QueueAll,
			evacuation.FreeSpotsV059}).Draw(t, "mode that counts alike")
		q.p.Compatible = false
		exact := evacuation.Count(q.p, migrations, q.guests)
		q.p.Compatible = true
		names := evacuation.Count(q.p, migrations, q.guests)
		if exact.InCluster != names.InCluster || exact.FromHost > names.FromHost ||
			names.FromHost > names.InCluster {
			t.Fatalf("by ID %+v, by name %+v", exact, names)
		}
	})
}

func TestCountingMoreFlightsNeverCountsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		migrations := anyFlights(t, q.guests)
		all := evacuation.Count(q.p, migrations, q.guests)
		some := evacuation.Count(q.p, migrations[:len(migrations)/2], q.guests)
		rest := evacuation.Count(q.p, migrations[len(migrations)/2:], q.guests)
		sum := evacuation.Load{InCluster: some.InCluster + rest.InCluster,
			FromHost: some.FromHost + rest.FromHost}
		if diff := gocmp.Diff(all, sum); diff != "" {
			t.Fatalf("the halves differ from the whole (-want +got):\n%s", diff)
		}
	})
}
