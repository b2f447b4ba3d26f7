package backend

import (
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Consoles are the open consoles of a host. The zero value has none.
type Consoles struct {
	mu   sync.Mutex
	open map[hypervisor.VMID]bool
}

// Take takes the console of a VM, or refuses with Conflict while it is taken.
func (c *Consoles) Take(vm hypervisor.VMID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[vm] {
		return Errorf(hypervisor.Conflict, "its console is open: close that first")
	}
	if c.open == nil {
		c.open = map[hypervisor.VMID]bool{}
	}
	c.open[vm] = true
	return nil
}

// Leave gives the console of a VM back.
func (c *Consoles) Leave(vm hypervisor.VMID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, vm)
}

// HasConsole refuses the console of a VM that does not execute.
func HasConsole(state hypervisor.DomainState) error {
	switch state {
	case hypervisor.Absent:
		return Errorf(hypervisor.NotFound, "no such VM")
	case hypervisor.Running, hypervisor.Paused:
		return nil
	}
	return Errorf(hypervisor.Conflict, "it is %v: its console is there while it runs", state)
}
