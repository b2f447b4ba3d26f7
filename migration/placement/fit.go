package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// fitsTopology reports whether a VM with layout a fits into cells of which use is
// taken. whole is the VM's size, for an Ask without parts. It allocates nothing.
// Source: Nova virt/hardware.py (numa_fit_instance_to_host).
func fitsTopology(a *TopologyRequest, whole Part, cells []Cell, use []CellUse) bool {
	var s seating
	return s.fill(a, whole, cells, use)
}

// fit returns the seat of every part of a VM, in the order of its parts; false
// when it does not fit. See [fitsTopology].
func fit(a *TopologyRequest, whole Part, cells []Cell, use []CellUse) ([]Seat, bool) {
	var s seating
	if !s.fill(a, whole, cells, use) {
		return nil, false
	}
	seats := make([]Seat, max(1, len(a.Parts)))
	for c := range cells {
		if part := s.taker[c] - 1; part >= 0 {
			seats[part] = seat(a, a.part(int(part), whole), &cells[c], useOf(use, c))
			seats[part].Cell = c
		}
	}
	return seats, true
}

// Valid reports whether a makes sense for a VM of size whole: parts that add up
// to it, no negative number, a known policy, whole pages.
func (a *TopologyRequest) Valid(whole Part) bool {
	known := a.Threads == "" || a.Threads == Prefer || a.Threads == Isolate || a.Threads == Require
	if !known || a.PageSize < 0 || len(a.Parts) > MaxCells {
		return false
	}
	sum := Part{}
	for i := range max(1, len(a.Parts)) {
		p := a.part(i, whole)
		if p.CPUs < 0 || p.Memory < 0 || a.PageSize > 0 && p.Memory%a.PageSize != 0 {
			return false
		}
		sum.CPUs += p.CPUs
		sum.Memory += p.Memory
	}
	return sum == whole
}

func (a *TopologyRequest) part(i int, whole Part) Part {
	if len(a.Parts) == 0 {
		return whole
	}
	return a.Parts[i]
}

// A seating matches parts with cells: taker[c] is one more than the part that
// sits in cell c; 0 is none. It finds a match when there is one (Kuhn).
type seating struct{ taker [MaxCells]int8 }

func (s *seating) fill(a *TopologyRequest, whole Part, cells []Cell, use []CellUse) bool {
	n := max(1, len(a.Parts))
	if len(cells) > MaxCells || n > len(cells) {
		return false
	}
	p := puzzle{a, whole, cells, use}
	for part := range n {
		var tried uint64
		if !s.place(&p, part, &tried) {
			return false
		}
	}
	return true
}

// A puzzle is what a seating solves.
type puzzle struct {
	ask   *TopologyRequest
	whole Part
	cells []Cell
	use   []CellUse
}

// place seats a part, and moves others aside where that helps.
func (s *seating) place(p *puzzle, part int, tried *uint64) bool {
	for c := range p.cells {
		if *tried>>c&1 == 1 || !takes(p.ask, p.ask.part(part, p.whole), &p.cells[c],
			useOf(p.use, c)) {
			continue
		}
		*tried |= 1 << c
		if other := s.taker[c]; other == 0 || s.place(p, int(other)-1, tried) {
			s.taker[c] = int8(part + 1)
			return true
		}
	}
	return false
}

// takes reports whether one part fits into one cell.
// Source: Nova virt/hardware.py (_numa_fit_instance_cell).
func takes(a *TopologyRequest, p Part, c *Cell, u *CellUse) bool {
	if p.CPUs < 0 || p.Memory < 0 {
		return false
	}
	return p.Memory <= freeMemory(a.PageSize, c, u) &&
		(a.PageSize == 0 || a.PageSize > 0 && p.Memory%a.PageSize == 0) &&
		p.CPUs <= freeCPUs(a, c, u, p.CPUs)
}

// freeMemory returns what is left in pages of a size; 0 is the ordinary one.
func freeMemory(size hypervisor.Bytes, c *Cell, u *CellUse) hypervisor.Bytes {
	if size == 0 {
		return c.Memory - u.Memory
	}
	return hypervisor.Bytes(freePagesOf(size, c, u)) * size
}

// freePagesOf returns how many pages of a size are left in a cell; a negative
// number is how many were taken that are not there.
func freePagesOf(size hypervisor.Bytes, c *Cell, u *CellUse) int64 {
	return pagesOf(c.Pages, size) - pagesOf(u.Pages, size)
}

func pagesOf(pools []Pool, size hypervisor.Bytes) int64 {
	for i := range pools {
		if pools[i].Size == size {
			return pools[i].Pages
		}
	}
	return 0
}

// maxThreads is the most threads of a core that are told apart.
const maxThreads = 16

// freeCPUs returns how many virtual CPUs of a VM with layout a find a place; it
// may stop counting at enough.
// Source: Nova virt/hardware.py (_pack_instance_onto_cores): isolate counts
// cores of which every thread is free; require counts, for each number of
// threads above one, the cores that have so many free.
func freeCPUs(a *TopologyRequest, c *Cell, u *CellUse, enough int) int {
	var with [maxThreads + 1]int // with[t] cores have t free threads or more
	all, whole, most := 0, 0, 0
	for i := range c.Cores {
		free := c.Cores[i].free(u.Pinned)
		all += free
		if free > 0 && free == c.Cores[i].Len() {
			whole++
		}
		for t := 1; t <= min(free, maxThreads); t++ {
			if with[t]++; t > 1 {
				most = max(most, t*with[t])
			}
		}
		if n := a.counted(all, whole, most); n >= enough {
			return n
		}
	}
	return a.counted(all, whole, most)
}

// counted returns the number that matters to a: of free threads, of whole cores,
// or of threads that are not alone on their core.
func (a *TopologyRequest) counted(all, whole, most int) int {
	switch {
	case a.Dedicated && a.Threads == Isolate:
		return whole
	case a.Dedicated && a.Threads == Require:
		return most
	}
	return all
}

// seat chooses the CPUs of one part in a cell that takes it.
func seat(a *TopologyRequest, p Part, c *Cell, u *CellUse) Seat {
	s := Seat{Memory: p.Memory, PageSize: a.PageSize}
	if !a.Dedicated {
		return s
	}
	for t := maxThreads; t >= 1; t-- {
		if s.CPUs, s.Taken = pin(a, p.CPUs, t, c, u); s.CPUs.Len() == p.CPUs {
			return s
		}
	}
	s.CPUs = nil // free threads, wherever they are
	for i := range c.Cores {
		for _, cpu := range c.Cores[i].minus(u.Pinned).CPUs() {
			if s.CPUs.Len() < p.CPUs {
				s.CPUs = s.CPUs.with(cpu)
			}
		}
	}
	s.Taken = slices.Clone(s.CPUs)
	return s
}

// pin takes up to n CPUs from cores with t free threads or more, t of each. A
// part that is isolated takes whole cores, and runs on one thread of each.
func pin(a *TopologyRequest, n, t int, c *Cell, u *CellUse) (cpus, taken CPUSet) {
	for i := range c.Cores {
		core, free := c.Cores[i], c.Cores[i].minus(u.Pinned).CPUs()
		isolate := a.Threads == Isolate
		if left := n - cpus.Len(); len(free) < t || left == 0 || isolate && len(free) < core.Len() {
			continue
		} else if isolate {
			free = free[:1]
		} else {
			free = free[:min(t, left)]
		}
		for _, cpu := range free {
			cpus = cpus.with(cpu)
		}
		if !isolate {
			core = CPUSetOf(free...)
		}
		taken = taken.plus(core)
	}
	return cpus, taken
}

var nothing CellUse

func useOf(use []CellUse, c int) *CellUse {
	if c < len(use) {
		return &use[c]
	}
	return &nothing
}

// take reserves seats, and returns the use of all cells then. It changes use only
// where it returns it.
func take(use []CellUse, seats []Seat) []CellUse {
	for _, s := range seats {
		for len(use) <= s.Cell {
			use = append(use, CellUse{})
		}
		u := &use[s.Cell]
		u.Pinned = u.Pinned.plus(s.Taken)
		u.add(s, +1)
	}
	return use
}

// free undoes Take with the same seats.
func free(use []CellUse, seats []Seat) []CellUse {
	for _, s := range seats {
		if s.Cell < len(use) {
			u := &use[s.Cell]
			u.Pinned = u.Pinned.minus(s.Taken)
			u.add(s, -1)
		}
	}
	for len(use) > 0 && use[len(use)-1].none() {
		use = use[:len(use)-1]
	}
	if len(use) == 0 {
		return nil
	}
	return use
}

func (u *CellUse) add(s Seat, sign int64) {
	if s.PageSize <= 0 {
		u.Memory += hypervisor.Bytes(sign) * s.Memory
		return
	}
	i := slices.IndexFunc(u.Pages, func(p Pool) bool { return p.Size == s.PageSize })
	if i < 0 {
		i = len(u.Pages)
		u.Pages = append(slices.Clip(u.Pages), Pool{Size: s.PageSize})
	}
	pages := slices.Clone(u.Pages)
	pages[i].Pages += sign * int64(s.Memory/s.PageSize)
	u.Pages = slices.DeleteFunc(pages, func(p Pool) bool { return p.Pages == 0 })
	if len(u.Pages) == 0 {
		u.Pages = nil
	}
}

func (u *CellUse) none() bool { return len(u.Pinned) == 0 && u.Memory == 0 && len(u.Pages) == 0 }

// describe says what a asks for: "2 parts, 4 CPUs and 8GiB the largest,
// dedicated (require), in 1GiB pages".
func (a *TopologyRequest) describe(whole Part) string {
	most := a.part(0, whole)
	for i := range a.Parts {
		most.CPUs = max(most.CPUs, a.Parts[i].CPUs)
		most.Memory = max(most.Memory, a.Parts[i].Memory)
	}
	text := fmt.Sprintf("%d CPUs and %v in one cell", most.CPUs, most.Memory)
	if n := len(a.Parts); n > 1 {
		text = fmt.Sprintf("%d cells, up to %d CPUs and %v in each", n, most.CPUs, most.Memory)
	}
	if a.Dedicated {
		text += ", dedicated"
		if a.Threads != "" {
			text += " (" + string(a.Threads) + ")"
		}
	}
	if a.PageSize > 0 {
		text += fmt.Sprintf(", in %v pages", a.PageSize)
	}
	return text
}

// left says what is left of each cell for a VM with layout a: "cell 0: 2 CPUs
// and 4GiB; cell 1: 8 CPUs and 0B".
func (a *TopologyRequest) left(cells []Cell, use []CellUse) string {
	if len(cells) == 0 {
		return "no known cells"
	}
	var texts []string
	for i := range cells {
		c, u := &cells[i], useOf(use, i)
		texts = append(texts, fmt.Sprintf("cell %d: %d CPUs and %v", c.ID,
			freeCPUs(a, c, u, math.MaxInt), freeMemory(a.PageSize, c, u)))
	}
	return strings.Join(texts, "; ")
}
