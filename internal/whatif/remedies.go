package whatif

import (
	"context"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

// A Remedy is an option that lets a VM move that does not converge, as it was tried in the
// simulator, with the links for itself.
type Remedy struct {
	// Option is the field of a migration policy, or of the cluster, that is to be true; or "restart": the
	// VM is shut down and started on its target.
	Option               string  `json:"option"`
	Seconds              float64 `json:"seconds"`
	DowntimeMilliseconds float64 `json:"downtimeMilliseconds"`
	// BrownoutSeconds is for how long the guest is slowed down, BrownoutPercent by how much at most.
	BrownoutSeconds float64 `json:"brownoutSeconds,omitempty"`
	BrownoutPercent int     `json:"brownoutPercent,omitempty"`
	// Risk is what may happen besides; "" is nothing.
	Risk string `json:"risk,omitempty"`
}

// options are what is tried, the cheapest first: a guest that is slower for a while, then one that
// is lost if the network fails. Of a cluster, too, allowWorkloadDisruption follows allowPostCopy unless it is set.
var options = []struct {
	name, risk string
	cluster    func(*migration.Cluster)
	policy     func(*migration.OptionsOverrides)
}{
	{"allowAutoConverge", "", func(c *migration.Cluster) { c.AllowAutoConverge = true },
		func(o *migration.OptionsOverrides) { o.AllowAutoConverge = new(true) }},
	{"allowPostCopy", "the VM is lost if the network or a host fails while its memory follows",
		func(c *migration.Cluster) { c.AllowPostCopy, c.AllowWorkloadDisruption = true, true },
		func(o *migration.OptionsOverrides) { o.AllowPostCopy = new(true) }},
}

// remedies tries which options let a move come about that does not converge alone. None is that no
// option helps.
func (p *Play) remedies(ctx context.Context, m plan.Move) ([]Remedy, error) {
	all := []Remedy{}
	for _, o := range options {
		solo, err := p.allowed(o.cluster, o.policy).Solo(ctx, m)
		if err != nil {
			return nil, err
		}
		if solo.Done {
			all = append(all, Remedy{Option: o.name, Seconds: solo.Took.Seconds(),
				DowntimeMilliseconds: solo.Downtime.Seconds() * 1000,
				BrownoutSeconds:      solo.Brownout.Lasted.Seconds(),
				BrownoutPercent:      solo.Brownout.Percent, Risk: o.risk})
		}
	}
	restarted, err := p.restarted(ctx, m)
	if err == nil && restarted != nil {
		all = append(all, *restarted)
	}
	return all, err
}

// allowed returns the play with an option allowed, to the cluster and by every policy.
func (p *Play) allowed(cluster func(*migration.Cluster), policy func(*migration.OptionsOverrides)) *Play {
	with, scene, all := *p, *p.Scenario, *p.Scenario.Controller.Cluster
	cluster(&all)
	scene.Controller.Cluster = &all
	scene.Controller.Policies = slices.Clone(scene.Controller.Policies)
	for i := range scene.Controller.Policies {
		policy(&scene.Controller.Policies[i].OptionsOverrides)
	}
	with.Scenario = &scene
	return &with
}

// restartRisk is what a restart costs besides its downtime.
const restartRisk = "the guest is shut down: what it has in memory is gone"

// restarted tries to shut a VM down and to start it on its target; nil is that it does not help.
func (p *Play) restarted(ctx context.Context, m plan.Move) (*Remedy, error) {
	with := *p
	with.Stops = &Stops{Terms: p.Stops.terms(), Restart: map[hypervisor.VMID]bool{m.VM: true}}
	solo, err := with.Solo(ctx, m)
	if err != nil || !solo.Done {
		return nil, err
	}
	return &Remedy{Option: restarting, Seconds: solo.Took.Seconds(),
		DowntimeMilliseconds: solo.Downtime.Seconds() * 1000,
		Risk:                 restartRisk}, nil
}
