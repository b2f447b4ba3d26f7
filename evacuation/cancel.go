package evacuation

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Cancellation is what undoes the evacuation of a host, or of single VMs. When
// it is refused nothing is to be done.
type Cancellation struct {
	Refused []placement.Reason
	Clear   []hypervisor.VMID // VMs that lose their marks, by ID
	Cancel  []migration.ID    // migrations to cancel, by ID
}

// Cancel decides what undoes the evacuation of the given VMs from the host:
// of all its VMs when a drain is withdrawn, or of single ones. Every mark
// that names the host is cleared, also those of VMs that are on their way:
// otherwise a failure would start their evacuation anew.
//
// It is refused while the host carries the drain taint, because the next Plan
// would create everything again: remove the taint first.
//
// Migrations that this evacuation created and that have not been handed over
// are cancelled: they cost nothing yet. One that was handed over is finished:
// the VM is better off where it is expected than half way. Compatible clears
// marks only; KubeVirt lets even unstarted migrations go on.
// Source: KubeVirt v1.9.0 pkg/virt-api/rest/evacuate_cancel.go:40.
func Cancel(p Params, host Host, vms []VM, migrations []ActiveMigration) Cancellation {
	if p.Draining(host) {
		key := cmp.Or(p.DrainKey, DefaultDrainKey)
		return Cancellation{Refused: []placement.Reason{{
			Check: "taint",
			Need:  "no " + key + ":" + string(placement.NoSchedule),
			Have:  string(host.Name) + " carries it",
		}}}
	}
	var w Cancellation
	asked := make(map[hypervisor.VMID]struct{}, len(vms))
	for i := range vms {
		asked[vms[i].ID] = struct{}{}
		if m := vms[i].EvacuateFrom; m != "" && m == host.Name {
			w.Clear = append(w.Clear, vms[i].ID)
		}
	}
	slices.Sort(w.Clear)
	w.Clear = slices.Compact(w.Clear)
	if p.Compatible {
		return w
	}
	for i := range migrations {
		if _, ok := asked[migrations[i].VM]; ok && unstarted(host, &migrations[i]) {
			w.Cancel = append(w.Cancel, migrations[i].ID)
		}
	}
	slices.Sort(w.Cancel)
	w.Cancel = slices.Compact(w.Cancel)
	return w
}

// unstarted: the evacuation of h created the migration, and nothing has been
// handed over. From PreparingTarget on the source may begin to send any time.
func unstarted(h Host, f *ActiveMigration) bool {
	return f.By == migration.Evacuation && f.From == h.Name && h.Name != "" &&
		!f.Phase.HandedOver()
}
