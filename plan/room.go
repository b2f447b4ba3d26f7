package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// deepest is how many other VMs are moved at most to make room for one.
const deepest = 3

// work is a state and the moves that led to it.
type work struct {
	*planner
	s        *State
	prefer   preference
	moves    []Move
	arriving []hypervisor.Bytes // at each host, by the moves, with local disks
	ladder   ladder
}

// A preference tells how a VM that needs so much likes a host.
type preference func(w *work, need hypervisor.Bytes, host int) cost

// A cost is what speaks against a host: the least is liked best.
type cost struct {
	filled  int
	arrival time.Duration
	memory  hypervisor.Bytes
}

func (c cost) compare(o cost) int {
	return cmp.Or(cmp.Compare(c.filled, o.filled), cmp.Compare(c.arrival, o.arrival),
		cmp.Compare(c.memory, o.memory))
}

// spread prefers hosts that are not filled above nine tenths, then those whose links
// have least to carry, then those with most free memory.
func spread(w *work, need hypervisor.Bytes, host int) cost {
	return cost{w.filled(host, need), w.arrival(host, need), -w.s.Host(host).FreeMemory()}
}

// tight prefers least free memory: it keeps large holes for large VMs.
func tight(w *work, _ hypervisor.Bytes, host int) cost {
	return cost{memory: w.s.Host(host).FreeMemory()}
}

// filled returns 1 for a host that need would fill above nine tenths.
func (w *work) filled(host int, need hypervisor.Bytes) int {
	if h := w.s.Host(host); h.FreeMemory()-need < h.Memory/10 {
		return 1
	}
	return 0
}

// arrival returns how long a host's link carries what arrives; where no speed is
// known all are the same.
func (w *work) arrival(host int, need hypervisor.Bytes) time.Duration {
	link := hypervisor.Gbit
	if f := w.s.Host(host).Facts; f != nil && f.Link > 0 {
		link = f.Link
	}
	return (w.arriving[host] + need).At(link)
}

// place moves a VM to the best host that takes it, anywhere but to one. With a depth,
// up to so many others are moved first to make room.
func (w *work) place(vm, depth, not int) bool {
	if w.fleet.VMs[vm].Pinned != "" {
		return false
	}
	if depth == 0 {
		return w.direct(vm, not)
	}
	for _, host := range w.hopeful(vm, not) {
		if w.clear(vm, host, depth) {
			return true
		}
	}
	return false
}

// direct moves a VM to the best host that takes it as it is.
func (w *work) direct(vm, not int) bool {
	best, known := w.climb(vm, not)
	if !known {
		best = w.search(vm, not)
	}
	return best != nowhere && w.move(vm, best)
}

// search returns the best host for a VM after a look at all.
func (w *work) search(vm, not int) int {
	q, need, best, least := w.s.Ask(vm), w.fleet.VMs[vm].Demand(), nowhere, cost{}
	for host := range w.fleet.Hosts {
		c := w.prefer(w, need, host)
		if host == not || best != nowhere && c.compare(least) >= 0 {
			continue // what is not wanted need not be asked
		}
		if w.tries--; q.Fits(host) {
			best, least = host, c
		}
	}
	return best
}

func (w *work) move(vm, target int) bool {
	m := w.s.Name(vm, target)
	w.ladder.noteChange(target)
	w.ladder.noteChange(w.s.Home(vm))
	if !w.s.Move(vm, target) {
		return false
	}
	w.moves = append(w.moves, m)
	w.arriving[target] += w.fleet.VMs[vm].Demand() + w.fleet.VMs[vm].Disk
	return true
}

// undo takes back all but the first moves.
func (w *work) undo(mark, moves int) {
	w.s.Undo(mark)
	for _, m := range w.moves[moves:] {
		vm, _ := w.fleet.VMAt(m.VM)
		target, _ := w.fleet.HostAt(m.Target)
		w.arriving[target] -= w.fleet.VMs[vm].Demand() + w.fleet.VMs[vm].Disk
		w.ladder.noteChange(target)
		w.ladder.noteChange(w.s.Home(vm)) // where it is again
	}
	w.moves = w.moves[:moves]
}

// hopeful returns the hosts that might take the VM if others left, those that lack
// least first.
func (w *work) hopeful(vm, not int) []int {
	var all []int
	for host := range w.fleet.Hosts {
		if h := w.s.Host(host); host != not && host != w.s.Home(vm) && !h.Cordoned && !h.Down {
			all = append(all, host)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Compare(w.s.Host(b).FreeMemory(), w.s.Host(a).FreeMemory())
	})
	return all
}

// clear moves up to depth VMs away from a host until it takes vm, and moves vm there.
func (w *work) clear(vm, host, depth int) bool {
	if q := w.s.Ask(vm); q.Fits(host) {
		return w.move(vm, host)
	}
	if depth == 0 || w.tries <= 0 {
		return false
	}
	for _, other := range w.guests(vm, host) {
		mark, moves := w.s.Mark(), len(w.moves)
		for deep := range depth {
			if w.tries > 0 && w.place(other, deep, host) && w.clear(vm, host, depth-1-deep) {
				return true
			}
			w.undo(mark, moves)
		}
	}
	return false
}

// guests returns the VMs of a host that could make room for vm: first those whose
// leaving is enough, the smallest first; then the largest first.
func (w *work) guests(vm, host int) []int {
	h, v := w.s.Host(host), &w.fleet.VMs[vm]
	memory, cpus := v.Demand()-h.FreeMemory(), v.DemandCPUs()-h.FreeCPUs()
	enough := func(other int) bool {
		o := &w.fleet.VMs[other]
		return o.Demand() >= memory && o.DemandCPUs() >= cpus
	}
	all := slices.DeleteFunc(w.s.on(host), func(other int) bool {
		return other == vm || w.fleet.VMs[other].Pinned != ""
	})
	slices.SortStableFunc(all, func(a, b int) int {
		x, y := w.fleet.VMs[a].Demand(), w.fleet.VMs[b].Demand()
		switch enoughA, enoughB := enough(a), enough(b); {
		case enoughA && enoughB:
			return cmp.Compare(x, y)
		case enoughA:
			return -1
		case enoughB:
			return 1
		}
		return cmp.Compare(y, x)
	})
	return all
}

// shorten lets a VM that moves several times move once, where that is possible.
func (p *planner) shorten(moves []Move) []Move {
	times := make(map[hypervisor.VMID]int, len(moves))
	for i := range moves {
		times[moves[i].VM]++
	}
	for i := 0; i < len(moves); i++ {
		if times[moves[i].VM] == 1 {
			continue // as nearly all
		}
		next := slices.IndexFunc(moves[i+1:], func(m Move) bool { return m.VM == moves[i].VM })
		if next < 0 {
			continue
		}
		next += i + 1
		once := Move{VM: moves[i].VM, Source: moves[i].Source, Target: moves[next].Target}
		early := slices.Delete(slices.Clone(moves), next, next+1)
		late := slices.Delete(slices.Clone(moves), i, i+1)
		early[i], late[next-1] = once, once
		if once.Source == once.Target {
			early = slices.Delete(early, i, i+1)
		}
		for _, shorter := range [][]Move{early, late} {
			if _, ok := Waves(p.start, shorter); ok {
				times[once.VM] -= len(moves) - len(shorter)
				moves, i = shorter, -1
				break
			}
		}
	}
	return moves
}
