// Package settings reads the file that configures a controller: limits, policies, how hosts
// are emptied, timeouts and quotas.
//
//	evictionStrategy: None               # of VMs that say nothing; default: LiveMigrate
//	config: {parallelMigrationsPerCluster: 10, bandwidthPerMigration: 2Gbit/s}
//	policies:
//	- {name: slow, selectors: {virtualMachineInstanceSelector: {app: db}}, allowPostCopy: true}
//	namespaces: {prod: {tier: gold}}
//	evacuation: {mode: FreeSpots, order: SmallestFirst}
//	timeouts: {pending: 12h, transfer: 2h}
//	backoff: {base: 20s, cap: 5m}
//	quotas: {acme: {memory: 512GiB, cpus: 128}}
//	failover: {grace: 30s, fenceAfter: 1m, stormShare: 0.34}
//
// Everything is optional. What is wrong is said at once, each with its line.
package settings

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/controller/failover"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/inventory/document"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
	"github.com/godwit-vm/godwit/migration/policy"
)

// File is the file. Durations, amounts and speeds are texts with units.
type File struct {
	Config           inventory.ConfigSpec        `yaml:"config,omitempty"`
	Policies         []inventory.PolicySpec      `yaml:"policies,omitempty"`
	EvictionStrategy string                      `yaml:"evictionStrategy,omitempty"`
	Namespaces       map[string]placement.Labels `yaml:"namespaces,omitempty"`
	Evacuation       Evacuation                  `yaml:"evacuation,omitempty"`
	Timeouts         Timeouts                    `yaml:"timeouts,omitempty"`
	Backoff          Backoff                     `yaml:"backoff,omitempty"`
	AvoidFor         string                      `yaml:"avoidFor,omitempty"`
	Keep             int                         `yaml:"keep,omitempty"`
	Quotas           map[string]Quota            `yaml:"quotas,omitempty"`
	Failover         Failover                    `yaml:"failover,omitempty"`
	Compatible       bool                        `yaml:"compatible,omitempty"`
}

// Evacuation says how hosts are emptied.
type Evacuation struct {
	Mode  string `yaml:"mode,omitempty"`  // QueueAll (default), FreeSpots
	Order string `yaml:"order,omitempty"` // LargestFirst (default), SmallestFirst, ByID
}

// Timeouts bound the phases of a migration: see migration.Timeouts.
type Timeouts struct {
	Pending        string `yaml:"pending,omitempty"`
	Unschedulable  string `yaml:"unschedulable,omitempty"`
	Target         string `yaml:"target,omitempty"`
	HandOver       string `yaml:"handOver,omitempty"`
	Prepare        string `yaml:"prepare,omitempty"`
	Probe          string `yaml:"probe,omitempty"`
	Begin          string `yaml:"begin,omitempty"`
	Transfer       string `yaml:"transfer,omitempty"`
	Abort          string `yaml:"abort,omitempty"`
	UtilityVolumes string `yaml:"utilityVolumes,omitempty"`
}

// Backoff is how long failed migrations wait.
type Backoff struct {
	Base string `yaml:"base,omitempty"`
	Cap  string `yaml:"cap,omitempty"`
}

// Quota bounds what the VMs of a tenant hold together; what is not said is not bounded.
type Quota struct {
	Memory string `yaml:"memory,omitempty"`
	CPUs   int    `yaml:"cpus,omitempty"`
	Disk   string `yaml:"disk,omitempty"`
}

// Failover says what becomes of silent hosts: see failover.Config.
type Failover struct {
	Grace       string  `yaml:"grace,omitempty"`
	FenceAfter  string  `yaml:"fenceAfter,omitempty"`
	StormShare  float64 `yaml:"stormShare,omitempty"`
	FenceAtOnce int     `yaml:"fenceAtOnce,omitempty"`
	FenceIdle   bool    `yaml:"fenceIdle,omitempty"`
}

// Settings are what the file says.
type Settings struct {
	Text       string // of the file
	Controller controller.Config
	Failover   failover.Config
}

// ReadFile reads a configuration; "" is no file, and all defaults. An error in it is
// document.Problems.
func ReadFile(path string) (Settings, error) {
	if path == "" {
		return Parse("defaults", []byte("{}\n"))
	}
	f, err := os.Open(path)
	if err != nil {
		return Settings{}, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := document.ReadAll(path, f, document.MaxSize)
	if err != nil {
		return Settings{}, err
	}
	return Parse(path, data)
}

// Parse reads a configuration. The name is the file's, for problems.
func Parse(name string, data []byte) (Settings, error) {
	doc, err := document.Parse(name, 1, data)
	if err != nil {
		return Settings{}, err
	}
	var file File
	if err := doc.Decode(&file); err != nil {
		return Settings{}, err
	}
	r := &reader{Report: document.Report{File: name}, line: doc.Line}
	spec := inventory.Spec{Config: file.Config, Policies: file.Policies,
		EvictionStrategy: file.EvictionStrategy, Namespaces: file.Namespaces}
	fleet, err := spec.Fleet(name, doc.Line)
	if err != nil {
		return Settings{}, err
	}
	all := Settings{Text: string(data)}
	c := &all.Controller
	c.Cluster, c.Policies = &fleet.Config, fleet.Policies
	c.Namespaces = map[string]policy.Labels{}
	for ns, labels := range fleet.Namespaces {
		c.Namespaces[ns] = policy.Labels(labels)
	}
	c.Evacuation.Strategy = fleet.EvictionStrategy
	if file.EvictionStrategy == "" && !file.Compatible {
		c.Evacuation.Strategy = evacuation.LiveMigrate
	}
	c.Evacuation.Compatible, c.Migration.Compatible = file.Compatible, file.Compatible
	r.words(&file.Evacuation, &c.Evacuation)
	r.times(&file, &all)
	r.quotas(file.Quotas, c)
	r.failover(&file.Failover, &all.Failover)
	all.Failover.Placement, all.Failover.Evacuation = c.Placement, c.Evacuation
	return all, r.Err()
}

// reader reads what the inventory has no words for, and collects what is wrong.
type reader struct {
	document.Report
	line func(string) int
}

func (r *reader) wrong(field, format string, args ...any) {
	r.Errorf(r.line(field), field, format, args...)
}

func (r *reader) words(e *Evacuation, p *evacuation.Params) {
	switch e.Mode {
	case "", "QueueAll":
	case "FreeSpots":
		p.Mode = evacuation.FreeSpots
	default:
		r.wrong("evacuation.mode", "unknown mode %q; use QueueAll or FreeSpots", e.Mode)
	}
	switch e.Order {
	case "", "LargestFirst":
	case "SmallestFirst":
		p.Order = evacuation.SmallestFirst
	case "ByID":
		p.Order = evacuation.ByID
	default:
		r.wrong("evacuation.order", "unknown order %q; use LargestFirst, SmallestFirst or ByID",
			e.Order)
	}
}

func (r *reader) times(f *File, s *Settings) {
	m := &s.Controller.Migration
	t := &m.Timeouts
	for _, d := range []struct {
		field, text string
		to          *time.Duration
	}{
		{"timeouts.pending", f.Timeouts.Pending, &t.Pending},
		{"timeouts.unschedulable", f.Timeouts.Unschedulable, &t.Unschedulable},
		{"timeouts.target", f.Timeouts.Target, &t.Target},
		{"timeouts.handOver", f.Timeouts.HandOver, &t.HandOver},
		{"timeouts.prepare", f.Timeouts.Prepare, &t.Prepare},
		{"timeouts.probe", f.Timeouts.Probe, &t.Probe},
		{"timeouts.begin", f.Timeouts.Begin, &t.Begin},
		{"timeouts.transfer", f.Timeouts.Transfer, &t.Transfer},
		{"timeouts.abort", f.Timeouts.Abort, &t.Abort},
		{"timeouts.utilityVolumes", f.Timeouts.UtilityVolumes, &t.UtilityVolumes},
		{"backoff.base", f.Backoff.Base, &m.BackoffBase},
		{"backoff.cap", f.Backoff.Cap, &m.BackoffCap},
		{"avoidFor", f.AvoidFor, &m.AvoidFor},
		{"failover.grace", f.Failover.Grace, &s.Failover.Grace},
		{"failover.fenceAfter", f.Failover.FenceAfter, &s.Failover.FenceAfter},
	} {
		if d.text == "" {
			continue
		}
		got, err := inventory.ParseDuration(d.text)
		if err == nil && got <= 0 {
			err = fmt.Errorf("needs more than 0")
		}
		if err != nil {
			r.wrong(d.field, "%v", err)
		}
		*d.to = got
	}
	if m.Keep = f.Keep; f.Keep < 0 || f.Keep > 1000 {
		r.wrong("keep", "needs 0 to 1000 migrations, has %d", f.Keep)
	}
}

func (r *reader) quotas(all map[string]Quota, c *controller.Config) {
	const most = 1 << 53 // what the books can hold
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		q, at := all[tenant], "quotas."+tenant
		a := reserve.Amount{Memory: most, CPUs: most, Disk: most}
		var err error
		if q.Memory != "" {
			if a.Memory, err = inventory.ParseBytes(q.Memory); err != nil || a.Memory > most {
				r.wrong(at+".memory", "%q is no amount of memory: write 512GiB", q.Memory)
			}
		}
		if q.Disk != "" {
			if a.Disk, err = inventory.ParseBytes(q.Disk); err != nil || a.Disk > most {
				r.wrong(at+".disk", "%q is no amount of disk: write 2TiB", q.Disk)
			}
		}
		if q.CPUs < 0 {
			r.wrong(at+".cpus", "needs 1 or more, has %d", q.CPUs)
		} else if q.CPUs > 0 {
			a.CPUs = q.CPUs
		}
		if c.Quotas == nil {
			c.Quotas = map[string]reserve.Amount{}
		}
		c.Quotas[tenant] = a
	}
}

func (r *reader) failover(f *Failover, c *failover.Config) {
	if c.StormShare = f.StormShare; !(f.StormShare >= 0 && f.StormShare <= 1) {
		r.wrong("failover.stormShare", "needs a share of all hosts, 0 to 1, has %v", f.StormShare)
	}
	if c.FenceAtOnce = f.FenceAtOnce; f.FenceAtOnce < 0 {
		r.wrong("failover.fenceAtOnce", "needs 1 or more, has %d", f.FenceAtOnce)
	}
	c.FenceIdle = f.FenceIdle
}
