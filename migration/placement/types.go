package placement

import (
	"cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Reason is why something was refused.
type Reason = hypervisor.Reason

// Labels are names and values that selectors match.
type Labels map[string]string

// An Effect is what a taint does to a VM that does not tolerate it.
type Effect string

// The effects, as Kubernetes names them.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// A Taint keeps VMs away from a host.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// A Toleration lets a VM onto hosts with a taint. An empty Key with Exists
// tolerates everything; an empty Effect tolerates every effect. Without Exists
// the values must be equal.
type Toleration struct {
	Key, Value string
	Exists     bool // any value will do
	Effect     Effect
}

// A Requirement is one condition on a host's labels.
type Requirement struct {
	Key      string   // of the label
	Operator Operator // In, NotIn, Exists, DoesNotExist, Gt or Lt
	Values   []string // what it is compared with
}

// An Operator compares a label with values, as Kubernetes' node affinity does.
type Operator string

// The operators. In and NotIn take one value or more, Exists and DoesNotExist
// none, Gt and Lt one whole number; a requirement that differs never holds. A
// host without the label satisfies NotIn and DoesNotExist only. Whether a text
// may be a label at all is not checked.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
)

// Constraints are the conditions that a VM puts on its host. They are the VM's
// own and hold for every move.
type Constraints struct {
	Selector    Labels          // all must equal the host's labels
	Affinity    [][]Requirement // one list must hold entirely; an empty list never does
	Tolerations []Toleration
	// Apart names groups of which at most one VM may be on a host.
	Apart []string

	Zones []string `json:",omitempty"` // availability zones; any will do
	// Specs are what the VM asks of its host's aggregates, in Nova's language:
	// "= 8" is at least 8. Keys with another scope than aggregates are ignored.
	Specs    map[string]string `json:",omitempty"`
	Groups   []GroupRule       `json:",omitempty"`
	With     []hypervisor.VMID `json:",omitempty"` // with any of these VMs
	Without  []hypervisor.VMID `json:",omitempty"` // with none of these VMs
	Platform Platform          `json:",omitzero"`
	Topology *TopologyRequest  `json:",omitempty"` // the layout of cells and pages
	Devices  []DeviceAsk       `json:",omitempty"`
	Networks []string          `json:",omitempty"` // all must be in reach
	Tenant   string            `json:",omitempty"` // whose VM it is
	// Charges are what each of its copies takes of quotas. A migration has two.
	Charges []QuotaCharge `json:",omitempty"`
}

// A VM is what placement knows about a VM that looks for a host.
type VM struct {
	ID          hypervisor.VMID
	Memory      hypervisor.Bytes
	CPUs        int
	Constraints Constraints
	Overhead    hypervisor.Bytes // what its hypervisor needs beside Memory
	// Balloon is how much of Memory takes no room: the guest has given it back and is not to
	// have it on the target either, or its host does not set it aside (over-commitment).
	Balloon hypervisor.Bytes
	Disk    hypervisor.Bytes // local disks, which move with it
	// CPURequest is what the VM takes of a host's CPUs, in the unit of [Host.CPUs], where that
	// is not the number of its virtual CPUs. 0 is that it is.
	CPURequest int
}

// DemandCPUs returns what vm takes of a host's CPUs: its virtual CPUs, or what is requested
// for them.
// Source: KubeVirt v1.8.0 services/renderresources.go (WithoutDedicatedCPU: virtual CPUs
// divided by the allocation ratio; ResourceRenderer.Requests: an explicit request wins).
func (vm *VM) DemandCPUs() int { return cmp.Or(vm.CPURequest, vm.CPUs) }

// Demand returns the host memory that vm needs: what the guest may use, less
// what its balloon keeps, and the overhead.
// Source: xapi (a migration squeezes the VM between its dynamic bounds); KubeVirt
// v1.9.0 services/memory overhead (GetMemoryOverhead is added to the guest's).
func (vm *VM) Demand() hypervisor.Bytes { return vm.Memory - vm.Balloon + vm.Overhead }

// Whole returns the size that a layout of vm divides.
func (vm *VM) Whole() Part { return Part{CPUs: vm.CPUs, Memory: vm.Memory} }

// A Host is what placement knows about a host: its size, what is already taken
// of it, including what is reserved for VMs on their way, and its marks. No
// number is negative; more may be used than there is.
type Host struct {
	Name       hypervisor.HostName
	Memory     hypervisor.Bytes // what VMs may use together
	CPUs       int
	UsedMemory hypervisor.Bytes // used and reserved
	UsedCPUs   int
	Labels     Labels
	Taints     []Taint
	Down       bool // not known to be alive
	Cordoned   bool `json:"Closed"` // cordoned, draining or in maintenance
	Incoming   int  // migrations on their way here
	// Groups counts the VMs here, or on their way, by the groups that they
	// must be apart in.
	Groups map[string]int
	Facts  *Facts // what else is known; nil is nothing
	Load   *Load  // what else is taken; nil is unknown
}

// Options are what a placement depends on beside the VM and the host. The zero
// value adds no condition.
type Options struct {
	// Source is the host that the VM is on now; "" when it is on none.
	Source hypervisor.HostName
	// Inbound limits the migrations on their way to one host; 0 is no limit.
	Inbound int
	// Avoid names the hosts that are remembered as bad for this VM.
	Avoid []hypervisor.HostName
	// Move is what the rules about groups and about the source look at; nil is
	// nothing. See [CompareHosts].
	Move *Move
}
