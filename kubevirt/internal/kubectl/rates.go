package kubectl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

// measured asks the Prometheus that the flag names how fast guests write; without one it knows nothing.
func (p *plugin) measured(ctx context.Context) (map[hypervisor.VMID]dirty.Rate, error) {
	if p.prom == "" {
		return nil, nil
	}
	api, err := dirty.Open(p.prom)
	if err != nil {
		return nil, err
	}
	return dirty.Prometheus(ctx, api, p.now())
}

// rates returns how fast guests write, and from where that is known.
func rates(c *convert.Cluster, measured map[hypervisor.VMID]dirty.Rate) (map[hypervisor.VMID]dirty.Rate, error) {
	f, _, err := convert.Sound("cluster", c, inventory.Defaults{})
	if err != nil {
		return nil, err
	}
	return forecast.Rates(c, f, measured), nil
}

// rateOf returns the rate of a VM, or nil.
func rateOf(all map[hypervisor.VMID]dirty.Rate, id hypervisor.VMID) *v1alpha1.WriteRate {
	r, known := all[id]
	if !known {
		return nil
	}
	w := forecast.WriteRate(r)
	return &w
}

// unknown is said of guests of which nothing is known.
const unknown = "not known: godwit's default"

// writes says in one line how fast a guest writes, from where that is known, and how old it is.
func (p *plugin) writes(r *v1alpha1.WriteRate) string {
	if r == nil {
		return unknown
	}
	return fmt.Sprintf("%v by %s, %s ago", hypervisor.Bandwidth(r.BytesPerSecond), r.Source, p.age(r.At.Time))
}

func (p *plugin) age(at time.Time) time.Duration { return p.now().Sub(at).Round(time.Second) }

// sources says from where the rates of VMs are known, and how old the oldest of each kind is.
func (p *plugin) sources(all []v1alpha1.LeavingVM) string {
	count, oldest := map[string]int{}, map[string]time.Time{}
	for i := range all {
		kind, at := unknown, time.Time{}
		if r := all[i].Writes; r != nil {
			if kind, at = r.Source, r.At.Time; strings.HasPrefix(kind, "migration ") {
				kind = "past migrations"
			}
		}
		if was, seen := oldest[kind]; !seen || at.Before(was) {
			oldest[kind] = at
		}
		count[kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		if kind == unknown {
			parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d by %s, at most %s old", count[kind], kind, p.age(oldest[kind])))
	}
	return strings.Join(parts, "; ")
}
