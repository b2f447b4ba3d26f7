package evacuation

import (
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// Limits bound how much moves at once. Zero and less is a limit, too: nothing starts, and the
// reason of every VM that waits shows the limit. [DefaultLimits] are KubeVirt's.
type Limits struct {
	PerCluster int // migrations in the whole cluster
	PerNode    int // migrations out of one host
}

// DefaultLimits are KubeVirt's: 5 in the cluster and 2 out of each host.
// Source: KubeVirt v1.9.0 virt-config.go:44.
func DefaultLimits() Limits { return Limits{PerCluster: 5, PerNode: 2} }

// Free returns how many migrations may start from a node now: the smaller of
// what the cluster and the node still allow, never negative.
// Source: KubeVirt v1.8.4 evacuation.go:386 (freeSpots). Gone from v1.9.0,
// which queues by priority instead.
func (l Limits) Free(inCluster, fromNode int) int {
	return max(0, min(l.PerCluster-inCluster, l.PerNode-fromNode))
}

// A Load is what already moves, as far as the limits count it.
type Load struct {
	InCluster int
	FromHost  int
	// Unseen counts migrations that the caller created for this host and that
	// the VMs' Moving does not show yet. While there are any, nothing is
	// decided, so that a stale view creates no second migration of a VM.
	// Source: KubeVirt v1.9.0 evacuation.go:310 (SatisfiedExpectations).
	Unseen int
}

// An ActiveMigration is what evacuation knows of one migration.
type ActiveMigration struct {
	ID    migration.ID
	VM    hypervisor.VMID
	Phase migration.Phase
	By    migration.Creator
	// From is the host that the migration evacuates; "" when it is of another
	// kind.
	From hypervisor.HostName
	// Abroad: the VM goes to another cluster. Its target is created there, so
	// that it holds no slot here before it is Scheduled. What KubeVirt calls
	// WaitingForSync and Synchronizing is Pending here.
	Abroad bool
}

// Count counts the migrations that the limits count, in the cluster and out of
// the host that the VMs are on. All VMs belong there, not only those
// that must leave: any migration off the host uses its link.
//
// Every unfinished migration takes a spot from the moment when it is created,
// also before it is accepted: otherwise a second look creates as many again.
// One that goes to another cluster takes it from Scheduled on.
//
// A VM that migrates several times counts several times, a migration that is given
// twice (by ID) once, and a migration whose VM is gone still counts in the cluster.
//
// Compatible counts only migrations that hold a slot in the mode FreeSpots, and
// compares names without their namespaces, as KubeVirt did: a migration of
// other/a then takes a spot of a host that has any VM called a.
// Source: KubeVirt v1.8.4 evacuation.go (numOfVMIMForThisSourceNode).
func Count(p Params, migrations []ActiveMigration, vms []VM) Load {
	key := func(id hypervisor.VMID) string { return string(id) }
	if p.Compatible {
		key = nameOf
	}
	here := make(map[string]struct{}, len(vms))
	for i := range vms {
		here[key(vms[i].ID)] = struct{}{}
	}
	var load Load
	var seen map[migration.ID]struct{}
	for i := range migrations {
		if !p.counts(&migrations[i]) {
			continue
		}
		if id := migrations[i].ID; id != "" {
			if _, twice := seen[id]; twice {
				continue
			}
			if seen == nil {
				seen = make(map[migration.ID]struct{}, len(migrations)-i)
			}
			seen[id] = struct{}{}
		}
		load.InCluster++
		if _, ok := here[key(migrations[i].VM)]; ok {
			load.FromHost++
		}
	}
	return load
}

// counts reports whether the limits count f. QueueAll has no limits of its own:
// it counts what holds a slot, for reports.
// Source: KubeVirt v1.8.4 evacuation.go:376 (only running ones), v0.59.0
// evacuation.go (all unfinished), v1.9.0 types.go:850 (IsRunning).
func (p Params) counts(f *ActiveMigration) bool {
	switch {
	case p.Mode == FreeSpotsV059:
		return !f.Phase.Final()
	case f.Abroad && f.Phase < migration.Scheduled:
		return false
	case p.Mode == FreeSpots && !p.Compatible:
		return !f.Phase.Final()
	}
	return f.Phase.Active()
}

// nameOf returns the part of an ID after the namespace.
func nameOf(id hypervisor.VMID) string {
	return string(id[strings.LastIndexByte(string(id), '/')+1:])
}
