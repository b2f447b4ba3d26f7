package terms

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Memories are what convergence remembers of each transfer, ahead of what is stored.
type Memories map[hypervisor.JobID]*convergence.State

// Of returns the memory of a transfer, to be changed in place: at first a copy of what was
// stored, if anything was.
func (m *Memories) Of(job hypervisor.JobID, stored *convergence.State) *convergence.State {
	own := (*m)[job]
	if own == nil {
		own = &convergence.State{}
		if stored != nil {
			*own = *stored
		}
		if *m == nil {
			*m = Memories{}
		}
		(*m)[job] = own
	}
	return own
}
