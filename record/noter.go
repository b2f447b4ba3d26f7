package record

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
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
