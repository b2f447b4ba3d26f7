package inventory

import "github.com/godwit-vm/godwit/migration/placement"

// Shared is what hosts and VMs refer to by name.
type Shared struct {
	// Aggregates are groups of hosts, by name, with Nova's metadata: several
	// values are separated by commas, filter_tenant_id names the tenants that may use them.
	Aggregates map[string]map[string]string `yaml:"aggregates,omitempty"`
	Groups     map[string]Group             `yaml:"groups,omitempty"` // groups of VMs, by name
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
	Policy placement.GroupPolicy `yaml:"policy"`           // one of affinity, anti-affinity, soft-affinity or soft-anti-affinity
	Max    int                   `yaml:"max,omitempty"`    // so many may be together; default: 1
	Domain string                `yaml:"domain,omitempty"` // a host label; default: each host
}

// A Host is what there is to know of a host beside its size: see [placement.Facts].
type HostAttributes struct {
	Disk     string  `yaml:"disk,omitempty"`     // for local disks of VMs: "2TiB"
	Reserved Amounts `yaml:"reserved,omitempty"` // not for VMs
	Ratios   Ratios  `yaml:"ratios,omitempty"`   // how often what is left is given away
	PerVM    Bounds  `yaml:"perVM,omitempty"`    // what one VM may ask for

	MaxVMs      int  `yaml:"maxVMs,omitempty"`      // at once; default: no limit
	MaxBusy     int  `yaml:"maxBusy,omitempty"`     // moves in at once; default: no limit
	Disabled    bool `yaml:"disabled,omitempty"`    // an operator took it out of service: it takes no VMs
	Maintenance bool `yaml:"maintenance,omitempty"` // it is being worked on: it takes no VMs

	// Zone is the availability zone, which the VMs' zones ask for. It is the label zone, too, unless the labels say
	// else; the label alone is no availability zone.
	Zone       string `yaml:"zone,omitempty"`
	Aggregates Words  `yaml:"aggregates,omitempty"` // names of those that it is in

	Arch        string `yaml:"arch,omitempty"`        // of its processors: "x86_64"
	CPUModels   Words  `yaml:"cpuModels,omitempty"`   // models that it can show to a guest
	CPUFeatures Words  `yaml:"cpuFeatures,omitempty"` // features that its processors have
	CPUVendor   string `yaml:"cpuVendor,omitempty"`   // as "Intel"; live moves do not cross it
	Machines    Words  `yaml:"machines,omitempty"`    // machine types, as QEMU names them
	Hypervisor  string `yaml:"hypervisor,omitempty"`  // with its version: "QEMU 7.2.22"
	Abilities   Words  `yaml:"abilities,omitempty"`   // what it can do besides plain pre-copy, as post-copy; an unknown one is refused with the list

	Cells    []Cell         `yaml:"cells,omitempty"`    // NUMA nodes
	Devices  map[string]int `yaml:"devices,omitempty"`  // how many there are of each class
	Networks Words          `yaml:"networks,omitempty"` // those that cards can be plugged into
	Rack     string         `yaml:"rack,omitempty"`     // its name; moves between racks share their up-links
	Uplink   string         `yaml:"uplink,omitempty"`   // the speed of its rack's up-link
}

// Amounts are a part of a host.
type Amounts struct {
	Memory string `yaml:"memory,omitempty"` // of its memory
	CPUs   int    `yaml:"cpus,omitempty"`   // of its CPUs
	Disk   string `yaml:"disk,omitempty"`   // of its disk
}

// Ratios are how often an amount is given away, more than 0. Default: 1.
type Ratios struct {
	Memory *float64 `yaml:"memory,omitempty"` // above 0; default: 1
	CPUs   *float64 `yaml:"cpus,omitempty"`   // above 0; default: 1
	Disk   *float64 `yaml:"disk,omitempty"`   // above 0; default: 1
}

// Bounds are what one VM may ask for. What is left out is no bound.
type Bounds struct {
	Memory SizeBound  `yaml:"memory,omitempty"`
	CPUs   CountBound `yaml:"cpus,omitempty"`
	Disk   SizeBound  `yaml:"disk,omitempty"`
}

// A SizeBound has amounts with units; a VM asks for a multiple of Step.
type SizeBound struct {
	Min  string `yaml:"min,omitempty"`  // the least
	Max  string `yaml:"max,omitempty"`  // the most
	Step string `yaml:"step,omitempty"` // a VM asks for a multiple of it
}

// A CountBound is a [SizeBound] of CPUs.
type CountBound struct {
	Min  int `yaml:"min,omitempty"`  // the least
	Max  int `yaml:"max,omitempty"`  // the most
	Step int `yaml:"step,omitempty"` // a VM asks for a multiple of it
}

// A Cell is one NUMA node. Its cores are listed one by one, or as CPUs of which
// Threads successive ones share a core.
type Cell struct {
	CPUs    string           `yaml:"cpus,omitempty"`    // their numbers: "0-31"
	Threads int              `yaml:"threads,omitempty"` // so many successive CPUs share a core; default: 1
	Cores   Words            `yaml:"cores,omitempty"`   // its cores one by one: ["0,32", "1,33"]
	Memory  string           `yaml:"memory,omitempty"`  // in ordinary pages
	Pages   map[string]int64 `yaml:"pages,omitempty"`   // how many huge ones, by size: {1GiB: 16}
}

// A VM is what a VM asks of its host: see [placement.Constraints].
type VMAttributes struct {
	Overhead string `yaml:"overhead,omitempty"` // what its hypervisor needs beside its memory
	Balloon  string `yaml:"balloon,omitempty"`  // what of its memory takes no room
	// CPURequest is what it takes of its host's CPUs. Default: its virtual CPUs.
	CPURequest int `yaml:"cpuRequest,omitempty"`

	Zones   Words             `yaml:"zones,omitempty"`   // availability zones, hosts[].zone; any will do
	Specs   map[string]string `yaml:"specs,omitempty"`   // of aggregates, in Nova's language
	Groups  Words             `yaml:"groups,omitempty"`  // names of those that it is in
	With    Words             `yaml:"with,omitempty"`    // any of these VMs is on the host
	Without Words             `yaml:"without,omitempty"` // none of them is; also "namespace/name"

	Platform Platform  `yaml:"platform,omitempty"`
	Topology *Topology `yaml:"topology,omitempty"`
	Devices  []Device  `yaml:"devices,omitempty"`
	Networks Words     `yaml:"networks,omitempty"` // all must be in reach
	Tenant   string    `yaml:"tenant,omitempty"`   // whose VM it is, for aggregates and quotas
	Hardware *Hardware `yaml:"hardware,omitempty"`
}

// A Platform is what a VM needs of a processor and of software.
type Platform struct {
	Arch        string `yaml:"arch,omitempty"`        // of the processor: "x86_64"
	Machine     string `yaml:"machine,omitempty"`     // the machine type, as QEMU names it
	CPUModel    string `yaml:"cpuModel,omitempty"`    // the model that its guest sees
	CPUFeatures Words  `yaml:"cpuFeatures,omitempty"` // features that its guest needs
	CPUExact    bool   `yaml:"cpuExact,omitempty"`    // it sees the processor itself
	Hypervisor  string `yaml:"hypervisor,omitempty"`  // "QEMU", "QEMU 7.2": that or newer
}

// A Topology is the layout that a VM asks for: see [placement.TopologyRequest].
type Topology struct {
	Cells     int    `yaml:"cells,omitempty"`     // equal parts, each in a cell of its own
	Parts     []Part `yaml:"parts,omitempty"`     // unequal ones, instead of Cells
	Dedicated bool   `yaml:"dedicated,omitempty"` // it has host CPUs of its own
	Threads   string `yaml:"threads,omitempty"`   // one of prefer (default), isolate, require
	PageSize  string `yaml:"pageSize,omitempty"`  // default: ordinary pages
}

// A Part is one cell of a VM.
type Part struct {
	CPUs   int    `yaml:"cpus"`   // of the VM in this cell
	Memory string `yaml:"memory"` // of the VM in this cell
}

// A Device is a number of host devices of one class.
type Device struct {
	Class string `yaml:"class"`           // as hosts name it
	Count *int   `yaml:"count,omitempty"` // how many; default: 1
	Stays bool   `yaml:"stays,omitempty"` // it does not move while the VM runs
}

// Hardware is what the VM is made of: see [hypervisor.Hardware].
type Hardware struct {
	Machine   string `yaml:"machine,omitempty"`   // the machine type, as QEMU names it
	CPUModel  string `yaml:"cpuModel,omitempty"`  // the model that its guest sees
	Hugepages string `yaml:"hugepages,omitempty"` // the size of the pages: "1GiB"
	// MaxMemory is what it can grow to while it runs. Default: it cannot grow.
	MaxMemory string `yaml:"maxMemory,omitempty"`
	MaxCPUs   int    `yaml:"maxCPUs,omitempty"` // what it can grow to while it runs; default: it cannot grow
	// Pins are the host CPUs of each virtual CPU: ["4", "5"]. One CPU each is a
	// demand for dedicated ones.
	Pins     Words  `yaml:"pins,omitempty"`
	Firmware string `yaml:"firmware,omitempty"` // a file on its hosts
	Disks    []Disk `yaml:"disks,omitempty"`
	NICs     []NIC  `yaml:"nics,omitempty"`
}

// A Disk is a disk of a VM; without a path it is local, and has a size.
type Disk struct {
	Name     string `yaml:"name"`               // of the disk
	Path     string `yaml:"path,omitempty"`     // of its image on shared storage; without one it is local
	Format   string `yaml:"format,omitempty"`   // of its image: raw (default), qcow2
	Size     string `yaml:"size,omitempty"`     // of a local disk, which moves with the VM
	ReadOnly bool   `yaml:"readOnly,omitempty"` // its guest cannot write to it
}

// A NIC is a network card of a VM.
type NIC struct {
	MAC string `yaml:"mac,omitempty"` // its address
	Tap string `yaml:"tap,omitempty"` // the tap device on its hosts
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
