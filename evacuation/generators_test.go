package evacuation_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"pgregory.net/rapid"
)

// A question is everything that Plan is asked with.
type question struct {
	p      evacuation.Params
	host   evacuation.Host
	guests []evacuation.VM
	load   evacuation.Load
}

func (q question) plan() evacuation.Decision {
	return evacuation.Plan(q.p, q.host, q.guests, q.load)
}

var drainTaint = placement.Taint{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}

func anyStrategy() *rapid.Generator[evacuation.Strategy] {
	return rapid.SampledFrom([]evacuation.Strategy{evacuation.Unset, evacuation.None,
		evacuation.LiveMigrate, evacuation.LiveMigrate, evacuation.LiveMigrateIfPossible,
		evacuation.External})
}

func anyMode() *rapid.Generator[evacuation.Mode] {
	return rapid.SampledFrom([]evacuation.Mode{evacuation.QueueAll, evacuation.FreeSpots,
		evacuation.FreeSpotsV059})
}

// freeSpotsMode is any mode that heeds the limits.
func freeSpotsMode() *rapid.Generator[evacuation.Mode] { return anyMode().Filter(limited) }

func limited(m evacuation.Mode) bool { return m != evacuation.QueueAll }

// anyQuestion asks about a host that the cluster knows, with a fresh view.
func anyQuestion(t *rapid.T) question {
	q := question{
		p: evacuation.Params{
			Strategy: anyStrategy().Draw(t, "cluster strategy"),
			Mode:     anyMode().Draw(t, "mode"),
			Limits: evacuation.Limits{
				PerCluster: rapid.IntRange(0, 9).Draw(t, "per cluster"),
				PerNode:    rapid.IntRange(0, 6).Draw(t, "per node"),
			},
			Order: rapid.SampledFrom([]evacuation.Order{evacuation.LargestFirst,
				evacuation.SmallestFirst, evacuation.ByID}).Draw(t, "order"),
			Compatible: rapid.Bool().Draw(t, "compatible"),
		},
		host: evacuation.Host{Name: "n1"},
		load: evacuation.Load{
			InCluster: rapid.IntRange(0, 12).Draw(t, "in cluster"),
			FromHost:  rapid.IntRange(0, 7).Draw(t, "from host"),
		},
	}
	if rapid.Bool().Draw(t, "tainted") {
		q.host.Taints = []placement.Taint{drainTaint}
	}
	for i := range rapid.IntRange(0, 9).Draw(t, "guests") {
		q.guests = append(q.guests, anyGuest(t, i))
	}
	return q
}

// anyGuest is a VM that could leave, but for about half of the time.
func anyGuest(t *rapid.T, i int) evacuation.VM {
	rarely := func(what string) bool { return rapid.IntRange(0, 11).Draw(t, what) == 7 }
	return evacuation.VM{
		ID:           hypervisor.VMID(fmt.Sprintf("%s/v%d", anyNamespace().Draw(t, "namespace"), i)),
		Final:        rarely("final"),
		Deleting:     rarely("deleting"),
		Strategy:     anyStrategy().Draw(t, "strategy"),
		Migratable:   rapid.IntRange(0, 3).Draw(t, "migratable") > 0,
		EvacuateFrom: rapid.SampledFrom([]hypervisor.HostName{"n1", "n1", "", "n2"}).Draw(t, "mark"),
		Migrating:    rarely("migrating"),
		Moving:       rarely("moving"),
		Instances:    rapid.SampledFrom([]int{1, 1, 1, 1, 0, 2}).Draw(t, "instances"),
		Held:         rapid.SampledFrom([]string{"", "", "", "a backup is in progress"}).Draw(t, "held"),
		Descheduled:  rapid.Bool().Draw(t, "descheduled"),
		Memory:       hypervisor.Bytes(rapid.IntRange(0, 4).Draw(t, "GiB")) * hypervisor.GiB,
	}
}

func anyNamespace() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"default", "other"})
}

// anyFlights are migrations of the VMs and of VMs elsewhere, some of which
// have the names of VMs in another namespace.
func anyFlights(t *rapid.T, vms []evacuation.VM) []evacuation.ActiveMigration {
	var migrations []evacuation.ActiveMigration
	for i := range rapid.IntRange(0, 12).Draw(t, "flights") {
		f := evacuation.ActiveMigration{
			ID: migration.ID(fmt.Sprintf("m%02d", i)),
			VM: hypervisor.VMID(fmt.Sprintf("%s/v%d", anyNamespace().Draw(t, "namespace"),
				rapid.IntRange(0, 9).Draw(t, "name"))),
			Phase:  rapid.SampledFrom(migration.Phases()).Draw(t, "phase"),
			By:     migration.Creator(rapid.IntRange(0, 2).Draw(t, "creator")),
			From:   rapid.SampledFrom([]hypervisor.HostName{"n1", "n2", ""}).Draw(t, "from"),
			Abroad: rapid.Bool().Draw(t, "abroad"),
		}
		if len(vms) > 0 && rapid.Bool().Draw(t, "of a guest") {
			f.VM = rapid.SampledFrom(vms).Draw(t, "guest").ID
		}
		migrations = append(migrations, f)
	}
	return migrations
}
