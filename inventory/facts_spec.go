package inventory

import "github.com/godwit-vm/godwit/migration/placement"

// Shared is what hosts and VMs refer to by name.
type Shared struct {
	// Aggregates are groups of hosts, by name, with Nova's metadata: several
	// values are separated by commas, filter_tenant_id names the tenants that may use them.
	Aggregates map[string]map[string]string `yaml:"aggregates,omitempty"`
	Groups     map[string]Group             `yaml:"groups,omitempty"` // of VMs, by name
	// Racks are the racks of the hosts, by name. When any is listed, all are.
	Racks map[string]Rack `yaml:"racks,omitempty"`
}

// A Rack is where hosts are that share an up-link. Moves between racks share it, each way;
// moves within one do not use it.
type Rack struct {
	Uplink string `yaml:"uplink,omitempty"` // "40Gbit/s"; default: as fast as its hosts
}

// A Group is what some VMs want of their hosts together: see [placement.GroupRule].
type Group struct {
	Policy placement.GroupPolicy `yaml:"policy"`           // "anti-affinity"
	Max    int                   `yaml:"max,omitempty"`    // so many may be together; default: 1
	Domain string                `yaml:"domain,omitempty"` // a host label; default: each host
}

// A Host is what there is to know of a host beside its size: see [placement.Facts].
type HostAttributes struct {
	Disk     string  `yaml:"disk,omitempty"`     // for local disks of VMs: "2TiB"
	Reserved Amounts `yaml:"reserved,omitempty"` // not for VMs
	Ratios   Ratios  `yaml:"ratios,omitempty"`   // how often what is left is given away
	PerVM    Bounds  `yaml:"perVM,omitempty"`    // what one VM may ask for

	MaxVMs      int  `yaml:"maxVMs,omitempty"`  // at once; default: no limit
	MaxBusy     int  `yaml:"maxBusy,omitempty"` // moves in at once; default: no limit
	Disabled    bool `yaml:"disabled,omitempty"`
	Maintenance bool `yaml:"maintenance,omitempty"`

	Zone       string `yaml:"zone,omitempty"`       // availability zone
	Aggregates Words  `yaml:"aggregates,omitempty"` // names of [Shared]

	Arch        string `yaml:"arch,omitempty"`        // "x86_64"
	CPUModels   Words  `yaml:"cpuModels,omitempty"`   // that it can show to a guest
	CPUFeatures Words  `yaml:"cpuFeatures,omitempty"` // that its processors have
	CPUVendor   string `yaml:"cpuVendor,omitempty"`   // "Intel"; live moves do not cross it
	Machines    Words  `yaml:"machines,omitempty"`    // machine types, as QEMU names them
	Hypervisor  string `yaml:"hypervisor,omitempty"`  // "QEMU 7.2.22"
	Abilities   Words  `yaml:"abilities,omitempty"`   // see [hypervisor.Abilities]

	Cells    []Cell         `yaml:"cells,omitempty"`    // NUMA nodes
	Devices  map[string]int `yaml:"devices,omitempty"`  // how many there are of each class
	Networks Words          `yaml:"networks,omitempty"` // that cards can be plugged into
	Rack     string         `yaml:"rack,omitempty"`
	Uplink   string         `yaml:"uplink,omitempty"` // the rack's: see [Rack]
}

// Amounts are a part of a host.
type Amounts struct {
	Memory string `yaml:"memory,omitempty"` // "8GiB"
	CPUs   int    `yaml:"cpus,omitempty"`
	Disk   string `yaml:"disk,omitempty"`
}

// Ratios are how often an amount is given away, more than 0. Default: 1.
type Ratios struct {
	Memory *float64 `yaml:"memory,omitempty"`
	CPUs   *float64 `yaml:"cpus,omitempty"`
	Disk   *float64 `yaml:"disk,omitempty"`
}

// Bounds are what one VM may ask for. What is left out is no bound.
type Bounds struct {
	Memory SizeBound  `yaml:"memory,omitempty"`
	CPUs   CountBound `yaml:"cpus,omitempty"`
	Disk   SizeBound  `yaml:"disk,omitempty"`
}

// A SizeBound has amounts with units; a VM asks for a multiple of Step.
type SizeBound struct {
	Min  string `yaml:"min,omitempty"`
	Max  string `yaml:"max,omitempty"`
	Step string `yaml:"step,omitempty"`
}

// A CountBound is a [SizeBound] of CPUs.
type CountBound struct {
	Min  int `yaml:"min,omitempty"`
	Max  int `yaml:"max,omitempty"`
	Step int `yaml:"step,omitempty"`
}

// A Cell is one NUMA node. Its cores are listed one by one, or as CPUs of which
// Threads successive ones share a core.
type Cell struct {
	CPUs    string           `yaml:"cpus,omitempty"`    // "0-31"
	Threads int              `yaml:"threads,omitempty"` // default: 1
	Cores   Words            `yaml:"cores,omitempty"`   // ["0,32", "1,33"]
	Memory  string           `yaml:"memory,omitempty"`  // in ordinary pages
	Pages   map[string]int64 `yaml:"pages,omitempty"`   // how many huge ones, by size: {1GiB: 16}
}

// A VM is what a VM asks of its host: see [placement.Constraints].
type VMAttributes struct {
	Overhead string `yaml:"overhead,omitempty"` // what its hypervisor needs beside its memory
	Balloon  string `yaml:"balloon,omitempty"`  // what of its memory takes no room
	// CPURequest is what it takes of its host's CPUs. Default: its virtual CPUs.
	CPURequest int `yaml:"cpuRequest,omitempty"`

	Zones   Words             `yaml:"zones,omitempty"`   // availability zones; any will do
	Specs   map[string]string `yaml:"specs,omitempty"`   // of aggregates, in Nova's language
	Groups  Words             `yaml:"groups,omitempty"`  // names of [Shared]
	With    Words             `yaml:"with,omitempty"`    // any of these VMs is on the host
	Without Words             `yaml:"without,omitempty"` // none of them is; also "namespace/name"

	Platform Platform  `yaml:"platform,omitempty"`
	Topology *Topology `yaml:"topology,omitempty"`
	Devices  []Device  `yaml:"devices,omitempty"`
	Networks Words     `yaml:"networks,omitempty"` // all must be in reach
	Tenant   string    `yaml:"tenant,omitempty"`
	Hardware *Hardware `yaml:"hardware,omitempty"`
}

// A Platform is what a VM needs of a processor and of software.
type Platform struct {
	Arch        string `yaml:"arch,omitempty"`
	Machine     string `yaml:"machine,omitempty"`
	CPUModel    string `yaml:"cpuModel,omitempty"`
	CPUFeatures Words  `yaml:"cpuFeatures,omitempty"`
	CPUExact    bool   `yaml:"cpuExact,omitempty"`   // it sees the processor itself
	Hypervisor  string `yaml:"hypervisor,omitempty"` // "QEMU", "QEMU 7.2": that or newer
}

// A Topology is the layout that a VM asks for: see [placement.TopologyRequest].
type Topology struct {
	Cells     int    `yaml:"cells,omitempty"` // equal parts, each in a cell of its own
	Parts     []Part `yaml:"parts,omitempty"` // unequal ones, instead of Cells
	Dedicated bool   `yaml:"dedicated,omitempty"`
	Threads   string `yaml:"threads,omitempty"`  // prefer (default), isolate, require
	PageSize  string `yaml:"pageSize,omitempty"` // default: ordinary pages
}

// A Part is one cell of a VM.
type Part struct {
	CPUs   int    `yaml:"cpus"`
	Memory string `yaml:"memory"`
}

// A Device is a number of host devices of one class.
type Device struct {
	Class string `yaml:"class"`
	Count *int   `yaml:"count,omitempty"` // default: 1
	Stays bool   `yaml:"stays,omitempty"` // it does not move while the VM runs
}

// Hardware is what the VM is made of: see [hypervisor.Hardware].
type Hardware struct {
	Machine   string `yaml:"machine,omitempty"`
	CPUModel  string `yaml:"cpuModel,omitempty"`
	Hugepages string `yaml:"hugepages,omitempty"` // the size of the pages: "1GiB"
	// MaxMemory and MaxCPUs are what it can grow to while it runs. Default: not at all.
	MaxMemory string `yaml:"maxMemory,omitempty"`
	MaxCPUs   int    `yaml:"maxCPUs,omitempty"`
	// Pins are the host CPUs of each virtual CPU: ["4", "5"]. One CPU each is a
	// demand for dedicated ones.
	Pins     Words  `yaml:"pins,omitempty"`
	Firmware string `yaml:"firmware,omitempty"`
	Disks    []Disk `yaml:"disks,omitempty"`
	NICs     []NIC  `yaml:"nics,omitempty"`
}

// A Disk is a disk of a VM; without a path it is local, and has a size.
type Disk struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"path,omitempty"`
	Format   string `yaml:"format,omitempty"` // raw (default), qcow2
	Size     string `yaml:"size,omitempty"`
	ReadOnly bool   `yaml:"readOnly,omitempty"`
}

// A NIC is a network card of a VM.
type NIC struct {
	MAC string `yaml:"mac,omitempty"`
	Tap string `yaml:"tap,omitempty"`
}

// Words are a list of words; a single one need not be a list.
type Words []string

// UnmarshalYAML reads a word or a list of words.
func (w *Words) UnmarshalYAML(decode func(any) error) error {
	var word string
	if decode(&word) == nil {
		*w = Words{word}
		return nil
	}
	return decode((*[]string)(w))
}
