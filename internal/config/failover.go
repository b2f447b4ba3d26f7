package config

import (
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// Failover says what becomes of silent hosts: see controller.FailoverConfig.
type Failover struct {
	Grace       string   `yaml:"grace,omitempty"`
	FenceAfter  string   `yaml:"fenceAfter,omitempty"`
	StormShare  *float64 `yaml:"stormShare,omitempty"`
	FenceAtOnce *int     `yaml:"fenceAtOnce,omitempty"`
	FenceIdle   bool     `yaml:"fenceIdle,omitempty"`
}

// apply configures a failover controller, and tells what is wrong.
func (f *Failover) apply(r faults, c *controller.FailoverConfig) {
	spans(r, []span{{"failover.grace", f.Grace, &c.Grace},
		{"failover.fenceAfter", f.FenceAfter, &c.FenceAfter}})
	if f.StormShare != nil {
		if c.StormShare = *f.StormShare; !(c.StormShare >= 0 && c.StormShare <= 1) {
			r.wrong("failover.stormShare", "needs a share of all hosts, 0 to 1, has %v",
				c.StormShare)
		}
		noZero(r, "failover.stormShare", c.StormShare == 0)
	}
	if f.FenceAtOnce != nil {
		if c.FenceAtOnce = *f.FenceAtOnce; c.FenceAtOnce < 1 {
			r.wrong("failover.fenceAtOnce", "needs 1 or more, has %d", c.FenceAtOnce)
		}
	}
	c.FenceIdle = f.FenceIdle
}

// mostBare is how many hosts a range of withoutDevice may stand for.
const mostBare = 100_000

// SimulatedFailover lets silent hosts be fenced in a scenario, and their VMs be restarted elsewhere,
// by the failover controller of production. Without it nothing is fenced but by events.
type SimulatedFailover struct {
	Failover `yaml:",inline"`
	// FencingTakes is how long a device needs to cut a host from power. Default: 2s.
	FencingTakes string `yaml:"fencingTakes,omitempty"`
	// ReturnAfter is when a host that was fenced has power again. Default: never, unless an event
	// says so.
	ReturnAfter string `yaml:"returnAfter,omitempty"`
	// WithoutDevice are hosts that cannot be fenced: names, or ranges of them.
	WithoutDevice []string `yaml:"withoutDevice,omitempty"`
}

// failover reads how hosts fail over.
func (r *reader) failover(s *Scenario) {
	spec := r.spec.Failover
	if spec == nil {
		return
	}
	c := &sim.FailoverConfig{}
	spec.apply(r, &c.Controller)
	spans(r, []span{{"failover.fencingTakes", spec.FencingTakes, &c.CutTakes},
		{"failover.returnAfter", spec.ReturnAfter, &c.ReturnAfter}})
	bare := map[hypervisor.HostName]bool{}
	known := s.names().hosts
	for _, text := range spec.WithoutDevice {
		names, err := inventory.ExpandNames(text, mostBare)
		if err != nil {
			r.wrong("failover.withoutDevice", "%v", err)
		}
		for _, name := range names {
			host := hypervisor.HostName(name)
			if !known[host] {
				r.wrong("failover.withoutDevice", "there is no host %q", name)
			}
			bare[host] = true
		}
	}
	if len(bare) > 0 {
		c.Devices = func(h hypervisor.HostName) bool { return !bare[h] }
	}
	c.Controller.Placement, c.Controller.Evacuation = s.Controller.Placement, s.Controller.Evacuation
	s.Failover = c
}

// world returns the empty world of a scenario.
func (s *Scenario) world(c sim.Config) *sim.World {
	if s.Failover == nil {
		return sim.New(c)
	}
	return sim.NewFailover(c, *s.Failover)
}
