package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// mostTries bounds how many moves [PlanReturn] looks at when it looks at every arrangement.
const mostTries = 20_000

// mostParkable is among how many VMs one is chosen that is parked.
const mostParkable = 100

// A ReturnPlan is the way back home.
type ReturnPlan struct {
	Waves []Wave `json:"waves"`
	Moves int    `json:"moves"`
	// Parked are the VMs that move more than once, to make room for others.
	Parked []hypervisor.VMID `json:"parked"`
	// Left are the VMs that do not come home. Proven says that every arrangement that can
	// be reached was looked at; otherwise the search was given up.
	Left   []hypervisor.VMID `json:"left"`
	Proven bool              `json:"proven"`
}

// PlanReturn plans how the VMs of a fleet come to the hosts where they are in another one, such
// as the fleet before a maintenance. VMs that the other does not have, or that run nowhere
// there, stay where they are.
//
// Each VM moves once, as soon as its home takes it. Where VMs wait for each other in a
// circle, some are parked elsewhere meanwhile: the smallest that helps, each once. When
// that does not bring all home, and the fleet is small, every arrangement is looked at.
func PlanReturn(now, before *Fleet) ReturnPlan {
	b := &back{s: Begin(now), goal: make([]int, len(now.VMs))}
	for vm := range now.VMs {
		b.goal[vm] = b.s.Home(vm)
		if at, ok := before.VMAt(now.VMs[vm].ID); ok && b.s.Home(vm) >= 0 {
			if home, ok := now.HostAt(before.VMs[at].Home); ok {
				b.goal[vm] = home
			}
		}
	}
	b.parked = make([]bool, len(now.VMs))
	for b.direct() || b.park() {
		continue
	}
	r := ReturnPlan{Parked: []hypervisor.VMID{}, Left: []hypervisor.VMID{}}
	if len(b.away()) > 0 {
		moves, ended := b.search(now)
		if r.Proven = ended && moves == nil; moves != nil {
			b.moves = moves
		}
	}
	return b.answer(r, now)
}

// back is a way home so far.
type back struct {
	s      *State
	goal   []int // of each VM
	parked []bool
	moves  []Move
}

// away returns the VMs that are not at home.
func (b *back) away() []int {
	var all []int
	for vm, home := range b.goal {
		if b.s.Home(vm) != home {
			all = append(all, vm)
		}
	}
	return all
}

// direct moves all VMs home that fit there, and reports whether one moved.
func (b *back) direct() bool {
	moved := false
	for _, vm := range b.away() {
		if b.may(vm, b.goal[vm]) {
			moved = b.move(vm, b.goal[vm]) || moved
		}
	}
	return moved
}

func (b *back) may(vm, target int) bool {
	if b.s.Fleet().VMs[vm].Pinned != "" {
		return false
	}
	q := b.s.Ask(vm)
	return q.Fits(target)
}

func (b *back) move(vm, target int) bool {
	m := b.s.Name(vm, target)
	if !b.s.Move(vm, target) {
		return false
	}
	b.moves = append(b.moves, m)
	return true
}

// park moves one VM out of the way, so that another one comes home; where none does that
// alone, the smallest that can be moved.
func (b *back) park() bool {
	away := b.away()
	wanted := map[int]bool{} // hosts that VMs wait for
	for _, vm := range away {
		wanted[b.goal[vm]] = true
	}
	candidates := slices.DeleteFunc(slices.Clone(away), func(vm int) bool {
		return b.parked[vm] || !wanted[b.s.Home(vm)]
	})
	vms := b.s.Fleet().VMs
	slices.SortStableFunc(candidates, func(x, y int) int {
		return cmp.Compare(vms[x].Demand(), vms[y].Demand())
	})
	vm, target := nowhere, nowhere
	for _, c := range candidates[:min(len(candidates), mostParkable)] {
		to, helps := b.aside(c, away)
		if to != nowhere && (vm == nowhere || helps) {
			vm, target = c, to
		}
		if helps {
			break
		}
	}
	if vm == nowhere {
		return false
	}
	b.parked[vm] = true
	return b.move(vm, target)
}

// aside returns the roomiest host that a VM can be parked on, and whether that lets
// another VM come home.
func (b *back) aside(vm int, away []int) (target int, helps bool) {
	target = nowhere
	for h := range b.s.Fleet().Hosts {
		better := target == nowhere ||
			b.s.Host(h).FreeMemory() > b.s.Host(target).FreeMemory()
		if better && h != b.s.Home(vm) && h != b.goal[vm] && b.may(vm, h) {
			target = h
		}
	}
	if target == nowhere {
		return target, false
	}
	from, mark := b.s.Home(vm), b.s.Mark()
	b.s.Move(vm, target)
	for _, other := range away {
		helps = helps || other != vm && b.goal[other] == from && b.may(other, from)
	}
	b.s.Undo(mark)
	return target, helps
}

// search looks at every arrangement that can be reached, nearest first. It returns nil
// when all VMs are home in none of them, and false when there are too many.
func (b *back) search(now *Fleet) (moves []Move, ended bool) {
	type node struct {
		from int
		move Move
		s    *State
	}
	first := Begin(now)
	nodes, seen := []node{{from: -1, s: first}}, map[string]bool{arrangement(first): true}
	for n := 0; n < len(nodes); n++ {
		if (n+1)*len(now.VMs)*len(now.Hosts) > mostTries {
			return nil, false
		}
		at := back{s: nodes[n].s, goal: b.goal}
		if len(at.away()) == 0 {
			for ; nodes[n].from >= 0; n = nodes[n].from {
				moves = append(moves, nodes[n].move)
			}
			slices.Reverse(moves)
			return moves, true
		}
		for vm := range now.VMs {
			for h := range now.Hosts {
				if at.s.Home(vm) < 0 || !at.may(vm, h) {
					continue
				}
				next, m := at.s.Clone(), at.s.Name(vm, h)
				if !next.Move(vm, h) || seen[arrangement(next)] {
					continue
				}
				seen[arrangement(next)] = true
				nodes = append(nodes, node{n, m, next})
			}
		}
	}
	return nil, true
}

// arrangement tells states apart.
func arrangement(s *State) string {
	var k strings.Builder
	for vm := range s.Fleet().VMs {
		at := s.Home(vm)
		k.WriteByte(byte(at))
		k.WriteByte(byte(at >> 8))
	}
	return k.String()
}

func (b *back) answer(r ReturnPlan, now *Fleet) ReturnPlan {
	r.Moves = len(b.moves)
	r.Waves = []Wave{}
	if len(b.moves) > 0 {
		r.Waves, _ = Waves(Begin(now), b.moves)
	}
	s := Begin(now)
	count := map[hypervisor.VMID]int{}
	for _, m := range b.moves {
		if count[m.VM]++; count[m.VM] == 2 {
			r.Parked = append(r.Parked, m.VM)
		}
		vm, _ := now.VMAt(m.VM)
		target, _ := now.HostAt(m.Target)
		s.Move(vm, target)
	}
	for vm, home := range b.goal {
		if s.Home(vm) != home {
			r.Left = append(r.Left, now.VMs[vm].ID)
		}
	}
	slices.Sort(r.Parked)
	return r
}
