package store

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// An EventRecorder is told what a participant decides, for logs and traces.
type EventRecorder interface {
	// Note says that a participant did something to a VM: what, in a few words
	// that an operator would use.
	Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string)
}

// DiscardEvents is an EventRecorder that records nothing.
type DiscardEvents struct{}

// Note implements [EventRecorder].
func (DiscardEvents) Note(time.Time, hypervisor.HostName, hypervisor.VMID, string) {}

// An Auditor is an [EventRecorder] that is told every step of a reservation, too.
type Auditor interface {
	// Audit records that room on a host was reserved or freed.
	Audit(placement.LedgerEntry)
}
