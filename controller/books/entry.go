package books

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
)

// An entry is what the books hold of a VM.
type entry struct {
	id       hypervisor.VMID
	Standing      // its VM is nil unless that asks for more than room
	sized    bool // there is a VM, and size is its size
	size     size
	atHome   bool   // the index counts it at home
	booked   []bool // the index counts its moves
}

// A size is what the books keep of a VM that asks for room and nothing else, as most do.
type size struct {
	memory, overhead, balloon, disk hypervisor.Bytes
	cpus                            int
}

func sizeOf(vm *placement.VM) size {
	return size{vm.Memory, vm.Overhead, vm.Balloon, vm.Disk, vm.CPUs}
}

// say takes in what the VM holds, and books nothing. The entry keeps its own memory.
func (e *entry) say(s *Standing) {
	e.VM, e.size, e.sized = nil, size{}, s.VM != nil
	if e.sized {
		if e.size = sizeOf(s.VM); asks(&s.VM.Constraints) {
			e.VM = s.VM
		}
	}
	e.Home, e.Moves = s.Home, append(e.Moves[:0], s.Moves...)
}

// is reports whether the entry is of this very VM: of the same size, if it asks for nothing
// else.
func (e *entry) is(vm *placement.VM) bool {
	switch {
	case vm == nil || !e.sized:
		return vm == nil && !e.sized
	case e.VM != nil || asks(&vm.Constraints):
		return vm == e.VM
	}
	return e.size == sizeOf(vm)
}

// vm returns the VM of an entry, or one of no size, until it is asked again.
func (b *Books) vm(e *entry) *placement.VM {
	if e.VM != nil {
		return e.VM
	}
	p, s := &b.plain, &e.size
	p.ID, p.Memory, p.Overhead, p.Balloon = e.id, s.memory, s.overhead, s.balloon
	p.Disk, p.CPUs = s.disk, s.cpus
	return p
}

// Set takes in what a VM holds, instead of what it held. It keeps no part of s.Moves, and
// s.VM only if that asks for more than room.
func (b *Books) Set(id hypervisor.VMID, s Standing) {
	e, nothing := b.entries[id], s.Home == "" && len(s.Moves) == 0
	switch {
	case e == nil && nothing:
		return
	case e == nil:
		e = &entry{id: id}
		e.say(&s)
		b.entries[id] = e
		b.put(e)
	case e.is(s.VM) && s.Home == e.Home && slices.EqualFunc(s.Moves, e.Moves, sameRoom):
		copy(e.Moves, s.Moves)
	case !b.step(e, &s):
		b.drop(e)
		e.say(&s)
		b.put(e)
	}
	if nothing {
		delete(b.entries, id)
	}
	if b.ledger != nil {
		b.ledger.Drop(id, time.Time{})
		b.enter(e, b.ledger)
	}
}

// sameRoom reports whether two moves differ in their deadlines at most.
func sameRoom(a, b Move) bool {
	a.Deadline = b.Deadline
	return a == b
}

// step books one step of a VM's only move in the index: it comes to the same as dropping all
// that the VM holds and booking it again, and costs a fraction. It reports whether it was one.
func (b *Books) step(e *entry, s *Standing) bool {
	if s.VM == nil || !e.is(s.VM) || !e.atHome || len(s.Moves) > 1 || len(e.Moves) > 1 {
		return false
	}
	stays := s.Home == e.Home
	switch was, now := first(e.Moves), first(s.Moves); {
	case stays && was == nil: // it begins
		b.know(now.Target)
		e.booked = append(e.booked[:0], b.index.Reserve(b.vm(e), now.Target))
	case was == nil || !e.booked[0]:
		return false
	case stays && now != nil && now.Target == was.Target: // it has landed
	case stays && now == nil: // it has failed
		b.index.Cancel(b.vm(e), was.Target)
	case now == nil && s.Home == was.Target: // its VM is at home there
		b.index.Leave(b.vm(e), e.Home)
		b.index.Arrive(s.Home)
	default:
		return false
	}
	e.say(s)
	e.booked = e.booked[:len(s.Moves)]
	return true
}

func first(moves []Move) *Move {
	if len(moves) == 0 {
		return nil
	}
	return &moves[0]
}

// drop takes a VM out of the index.
func (b *Books) drop(e *entry) {
	if e.atHome {
		b.index.Leave(b.vm(e), e.Home)
	}
	for i, m := range e.Moves {
		if e.booked[i] {
			b.index.Cancel(b.vm(e), m.Target)
		}
	}
}

// put books a VM that the index does not count.
func (b *Books) put(e *entry) {
	b.know(e.Home)
	e.atHome = e.Home != "" && b.index.Hold(b.vm(e), e.Home)
	e.booked = e.booked[:0]
	for _, m := range e.Moves {
		b.know(m.Target)
		e.booked = append(e.booked, b.index.Reserve(b.vm(e), m.Target))
	}
}

// enter books a VM in a ledger that has nothing of it. What cannot be together there, such
// as two moves of one VM, is only in the index.
func (b *Books) enter(e *entry, l *reserve.Ledger) {
	if !e.sized {
		return
	}
	vm := b.vm(e)
	home := e.Home
	for i := range e.Moves {
		if e.Moves[i].Landed {
			home = e.Moves[i].Target
		}
	}
	if home != "" {
		l.Settle(reserve.Claim{VM: vm.ID, Host: home, Amount: reserve.Of(vm),
			Tenant: vm.Constraints.Tenant}, time.Time{})
	}
	for i := range e.Moves {
		if m := &e.Moves[i]; !m.Landed {
			l.Accept(m.plan(vm), reserve.Limits{})
		}
	}
}

func (m *Move) plan(vm *placement.VM) reserve.Plan {
	return reserve.Plan{ID: m.ID, VM: vm.ID, Target: m.Target, Tenant: vm.Constraints.Tenant,
		Amount: reserve.Of(vm), Owner: m.Owner, Deadline: m.Deadline}
}
