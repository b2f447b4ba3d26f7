package controller

import (
	"cmp"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Config configures a Controller. A zero field takes the default that it names.
type Config struct {
	// Migration holds the timeouts, the back-off and the compatible mode.
	Migration migration.Config
	// Cluster is the cluster-wide migration configuration. Default:
	// [migration.DefaultCluster]. Its limits are the limits.
	Cluster *migration.Cluster
	// Policies override Cluster for the VMs that they match.
	Policies []migration.Policy
	// Namespaces gives the labels of namespaces, for policies.
	Namespaces map[string]migration.Labels
	// Evacuation says how hosts are emptied.
	Evacuation evacuation.Params
	// Adaptive lets package evacuation say which VM leaves when, and where to, unless Evacuation.Policy
	// or Placement.Weighers say it already. It lifts no limit.
	Adaptive bool
	// Sharer says which migrations converge together on a link: the others wait for their turn. Default:
	// Evacuation's policy if it is one, else package evacuation, by what agents have measured of guests: a VM
	// that was not measured counts as idle until it has failed.
	Sharer evacuation.Sharer
	// Network is what all migrations together get of the network that they share, for the
	// Sharer. Default: as much as their hosts' links give.
	Network hypervisor.Bandwidth
	// Placement decides about targets. Default: all conditions; most free memory is best,
	// and what a VM's groups ask for softly.
	Placement placement.Config
	// Quotas bound what the VMs of a tenant and their moves hold of all hosts together. A
	// move counts on both sides. Default: no quota.
	Quotas map[string]placement.Amount
	// ResourceQuotas bound what the VMs of a namespace and their moves ask for together, as
	// Kubernetes does: see [placement.Constraints.Charges]. Default: no quota.
	ResourceQuotas []placement.QuotaLimit
	// Retry is how long to wait after an error, and the shortest wait of a VM
	// that fits nowhere. Default: 1s.
	Retry time.Duration
	// RetryCap is the longest wait of a VM that fits nowhere. Default: 1m.
	RetryCap time.Duration
	// Resync is how often the store is looked at, told of a change or not. Default: 5m.
	Resync time.Duration
}

// Validate returns every reason why c cannot be meant.
func (c Config) Validate() error {
	return errors.Join(c.Migration.Validate(), workqueue.CheckSpans("controller.Config",
		workqueue.Span{Name: "Retry", Value: c.Retry}, workqueue.Span{Name: "RetryCap", Value: c.RetryCap},
		workqueue.Span{Name: "Resync", Value: c.Resync}))
}

// Complete returns c with the defaults filled in.
func (c Config) Complete() Config {
	c.Migration = c.Migration.Complete()
	if c.Cluster == nil {
		c.Cluster = new(migration.DefaultCluster())
		if c.Migration.Compatible {
			c.Cluster.Convergence = convergence.Legacy
		}
	}
	if c.Evacuation.DrainKey == "" {
		c.Evacuation.DrainKey = c.Cluster.NodeDrainTaintKey
	}
	c.Evacuation.Limits = evacuation.Limits{PerCluster: c.Cluster.ParallelMigrationsPerCluster,
		PerNode: c.Cluster.ParallelOutboundMigrationsPerNode}
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.RetryCap = cmp.Or(c.RetryCap, time.Minute)
	c.Resync = cmp.Or(c.Resync, 5*time.Minute)
	return c
}

// Limits returns the limits on how much moves at once.
func (c Config) Limits() migration.Limits { return limitsOf(c.Cluster) }
