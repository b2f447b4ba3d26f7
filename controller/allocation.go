package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// An allocation is what the reservations hold for one VM. It is kept beside the VM, so that nothing
// has to be searched for. It belongs to one [reservations]; the zero value is of a VM that holds
// nothing.
type allocation struct {
	id     hypervisor.VMID
	size   *placement.Size // the VM's, shared with others; nil is that there is no VM
	vm     *placement.VM   // nil unless it asks for more than room
	home   hypervisor.HostName
	moves  []held
	at     int32 // in reservations.allocations, from 1; 0 is nowhere
	atHome bool  // the index counts it at home
}

// held is a move that holds room.
type held struct {
	reservedMove
	reserved bool // the index counts it
}

// say takes in what the VM is and holds, and reserves nothing.
func (b *reservations) say(a *allocation, s *usage) {
	a.vm, a.size = nil, b.sizeOf(s.VM, a.size)
	if s.VM != nil && placement.Asks(&s.VM.Constraints) {
		a.vm = s.VM
	}
	b.place(a, s)
}

// place takes in where the VM is and goes, and reserves nothing. The allocation keeps its own memory,
// and none for moves while there are none.
func (b *reservations) place(a *allocation, s *usage) {
	if a.home = s.Home; len(s.Moves) == 0 {
		if a.moves != nil {
			clear(a.moves)
			a.moves, b.spare = nil, a.moves[:0]
		}
		return
	}
	if a.moves == nil { // one ends, another begins
		a.moves, b.spare = b.spare, nil
	}
	a.moves = slices.Grow(a.moves[:0], len(s.Moves))[:len(s.Moves)]
	for i, m := range s.Moves {
		a.moves[i] = held{reservedMove: m}
	}
}

// manySizes is how many sizes of VMs are remembered. Most VMs are of few.
const manySizes = 1 << 10

// sizeOf returns the size of a VM, which those have together that are of one; had is what it was.
func (b *reservations) sizeOf(vm *placement.VM, had *placement.Size) *placement.Size {
	if vm == nil {
		return nil
	}
	size := placement.SizeOf(vm)
	if had != nil && *had == size {
		return had
	}
	s := b.sizes[size]
	if s == nil {
		if s = new(size); len(b.sizes) == manySizes {
			clear(b.sizes)
		}
		b.sizes[size] = s
	}
	return s
}

// is reports whether the allocation is of this very VM: of the same size, if it asks for nothing
// else.
func (a *allocation) is(vm *placement.VM) bool {
	switch {
	case vm == nil || a.size == nil:
		return vm == nil && a.size == nil
	case a.vm != nil || placement.Asks(&vm.Constraints):
		return vm == a.vm
	}
	return *a.size == placement.SizeOf(vm)
}

// vm returns the VM of an allocation, or one of no size, until it is asked again.
func (b *reservations) vm(a *allocation) *placement.VM {
	if a.vm != nil {
		return a.vm
	}
	p, s := &b.plain, a.size
	if s == nil {
		s = &placement.Size{}
	}
	p.ID, p.Memory, p.Overhead, p.Balloon = a.id, s.Memory, s.Overhead, s.Balloon
	p.Disk, p.CPUs, p.CPURequest = s.Disk, s.CPUs, s.CPURequest
	return p
}

// Set takes in what a VM holds, instead of what it held; a is the VM's allocation. It keeps no
// part of s.Moves, and s.VM only if that asks for more than room.
func (b *reservations) Set(id hypervisor.VMID, a *allocation, s usage) {
	b.charge(id, &s)
	nothing := s.Home == "" && len(s.Moves) == 0
	same := a.at != 0 && a.is(s.VM)
	switch {
	case a.at == 0 && nothing:
		return
	case a.at == 0:
		b.allocations = append(b.allocations, a)
		a.id, a.at = id, int32(len(b.allocations))
		b.say(a, &s)
		b.put(a)
	case same && s.Home == a.home && slices.EqualFunc(s.Moves, a.moves, sameRoom):
		for i := range s.Moves {
			a.moves[i].Deadline = s.Moves[i].Deadline
		}
	case !same || !b.step(a, &s):
		b.drop(a)
		b.say(a, &s)
		b.put(a)
	}
	if nothing {
		b.close(a)
	}
	if b.ledger != nil {
		b.ledger.Drop(id, time.Time{})
		b.enter(a, b.ledger)
	}
}

// charge counts the copies of a VM in the quotas: the one at home, and one for each move. A
// copy that a move has left behind is no more.
func (b *reservations) charge(id hypervisor.VMID, s *usage) {
	if b.charged == nil {
		return
	}
	copies := 0
	if s.Home != "" || slices.ContainsFunc(s.Moves, func(m reservedMove) bool { return m.Landed }) {
		copies = 1
	}
	for _, m := range s.Moves {
		if !m.Landed && !m.Saved {
			copies++
		}
	}
	var charges []placement.QuotaCharge
	if s.VM != nil {
		charges = s.VM.Constraints.Charges
	}
	b.charged.Set(id, charges, copies)
}

// Extend takes in that a move of a VM has another deadline, and that nothing else has changed.
func (b *reservations) Extend(a *allocation, move hypervisor.JobID, deadline time.Time) {
	for i := range a.moves {
		if m := &a.moves[i]; m.ID == move {
			m.Deadline = deadline
		}
	}
	if b.ledger != nil {
		b.ledger.Drop(a.id, time.Time{})
		b.enter(a, b.ledger)
	}
}

// close removes an allocation that holds nothing; the last one takes its place.
func (b *reservations) close(a *allocation) {
	end := len(b.allocations) - 1
	last := b.allocations[end]
	b.allocations[a.at-1], last.at = last, a.at
	b.allocations[end] = nil
	b.allocations, a.at = b.allocations[:end], 0
}

// sameRoom reports whether two moves differ in their deadlines at most.
func sameRoom(a reservedMove, b held) bool {
	a.Deadline = b.Deadline
	return a == b.reservedMove
}

// step makes one step of a VM's only move in the index: it comes to the same as dropping all
// that the VM holds and reserving it again, and costs a fraction. It reports whether it was one.
// The VM is as it was.
func (b *reservations) step(a *allocation, s *usage) bool {
	if s.VM == nil || !a.atHome || len(s.Moves) > 1 || len(a.moves) > 1 || saves(s.Moves, a.moves) {
		return false
	}
	stays, reserved := s.Home == a.home, true
	switch was, now := first(a.moves), first(s.Moves); {
	case stays && was == nil: // it begins
		b.know(now.Target)
		reserved = b.index.Reserve(b.vm(a), now.Target)
	case was == nil || !was.reserved:
		return false
	case stays && now != nil && now.Target == was.Target: // it has landed
	case stays && now == nil: // it has failed
		b.index.Cancel(b.vm(a), was.Target)
	case now == nil && s.Home == was.Target: // its VM is at home there
		b.index.Leave(b.vm(a), a.home)
		b.index.Arrive(s.Home)
	default:
		return false
	}
	b.place(a, s)
	for i := range a.moves {
		a.moves[i].reserved = reserved
	}
	return true
}

// saves reports whether room is held for what comes later, before or after a change.
func saves(now []reservedMove, was []held) bool {
	return slices.ContainsFunc(now, func(m reservedMove) bool { return m.Saved }) ||
		slices.ContainsFunc(was, func(m held) bool { return m.Saved })
}

func first[T any](all []T) *T {
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// drop takes a VM out of the index.
func (b *reservations) drop(a *allocation) {
	if a.atHome {
		b.index.Leave(b.vm(a), a.home)
	}
	for i := range a.moves {
		switch m := &a.moves[i]; {
		case m.reserved && m.Saved:
			b.index.Leave(b.vm(a), m.Target)
		case m.reserved:
			b.index.Cancel(b.vm(a), m.Target)
		}
	}
}

// put reserves room for a VM that the index does not count.
func (b *reservations) put(a *allocation) {
	b.know(a.home)
	a.atHome = a.home != "" && b.index.Hold(b.vm(a), a.home)
	for i := range a.moves {
		m := &a.moves[i]
		b.know(m.Target)
		if m.Saved {
			m.reserved = b.index.Hold(b.vm(a), m.Target)
			continue
		}
		m.reserved = b.index.Reserve(b.vm(a), m.Target)
	}
}

// enter puts the reservations of a VM into a ledger that has none of them. What cannot be together there, such
// as two moves of one VM, is only in the index.
func (b *reservations) enter(a *allocation, l *placement.Ledger) {
	if a.size == nil {
		return
	}
	vm, home := b.vm(a), a.home
	for i := range a.moves {
		if a.moves[i].Landed {
			home = a.moves[i].Target
		}
	}
	if home != "" {
		l.Settle(settled(vm, home), time.Time{})
	}
	for i := range a.moves {
		if m := &a.moves[i]; !m.Landed && !m.Saved {
			l.Accept(m.plan(vm), placement.Limits{})
		}
	}
}

// settled is what a VM holds at home.
func settled(vm *placement.VM, home hypervisor.HostName) placement.Reservation {
	return placement.Reservation{VM: vm.ID, Host: home, Amount: placement.AmountOf(vm),
		Tenant: vm.Constraints.Tenant}
}

func (m *reservedMove) plan(vm *placement.VM) placement.ReservationPlan {
	return placement.ReservationPlan{ID: m.ID, VM: vm.ID, Target: m.Target, Tenant: vm.Constraints.Tenant,
		Amount: placement.AmountOf(vm), Owner: m.Owner, Deadline: m.Deadline}
}
