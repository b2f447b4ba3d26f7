package importer

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

const (
	// defaultVMs is how many VMs are read by default.
	defaultVMs = 1000
	// MaxVMs is how many VMs are read at most.
	MaxVMs = inventory.MaxNames
	// maxPoints is how many changes of load are kept, of all VMs together: 64 MiB. What
	// comes after them is left out, with a warning.
	maxPoints = 4 << 20
	// defaultMemory is the memory of a VM whose trace does not say it.
	defaultMemory = 4 * hypervisor.GiB
	// defaultFor is how much of a trace is used by default.
	defaultFor = 24 * time.Hour
	// grain is by how much a load changes before it counts as another.
	grain = 0.05
)

// TraceOptions say what of a trace is read.
type TraceOptions struct {
	VMs    int              // the first so many; default: [defaultVMs]
	Memory hypervisor.Bytes // of VMs whose trace does not say; default: [defaultMemory]
	// From and For are the part of the trace that is used, from its beginning. Default of
	// For: [defaultFor].
	From, For time.Duration
}

// A Trace is what VMs did.
type Trace struct {
	Format   string
	VMs      []TraceVM // in the order of the trace
	Warnings []yamldoc.Problem
}

// A VM is one of a trace.
type TraceVM struct {
	ID     string // as the trace has it
	CPUs   int
	Memory hypervisor.Bytes
	// Load is by time, and begins at 0. It changes in steps of at least five percent of the
	// TraceVM's CPUs.
	Load []TracePoint
}

// A Point is a load from a time on.
type TracePoint struct {
	At  time.Duration
	CPU float64 // share of the VM's CPUs, 0 to 1
}

// A Proxy makes a workload of a load. It stands in for what no trace says: a VM that keeps
// all its CPUs busy writes PerCPU times their number into its hot set, and as fast into the
// rest as its class does; with less load both are proportionally less. How large the hot set
// is, and what was never written, is the class's.
type Proxy struct {
	PerCPU hypervisor.Bandwidth // default: [defaultPerCPU]
	Scale  float64              // of all loads; default: 1
	Load   inventory.Load       // the shape; default: [inventory.DefaultClass]
}

// defaultPerCPU is what a busy CPU writes: a round number to plan with. QEMU's commit
// 7ca1dfad documents a Java server that wrote 13 MiB/s for each of its CPUs; programs that do
// nothing but write reach a hundred times as much.
const defaultPerCPU = 40 * hypervisor.Bandwidth(hypervisor.MiB)

// Workload returns how a VM with this load behaves.
func (p Proxy) Workload(v *TraceVM, load float64) fake.Workload {
	shape := p.Load
	if shape == (inventory.Load{}) {
		shape.Class = inventory.DefaultClass
	}
	if p.Scale > 0 {
		load *= p.Scale
	}
	load = min(1, load)
	w := shape.Workload(v.Memory)
	perCPU := cmp.Or(p.PerCPU, defaultPerCPU)
	w.Rate = hypervisor.Bandwidth(float64(perCPU) * float64(v.CPUs) * load)
	w.ColdRate = hypervisor.Bandwidth(float64(w.ColdRate) * load)
	return w
}

// until returns when the part that is used ends.
func (o *TraceOptions) until() time.Duration { return o.From + cmp.Or(o.For, defaultFor) }

// cut returns the part of a load that the options ask for.
func (o *TraceOptions) cut(all []TracePoint) []TracePoint {
	until := o.until()
	first, _ := slices.BinarySearchFunc(all, o.From, func(p TracePoint, at time.Duration) int {
		return cmp.Compare(p.At, at)
	})
	last, _ := slices.BinarySearchFunc(all, until, func(p TracePoint, at time.Duration) int {
		return cmp.Compare(p.At, at)
	})
	if first == len(all) || all[first].At > o.From { // the load before holds at the beginning
		first--
	}
	var kept []TracePoint
	for i, p := range all[max(0, first):max(0, first, last)] {
		if p.At = max(0, p.At-o.From); i == 0 {
			p.At = 0
		}
		kept = append(kept, p)
	}
	return kept
}
