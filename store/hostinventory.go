package store

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// A HostInventory is what a host has by its agent's report, while the agent does not believe the store.
type HostInventory struct {
	At   time.Time // when it was written
	Seen Mark      // the newest moment of the store that the agent has seen
	Why  string    // it does not believe the store, in words
	VMs  []Holding `json:",omitempty"` // by VM
}

// Holding is what an agent knows of a VM that is on its host, or was.
type Holding struct {
	VM hypervisor.VMID
	// State is what the VM does on the host; Absent is that it is not there.
	State hypervisor.DomainState
	// Job is the migration that it takes part in there, or took part in last. Default: none.
	Job migration.ID `json:",omitempty"`
	// Record is the VM's record as the agent has last seen it, with its version. Default: it has
	// seen none.
	Record *VM `json:",omitempty"`
	// Left says that the VM was handed over, or went elsewhere, when its record was so. Default:
	// it has not.
	Left *Departure `json:",omitempty"`
}

// Departure is how a VM left a host.
type Departure struct {
	To   hypervisor.HostName `json:",omitempty"` // "" is that the VM was deleted
	Move migration.ID        `json:",omitempty"` // the migration; "" is none
	At   time.Time           `json:",omitzero"`
}

// Here reports whether the VM belongs on the host, as far as its agent knows.
func (h *Holding) Here() bool { return h.Record != nil && h.Left == nil }

// Overrules reports whether the agent knows of a later life of the VM than a record that says
// that the VM is on its host, or that it has left since. A record without a life is of an earlier
// version of godwit: it is believed only while the VM has not left.
func (h *Holding) Overrules(v *VM) bool {
	switch {
	case h.Record == nil:
		return false
	case v.Life.Is(h.Record.Life):
		return h.Left != nil && h.Record.Moves > 0 && v.Moves <= h.Record.Moves
	case v.Life == nil:
		return h.Left != nil
	}
	return !v.Life.Follows(h.Record.Life)
}
