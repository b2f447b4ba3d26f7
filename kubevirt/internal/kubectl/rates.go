package kubectl

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
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
	f, err := convert.Fleet("cluster", c, inventory.Defaults{})
	if err != nil {
		return nil, err
	}
	return forecast.Rates(c, f, measured), nil
}

// source says a rate in one line, with its age.
func (p *plugin) source(all map[hypervisor.VMID]dirty.Rate, id hypervisor.VMID) string {
	r, known := all[id]
	if !known {
		return "not known: godwit's default"
	}
	return fmt.Sprintf("%v by %s, %s ago", r.BytesPerSecond, r.Source, p.now().Sub(r.At).Round(time.Second))
}
