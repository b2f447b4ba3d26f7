package sim

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A Past is the hosts on which a VM has stopped for a switch-over and where its memory is of
// no use since, because it has run elsewhere. It does not change: see [Past.After].
type Past []hypervisor.HostName

// After returns what the past is once a VM has these copies.
func (p Past) After(copies []fake.Copy) Past {
	ran := slices.ContainsFunc(copies, func(c fake.Copy) bool { return c.State.Executes() })
	same, next := 0, Past(nil)
	for _, c := range copies {
		stopped := c.State == hypervisor.HandingOver || c.State == hypervisor.HandedOver ||
			c.State == hypervisor.Paused && slices.Contains(p, c.Host) // it has been resumed, and rests
		switch {
		case !stopped || !ran && !slices.Contains(p, c.Host):
		case next == nil && same < len(p) && p[same] == c.Host: // as far as it is as it was
			same++
		default:
			next = append(next, p[:same]...)
			next, same = append(next, c.Host), 0
		}
	}
	if next == nil {
		return p[:same:same]
	}
	return next
}

// Pasts keeps the pasts of VMs. The zero value is of those that have none.
type Pasts struct {
	of map[hypervisor.VMID]Past
}

// Past returns a VM's.
func (p *Pasts) Past(vm hypervisor.VMID) Past {
	if len(p.of) == 0 { // as in most worlds
		return nil
	}
	return p.of[vm]
}

// Became takes in which copies there are of a VM.
func (p *Pasts) Became(vm hypervisor.VMID, copies []fake.Copy) {
	switch next := p.Past(vm).After(copies); {
	case len(next) == 0:
		if len(p.of) > 0 {
			delete(p.of, vm)
		}
	case p.of == nil:
		p.of = map[hypervisor.VMID]Past{vm: next}
	default:
		p.of[vm] = next
	}
}

// neverOlder: the disks of a VM that has run elsewhere are newer than what its source
// remembers. To start anew from them is no harm.
func neverOlder(w InvariantWorld, vm hypervisor.VMID) error {
	past := w.Past(vm)
	if len(past) == 0 {
		return nil
	}
	copies := w.Copies(vm)
	for _, c := range copies {
		if c.State.Executes() && c.State != hypervisor.Starting && slices.Contains(past, c.Host) {
			return fmt.Errorf("%s goes on with its old memory: %v", vm, copies)
		}
	}
	return nil
}
