package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Say is Set, for those who keep no accounts.
func (b *Reservations) Say(id hypervisor.VMID, s Usage) {
	b.Set(id, b.account(id), s)
}

// Prolong is Extend, for those who keep no accounts.
func (b *Reservations) Prolong(id hypervisor.VMID, move hypervisor.JobID, deadline time.Time) {
	b.Extend(b.account(id), move, deadline)
}

func (b *Reservations) account(id hypervisor.VMID) *Allocation {
	if i := slices.IndexFunc(b.allocations, func(e *Allocation) bool { return e.id == id }); i >= 0 {
		return b.allocations[i]
	}
	return &Allocation{}
}

// Together is together, for the tests.
var Together = together

// WhyAnew is Why without what is remembered.
func (b *Reservations) WhyAnew(r *placement.Request) []placement.Reason {
	if b.index.Len() <= fewHosts || b.detailed || !plain(r) || b.config.Placement.Filters != nil {
		return together(elsewhere(b.Refusals(r), r.Source))
	}
	anywhere := *r
	anywhere.Source = ""
	return without(together(b.Refusals(&anywhere)), r.Source)
}
