package inventory

import (
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Fleet is everything that a file says about a cluster. Hosts, VMs, policies
// and migrations are ordered by name. Entries that were written as one range
// share their labels and constraints, which therefore must not be changed.
type Fleet struct {
	Hosts    []Host
	VMs      []VM
	Policies []migration.Policy
	// Config has every default applied.
	Config migration.Cluster
	// EvictionStrategy holds for VMs whose own is Unset. Default: None.
	// Source: KubeVirt v1.9.0 pkg/util/migrations/migrations.go:116.
	EvictionStrategy evacuation.Strategy
	Namespaces       map[string]placement.Labels
	Quotas           []placement.QuotaLimit // what the VMs' charges are held against
	Migrations       []Migration            // that have not ended
	// Network is what all migrations together get of the migration network; 0 is no limit.
	// The up-links of racks are in the facts of their hosts.
	Network  hypervisor.Bandwidth
	Warnings []Problem
}

// A Host is a host of the fleet.
type Host struct {
	hypervisor.Host
	Labels placement.Labels
	Taints []placement.Taint
	// Cordoned hosts take no VMs: cordoned, or not ready.
	Cordoned bool
	Down     bool // not ready
	// Facts are what else is known. Hosts of one range share them.
	Facts *placement.Facts
}

// A VM is a virtual machine of the fleet.
type VM struct {
	hypervisor.VM
	Host       hypervisor.HostName // where it runs; "" when it does not
	Namespace  string
	Labels     placement.Labels
	Strategy   evacuation.Strategy
	Migratable bool
	// NotMigratableReason says why the VM is not migratable, in the words of its source.
	NotMigratableReason string
	EvacuateFrom        hypervisor.HostName // it was asked to leave this host
	Pause               bool                // its guest shall stand
	Placement           placement.Constraints
	// Overhead is what its hypervisor needs beside its memory, Balloon what of its memory takes
	// no room, Disk the size of its local disks: see [placement.VM].
	Overhead, Balloon, Disk hypervisor.Bytes
	CPURequest              int // what it takes of its host's CPUs; 0 is its virtual CPUs
	Workload                fake.Workload
	// WorkloadFrom is where Workload is known from, in words; "" is that a file says it.
	WorkloadFrom string
	// Unmeasured means that no agent has measured Workload: a controller does not know it. It is of VMs of a store, and of
	// scenarios that say so. Imported VMs count as measured.
	Unmeasured bool
}

// A Migration is one that had not ended when the fleet was looked at.
type Migration struct {
	migration.Spec // its ID is "namespace/name"
	Phase          migration.Phase
	// Leaving is the host whose evacuation asked for the migration, or "".
	Leaving hypervisor.HostName
	// Source and Chosen are where it comes from and the target that it was
	// given; both are "" until the VM was handed over. Spec.Target is only what
	// was asked for.
	Source, Chosen hypervisor.HostName
	// CrossCluster says that the VM goes to another cluster or comes from one. Its target is not
	// chosen here, and until the migration has ended the VM cannot be migrated otherwise. Source is
	// set for one that leaves, Chosen for one that comes and is on no host yet.
	CrossCluster bool
}
