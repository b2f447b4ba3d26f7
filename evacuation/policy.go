package evacuation

import (
	"cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Policy decides what leaves a host when, beside the limits: it can hold back what they
// would let go, and never lets go what they hold back. It is a pure function: the same
// arguments have the same answer. This package has one.
type Policy interface {
	// Compare orders two candidates of a host with this link, first to go first; equal
	// ones go by ID.
	Compare(link hypervisor.Bandwidth, a, b EvacuatingVM) int
	// Admit reports whether one more VM may begin to leave a host with this link while
	// others are under way from there, by ID; next is the first that waits. It is not asked
	// while there are none, so that no VM waits for ever.
	Admit(link hypervisor.Bandwidth, next EvacuatingVM, others []EvacuatingVM) bool
}

// A Sharer is a [Policy] that says, too, which migrations may share a link, for any reason of the migration
// and whichever link it is: a host's, each way, a rack's up-link, the migration network. It is a
// pure function.
type Sharer interface {
	// Shares reports whether next may begin to use a link of a speed that others use, by ID:
	// whether all of them still converge. It is not asked while there are none.
	Shares(link hypervisor.Bandwidth, next EvacuatingVM, others []EvacuatingVM) bool
}

// An OrderFunc is a [Policy] that is an order, and lets go what the limits do.
type OrderFunc func(link hypervisor.Bandwidth, a, b EvacuatingVM) int

// Compare implements [Policy].
func (f OrderFunc) Compare(link hypervisor.Bandwidth, a, b EvacuatingVM) int { return f(link, a, b) }

// Admit implements [Policy].
func (OrderFunc) Admit(hypervisor.Bandwidth, EvacuatingVM, []EvacuatingVM) bool { return true }

// A LimitFunc is a [Policy] that is a limit, and lets the largest VM go first.
type LimitFunc func(link hypervisor.Bandwidth, next EvacuatingVM, others []EvacuatingVM) bool

// Compare implements [Policy].
func (LimitFunc) Compare(_ hypervisor.Bandwidth, a, b EvacuatingVM) int {
	return cmp.Compare(b.Memory, a.Memory)
}

// Admit implements [Policy].
func (f LimitFunc) Admit(link hypervisor.Bandwidth, next EvacuatingVM, others []EvacuatingVM) bool {
	return f(link, next, others)
}

// An EvacuatingVM is a VM that leaves its host, or waits to.
type EvacuatingVM struct {
	VM     hypervisor.VMID
	Memory hypervisor.Bytes // and its local disks: what there is to move
	// Failed is how many of its attempts in a row have failed until now.
	Failed int
	// Target is the speed of its target's link, and Sharing how many are on their way there,
	// itself among them; 0 is not known, or it waits.
	Target  hypervisor.Bandwidth
	Sharing int
	// Most is the speed of the slowest link on its way, for a [Sharer]; 0 is not known.
	Most hypervisor.Bandwidth
}
