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
	Standing
	vm     *placement.VM // the Standing's, or one of no size
	atHome bool          // the index counts it at home
	booked []bool        // the index counts its moves
}

// say takes in what the VM holds, and books nothing. The entry keeps its own memory.
func (e *entry) say(id hypervisor.VMID, s *Standing) {
	if e.vm == nil || s.VM != e.VM {
		if e.vm = s.VM; e.vm == nil {
			e.vm = &placement.VM{ID: id}
		}
	}
	e.VM, e.Home, e.Moves = s.VM, s.Home, append(e.Moves[:0], s.Moves...)
}

// Set takes in what a VM holds, instead of what it held. It keeps no part of s.Moves.
func (b *Books) Set(id hypervisor.VMID, s Standing) {
	e, nothing := b.entries[id], s.Home == "" && len(s.Moves) == 0
	switch {
	case e == nil && nothing:
		return
	case e == nil:
		e = &entry{}
		e.say(id, &s)
		b.entries[id] = e
		b.put(e)
	case s.VM == e.VM && s.Home == e.Home && slices.EqualFunc(s.Moves, e.Moves, sameRoom):
		copy(e.Moves, s.Moves)
	case !b.step(e, &s):
		b.drop(e)
		e.say(id, &s)
		b.put(e)
	}
	if nothing {
		delete(b.entries, id)
	}
	if b.ledger != nil {
		b.ledger.Drop(id, time.Time{})
		e.enter(b.ledger)
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
	if s.VM == nil || s.VM != e.VM || !e.atHome || len(s.Moves) > 1 || len(e.Moves) > 1 {
		return false
	}
	stays := s.Home == e.Home
	switch was, now := first(e.Moves), first(s.Moves); {
	case stays && was == nil: // it begins
		b.know(now.Target)
		e.booked = append(e.booked[:0], b.index.Reserve(e.vm, now.Target))
	case was == nil || !e.booked[0]:
		return false
	case stays && now != nil && now.Target == was.Target: // it has landed
	case stays && now == nil: // it has failed
		b.index.Cancel(e.vm, was.Target)
	case now == nil && s.Home == was.Target: // its VM is at home there
		b.index.Leave(e.vm, e.Home)
		b.index.Arrive(s.Home)
	default:
		return false
	}
	e.say(e.vm.ID, s)
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
		b.index.Leave(e.vm, e.Home)
	}
	for i, m := range e.Moves {
		if e.booked[i] {
			b.index.Cancel(e.vm, m.Target)
		}
	}
}

// put books a VM that the index does not count.
func (b *Books) put(e *entry) {
	b.know(e.Home)
	e.atHome = e.Home != "" && b.index.Hold(e.vm, e.Home)
	e.booked = e.booked[:0]
	for _, m := range e.Moves {
		b.know(m.Target)
		e.booked = append(e.booked, b.index.Reserve(e.vm, m.Target))
	}
}

// enter books a VM in a ledger that has nothing of it. What cannot be together there, such
// as two moves of one VM, is only in the index.
func (e *entry) enter(l *reserve.Ledger) {
	if e.VM == nil {
		return
	}
	home := e.Home
	for i := range e.Moves {
		if e.Moves[i].Landed {
			home = e.Moves[i].Target
		}
	}
	if home != "" {
		l.Settle(reserve.Claim{VM: e.VM.ID, Host: home, Amount: reserve.Of(e.VM),
			Tenant: e.VM.Constraints.Tenant}, time.Time{})
	}
	for i := range e.Moves {
		if m := &e.Moves[i]; !m.Landed {
			l.Accept(m.plan(e.VM), reserve.Limits{})
		}
	}
}

func (m *Move) plan(vm *placement.VM) reserve.Plan {
	return reserve.Plan{ID: m.ID, VM: vm.ID, Target: m.Target, Tenant: vm.Constraints.Tenant,
		Amount: reserve.Of(vm), Owner: m.Owner, Deadline: m.Deadline}
}
