package simtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// A Size bounds how many hosts and VMs a fleet has; both ends are possible. Parts whose
// guarantee needs more hosts, or fewer VMs, make so many.
type Size struct{ MinHosts, MaxHosts, MinVMs, MaxVMs int }

// Sizes. Small worlds find most bugs, and soon; Large ones are as large as what is measured.
var (
	Small = Size{3, 5, 1, 8}
	Large = Size{10, 10, 40, 40}
)

// links are the speeds of hosts' network cards.
var links = []string{"10Gbit/s", "1Gbit/s"}

// hosts adds so many hosts; size says how large each is, in GiB.
func (m *Builder) hosts(low, high int, size func() int) {
	n := m.Between("hosts", low, high)
	m.World.Hosts = slices.Grow(m.World.Hosts, n)
	for i := range n {
		m.World.Hosts = append(m.World.Hosts, inventory.HostSpec{Name: "n" + strconv.Itoa(i+1),
			Memory: gib(size()), CPUs: 64, Link: m.OneOf("link", links...)})
	}
}

// settle adds a VM of so many GiB on a host that has room; it is false when none has.
func (m *Builder) settle(room []int, size int) bool {
	roomy := 0
	for i := range room {
		if room[i] >= size {
			roomy++
		}
	}
	if roomy == 0 {
		return false
	}
	h, skip := 0, m.Choose("home", roomy)
	for ; room[h] < size || skip > 0; h++ {
		if room[h] >= size {
			skip--
		}
	}
	room[h] -= size
	m.add(h, size)
	return true
}

// gib writes so many GiB.
func gib(n int) string { return strconv.Itoa(n) + "GiB" }

// add adds a VM of so many GiB on a host.
func (m *Builder) add(host, size int) {
	m.World.VMs = append(m.World.VMs, inventory.VMSpec{
		Name: "v" + strconv.Itoa(len(m.World.VMs)+1), Host: m.World.Hosts[host].Name,
		Memory: gib(size), LoadSpec: inventory.LoadSpec{Class: "idle"}})
}

// room returns what is free on each host, in GiB.
func (w *World) room() []int {
	room, at := make([]int, len(w.Hosts)), map[string]int{}
	for i := range w.Hosts {
		room[i], at[w.Hosts[i].Name] = int(amount(w.Hosts[i].Memory)/hypervisor.GiB), i
	}
	for i := range w.VMs {
		if h, known := at[w.VMs[i].Host]; known {
			room[h] -= int(amount(w.VMs[i].Memory) / hypervisor.GiB)
		}
	}
	return room
}

// Roomy makes a fleet that can hold all of its VMs with any one host gone, wherever they are:
// what is free elsewhere is at least one largest VM for each host, so that one of them always
// has room for it.
func Roomy(s Size) Part {
	return Part{"a fleet that holds all its VMs with any one host gone", func(m *Builder) {
		m.hosts(max(s.MinHosts, 2), s.MaxHosts, func() int {
			return 8 * m.Between("host size", 2, 8)
		})
		room := m.World.room()
		total, gone := 0, 0
		for _, size := range room {
			total, gone = total+size, max(gone, size)
		}
		sum, largest, want := 0, 1, m.Between("VMs", s.MinVMs, s.MaxVMs)
		m.World.VMs = slices.Grow(m.World.VMs, want)
		for range want {
			size := m.Between("VM size", 1, 6)
			worst := max(size, largest)
			if sum+size+(len(room)-1)*worst > total-gone || !m.settle(room, size) {
				break
			}
			sum, largest = sum+size, worst
		}
		if len(m.World.VMs) == 0 {
			m.settle(room, 1)
		}
	}, holdsAll}
}

func holdsAll(w *World) error {
	total, gone, sum, largest := w.sizes()
	n := len(w.Hosts)
	if need := sum + hypervisor.Bytes(n-1)*largest; n < 2 || need > total-gone {
		return fmt.Errorf("%d hosts have %v without the largest, and %v are needed", n,
			total-gone, need)
	}
	return w.fits()
}

// sizes returns what the hosts have together, the largest of them, what the VMs need together,
// and the largest of these.
func (w *World) sizes() (total, host, sum, vm hypervisor.Bytes) {
	for i := range w.Hosts {
		size := amount(w.Hosts[i].Memory)
		total, host = total+size, max(host, size)
	}
	for i := range w.VMs {
		size := amount(w.VMs[i].Memory)
		sum, vm = sum+size, max(vm, size)
	}
	return total, host, sum, vm
}

// fits returns an error when there are no VMs, or a host has less than they need there.
func (w *World) fits() error {
	if len(w.VMs) == 0 {
		return errors.New("there are no VMs")
	}
	if i := slices.IndexFunc(w.room(), func(free int) bool { return free < 0 }); i >= 0 {
		return fmt.Errorf("%s is smaller than its VMs", w.Hosts[i].Name)
	}
	return nil
}

// Cramped makes a fleet that cannot hold its VMs when any one host is gone.
func Cramped(s Size) Part {
	return Part{"a fleet that cannot hold its VMs with any one host gone", func(m *Builder) {
		m.hosts(max(s.MinHosts, 2), s.MaxHosts, func() int {
			return 4 * m.Between("host size", 3, 5)
		})
		room := m.World.room()
		for m.settle(room, 4*m.Between("VM size", 1, 2)) || m.settle(room, 4) {
		}
	}, holdsNotAll}
}

func holdsNotAll(w *World) error {
	total, _, sum, _ := w.sizes()
	for i := range w.Hosts {
		if rest := total - amount(w.Hosts[i].Memory); len(w.Hosts) < 2 || sum <= rest {
			return fmt.Errorf("without %s %v are left for %v", w.Hosts[i].Name, rest, sum)
		}
	}
	return w.fits()
}

// OneFull makes a fleet that holds all its VMs, but on one host, which has nothing left for
// even the smallest of them.
func OneFull(s Size) Part {
	return Part{"a fleet with one full host", func(m *Builder) {
		m.hosts(max(s.MinHosts, 3), max(s.MaxHosts, 3), func() int { return 48 })
		full := m.Choose("full host", len(m.World.Hosts))
		for range 8 {
			m.add(full, 6)
		}
		room := m.World.room()
		for range m.Between("VMs", s.MinVMs, max(s.MinVMs, s.MaxVMs-8)) {
			m.settle(room, m.Between("VM size", 1, 2))
		}
	}, oneFull}
}

func oneFull(w *World) error {
	_, _, _, smallest := w.sizes()
	for i := range w.VMs {
		smallest = min(smallest, amount(w.VMs[i].Memory))
	}
	full := 0
	for _, free := range w.room() {
		if hypervisor.Bytes(free)*hypervisor.GiB < smallest {
			full++
		}
	}
	if full != 1 || len(w.Hosts) < 2 {
		return fmt.Errorf("%d of %d hosts are full", full, len(w.Hosts))
	}
	return w.fits()
}

// generations are models of CPUs, the oldest first; a host can show its own and all older.
var generations = []string{"Haswell", "Skylake", "Icelake"}

// Generations lets the hosts differ in the generation of their CPUs, and the VMs in which one
// they need: every VM runs on a host that has it, and two hosts at least differ.
func Generations() Part {
	return Part{"with hosts of different CPU generation", func(m *Builder) {
		of := map[string]int{}
		for i := range m.World.Hosts {
			h := &m.World.Hosts[i]
			g := m.Choose("generation", len(generations))
			switch i {
			case 0:
				g = 0
			case 1:
				g = max(g, 1)
			}
			h.CPUModels, of[h.Name] = generations[:g+1], g
		}
		for i := range m.World.VMs {
			v := &m.World.VMs[i]
			v.Platform.CPUModel = generations[m.Choose("CPU model", of[v.Host]+1)]
		}
	}, generationsDiffer}
}

func generationsDiffer(w *World) error {
	models, newest := map[string][]string{}, map[int]bool{}
	for i := range w.Hosts {
		h := &w.Hosts[i]
		models[h.Name] = h.CPUModels
		newest[len(h.CPUModels)] = true
	}
	if len(newest) < 2 {
		return errors.New("all hosts have the same CPUs")
	}
	for i := range w.VMs {
		if v := &w.VMs[i]; !slices.Contains(models[v.Host], v.Platform.CPUModel) {
			return fmt.Errorf("%s does not run on %s", v.Name, v.Host)
		}
	}
	return nil
}

// AnyFleet makes a fleet that has room for all VMs, or, one time in four, not.
func AnyFleet(s Size) Part {
	roomy, cramped := Roomy(s), Cramped(Size{2, 3, s.MinVMs, s.MaxVMs})
	return Part{"any fleet", func(m *Builder) {
		if m.Once("cramped", 4) {
			cramped.Add(m)
			return
		}
		roomy.Add(m)
	}, (*World).fits}
}
