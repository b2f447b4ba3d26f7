package plan

import (
	"slices"

	"github.com/godwit-vm/godwit/migration/placement"
)

// nowhere is the position of no host.
const nowhere = -1

// A State is the host of each VM, and the target of each VM that is on its way. Hosts and VMs are named by their
// positions in the fleet. A State belongs to one caller; [State.Clone] is cheap,
// because a host's reservations are replaced and never changed.
type State struct {
	fleet *Fleet
	rules []placement.Filter
	hosts []placement.Host
	home  []int // where each VM is
	bound []int // where each VM is on its way to
	past  []change
}

// A change is what a host and a VM were before.
type change struct {
	at          int // the host
	host        placement.Host
	vm          int
	home, bound int
}

// Begin returns the fleet as it is.
func Begin(f *Fleet) *State {
	s := &State{fleet: f, rules: f.Rules(), hosts: slices.Clone(f.Hosts),
		home: make([]int, len(f.VMs)), bound: make([]int, len(f.VMs))}
	for i := range f.VMs {
		s.home[i], s.bound[i] = nowhere, nowhere
		if at, ok := f.HostAt(f.VMs[i].Home); ok {
			s.home[i] = at
		}
	}
	return s
}

// Clone returns a state that changes apart from s. What s has done cannot be undone
// in it.
func (s *State) Clone() *State {
	c := *s
	c.hosts, c.home, c.bound = slices.Clone(s.hosts), slices.Clone(s.home), slices.Clone(s.bound)
	c.past = nil
	return &c
}

// Fleet returns the fleet that the state is of.
func (s *State) Fleet() *Fleet { return s.fleet }

// Host returns a host with its reservations as they are now. It is shared and not to be changed.
func (s *State) Host(at int) *placement.Host { return &s.hosts[at] }

// Home returns where a VM is; negative is nowhere.
func (s *State) Home(vm int) int { return s.home[vm] }

// on returns the VMs that are on a host, by ID. It looks at all VMs.
func (s *State) on(host int) []int {
	var all []int
	for vm, at := range s.home {
		if at == host {
			all = append(all, vm)
		}
	}
	return all
}

// Cordon lets no VM enter a host from now on, or lets them in again.
func (s *State) Cordon(host int, on bool) {
	s.note(host, nowhere)
	s.hosts[host].Cordoned = on
}

// A Question is which hosts take one VM in one state. It holds until the state
// changes.
type Question struct {
	s     *State
	vm    *placement.VM
	o     placement.Options
	rules []placement.Filter // those that may refuse
	all   []placement.Filter
}

// Ask asks about a VM.
func (s *State) Ask(vm int) Question {
	v := &s.fleet.VMs[vm]
	q := Question{s: s, vm: &v.VM, all: s.rules}
	if at := s.home[vm]; at != nowhere {
		q.o.Source = s.hosts[at].Name
	}
	q.o.Move = s.survey(vm)
	q.rules = placement.Active(s.rules, q.vm, q.o)
	return q
}

// survey looks at all hosts only for a VM that is in a group.
func (s *State) survey(vm int) *placement.Move {
	v, at := &s.fleet.VMs[vm], s.home[vm]
	switch {
	case at == nowhere:
		return v.compare("", s.hosts)
	case len(v.Constraints.Groups) == 0:
		return v.compare(s.hosts[at].Name, s.hosts[at:at+1])
	}
	return v.compare(s.hosts[at].Name, s.hosts)
}

// Fits reports whether a host takes the VM.
func (q *Question) Fits(host int) bool {
	return placement.FitsAll(q.rules, q.vm, &q.s.hosts[host], q.o)
}

// Start reserves room for a VM that is on its way to a host. It does not ask whether the host takes
// it. It reports false, and changes nothing, when the VM is nowhere, on its way
// already or there already, or when [placement.Host.With] refuses.
func (s *State) Start(vm, target int) bool {
	if s.home[vm] == nowhere || s.bound[vm] != nowhere || s.home[vm] == target {
		return false
	}
	after, ok := s.hosts[target].With(&s.fleet.VMs[vm].VM)
	if !ok {
		return false
	}
	s.note(target, vm)
	s.hosts[target], s.bound[vm] = after, target
	return true
}

// Finish ends the move of a VM: it is at its target, and frees its source.
func (s *State) Finish(vm int) bool {
	source, target := s.home[vm], s.bound[vm]
	if target == nowhere {
		return false
	}
	after, ok := s.hosts[source].Without(&s.fleet.VMs[vm].VM, false)
	if !ok {
		return false
	}
	s.note(source, vm)
	s.hosts[source] = after
	s.note(target, vm)
	s.hosts[target].Incoming--
	s.home[vm], s.bound[vm] = target, nowhere
	return true
}

// Move starts and finishes a move at once.
func (s *State) Move(vm, target int) bool { return s.Start(vm, target) && s.Finish(vm) }

// Mark returns how far the state has come, for Undo.
func (s *State) Mark() int { return len(s.past) }

// Undo takes back everything since a mark, exactly.
func (s *State) Undo(mark int) {
	for len(s.past) > mark {
		c := s.past[len(s.past)-1]
		s.past = s.past[:len(s.past)-1]
		s.hosts[c.at] = c.host
		if c.vm != nowhere {
			s.home[c.vm], s.bound[c.vm] = c.home, c.bound
		}
	}
}

// note remembers a host and a VM as they are.
func (s *State) note(host, vm int) {
	c := change{at: host, host: s.hosts[host], vm: vm}
	if vm != nowhere {
		c.home, c.bound = s.home[vm], s.bound[vm]
	}
	s.past = append(s.past, c)
}

// Name returns a move in words that last longer than a state.
func (s *State) Name(vm, target int) Move {
	m := Move{VM: s.fleet.VMs[vm].ID, Target: s.hosts[target].Name}
	if at := s.home[vm]; at != nowhere {
		m.Source = s.hosts[at].Name
	}
	return m
}
