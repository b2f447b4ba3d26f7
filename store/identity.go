package store

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Identity is what tells one agent of a host from all others, whatever they call themselves.
type Identity struct {
	ID      string // made once, and kept in the agent's directory
	Machine string // what the machine says of itself; "" is nothing
}

// String names the identity for people.
func (i Identity) String() string {
	if i.Machine == "" {
		return fmt.Sprintf("%.8s", i.ID)
	}
	return fmt.Sprintf("%.8s on machine %.8s", i.ID, i.Machine)
}

// Refusal is an agent that was refused a host's name.
type Refusal struct {
	Identity Identity
	Boot     string // which start of its machine
	Why      string // in words
	At       time.Time
}

// Stray is a VM that executes on a host although its record says that it is elsewhere.
type Stray struct {
	VM  hypervisor.VMID
	Why string // in words: "its record says that it is on n2"
}

// Adoption is an operator's confirmation.
type Adoption struct {
	ID string // the identity to which the host's name belongs from now on
	By string // whose word it is
}

// Admits returns why the host's name does not belong to an identity; "" is that it does, or that
// it was not taken yet.
func (h *Host) Admits(mine Identity) string {
	known := h.Identity
	switch {
	case known == nil || *known == mine || h.Adopt != nil && h.Adopt.ID == mine.ID:
		return ""
	case known.ID != mine.ID && known.Machine == mine.Machine:
		return "another directory: that of its agent has another identity, or was emptied"
	case known.ID == mine.ID:
		return "another machine with a copy of its agent's directory"
	}
	return "another machine"
}
