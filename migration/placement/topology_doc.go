package placement

import "github.com/godwit-vm/godwit/hypervisor"

// MaxCells limits the cells of a host and the parts of a VM. What has more does
// not fit.
const MaxCells = 64

// A Cell is one NUMA node of a host. Cores are its physical cores, each the set
// of the CPUs (threads) that share it.
type Cell struct {
	ID     int
	Cores  []CPUSet
	Memory hypervisor.Bytes // in ordinary pages
	Pages  []Pool           // huge pages, set aside
}

// A Pool is a number of pages of one size.
type Pool struct {
	Size  hypervisor.Bytes
	Pages int64
}

// CellUse is what VMs with a layout have taken of a cell.
type CellUse struct {
	Pinned CPUSet // CPUs that one VM has for itself, and those it keeps idle
	Memory hypervisor.Bytes
	Pages  []Pool
}

// Threads says how dedicated CPUs share physical cores, as Nova's
// hw:cpu_thread_policy does.
type Threads string

// The policies. Prefer is the default: any free CPU will do.
const (
	Prefer  Threads = "prefer"
	Isolate Threads = "isolate" // a whole core for each virtual CPU
	Require Threads = "require" // only cores with two free threads or more
)

// An Ask is the layout that a VM wants.
type TopologyRequest struct {
	// Parts are the VM's own cells. Default: one, as large as the VM.
	Parts     []Part           `json:",omitempty"`
	Dedicated bool             `json:",omitempty"` // each virtual CPU has a CPU for itself
	Threads   Threads          `json:",omitempty"` // matters for dedicated CPUs
	PageSize  hypervisor.Bytes `json:",omitempty"` // default: ordinary pages
}

// A Part is one cell of a VM.
type Part struct {
	CPUs   int
	Memory hypervisor.Bytes
}

// A Seat is what one part of a VM has taken of a host's cell.
type Seat struct {
	Cell     int    // the position of the cell on its host
	CPUs     CPUSet // where the virtual CPUs run, when they are dedicated
	Taken    CPUSet // CPUs, and the threads beside them that are kept idle
	Memory   hypervisor.Bytes
	PageSize hypervisor.Bytes
}

// Even divides a VM into n equal parts. It is false when that leaves a rest,
// or n is not positive.
// Source: Nova hardware.py (_get_numa_topology_auto: an uneven division is
// refused, such a VM must list its parts).
func Even(n int, whole Part) ([]Part, bool) {
	if n <= 0 || n > MaxCells || whole.CPUs%n != 0 || whole.Memory%hypervisor.Bytes(n) != 0 {
		return nil, false
	}
	parts := make([]Part, n)
	for i := range parts {
		parts[i] = Part{CPUs: whole.CPUs / n, Memory: whole.Memory / hypervisor.Bytes(n)}
	}
	return parts, true
}
