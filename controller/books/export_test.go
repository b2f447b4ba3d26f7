package books

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Say is Set, for those who keep no accounts.
func (b *Books) Say(id hypervisor.VMID, s Standing) {
	e := &Account{}
	if i := slices.IndexFunc(b.accounts, func(e *Account) bool { return e.id == id }); i >= 0 {
		e = b.accounts[i]
	}
	b.Set(id, e, s)
}

// Together is together, for the tests.
var Together = together
