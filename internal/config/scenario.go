package config

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// Spec is a scenario file.
type Spec struct {
	Name string `yaml:"name,omitempty"` // what reports call it; default: the file's
	Seed uint64 `yaml:"seed,omitempty"` // of all random choices; default: 1
	// Until is the longest that is simulated. Default: 240h.
	Until string `yaml:"until,omitempty"`
	// Inventory is a file or a folder with the fleet, beside the scenario's own, of
	// any format that godwit reads: godwit help convert. The fleet is then not written in
	// place; defaults say what the format does not know.
	Inventory string `yaml:"inventory,omitempty"`
	// Workloads is a CSV file beside the scenario's own with measured workloads, by VM, laid over
	// the fleet: see prediction.md.
	Workloads      string `yaml:"workloads,omitempty"`
	inventory.Spec `yaml:",inline"`
	// Control is how the controller decides: what a controller's own file says of it.
	Control `yaml:",inline"`
	// Model is what hypervisors cost: qemu (default), ideal, a file beside the scenario's
	// own, or the fields of one, in place of those of its base.
	Model ModelChoice `yaml:"model,omitempty"`
	// Transport is how migrations cross the network.
	Transport Transport `yaml:"transport,omitempty"`
	Events    []string  `yaml:"events,omitempty"` // what happens, and when: see below
	// Unmeasured means that agents do not measure how fast guests write, as without --measure-dirty-rate: the
	// controller then takes them for idle until they have failed.
	Unmeasured bool `yaml:"unmeasured,omitempty"`
	// Trace adds VMs with loads that were recorded.
	Trace *TraceSpec `yaml:"trace,omitempty"`
	// Vary is what differs from seed to seed.
	Vary VarySpec `yaml:"vary,omitempty"`
	// Failover lets hosts that are silent be fenced, and VMs be restarted elsewhere.
	Failover *SimulatedFailover `yaml:"failover,omitempty"`
}

// A Scenario is a fleet and what happens to it.
type Scenario struct {
	Name   string
	Seed   uint64
	Until  time.Duration
	Fleet  *inventory.Fleet
	Events []Scheduled
	// Controller and Model are what the world is built with.
	Controller controller.Config
	Model      fake.Model
	// Agent is how agents are configured, Encryption how migrations are encrypted: Model is without.
	Agent      agent.Config
	Encryption fake.Encryption
	// Errors are how far the model was off what was measured; nil is not known.
	Errors *predict.Errors
	Vary   Vary
	// Failover is how silent hosts are fenced; nil is that they are not.
	Failover *sim.FailoverConfig
	// Files are what the scenario was read from, itself first.
	Files []string
}

// ReadFile reads a scenario from a file, and gives fields other values.
func ReadFile(path string, overrides ...Override) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, overrides...)
}

// Parse reads a scenario, and gives fields other values. The name is the file's,
// for problems; an inventory is looked for beside it. Problems have no lines when
// there are overrides: the scenario itself should be sound.
func Parse(name string, data []byte, overrides ...Override) (*Scenario, error) {
	if len(overrides) > 0 {
		return parseWith(name, data, overrides)
	}
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return nil, err
	}
	return read(name, data, doc)
}

// read reads the scenario in a document.
func read(name string, data []byte, doc *yamldoc.Document) (*Scenario, error) {
	var spec Spec
	r := &reader{name: name, spec: &spec, line: doc.Line, files: []string{name}}
	if bytes.Contains(data[:min(len(data), 1<<12)], []byte("apiVersion")) {
		r.wrong("apiVersion", "this is what kubectl prints; write a scenario with inventory: %s",
			filepath.Base(name))
		return nil, r.problems
	}
	if err := doc.Decode(&spec); err != nil {
		return nil, err
	}
	return r.scenario()
}

// Scenario returns what a spec describes that was made and not read, or every problem with it.
// The name is the file's, for problems; an inventory is looked for beside it.
func (s Spec) Scenario(name string) (*Scenario, error) {
	return (&reader{name: name, spec: &s, files: []string{name}}).scenario()
}

// reader turns a spec into a scenario and collects what is wrong with it.
type reader struct {
	name     string
	spec     *Spec
	line     inventory.Positions // nil: it was not read
	problems inventory.Problems
	left     int // problems beyond those that are reported
	files    []string
}

// wrong adds a problem. Those of an event are longer than others: they say how
// events are written.
func (r *reader) wrong(field, format string, args ...any) {
	if len(r.problems) >= yamldoc.MaxProblems {
		r.left++
		return
	}
	r.problems = append(r.problems, inventory.Problem{File: r.name, Line: r.line.Of(field),
		Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) scenario() (*Scenario, error) {
	fleet, err := r.fleet()
	if err != nil {
		return nil, err
	}
	return r.over(fleet)
}

// Of returns the scenario of a fleet that was read already, with what varies from world to world.
func Of(name string, fleet *inventory.Fleet, vary VarySpec) (*Scenario, error) {
	return (&reader{name: name, spec: &Spec{Inventory: name, Vary: vary}}).over(fleet)
}

// over returns the scenario of a fleet.
func (r *reader) over(fleet *inventory.Fleet) (*Scenario, error) {
	var err error
	if len(fleet.Hosts) == 0 {
		r.wrong("hosts", "there are no hosts; write hosts: and vms:, or inventory: FILE")
	}
	r.sizes(fleet)
	r.workloads(fleet)
	s := &Scenario{Name: cmp.Or(r.spec.Name, filepath.Base(r.name)), Fleet: fleet,
		Seed: cmp.Or(r.spec.Seed, 1), Until: 240 * time.Hour, Model: fake.QEMU()}
	if r.spec.Until != "" {
		if s.Until, err = readDuration(r.spec.Until); err != nil {
			r.wrong("until", "%v", err)
		}
	}
	r.control(s)
	r.transport(s)
	r.failover(s)
	r.trace(s)
	for i := range fleet.VMs {
		fleet.VMs[i].Unmeasured = fleet.VMs[i].Unmeasured || r.spec.Unmeasured
	}
	r.events(s)
	r.vary(s)
	s.Files = r.files
	slices.SortStableFunc(r.problems, func(a, b inventory.Problem) int {
		return cmp.Compare(a.Line, b.Line)
	})
	if r.left > 0 {
		r.problems = append(r.problems, inventory.Problem{File: r.name,
			Message: fmt.Sprintf("and %d more problems", r.left)})
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return s, nil
}

// control reads how the controller decides: the fleet's configuration, and what the scenario
// says besides. The limits are the fleet's, unless the scenario says otherwise.
func (r *reader) control(s *Scenario) {
	c, cluster := &s.Controller, s.Fleet.Config
	c.Cluster, c.Policies = &cluster, s.Fleet.Policies
	c.ResourceQuotas = s.Fleet.Quotas
	c.Namespaces = map[string]map[string]string{}
	for name, labels := range s.Fleet.Namespaces {
		c.Namespaces[name] = labels
	}
	c.Evacuation.Strategy = s.Fleet.EvictionStrategy
	written := &r.spec.Config
	if r.spec.Inventory != "" {
		written = nil
	}
	r.spec.Control.Apply(written, c, r.wrong)
	c.Network = s.Fleet.Network
	s.Model, s.Errors = r.model()
}

func (r *reader) events(s *Scenario) {
	known := s.names()
	for i, text := range r.spec.Events {
		all, err := each(text)
		if err != nil {
			r.wrong(fmt.Sprintf("events[%d]", i), "%v", err)
			continue
		}
		for _, one := range all {
			e, err := known.parse(one)
			if err != nil {
				r.wrong(fmt.Sprintf("events[%d]", i), "%v", err)
				break
			}
			s.Events = append(s.Events, e)
		}
	}
}

// mostEach is how many events one line may stand for.
const mostEach = 100_000

// each returns the events that a line stands for: one for each name of the range in it, which is
// written as those of hosts and VMs are.
func each(text string) ([]string, error) {
	words := strings.Fields(text)
	at := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "[") })
	if at < 0 || len(text) > maxEvent {
		return []string{text}, nil
	}
	names, err := inventory.ExpandNames(words[at], mostEach)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(names))
	for i, name := range names {
		one := slices.Clone(words)
		one[at] = name
		all[i] = strings.Join(one, " ")
	}
	return all, nil
}

func (s *Scenario) names() names {
	n := names{make(map[hypervisor.HostName]bool, len(s.Fleet.Hosts)),
		make(map[hypervisor.VMID]hypervisor.Bytes, len(s.Fleet.VMs))}
	for _, h := range s.Fleet.Hosts {
		n.hosts[h.Name] = true
	}
	for i := range s.Fleet.VMs {
		n.vms[s.Fleet.VMs[i].ID] = s.Fleet.VMs[i].Memory
	}
	return n
}

// Event reads one event of this scenario's fleet.
func (s *Scenario) Event(text string) (Scheduled, error) { return s.names().parse(text) }

// Config returns the configuration of the scenario's world, for a seed.
func (s *Scenario) Config(seed uint64) sim.Config {
	model := s.Model.Encrypted(s.Encryption) // the world keeps it, and is not to keep the scenario
	return sim.Config{Controller: s.Controller, Agent: s.Agent, Model: &model, Chooser: sim.Seeded(seed),
		Claims: s.claims(), Marks: s.marks()}
}
