package inventory

import (
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Spec is a fleet in godwit's own YAML. Embed it, with the tag `yaml:",inline"`,
// in the struct of a larger file, decode that with package internal/yamldoc, and
// call [Spec.Fleet]. Amounts, speeds and durations are texts with units, as
// [ParseBytes], [ParseBandwidth] and [ParseDuration] read them.
type Spec struct {
	Hosts    []HostSpec   `yaml:"hosts,omitempty"` // one entry is a host, or many that differ only in name
	VMs      []VMSpec     `yaml:"vms,omitempty"`   // one entry is a VM, or many that differ only in name and host
	Policies []PolicySpec `yaml:"policies,omitempty"`
	// Config has KubeVirt's field names.
	Config ConfigSpec `yaml:"config,omitempty"`
	// EvictionStrategy is the cluster's. Default: None, which is
	// KubeVirt's; of a file that [ReadFleet] reads, LiveMigrate.
	EvictionStrategy string                      `yaml:"evictionStrategy,omitempty"`
	Namespaces       map[string]placement.Labels `yaml:"namespaces,omitempty"` // their labels
	Defaults         DefaultsSpec                `yaml:"defaults,omitempty"`   // what hosts and VMs do not say
	// Network is the migration network, if all migrations together share one.
	Network NetworkSpec `yaml:"network,omitempty"`
	Shared  `yaml:",inline"`
}

// A NetworkSpec is a network that every migration crosses, besides the links of its hosts.
type NetworkSpec struct {
	Speed string `yaml:"speed,omitempty"` // of all together: "100Gbit/s"; default: no limit
}

// A HostSpec is one host, or many that differ only in name.
type HostSpec struct {
	Name string `yaml:"name"` // its name, or a range of names: "n[1-3]"
	// Memory is what VMs may use together, huge pages included; where something is reserved,
	// or given away more than once, what there is.
	Memory string           `yaml:"memory"`
	CPUs   int              `yaml:"cpus"`             // what VMs may use together, or what there is, as of memory
	Link   string           `yaml:"link,omitempty"`   // the migration network's speed, each way
	Labels placement.Labels `yaml:"labels,omitempty"` // what nodeSelector and affinity of VMs ask for
	// Taints are written as kubectl does: "key:NoSchedule", "key=value:NoExecute".
	Taints   Words `yaml:"taints,omitempty"`
	Cordoned bool  `yaml:"cordoned,omitempty"` // it takes no VMs
	Down     bool  `yaml:"down,omitempty"`     // it is not ready, and takes no VMs, either
	// Zone and rack are labels, too, where labels do not say otherwise.
	HostAttributes `yaml:",inline"`
}

// A VMSpec is one VM, or many that differ only in name and host.
type VMSpec struct {
	Name      string `yaml:"name"`                // its name, or a range of names: "web-[1-20]"
	Namespace string `yaml:"namespace,omitempty"` // of its name and of quotas; default: "default"
	// Host is where it runs; a range of hosts is dealt out in turn. Without a
	// host it does not run yet.
	Host     string           `yaml:"host,omitempty"`
	Memory   string           `yaml:"memory"`             // what its guest sees
	CPUs     int              `yaml:"cpus,omitempty"`     // virtual ones; default: 1
	Labels   placement.Labels `yaml:"labels,omitempty"`   // what policies and --protect select by
	Strategy string           `yaml:"strategy,omitempty"` // its eviction strategy; default: the cluster's
	// Migratable says whether it can be migrated. Default: true, unless WhyNot is written.
	Migratable *bool  `yaml:"migratable,omitempty"`
	WhyNot     string `yaml:"whyNot,omitempty"` // why it cannot be migrated, in your words
	Marked     bool   `yaml:"marked,omitempty"` // it was asked to leave its host
	Paused     bool   `yaml:"paused,omitempty"` // its guest is paused, and keeps its memory

	NodeSelector placement.Labels          `yaml:"nodeSelector,omitempty"` // labels that its host has to have
	Affinity     [][]placement.Requirement `yaml:"affinity,omitempty"`     // all conditions of one of the lists have to hold
	// Tolerations are written like taints; without "=value" any value is
	// tolerated, without ":effect" every effect; "*" tolerates everything.
	Tolerations Words `yaml:"tolerations,omitempty"`
	Apart       Words `yaml:"apart,omitempty"` // groups with at most one VM on a host

	VMAttributes `yaml:",inline"`
	LoadSpec     `yaml:",inline"`
}

// A LoadSpec says how VMs change their memory: see [Load].
type LoadSpec struct {
	Class      string `yaml:"class,omitempty"`      // how its guest writes: idle, web, database, busy or in-memory; the others replace what it says
	Dirty      string `yaml:"dirty,omitempty"`      // how fast its guest writes to the hot set
	WorkingSet string `yaml:"workingSet,omitempty"` // the size of the hot set; without a class: all memory
	ColdDirty  string `yaml:"coldDirty,omitempty"`  // how fast its guest writes to everything else
}

// A DefaultsSpec is what hosts and VMs do not say: see [Defaults].
type DefaultsSpec struct {
	Link string `yaml:"link,omitempty"` // of hosts that do not say; default: 10Gbit/s
	// Overrides are defaults for some hosts and VMs. Of those that match, the one with the most labels wins.
	Overrides []OverrideSpec `yaml:"overrides,omitempty"`
	LoadSpec  `yaml:",inline"`
}

// An OverrideSpec is a default for some hosts or VMs: see [Override].
type OverrideSpec struct {
	Hosts    placement.Labels `yaml:"hosts,omitempty"` // labels of the hosts that it is for
	VMs      placement.Labels `yaml:"vms,omitempty"`   // labels of the VMs that it is for
	Link     string           `yaml:"link,omitempty"`  // the speed of these hosts
	LoadSpec `yaml:",inline"`
}
