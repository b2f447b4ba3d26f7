package controller

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
)

// limit gives a migration that an earlier controller has resolved the cap on its bandwidth that
// this one is configured with: the source's agent passes it on. All other options stay as they
// were resolved, and KubeVirt leaves this one as well.
func (c *Controller) limit(ctx context.Context, f *migrationEntry, now time.Time) error {
	m := f.rec
	if f.capped || m.Options == nil || m.State.Phase.Final() || c.core.Compatible ||
		f.vm.rec == nil {
		return nil
	}
	f.capped = true
	limit := c.options.Bandwidth(m, f.vm.rec)
	if limit == m.Options.Bandwidth {
		return nil
	}
	next, options := draft(&c.next, m), *m.Options
	options.Bandwidth = limit
	next.Options = &options
	stored, err := c.put(ctx, next, now)
	if f.capped = stored && err == nil; f.capped {
		said := "new bandwidth limit: " + limit.String()
		if limit == 0 {
			said = "new bandwidth limit: none"
		}
		c.recorder.Note(now, "", m.Spec.VM, said)
	}
	return err
}

// adapt lets package evacuation decide how hosts are emptied, if that is configured.
func (c *Controller) adapt() {
	if !c.config.Adaptive {
		return
	}
	if c.config.Evacuation.Policy == nil {
		c.config.Evacuation.Policy = c.adaptive()
	}
	if c.config.Placement.Weighers == nil {
		c.config.Placement.Weighers = evacuation.AdaptiveWeighers(
			func(host hypervisor.HostName) hypervisor.Bandwidth {
				if s := c.cache.hosts[host]; s != nil && s.rec != nil {
					return s.rec.Host.Link
				}
				return 0
			})
	}
}

// adaptive returns the policy of package evacuation, by what agents have measured of guests. A VM that
// was not measured counts as idle until it has failed.
func (c *Controller) adaptive() evacuation.AdaptivePolicy {
	return evacuation.AdaptivePolicy{DirtyRate: c.dirtyRate, Cap: c.config.Cluster.BandwidthPerMigration,
		PerGiB: c.config.Cluster.CompletionTimeoutPerGiB}
}

// dirtyRate returns how fast the guest of a VM writes memory, as its agent has measured it last; 0 is
// that it was not measured.
func (c *Controller) dirtyRate(vm hypervisor.VMID) hypervisor.Bandwidth {
	if g := c.cache.vms[vm]; g != nil && g.rec != nil && g.rec.Dirtied != nil {
		return g.rec.Dirtied.Rate
	}
	return 0
}
