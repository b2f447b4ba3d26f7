package plan

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Waves sorts moves that are possible one after another into waves, and keeps their
// order. A move joins a wave when all moves of the wave are possible in whatever
// order they begin and end. It reports false when the moves are not possible one
// after another, or name something that the state does not have.
func Waves(from *State, moves []Move) ([]Wave, bool) {
	s := from.Clone()
	var waves []Wave
	open := swell{onto: map[int][]leg{}}
	for _, m := range moves {
		l, ok := s.leg(m)
		if !ok {
			return nil, false
		}
		if !s.join(&open, l) {
			for _, done := range open.legs {
				s.Finish(done.vm)
			}
			open.clear()
			if !s.join(&open, l) {
				return nil, false
			}
		}
		if len(open.legs) == 0 {
			waves = append(waves, nil)
		}
		open.add(l, Rules(&s.fleet.VMs[l.vm].VM))
		waves[len(waves)-1] = append(waves[len(waves)-1], m)
	}
	return waves, true
}

// A swell is the moves of a wave that is still growing, and those of them that have to be asked
// about one more: those that go to the same host, and whose place depends on where others are.
type swell struct {
	legs  []leg
	ruled []leg
	onto  map[int][]leg // by target
}

func (w *swell) add(l leg, ruled bool) {
	w.legs, w.onto[l.target] = append(w.legs, l), append(w.onto[l.target], l)
	if ruled {
		w.ruled = append(w.ruled, l)
	}
}

func (w *swell) clear() {
	w.legs, w.ruled = w.legs[:0], w.ruled[:0]
	clear(w.onto)
}

// A leg is a move by positions.
type leg struct{ vm, source, target int }

func (s *State) leg(m Move) (leg, bool) {
	vm, known := s.fleet.VMAt(m.VM)
	source, from := s.fleet.HostAt(m.Source)
	target, to := s.fleet.HostAt(m.Target)
	return leg{vm, source, target}, known && from && to
}

// join starts a move beside those that are under way, if that is possible.
func (s *State) join(open *swell, l leg) bool {
	v := &s.fleet.VMs[l.vm]
	if v.Pinned != "" || s.home[l.vm] != l.source || s.bound[l.vm] != nowhere {
		return false
	}
	concerned := open.ruled
	if Rules(&v.VM) {
		concerned = open.legs
	}
	for _, other := range concerned {
		o := &s.fleet.VMs[other.vm]
		if DependsOn(&v.VM, &o.VM) || DependsOn(&o.VM, &v.VM) {
			return false
		}
	}
	if q := s.Ask(l.vm); !q.Fits(l.target) {
		return false
	}
	mark := s.Mark()
	if !s.Start(l.vm, l.target) {
		return false
	}
	plain := s.plain(l.vm)
	for _, others := range [...][]leg{open.onto[l.target], open.ruled} {
		for _, other := range others {
			if plain && s.plain(other.vm) {
				continue
			}
			if !s.stillFits(other) {
				s.Undo(mark)
				return false
			}
		}
	}
	return true
}

// plain reports whether a VM asks for nothing but room. Of two such VMs that go to one host,
// the one that begins last finds what the other would have found: what they need together is there.
func (s *State) plain(vm int) bool { return !placement.Asks(&s.fleet.VMs[vm].Constraints) }

// stillFits reports whether a move that is under way could begin last.
func (s *State) stillFits(l leg) bool {
	mark := s.Mark()
	defer s.Undo(mark)
	after, ok := s.hosts[l.target].Without(&s.fleet.VMs[l.vm].VM, true)
	if !ok {
		return false
	}
	s.note(l.target, l.vm)
	s.hosts[l.target], s.bound[l.vm] = after, nowhere
	q := s.Ask(l.vm)
	return q.Fits(l.target)
}

// Rules reports whether where vm may go depends on where other VMs are.
func Rules(vm *placement.VM) bool {
	c := &vm.Constraints
	return len(c.Groups)+len(c.With)+len(c.Without)+len(c.Apart) > 0
}

// DependsOn reports whether vm can move only while other rests: it asks to be with
// it, or they are in a group that stays together.
func DependsOn(vm, other *placement.VM) bool {
	if slices.Contains(vm.Constraints.With, other.ID) {
		return true
	}
	return slices.ContainsFunc(vm.Constraints.Groups, func(r placement.GroupRule) bool {
		return r.Policy == placement.Affinity && InGroup(other, r.Group)
	})
}

// InGroup reports whether a VM is counted in a group.
func InGroup(vm *placement.VM, group string) bool {
	return slices.Contains(vm.Constraints.Apart, group) ||
		slices.ContainsFunc(vm.Constraints.Groups,
			func(r placement.GroupRule) bool { return r.Group == group })
}

// byID returns the positions of VMs, in order; those that are not there are left out.
func (f *Fleet) byID(ids []hypervisor.VMID) []int {
	var all []int
	for _, id := range ids {
		if at, ok := f.VMAt(id); ok {
			all = append(all, at)
		}
	}
	return all
}
