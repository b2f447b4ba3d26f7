package books

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/choose"
)

// Say is Set, for those who keep no accounts.
func (b *Books) Say(id hypervisor.VMID, s Standing) {
	b.Set(id, b.account(id), s)
}

// Prolong is Extend, for those who keep no accounts.
func (b *Books) Prolong(id hypervisor.VMID, move hypervisor.JobID, deadline time.Time) {
	b.Extend(b.account(id), move, deadline)
}

func (b *Books) account(id hypervisor.VMID) *Account {
	if i := slices.IndexFunc(b.accounts, func(e *Account) bool { return e.id == id }); i >= 0 {
		return b.accounts[i]
	}
	return &Account{}
}

// Together is together, for the tests.
var Together = together

// WhyAnew is Why without what is remembered.
func (b *Books) WhyAnew(r *choose.Request) []placement.Reason {
	if b.index.Len() <= fewHosts || b.detailed || !plain(r) || b.config.Placement.Filters != nil {
		return together(elsewhere(b.Refusals(r), r.Source))
	}
	anywhere := *r
	anywhere.Source = ""
	return without(together(b.Refusals(&anywhere)), r.Source)
}
