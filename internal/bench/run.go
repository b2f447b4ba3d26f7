package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// An Outcome is what became of one evacuation.
type Outcome struct {
	Cluster   string `json:"cluster"`
	Candidate string `json:"contestant"`
	// BoundSeconds is the lower bound, TookSeconds when the last VM had left; Ratio is the
	// second divided by the first, and 0 when some VM never left.
	BoundSeconds float64      `json:"boundSeconds"`
	TookSeconds  float64      `json:"tookSeconds"`
	Ratio        float64      `json:"ratio"`
	Left         int          `json:"left"` // VMs that never left
	Migrations   sim.Totals   `json:"migrations"`
	Downtime     sim.Downtime `json:"downtimeMilliseconds"`
	// Violations of the simulator's invariants, the limits among them. There are none.
	Violations []sim.Violation `json:"invariantViolations"`
}

// began is when the hosts are drained; longest is how long a world is looked at.
const (
	began   = time.Second
	longest = 48 * time.Hour
)

// Run lets a candidate empty the hosts of a cluster.
func Run(c *Cluster, who Candidate, seed uint64) (Outcome, error) {
	config := who.config(c)
	config.Chooser = sim.Seeded(seed)
	w, err := c.world(config)
	if err != nil {
		return Outcome{}, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	if w.Run(longest) == sim.AtRest {
		w.CheckAtRest()
	}
	r := w.Result()
	o := Outcome{Cluster: c.Name, Candidate: who.Name, BoundSeconds: round(c.Bound().Seconds()),
		Migrations: r.Migrations, Downtime: r.Downtime, Violations: r.Violations}
	for _, e := range r.Evacuations {
		o.Left += len(e.Left)
	}
	if _, last, left := r.Drained(); left {
		o.TookSeconds = round(last - began.Seconds())
	}
	if o.Left == 0 && o.BoundSeconds > 0 {
		o.Ratio = round(o.TookSeconds / o.BoundSeconds)
	}
	return o, nil
}

// world makes the world of a cluster.
func (c *Cluster) world(config sim.Config) (*sim.World, error) {
	w := sim.New(config)
	for i, h := range c.Hosts {
		r := store.Host{Host: h}
		if c.RackSize > 0 {
			r.Facts = &placement.Facts{Rack: fmt.Sprintf("r%d", i/c.RackSize),
				Uplink: c.Uplink}
		}
		if err := w.AddHost(r); err != nil {
			return nil, err
		}
	}
	for _, g := range c.Guests {
		v := store.VM{VM: g.VM, Strategy: evacuation.LiveMigrate, Migratable: true,
			Host: c.Hosts[g.Host].Name}
		if config.Controller.Adaptive { // the only one that uses what agents measure
			v.Dirtied = sim.DirtyRates(g.VM, g.Load)
		}
		if err := w.AddVM(v, g.Load); err != nil {
			return nil, err
		}
	}
	for _, h := range c.Hosts[:c.Drained] {
		w.At(began, sim.Drain{Host: h.Name})
	}
	for _, f := range c.Faults {
		w.At(began+f.At, f.What)
	}
	return w, nil
}

// round rounds to thousandths.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// Medians returns the median ratio of each candidate; one that never ended counts as the
// worst, and a median of those is 0.
func Medians(outcomes []Outcome) map[string]float64 {
	ratios := map[string][]float64{}
	for _, o := range outcomes {
		ratio := o.Ratio
		if o.Left > 0 {
			ratio = math.Inf(1)
		}
		ratios[o.Candidate] = append(ratios[o.Candidate], ratio)
	}
	medians := make(map[string]float64, len(ratios))
	for name, list := range ratios {
		slices.Sort(list)
		n := len(list)
		if m := (list[(n-1)/2] + list[n/2]) / 2; !math.IsInf(m, 1) {
			medians[name] = round(m)
		}
	}
	return medians
}
