package placement

import (
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Load is what is taken of a host beside memory and CPUs, by VMs there and on
// their way. The [Index] counts it; nil is unknown and stays so.
type Load struct {
	VMs     int
	Busy    int // builds and copies; moves in are counted by Host.Incoming
	Disk    hypervisor.Bytes
	Cells   []CellUse // in the order of Facts.Cells
	Devices Devices
	Held    map[hypervisor.VMID]Held
}

// Held is what one VM has of a host. It makes giving back exact.
type Held struct {
	VM    *VM // as it was counted; shared and never changed
	Count int // the VM is here, or on its way, so many times
	Seats []Seat
}

// HasVM reports whether a VM is on the host or on its way there; known is
// whether its VMs are known.
func (h *Host) HasVM(id hypervisor.VMID) (has, known bool) {
	if h.Load == nil {
		return false, false
	}
	_, has = h.Load.Held[id]
	return has, true
}

// usedCells returns what is taken of the host's cells.
func (h *Host) usedCells() []CellUse {
	if h.Load == nil {
		return nil
	}
	return h.Load.Cells
}

// FreeDevices returns how many devices of a class are left.
func (h *Host) FreeDevices(class string) int {
	n := 0
	if h.Facts != nil {
		n = h.Facts.Devices.Of(class)
	}
	if h.Load != nil {
		n -= h.Load.Devices.Of(class)
	}
	return n
}

// Clone returns a copy of h whose reservations can be changed apart from h's.
func (h *Host) Clone() Host {
	c := *h
	c.Groups, c.Load = maps.Clone(h.Groups), h.Load.clone()
	return c
}

// With returns h with a reservation for vm, which is on its way there; false when that
// is refused (see [Index.Reserve]). h stays as it is.
func (h *Host) With(vm *VM) (Host, bool) { return h.after(entry{vm, +1, +1}) }

// Without returns h after vm has left, or will not come if it was on its way;
// false when that is refused. h stays as it is.
func (h *Host) Without(vm *VM, onItsWay bool) (Host, bool) {
	e := entry{vm, -1, 0}
	if onItsWay {
		e.incoming = -1
	}
	return h.after(e)
}

func (h *Host) after(e entry) (Host, bool) {
	c := h.Clone()
	if !c.may(e) {
		return Host{}, false
	}
	c.apply(e)
	return c, true
}

func (l *Load) clone() *Load {
	if l == nil {
		return nil
	}
	c := *l
	c.Held = maps.Clone(l.Held)
	c.Cells = slices.Clone(l.Cells) // sets and devices are replaced, not changed
	return &c
}

// may reports whether vm can be taken off the load.
func (l *Load) may(vm *VM) bool {
	for _, d := range vm.Constraints.Devices {
		if l.Devices.Of(d.Class) < l.sum(vm, d.Class) {
			return false
		}
	}
	return l.VMs > 0 && l.Disk >= vm.Disk
}

func (*Load) sum(vm *VM, class string) int {
	n := 0
	for _, d := range vm.Constraints.Devices {
		if d.Class == class {
			n += d.Count
		}
	}
	return n
}

// apply counts vm (sign +1), or no longer (-1).
func (l *Load) apply(vm *VM, facts *Facts, sign int) {
	l.VMs += sign
	l.Disk += hypervisor.Bytes(sign) * vm.Disk
	for _, d := range vm.Constraints.Devices {
		l.Devices = l.Devices.plus(d.Class, sign*d.Count)
	}
	held := l.Held[vm.ID]
	held.Count += sign
	switch {
	case held.Count == 1 && sign > 0:
		own := *vm
		held.VM, held.Seats = &own, seats(vm, facts, l.Cells)
		l.Cells = take(l.Cells, held.Seats)
	case held.Count <= 0:
		l.Cells = free(l.Cells, held.Seats)
		delete(l.Held, vm.ID)
		return
	}
	if l.Held == nil {
		l.Held = map[hypervisor.VMID]Held{}
	}
	l.Held[vm.ID] = held
}

func seats(vm *VM, facts *Facts, use []CellUse) []Seat {
	if vm.Constraints.Topology == nil || facts == nil {
		return nil
	}
	seats, _ := fit(vm.Constraints.Topology, vm.Whole(), facts.Cells, use)
	return seats
}

// bump adds n to a count, and drops a count of zero.
func bump(m map[string]int, key string, n int) map[string]int {
	if m == nil && n != 0 {
		m = map[string]int{}
	}
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
	if len(m) == 0 {
		return nil
	}
	return m
}
