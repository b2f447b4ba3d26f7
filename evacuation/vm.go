package evacuation

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Host is the host that is to be emptied.
type Host struct {
	Name   hypervisor.HostName
	Taints []placement.Taint
	Terms  Terms // of its drain; what they do not say is as in [Params]
	// Missing: the cluster does not know the host any more. Nothing is decided
	// about its VMs: where they are is then not known either.
	Missing bool
	// Link is the speed of its network card, for a [Policy]; 0 is not known.
	Link hypervisor.Bandwidth
}

// A VM is what evacuation knows of one VM on the host.
type VM struct {
	ID       hypervisor.VMID
	Final    bool // it has ended: succeeded or failed
	Deleting bool // its deletion was asked for
	Stopping bool // it is to be shut down
	Between  bool // it is on its way up or down, and cannot migrate until that is over
	// Held says what keeps a migration of it from beginning until it ends, for people: a backup, a
	// utility volume. "" is nothing.
	Held       string
	Strategy   Strategy // its own; Unset takes the cluster's
	Migratable bool     // known to be able to migrate live
	// NotMigratableReason says why it is not migratable, in the words of its source. It is
	// for people; "" is not known.
	NotMigratableReason string `json:"WhyNot"`
	// EvacuateFrom is the host that it was asked to leave; "" is none.
	EvacuateFrom hypervisor.HostName `json:"Mark"`
	// Migrating: it migrates, going by its own times; see [Migrating].
	Migrating bool
	// Moving: an unfinished migration of it exists, in whatever phase.
	Moving bool
	// Instances counts its copies that have not ended: 1 for a VM at rest, 2
	// while an old target is still being cleared away.
	Instances   int
	Descheduled bool             // the eviction came from the descheduler: less urgent
	Memory      hypervisor.Bytes // and local disks, for the order; 0 is not known
	Failed      int              // attempts in a row that have failed, for a [Policy]
}

// Evacuating returns the guest as a [Policy] sees it.
func (g VM) Evacuating() EvacuatingVM {
	return EvacuatingVM{VM: g.ID, Memory: g.Memory, Failed: g.Failed}
}

// distinct returns the VMs with each of them once: the list itself where none is given
// twice.
func (p Params) distinct(vms []VM) []VM {
	at := make(map[hypervisor.VMID]int, len(vms))
	for i := range vms {
		at[vms[i].ID] = i
	}
	if len(at) == len(vms) {
		return vms
	}
	clear(at)
	var all []VM
	for i := range vms {
		g := &vms[i]
		if k, twice := at[g.ID]; twice {
			all[k] = all[k].with(g, p.Strategy)
			continue
		}
		at[g.ID] = len(all)
		all = append(all, *g)
	}
	return all
}

// with merges two descriptions of one VM, in any order: what keeps it on the host counts.
func (g VM) with(o *VM, cluster Strategy) VM {
	g.Final, g.Deleting = g.Final || o.Final, g.Deleting || o.Deleting
	g.Stopping, g.Between = g.Stopping || o.Stopping, g.Between || o.Between
	g.Migrating, g.Moving = g.Migrating || o.Migrating, g.Moving || o.Moving
	g.Migratable, g.Descheduled = g.Migratable && o.Migratable, g.Descheduled && o.Descheduled
	g.Held = max(g.Held, o.Held)
	g.Strategy = min(g.Strategy.Or(cluster), o.Strategy.Or(cluster))
	g.NotMigratableReason, g.EvacuateFrom = max(g.NotMigratableReason, o.NotMigratableReason), max(g.EvacuateFrom, o.EvacuateFrom)
	g.Instances, g.Failed = max(g.Instances, o.Instances), max(g.Failed, o.Failed)
	g.Memory = max(g.Memory, o.Memory)
	return g
}

// priority returns how urgent the guest's migration is.
// Source: KubeVirt v1.9.0 evacuation.go:336 (GenerateNewMigration).
func (g *VM) priority() migration.Priority {
	if g.Descheduled {
		return migration.SystemMaintenance
	}
	return migration.SystemCritical
}
