package fake

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake/agenda"
	"github.com/godwit-vm/godwit/hypervisor/fake/memory"
	"github.com/godwit-vm/godwit/hypervisor/fake/transfer"
)

// A Workload is how a guest changes its memory. The zero value is an idle guest.
type Workload = memory.Workload

// A machine is a VM on whatever hosts it has domains.
type machine struct {
	id       hypervisor.VMID
	workload Workload
	domains  []*domain  // ordered by host
	two      [2]*domain // where they are, as a rule
	touched  bool
}

// A domain is a VM on one host.
type domain struct {
	hypervisor.Domain
	host     *Host
	machine  *machine
	transfer *transfer.Transfer // that it takes part in now
	timer    *agenda.Timer      // the end of Starting, Stopping and Rebooting
	defined  bool               // it is the host's own: it outlives its process
	hinted   [hintKinds]bool
	measured bool // how much the guest writes is being measured
}

// define makes a domain on a host that has none of that VM.
func (f *Fabric) define(h *Host, vm hypervisor.VM, state hypervisor.DomainState) *domain {
	m := f.guests[vm.ID]
	if m == nil {
		m = &machine{id: vm.ID}
		m.domains = m.two[:0]
		f.guests[vm.ID] = m
	}
	d := &domain{}
	if n := len(f.free); n > 0 {
		d, f.free = f.free[n-1], f.free[:n-1]
	}
	d.Domain, d.host, d.machine = hypervisor.Domain{VM: vm}, h, m
	i, _ := slices.BinarySearchFunc(m.domains, h.host.Name, func(d *domain,
		n hypervisor.HostName) int {
		return cmp.Compare(d.host.host.Name, n)
	})
	m.domains = slices.Insert(m.domains, i, d)
	h.sorted = slices.Insert(h.sorted, h.place(vm.ID), d)
	d.Become(state)
	return d
}

// find returns the domain of a VM, to be changed; nil is that the host does not know it.
func (h *Host) find(vm hypervisor.VMID) *domain {
	h.listed.Mark(vm)
	return h.peek(vm)
}

func (h *Host) peek(vm hypervisor.VMID) *domain {
	if m := h.fabric.guests[vm]; m != nil {
		for _, d := range m.domains {
			if d.host == h {
				return d
			}
		}
	}
	return nil
}

// place returns where the domain of a VM stands among the sorted, or belongs.
func (h *Host) place(vm hypervisor.VMID) int {
	i, _ := slices.BinarySearchFunc(h.sorted, vm, func(d *domain, id hypervisor.VMID) int {
		return cmp.Compare(d.VM.ID, id)
	})
	return i
}

// Become changes a domain's state, and everything that follows from that: the
// room on its host, its timer, the hint. Absent removes it.
func (d *domain) Become(state hypervisor.DomainState) {
	f, h := d.host.fabric, d.host
	if before, after := occupies(d.State), occupies(state); before != after {
		sign := hypervisor.Bytes(1)
		if before {
			sign = -1
		}
		h.memory += sign * d.VM.Memory
		h.cpus += int(sign) * d.VM.CPUs
	}
	d.State = state
	h.listed.Mark(d.VM.ID)
	if d.timer != nil {
		f.world.Agenda.Disarm(d.timer)
		d.timer = nil
	}
	if state == hypervisor.Absent {
		h.sorted = slices.Delete(h.sorted, h.place(d.VM.ID), h.place(d.VM.ID)+1)
		i := slices.Index(d.machine.domains, d)
		d.machine.domains = slices.Delete(d.machine.domains, i, i+1)
	}
	if !d.machine.touched {
		d.machine.touched = true
		f.touched = append(f.touched, d.machine)
	}
	f.hint(d, DomainChanged)
}

// Vanish ends an incoming domain; a VM that the host had defined before stays.
func (d *domain) Vanish() {
	if !d.defined {
		d.Become(hypervisor.Absent)
		return
	}
	d.Become(hypervisor.Shutoff)
	d.Job = ""
}

// occupies reports whether a domain in the state has memory and CPUs of its host.
func occupies(s hypervisor.DomainState) bool {
	return s != hypervisor.Absent && s != hypervisor.Shutoff && s != hypervisor.Crashed
}

// The rest of what makes a domain an end of a transfer.

func (d *domain) Doing() hypervisor.DomainState { return d.State }
func (d *domain) Workload() memory.Workload     { return d.machine.workload }
func (d *domain) Own()                          { d.defined = true }
func (d *domain) JobChanged()                   { d.host.fabric.hint(d, JobChanged) }
func (d *domain) PassFinished()                 { d.host.fabric.hint(d, PassFinished) }

func (d *domain) Leave(unresolved bool) {
	d.host.listed.Mark(d.VM.ID)
	d.transfer = nil
	d.Unresolved = d.Unresolved || unresolved
}

// sending returns the transfer whose source d is now; nil is none.
func (d *domain) sending() *transfer.Transfer {
	if t := d.transfer; t != nil && t.From == &d.host.wire {
		return t
	}
	return nil
}
