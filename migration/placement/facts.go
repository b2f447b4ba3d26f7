package placement

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// Facts are what is known about a host beside its size and its marks. They are
// shared between copies of the host and never changed, only replaced. A zero
// field is unknown. What is unknown refuses no VM, unless its constraints
// ask for it: a VM that needs a GPU does not go where none is known. Hosts that
// are alike in all of this may share one Facts, which makes decisions faster.
type Facts struct {
	Memory, CPUs, Disk DeviceInventory // what there is, before over-commitment

	MaxVMs  int // VMs at once; 0 is no limit
	MaxBusy int // moves in, builds and copies at once; 0 is no limit

	Disabled    bool // an operator took the host out of service
	Maintenance bool // it is being worked on

	Zone       string // availability zone
	Aggregates []*Aggregate
	Machines   []string // machine types, as QEMU names them
	CPU        *CPU     // shared between equal hosts, which makes comparing fast
	Hypervisor Hypervisor
	Abilities  hypervisor.Abilities // 0 is unknown

	Cells    []Cell   // NUMA nodes
	Devices  Devices  // how many there are of each class
	Networks []string // what a VM's cards can be plugged into

	Link   hypervisor.Bandwidth // the migration network's speed
	Rack   string               // moves between racks share their up-links
	Uplink hypervisor.Bandwidth
}

// A CPU is what a host's processors can do.
type CPU struct {
	Arch     string   // "x86_64"
	Models   []string // the models that it can show to a guest
	Features []string // sorted
	Vendor   string   `json:",omitempty"` // "Intel"; live moves do not cross it
}

// A Hypervisor is the software that runs the VMs of a host. Versions are
// numbers that grow: libvirt's major*1000000 + minor*1000 + release.
type Hypervisor struct {
	Kind    string
	Version int
}

// A Platform is what a VM needs of a host's processor and software.
type Platform struct {
	Arch    string `json:",omitempty"` // "x86_64"
	Machine string `json:",omitempty"` // "pc-q35-7.2"
	// CPUModel is what the guest sees. Without one it sees the host's own
	// processor, and moves only to a host that has all its features.
	CPUModel    string   `json:",omitempty"`
	CPUFeatures []string `json:",omitempty"`
	// HostModel is what the guest sees of the host on which it was started, and HostFeatures are
	// those that the model stands for: a live move keeps them, a start elsewhere takes those of
	// the new host.
	HostModel    string   `json:",omitempty"`
	HostFeatures []string `json:",omitempty"`
	// CPUExact: the guest sees the processor itself, and moves live only to a host whose
	// processor has the same features, no fewer and no more.
	CPUExact   bool   `json:",omitempty"`
	Hypervisor string `json:",omitempty"` // its kind: "QEMU"
	MinVersion int    `json:",omitempty"` // of the hypervisor
}

// A DeviceAsk is a number of host devices of one class.
type DeviceAsk struct {
	Class string
	Count int
	// Stays: the device does not move while the VM runs.
	Stays bool `json:",omitempty"`
}

// A GroupPolicy is what a group of VMs wants of its hosts.
type GroupPolicy string

// The policies, as Nova names them. The soft ones only prefer.
const (
	Affinity         GroupPolicy = "affinity"
	AntiAffinity     GroupPolicy = "anti-affinity"
	SoftAffinity     GroupPolicy = "soft-affinity"
	SoftAntiAffinity GroupPolicy = "soft-anti-affinity"
)

// A GroupRule is a VM's membership in a group.
type GroupRule struct {
	Group  string
	Policy GroupPolicy
	// Max is how many members may be together under AntiAffinity. Default: 1.
	Max int `json:",omitempty"`
	// Domain is the host label whose value names a failure domain, such as
	// "rack". Default: each host is one.
	Domain string `json:",omitempty"`
}

// Limit returns Max, or its default.
func (r *GroupRule) Limit() int { return max(1, r.Max) }
