package fake

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A machine is a VM on whatever hosts it has domains.
type machine struct {
	vm       hypervisor.VM // as it was described first; never changed
	workload *Workload     // shared by all that are alike; nil is an idle guest
	first    *domain       // of its domains, which are ordered by host
	touched  uint64        // the last round in which one of them changed
}

// as returns a description of the machine, to be kept: nearly all are the first.
func (m *machine) as(vm hypervisor.VM) *hypervisor.VM {
	if vm == m.vm {
		return &m.vm
	}
	return new(vm)
}

// A domain is a VM on one host: what a [hypervisor.Domain] tells, and more.
type domain struct {
	id         hypervisor.VMID // beside VM, which has it, too: domains are searched for by it
	VM         *hypervisor.VM  // never changed, only replaced
	Job        hypervisor.JobID
	State      hypervisor.DomainState
	Unresolved bool
	defined    bool // it is the host's own: it outlives its process
	directory  int  // that says so
	measured   bool // how much the guest writes is being measured
	hinted     [hintKinds]bool
	found      *finding // by the last measurement; nil is none
	// moving is the disk that goes to another image; it is replaced, never changed.
	moving   *hypervisor.DiskMove
	host     *Host
	machine  *machine
	next     *domain   // of the machine
	transfer *transfer // that it takes part in now
	timer    *timer    // the end of Starting, Stopping and Rebooting
}

// A finding is how much a guest wrote, and when.
type finding struct {
	rate hypervisor.Bandwidth
	at   time.Time
}

// answer returns the domain as the host answers it.
func (d *domain) answer() hypervisor.Domain {
	a := hypervisor.Domain{VM: *d.VM, Job: d.Job, State: d.State, Unresolved: d.Unresolved,
		Moving: d.moving}
	if d.found != nil {
		a.DirtyRate, a.Measured = d.found.rate, d.found.at
	}
	return a
}

// define makes a domain on a host that has none of that VM.
func (f *Network) define(h *Host, vm hypervisor.VM, state hypervisor.DomainState) *domain {
	m := f.guests[vm.ID]
	if m == nil {
		m = new(machine)
		m.vm = vm
		f.guests[vm.ID] = m
	}
	if d := h.behind(vm.ID); d != nil {
		return d.takeOver(vm, state)
	}
	var d *domain
	if n := len(f.free); n > 0 {
		d, f.free = f.free[n-1], f.free[:n-1]
	} else {
		d = new(domain)
	}
	*d = domain{id: m.vm.ID, VM: m.as(vm), host: h, machine: m, directory: h.directory}
	at := m.on(h)
	d.next, *at = *at, d
	h.sorted = insertAt(roomier(h.sorted), h.place(vm.ID), d)
	d.Become(state)
	return d
}

// on returns the place of a host's domain among those of the machine.
func (m *machine) on(h *Host) **domain {
	at := &m.first
	for *at != nil && (*at).host.host.Name < h.host.Name {
		at = &(*at).next
	}
	return at
}

// find returns the domain of a VM, to be changed; nil is that the host does not know it.
func (h *Host) find(vm hypervisor.VMID) *domain {
	h.listed.Mark(vm)
	return h.peek(vm)
}

func (h *Host) peek(vm hypervisor.VMID) *domain {
	if m := h.network.guests[vm]; m != nil {
		for d := m.first; d != nil; d = d.next {
			if d.host == h && d.seen() {
				return d
			}
		}
	}
	return nil
}

// place returns where the domain of a VM stands among the sorted, or belongs.
func (h *Host) place(vm hypervisor.VMID) int {
	i, _ := slices.BinarySearchFunc(h.sorted, vm, func(d *domain, id hypervisor.VMID) int {
		return cmp.Compare(d.id, id)
	})
	return i
}

// Become changes a domain's state, and everything that follows from that: the
// room on its host, its timer, the hint. Absent removes it.
func (d *domain) Become(state hypervisor.DomainState) {
	f, h := d.host.network, d.host
	if before, after := occupies(d.State), occupies(state); before != after {
		sign := hypervisor.Bytes(1)
		if before {
			sign = -1
		}
		h.memory += sign * d.VM.Memory
		h.cpus += int(sign) * d.VM.CPUs
	}
	d.State = state
	if d.moving != nil && !state.HoldsState() {
		d.stopCopy()
	}
	h.listed.Mark(d.VM.ID)
	if len(h.consoles) > 0 && state != hypervisor.Running && state != hypervisor.Paused {
		h.hangUp(d.VM.ID)
	}
	if d.timer != nil {
		f.world.Agenda.Disarm(d.timer)
		d.timer = nil
	}
	if state == hypervisor.Absent {
		if d.seen() {
			h.sorted = deleteAt(h.sorted, h.place(d.VM.ID))
		} else {
			h.unseen = slices.DeleteFunc(h.unseen, func(o *domain) bool { return o == d })
		}
		at := d.machine.on(h)
		*at, d.next = d.next, nil
		f.gone = append(f.gone, d)
	}
	if m := d.machine; m.touched != f.round {
		m.touched = f.round
		f.touched.Add(d.VM.ID)
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
func (d *domain) Own()                          { d.defined = true }
func (d *domain) JobChanged()                   { d.host.network.hint(d, JobChanged) }
func (d *domain) PassFinished()                 { d.host.network.hint(d, PassFinished) }

func (d *domain) Workload() Workload {
	if w := d.machine.workload; w != nil {
		return *w
	}
	return Workload{}
}

func (d *domain) Leave(unresolved bool) {
	d.host.listed.Mark(d.VM.ID)
	d.transfer = nil
	d.Unresolved = d.Unresolved || unresolved
}

// sending returns the transfer whose source d is now; nil is none.
func (d *domain) sending() *transfer {
	if t := d.transfer; t != nil && t.From == &d.host.wire {
		return t
	}
	return nil
}
