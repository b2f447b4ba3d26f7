package config

import (
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Scenario returns the scenario of a fleet that was read already, under a controller with these settings.
func (s Settings) Scenario(name string, fleet *inventory.Fleet) (*Scenario, error) {
	c := s.Controller
	cluster := *c.Cluster
	c.Cluster = &cluster
	fleet.Config, fleet.Policies, fleet.EvictionStrategy = cluster, c.Policies, c.Evacuation.Strategy
	fleet.Network = c.Network
	fleet.Namespaces = map[string]placement.Labels{}
	for namespace, labels := range c.Namespaces {
		fleet.Namespaces[namespace] = placement.Labels(labels)
	}
	all, err := Of(name, fleet, VarySpec{})
	if err != nil {
		return nil, err
	}
	all.Controller = c
	return all, nil
}
