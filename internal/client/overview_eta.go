package client

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// How many migrations must have been measured before a quantile is told: the 95th percentile of
// fewer than twenty is their maximum.
const (
	enoughForP50 = 5
	enoughForP95 = 20
)

// An ETA is how long it takes until a draining host is empty. Nil is unknown.
type ETA struct {
	// Least is the time for what remains at the present rate, if no guest dirtied memory again.
	Least *time.Duration
	// P50 and P95 are quantiles of that time, by what the ended migrations of this cluster have
	// sent for each byte of their guests. They do not know of limits that let only some VMs
	// leave at once.
	P50, P95 *time.Duration
}

// EstimateETA returns how long so much takes at a rate. Grown are the ratios that [growth] returns.
func EstimateETA(left hypervisor.Bytes, rate hypervisor.Bandwidth, grown []float64) (e ETA) {
	const forever = 10 * 365 * 24 * time.Hour
	if rate <= 0 || left <= 0 || left.At(rate) > forever {
		return e
	}
	least := left.At(rate)
	e.Least = &least
	at := func(q float64, enough int) *time.Duration {
		if len(grown) < enough {
			return nil
		}
		d := time.Duration(float64(least) * grown[int(q*float64(len(grown)-1))])
		return &d
	}
	e.P50, e.P95 = at(0.5, enoughForP50), at(0.95, enoughForP95)
	return e
}

// growth returns, ascending, what each measured successful migration sent for each byte of its
// guest's memory and disks.
func growth(c *Cluster) []float64 {
	var all []float64
	for _, m := range c.Migrations() {
		v := c.VM(m.Spec.VM)
		if v == nil || m.State.Phase != migration.Succeeded || !m.Source.Measured || v.Weight() <= 0 {
			continue
		}
		all = append(all, float64(m.Source.Sent)/float64(v.Weight()))
	}
	slices.Sort(all)
	return all
}
