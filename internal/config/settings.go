package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
)

// File is the file. Durations, amounts and speeds are texts with units.
type File struct {
	Config   inventory.ConfigSpec   `yaml:"config,omitempty"`
	Policies []inventory.PolicySpec `yaml:"policies,omitempty"`
	// EvictionStrategy is that of VMs without one: LiveMigrate (default; None with compatible: true),
	// LiveMigrateIfPossible, External or None.
	EvictionStrategy string `yaml:"evictionStrategy,omitempty"`
	// Namespaces are the labels of namespaces, by name.
	Namespaces map[string]placement.Labels `yaml:"namespaces,omitempty"`
	// Network is the migration network, if all migrations together share one: then no more of them begin
	// than converge there.
	Network  inventory.NetworkSpec `yaml:"network,omitempty"`
	Failover Failover              `yaml:"failover,omitempty"`
	Control  `yaml:",inline"`
}

// Control is how a controller decides, beside the configuration that has KubeVirt's names. A
// scenario and a controller's file both have it.
type Control struct {
	Limits      Limits           `yaml:"limits,omitempty"`
	Evacuation  Evacuation       `yaml:"evacuation,omitempty"`
	Mode        string           `yaml:"mode,omitempty"`        // evacuation.mode, written shorter
	Order       string           `yaml:"order,omitempty"`       // evacuation.order, written shorter
	OnUnmovable string           `yaml:"onUnmovable,omitempty"` // evacuation.onUnmovable, written shorter
	Grace       string           `yaml:"grace,omitempty"`       // evacuation.grace, written shorter
	Timeouts    Timeouts         `yaml:"timeouts,omitempty"`
	Backoff     Backoff          `yaml:"backoff,omitempty"`
	AvoidFor    string           `yaml:"avoidFor,omitempty"`
	Keep        *int             `yaml:"keep,omitempty"`
	Quotas      map[string]Quota `yaml:"quotas,omitempty"`
	Compatible  bool             `yaml:"compatible,omitempty"` // restores KubeVirt's decisions
}

// Limits override the limits of the configuration.
type Limits struct {
	// PerCluster is how many migrations run at once. It goes before config.parallelMigrationsPerCluster. Default: 5.
	PerCluster *int `yaml:"perCluster,omitempty"`
	// PerSource is how many leave one host at once. It goes before config.parallelOutboundMigrationsPerNode. Default: 2.
	PerSource *int `yaml:"perSource,omitempty"`
	// PerTarget is how many arrive at one host at once. It goes before config.parallelInboundMigrationsPerNode. Default:
	// 0, no limit.
	PerTarget *int `yaml:"perTarget,omitempty"`
}

// Evacuation says how hosts are emptied.
type Evacuation struct {
	Mode string `yaml:"mode,omitempty"` // where migrations wait: QueueAll (default), FreeSpots
	// Order is the order in which VMs leave: LargestFirst (default), SmallestFirst, ByID; or Adaptive,
	// where package evacuation also says how many at once, and where to. Limits
	// that are not written are lifted then.
	Order string `yaml:"order,omitempty"`
	// OnUnmovable is what a drain does with VMs that it cannot migrate, and that their eviction
	// strategy does not protect: Keep, ShutDown or Restart. Default: Restart with
	// LiveMigrateIfPossible, as KubeVirt, and Keep with None. A drain may say it for itself.
	OnUnmovable string `yaml:"onUnmovable,omitempty"`
	// Grace is how long their guests have to shut down. Default: 1m.
	Grace string `yaml:"grace,omitempty"`
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
	Base string `yaml:"base,omitempty"` // after the first failure in a row; it doubles with each; default: 20s
	Cap  string `yaml:"cap,omitempty"`  // the longest; default: 320s
}

// Quota bounds what the VMs of a tenant hold together; what is not said is not bounded.
type Quota struct {
	Memory string `yaml:"memory,omitempty"` // the memory of all its VMs
	CPUs   *int   `yaml:"cpus,omitempty"`   // their CPUs
	Disk   string `yaml:"disk,omitempty"`   // the disks that are on their hosts
}

// Settings are what the file says.
type Settings struct {
	Text       string // of the file
	Controller controller.Config
	Failover   controller.FailoverConfig
}

// ReadSettings reads a configuration; "" is no file, and all defaults. An error in it is
// yamldoc.Problems.
func ReadSettings(path string) (Settings, error) {
	if path == "" {
		return ParseSettings("defaults", []byte("{}\n"))
	}
	f, err := os.Open(path)
	if err != nil {
		return Settings{}, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err != nil {
		return Settings{}, err
	}
	return ParseSettings(path, data)
}

// ParseSettings reads a configuration. The name is the file's, for problems.
func ParseSettings(name string, data []byte) (Settings, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return Settings{}, err
	}
	var file File
	if err := doc.Decode(&file); err != nil {
		return Settings{}, err
	}
	r := &settingsReader{Report: yamldoc.Report{File: name}, line: doc.Line}
	spec := inventory.Spec{Config: file.Config, Policies: file.Policies,
		EvictionStrategy: file.EvictionStrategy, Namespaces: file.Namespaces, Network: file.Network}
	fleet, err := spec.Fleet(name, doc.Line)
	if err != nil {
		return Settings{}, err
	}
	all := Settings{Text: string(data)}
	c := &all.Controller
	c.Cluster, c.Policies, c.Network = &fleet.Config, fleet.Policies, fleet.Network
	c.Namespaces = map[string]migration.Labels{}
	for ns, labels := range fleet.Namespaces {
		c.Namespaces[ns] = migration.Labels(labels)
	}
	c.Evacuation.Strategy = fleet.EvictionStrategy
	if file.EvictionStrategy == "" && !file.Compatible {
		c.Evacuation.Strategy = evacuation.LiveMigrate
	}
	file.Control.apply(r, &file.Config, c)
	file.Failover.apply(r, &all.Failover)
	all.Failover.Placement, all.Failover.Evacuation = c.Placement, c.Evacuation
	return all, r.Err()
}

// settingsReader reads what the inventory has no words for, and collects what is wrong.
type settingsReader struct {
	yamldoc.Report
	line func(string) int
}

func (r *settingsReader) wrong(field, format string, args ...any) {
	r.Errorf(r.line(field), field, format, args...)
}

// faults collects what is wrong with a file, by fields.
type faults interface {
	wrong(field, format string, args ...any)
}

// Wrong is a function that is told what is wrong with a field.
type Wrong func(field, format string, args ...any)

func (w Wrong) wrong(field, format string, args ...any) { w(field, format, args...) }

// Apply configures a controller, and tells what is wrong. Its cluster's configuration, which
// must be there, is changed. written is that configuration as it was written; nil is that it
// was imported, and does not tell a default from a wish.
func (k *Control) Apply(written *inventory.ConfigSpec, c *controller.Config, wrong Wrong) {
	k.apply(wrong, written, c)
}

func (k *Control) apply(r faults, written *inventory.ConfigSpec, c *controller.Config) {
	c.Evacuation.Compatible, c.Migration.Compatible = k.Compatible, k.Compatible
	if k.Compatible && (written == nil || written.Convergence == "") {
		c.Cluster.Convergence = convergence.Legacy
	}
	mode := either(r, "mode", k.Mode, k.Evacuation.Mode)
	order := either(r, "order", k.Order, k.Evacuation.Order)
	settingsWords(r, mode, order, c)
	k.unmovable(r, &c.Evacuation.Terms)
	if c.Adaptive && written != nil {
		lift(c.Cluster, written)
	}
	k.Limits.apply(r, c.Cluster)
	k.times(r, &c.Migration)
	quotas(r, k.Quotas, c)
}

// A word is a word in a field.
type word struct{ field, text string }

// either returns the word that was written in one of two places.
func either(r faults, field, here, there string) word {
	switch {
	case there == "":
		return word{field, here}
	case here != "" && here != there:
		r.wrong(field, "is %q, and evacuation.%s is %q: write one of them", here, field, there)
	}
	return word{"evacuation." + field, there}
}

func settingsWords(r faults, mode, order word, c *controller.Config) {
	p := &c.Evacuation
	switch mode.text {
	case "", "QueueAll":
	case "FreeSpots":
		p.Mode = evacuation.FreeSpots
	default:
		r.wrong(mode.field, "unknown mode %q; use QueueAll or FreeSpots", mode.text)
	}
	switch order.text {
	case "", "LargestFirst":
	case "SmallestFirst":
		p.Order = evacuation.SmallestFirst
	case "ByID":
		p.Order = evacuation.ByID
	case "Adaptive", "adaptive":
		c.Adaptive = true
	default:
		r.wrong(order.field, "unknown order %q; use LargestFirst, SmallestFirst, ByID or Adaptive",
			order.text)
	}
}

// unmovable reads what becomes of VMs that cannot be migrated.
func (k *Control) unmovable(r faults, t *evacuation.Terms) {
	choice := either(r, "onUnmovable", k.OnUnmovable, k.Evacuation.OnUnmovable)
	var err error
	if t.OnUnmovable, err = evacuation.ParseUnmovable(choice.text); err != nil {
		r.wrong(choice.field, "%v", err)
	}
	grace := either(r, "grace", k.Grace, k.Evacuation.Grace)
	spans(r, []span{{grace.field, grace.text, &t.Grace}})
}

// lift lifts the limits that are not written.
func lift(c *migration.Cluster, written *inventory.ConfigSpec) {
	l := evacuation.AdaptiveLimits(written.ParallelMigrationsPerCluster,
		written.ParallelOutboundMigrationsPerNode, written.ParallelInboundMigrationsPerNode)
	c.ParallelMigrationsPerCluster = l.PerCluster
	c.ParallelOutboundMigrationsPerNode = l.PerSource
	c.ParallelInboundMigrationsPerNode = l.PerTarget
}

func (l *Limits) apply(r faults, c *migration.Cluster) {
	for _, f := range []struct {
		name      string
		value, to *int
	}{
		{"perCluster", l.PerCluster, &c.ParallelMigrationsPerCluster},
		{"perSource", l.PerSource, &c.ParallelOutboundMigrationsPerNode},
		{"perTarget", l.PerTarget, &c.ParallelInboundMigrationsPerNode},
	} {
		if f.value == nil {
			continue
		}
		if *f.value < 0 || *f.value > migration.Unlimited {
			r.wrong("limits."+f.name, "%d is no limit", *f.value)
		}
		*f.to = *f.value
	}
}

// A span is a duration in a field, and where it goes.
type span struct {
	field, text string
	to          *time.Duration
}

func (k *Control) times(r faults, m *migration.Config) {
	f, t := k, &m.Timeouts
	spans(r, []span{
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
	})
	if k.Keep != nil {
		if m.Keep = *k.Keep; m.Keep < 0 || m.Keep > 1000 {
			r.wrong("keep", "needs 0 to 1000 migrations, has %d", m.Keep)
		}
		noZero(r, "keep", m.Keep == 0)
	}
}

func spans(r faults, all []span) {
	for _, d := range all {
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
}

func quotas(r faults, all map[string]Quota, c *controller.Config) {
	const most = 1 << 53 // what reservations can hold
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		q, at := all[tenant], "quotas."+tenant
		a := placement.Amount{Memory: most, CPUs: most, Disk: most}
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
		if q.CPUs != nil {
			if a.CPUs = *q.CPUs; a.CPUs < 0 {
				r.wrong(at+".cpus", "needs 0 or more, has %d", a.CPUs)
			}
		}
		if c.Quotas == nil {
			c.Quotas = map[string]placement.Amount{}
		}
		c.Quotas[tenant] = a
	}
}

// noZero refuses a written 0 where 0 stands for the default.
func noZero(r faults, field string, zero bool) {
	if zero {
		r.wrong(field, "0 would be taken for the default: leave it out, or write more")
	}
}
