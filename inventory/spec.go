package inventory

import (
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Spec is a fleet in godwit's own YAML. Embed it, with the tag `yaml:",inline"`,
// in the struct of a larger file, decode that with package internal/yamldoc, and
// call [Spec.Fleet]. Amounts, speeds and durations are texts with units, as
// [ParseBytes], [ParseBandwidth] and [ParseDuration] read them.
type Spec struct {
	Hosts    []HostSpec   `yaml:"hosts,omitempty"`
	VMs      []VMSpec     `yaml:"vms,omitempty"`
	Policies []PolicySpec `yaml:"policies,omitempty"`
	// Config has KubeVirt's field names.
	Config ConfigSpec `yaml:"config,omitempty"`
	// EvictionStrategy is the cluster's. Default: None, which is
	// KubeVirt's; of a file that [ReadFleet] reads, LiveMigrate.
	EvictionStrategy string                      `yaml:"evictionStrategy,omitempty"`
	Namespaces       map[string]placement.Labels `yaml:"namespaces,omitempty"` // their labels
	Defaults         DefaultsSpec                `yaml:"defaults,omitempty"`
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
	Name string `yaml:"name"` // see [ExpandNames]
	// Memory and CPUs are what VMs may use together, huge pages included; where
	// something is reserved, or given away more than once, what there is.
	Memory string           `yaml:"memory"`
	CPUs   int              `yaml:"cpus"`
	Link   string           `yaml:"link,omitempty"` // the migration network's speed, each way
	Labels placement.Labels `yaml:"labels,omitempty"`
	// Taints are written as kubectl does: "key:NoSchedule", "key=value:NoExecute".
	Taints   Words `yaml:"taints,omitempty"`
	Cordoned bool  `yaml:"cordoned,omitempty"` // takes no VMs
	Down     bool  `yaml:"down,omitempty"`     // not ready; takes no VMs, either
	// Zone and rack are labels, too, where labels do not say otherwise.
	HostAttributes `yaml:",inline"`
}

// A VMSpec is one VM, or many that differ only in name and host.
type VMSpec struct {
	Name      string `yaml:"name"`                // see [ExpandNames]
	Namespace string `yaml:"namespace,omitempty"` // default: "default"
	// Host is where it runs; a range of hosts is dealt out in turn. Without a
	// host it does not run yet.
	Host     string           `yaml:"host,omitempty"`
	Memory   string           `yaml:"memory"`
	CPUs     int              `yaml:"cpus,omitempty"` // default: 1
	Labels   placement.Labels `yaml:"labels,omitempty"`
	Strategy string           `yaml:"strategy,omitempty"` // default: the cluster's
	// Migratable is true unless it is written, or WhyNot is.
	Migratable *bool  `yaml:"migratable,omitempty"`
	WhyNot     string `yaml:"whyNot,omitempty"`
	Marked     bool   `yaml:"marked,omitempty"` // asked to leave its host
	Paused     bool   `yaml:"paused,omitempty"` // its guest stands, and keeps its memory

	// Constraints on its hosts.
	NodeSelector placement.Labels          `yaml:"nodeSelector,omitempty"`
	Affinity     [][]placement.Requirement `yaml:"affinity,omitempty"` // any of all of
	// Tolerations are written like taints; without "=value" any value is
	// tolerated, without ":effect" every effect; "*" tolerates everything.
	Tolerations Words `yaml:"tolerations,omitempty"`
	Apart       Words `yaml:"apart,omitempty"` // groups with at most one VM on a host

	VMAttributes `yaml:",inline"`
	LoadSpec     `yaml:",inline"`
}

// A LoadSpec says how VMs change their memory: see [Load].
type LoadSpec struct {
	Class      string `yaml:"class,omitempty"`
	Dirty      string `yaml:"dirty,omitempty"`
	WorkingSet string `yaml:"workingSet,omitempty"`
	ColdDirty  string `yaml:"coldDirty,omitempty"`
}

// A DefaultsSpec is what hosts and VMs do not say: see [Defaults].
type DefaultsSpec struct {
	Link      string         `yaml:"link,omitempty"`
	Overrides []OverrideSpec `yaml:"overrides,omitempty"`
	LoadSpec  `yaml:",inline"`
}

// An OverrideSpec is a default for some hosts or VMs: see [Override].
type OverrideSpec struct {
	Hosts    placement.Labels `yaml:"hosts,omitempty"`
	VMs      placement.Labels `yaml:"vms,omitempty"`
	Link     string           `yaml:"link,omitempty"`
	LoadSpec `yaml:",inline"`
}
