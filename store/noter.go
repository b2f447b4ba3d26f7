package store

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Noter is told what a participant decides, for logs and traces.
type Noter interface {
	// Note says that a participant did something to a VM: what, in a few words
	// that an operator would use.
	Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string)
}

// Silent is a Noter that says nothing.
type Silent struct{}

// Note implements Noter.
func (Silent) Note(time.Time, hypervisor.HostName, hypervisor.VMID, string) {}

// An Auditor is a [Noter] that is told every step of the books, too.
type Auditor interface {
	// Audit says who has claimed, or given back, how much of which host.
	Audit(placement.LedgerEntry)
}
