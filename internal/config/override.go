package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

// An Override gives a field of a scenario another value: a scalar, at a path such
// as limits.perCluster, order, hosts[0].link or hosts[*].link. Two paths are no
// fields, and hold wherever the fleet is written: [PolicyFile] and [linkSpeed].
type Override struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// String returns the override as it is written on a command line.
func (o Override) String() string { return o.Path + "=" + o.Value }

const (
	// PolicyFile is the path whose value is a file with migration policies, godwit's
	// YAML with nothing but policies: they replace all others.
	PolicyFile = "policy"
	// linkSpeed is the path whose value is the speed of every host's link.
	linkSpeed = "link"
)

// parseWith reads a scenario with some values changed.
func parseWith(name string, data []byte, overrides []Override) (*Scenario, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if o.Path == PolicyFile || o.Path == linkSpeed {
			continue
		}
		if err := doc.Set(o.Path, o.Value); err != nil {
			return nil, inventory.Problems{{File: name, Field: o.Path, Message: err.Error()}}
		}
	}
	s, err := read(name, data, doc)
	if problems, is := errors.AsType[inventory.Problems](err); is {
		for i := range problems {
			if problems[i].File == name {
				problems[i].Line = 0
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for _, o := range overrides {
		switch o.Path {
		case PolicyFile:
			err = s.replacePolicies(o.Value)
		case linkSpeed:
			err = s.replaceLinks(o.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Scenario) replacePolicies(path string) (err error) {
	s.Fleet.Policies, err = readPolicies(path)
	s.Controller.Policies = s.Fleet.Policies
	s.Files = append(s.Files, path)
	return err
}

func (s *Scenario) replaceLinks(text string) error {
	speed, err := inventory.ParseBandwidth(text)
	if err == nil && speed <= 0 {
		err = fmt.Errorf("a link of %q carries nothing", text)
	}
	for i := range s.Fleet.Hosts {
		s.Fleet.Hosts[i].Link = speed
	}
	return err
}

// readPolicies reads a file that has policies and nothing else.
func readPolicies(path string) ([]migration.Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err != nil {
		return nil, err
	}
	doc, err := yamldoc.Parse(path, 1, data)
	if err != nil {
		return nil, err
	}
	var only struct {
		Policies []inventory.PolicySpec `yaml:"policies"`
	}
	if err := doc.Decode(&only); err != nil {
		return nil, err
	}
	spec := inventory.Spec{Policies: only.Policies}
	fleet, err := spec.Fleet(path, doc.Line)
	if err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	return fleet.Policies, nil
}
