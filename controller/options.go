package controller

// This file finds out how a VM is to be moved: by which options, by which policy's, and
// within which time. It puts that into the migration's record, and stores nothing. And it says
// how much may move at once.

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// A resolver has the cluster's options, and what overrides them. It belongs to one caller.
type resolver struct {
	cluster    *migration.Cluster
	policies   *migration.PolicySet // nil: there are none
	namespaces map[string]migration.Labels
	last       *migration.Options // migrations with the same share them
}

// newResolver returns a resolver. The policies override the cluster's options for the VMs that they
// match, by their labels and by those of their namespaces.
func newResolver(cluster *migration.Cluster, by migration.PolicyMatcher, policies []migration.Policy,
	namespaces map[string]migration.Labels) *resolver {
	r := &resolver{cluster: cluster, namespaces: namespaces}
	if len(policies) > 0 {
		r.policies = by.Prepare(policies)
	}
	return r
}

// Bandwidth returns the cap that a VM's migration would be given now.
func (r *resolver) Bandwidth(m *store.Migration, vm *store.VM) hypervisor.Bandwidth {
	if r.policies == nil {
		return r.cluster.BandwidthPerMigration
	}
	o, _ := r.policies.Resolve(*r.cluster, labels(m, vm), r.namespaces[vm.Namespace])
	return o.Bandwidth
}

// Resolve writes down the options of a VM's migration, the policy that won, and the bound of
// the transfer. The target has been chosen; source and target are the records of the hosts, nil where
// there is none.
// Source: KubeVirt v1.9.0 migration.go:1259, manager.go:852 (budget).
func (r *resolver) Resolve(m *store.Migration, vm *store.VM, source, target *store.Host) {
	o, name := r.cluster.Options(), ""
	if r.policies != nil {
		o, name = r.policies.Resolve(*r.cluster, labels(m, vm), r.namespaces[vm.Namespace])
	}
	o.Traffic = trafficBetween(o.Encryption, source, target)
	if r.last == nil || *r.last != o {
		r.last = &migration.Options{}
		*r.last = o
	}
	m.Options, m.Policy = r.last, name
	budget := convergence.Budget(vm.Now().Memory, vm.LocalSize(), o.CompletionTimeoutPerGiB)
	m.State.Budget = 2 * min(budget, hypervisor.Forever/2)
}

// trafficBetween decides whether a migration is encrypted. A host has certificates when its agent says that
// it can encrypt; of one that has said nothing yet it is not known.
func trafficBetween(e migration.Encryption, source, target *store.Host) migration.Traffic {
	known := source != nil && target != nil && source.Host.Abilities != 0 && target.Host.Abilities != 0
	return e.Resolve(known && source.Host.Abilities.Has(hypervisor.CanEncrypt),
		known && target.Host.Abilities.Has(hypervisor.CanEncrypt))
}

// limitsOf returns the limits on how much moves at once.
func limitsOf(c *migration.Cluster) migration.Limits {
	l := migration.Limits{PerCluster: c.ParallelMigrationsPerCluster,
		PerSource: c.ParallelOutboundMigrationsPerNode,
		PerTarget: c.ParallelInboundMigrationsPerNode}
	if l.PerTarget == 0 {
		l.PerTarget = migration.Unlimited
	}
	return l
}

// migrationsAtOnce returns how many of the hosts that are drained at once take turns: as many as may
// send, and all of them where KubeVirt's order is wanted.
func migrationsAtOnce(l migration.Limits, compatible bool) int {
	if compatible {
		return migration.Unlimited
	}
	return l.PerCluster
}

// labels are the VM's, with where it is and where it goes, so that a policy may select on them.
func labels(m *store.Migration, vm *store.VM) migration.Labels {
	return migration.PolicyLabels(vm.Labels, vm.Host, m.State.Target)
}
