package bench

import (
	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
)

// A Candidate is a way to empty hosts: habits of its own, within the operator's limits.
type Candidate struct {
	Name string
	// limits are its own; the operator's hold besides.
	limits migration.Limits
	// share: a migration gets at most one part in so many of a link; 0 is all of it.
	share    hypervisor.Bandwidth
	mode     evacuation.Mode
	order    evacuation.Order
	adaptive bool
	converge convergence.Policy
}

// Candidates returns the ways that are compared. Peers come with their limits, their order
// and their way to bring transfers to an end; targets are chosen by godwit for all of them
// (most free memory), and for Adaptive by its own preference.
func Candidates() []Candidate {
	none := migration.Unlimited
	kubevirt := migration.Limits{PerCluster: 5, PerSource: 2, PerTarget: none}
	legacy := convergence.By(convergence.Legacy)
	return []Candidate{
		{Name: "KubeVirt QueueAll", limits: kubevirt, order: evacuation.ByID, converge: legacy},
		{Name: "KubeVirt FreeSpots", limits: kubevirt, mode: evacuation.FreeSpots,
			order: evacuation.ByID, converge: legacy},
		{Name: "Nova", limits: migration.Limits{PerCluster: none, PerSource: 1, PerTarget: none},
			order: evacuation.ByID, converge: Nova},
		{Name: "oVirt", limits: migration.Limits{PerCluster: none, PerSource: 2, PerTarget: 2},
			share: 2, order: evacuation.ByID, converge: OVirt},
		{Name: "LargestFirst 5/2", limits: kubevirt,
			converge: convergence.By(convergence.Watermark)},
		{Name: "adaptive", limits: migration.Limits{PerCluster: none, PerSource: none,
			PerTarget: none}, adaptive: true, converge: convergence.ConvergeByForecast},
	}
}

// config returns the configuration of a world in which the candidate empties c.
func (w Candidate) config(c *Cluster) sim.Config {
	cluster := migration.DefaultCluster()
	l := migration.Limits{PerCluster: min(w.limits.PerCluster, c.Limits.PerCluster),
		PerSource: min(w.limits.PerSource, c.Limits.PerSource),
		PerTarget: min(w.limits.PerTarget, c.Limits.PerTarget)}
	cluster.ParallelMigrationsPerCluster = l.PerCluster
	cluster.ParallelOutboundMigrationsPerNode = l.PerSource
	cluster.ParallelInboundMigrationsPerNode = l.PerTarget
	cluster.AllowPostCopy, cluster.AllowWorkloadDisruption = c.PostCopy, c.PostCopy
	cluster.AllowAutoConverge = c.AutoConverge
	cluster.BandwidthPerMigration = c.Cap
	if w.share > 0 {
		cluster.BandwidthPerMigration = c.speed(c.Hosts[0].Link / w.share)
	}
	config := controller.Config{Cluster: &cluster, Adaptive: w.adaptive, Evacuation: evacuation.Params{
		Mode: w.mode, Order: w.order}}
	return sim.Config{Controller: config, Agent: agent.Config{Converge: w.converge}}
}
