package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// maxRatio is the most often that an amount is given away.
const maxRatio = 1000

// plainFacts returns the facts of a host of which its size is known, and nothing else.
func plainFacts(size hypervisor.Host) *placement.Facts {
	return &placement.Facts{Link: size.Link,
		Memory: placement.DeviceInventory{Total: int64(size.Memory)},
		CPUs:   placement.DeviceInventory{Total: int64(size.CPUs)}}
}

// Host reads what a file says about the host at a path such as "hosts[3]". size is
// what the file says that the host has; its zone, its amounts and everything else
// are in the facts. What VMs may use together of memory and CPUs is the capacity
// of Facts.Memory and Facts.CPUs.
func (r *attributeReader) Host(at string, s *HostAttributes, size hypervisor.Host) *placement.Facts {
	f := &placement.Facts{
		MaxVMs: r.count(at+".maxVMs", s.MaxVMs), MaxBusy: r.count(at+".maxBusy", s.MaxBusy),
		Disabled: s.Disabled, Maintenance: s.Maintenance,
		Zone: s.Zone, Rack: s.Rack, Link: size.Link,
		Uplink:     r.uplink(at, s.Rack, s.Uplink),
		Aggregates: named(r, at+".aggregates", "aggregate", s.Aggregates, r.aggregates),
		Machines:   r.words(at+".machines", s.Machines),
		CPU:        r.cpu(at, s),
		Hypervisor: r.software(at+".hypervisor", s.Hypervisor),
		Abilities:  r.abilities(at+".abilities", s.Abilities),
		Cells:      r.cells(at+".cells", s.Cells),
		Devices:    r.hostDevices(at+".devices", s.Devices),
		Networks:   r.words(at+".networks", s.Networks),
	}
	r.label(at+".zone", s.Zone)
	r.label(at+".rack", s.Rack)
	r.amounts(at, s, size, f)
	return f
}

// amounts reads what there is, what is reserved and what one VM may ask for.
func (r *attributeReader) amounts(at string, s *HostAttributes, size hypervisor.Host, f *placement.Facts) {
	p := &s.PerVM
	f.Memory = r.bounds(at+".perVM.memory", p.Memory)
	f.Memory.Total = int64(size.Memory)
	f.Memory.Reserved = int64(r.bytes(at+".reserved.memory", s.Reserved.Memory))
	f.Memory.Ratio = r.ratio(at+".ratios.memory", s.Ratios.Memory)
	r.leftOver(at, "memory", f.Memory, size.Memory > 0)

	f.CPUs = r.between(at+".perVM.cpus", placement.DeviceInventory{
		Min:  int64(r.count(at+".perVM.cpus.min", p.CPUs.Min)),
		Max:  int64(r.count(at+".perVM.cpus.max", p.CPUs.Max)),
		Step: int64(r.count(at+".perVM.cpus.step", p.CPUs.Step)),
	})
	f.CPUs.Total = int64(size.CPUs)
	f.CPUs.Reserved = int64(r.count(at+".reserved.cpus", s.Reserved.CPUs))
	f.CPUs.Ratio = r.ratio(at+".ratios.cpus", s.Ratios.CPUs)
	r.leftOver(at, "cpus", f.CPUs, size.CPUs > 0)

	f.Disk = r.bounds(at+".perVM.disk", p.Disk)
	f.Disk.Total = int64(r.bytes(at+".disk", s.Disk))
	f.Disk.Reserved = int64(r.bytes(at+".reserved.disk", s.Reserved.Disk))
	f.Disk.Ratio = r.ratio(at+".ratios.disk", s.Ratios.Disk)
	if s.Disk == "" && (s.Reserved.Disk != "" || s.Ratios.Disk != nil) {
		r.wrong(at+".disk", "it is missing, although a part is reserved or given away more than "+
			"once")
	}
	r.leftOver(at, "disk", f.Disk, s.Disk != "")
}

// leftOver: what is reserved is less than there is.
func (r *attributeReader) leftOver(at, what string, i placement.DeviceInventory, known bool) {
	if known && i.Reserved > 0 && i.Capacity() <= 0 {
		r.wrong(at+".reserved."+what, "nothing is left for VMs")
	}
}

func (r *attributeReader) ratio(at string, ratio *float64) float64 {
	switch {
	case ratio == nil:
		return 0
	case !(*ratio > 0 && *ratio <= maxRatio): // also what is no number
		r.wrong(at, "needs more than 0 and at most %d, has %v", maxRatio, *ratio)
		return 0
	}
	return *ratio
}

func (r *attributeReader) bounds(at string, b SizeBound) placement.DeviceInventory {
	return r.between(at, placement.DeviceInventory{
		Min:  int64(r.bytes(at+".min", b.Min)),
		Max:  int64(r.bytes(at+".max", b.Max)),
		Step: int64(r.bytes(at+".step", b.Step)),
	})
}

func (r *attributeReader) between(at string, i placement.DeviceInventory) placement.DeviceInventory {
	if i.Max > 0 && i.Max < i.Min {
		r.wrong(at+".max", "it is less than min")
	}
	return i
}

func (r *attributeReader) cpu(at string, s *HostAttributes) *placement.CPU {
	if s.Arch == "" && s.CPUVendor == "" && len(s.CPUModels) == 0 && len(s.CPUFeatures) == 0 {
		return nil
	}
	r.label(at+".arch", s.Arch)
	r.label(at+".cpuVendor", s.CPUVendor)
	features := slices.Clone(r.words(at+".cpuFeatures", s.CPUFeatures))
	slices.Sort(features)
	return &placement.CPU{Arch: s.Arch, Models: r.words(at+".cpuModels", s.CPUModels),
		Features: features, Vendor: s.CPUVendor}
}

// abilities reads names of abilities. Said to have none, a host can do nothing
// besides plain pre-copy; of what is not said nothing is known.
func (r *attributeReader) abilities(at string, names Words) hypervisor.Abilities {
	if len(names) == 0 {
		return 0
	}
	known := map[string]hypervisor.Abilities{}
	for a := hypervisor.Abilities(1); len(a.Names()) > 0; a <<= 1 {
		known[a.Names()[0]] = a
	}
	all := hypervisor.Abilities(0)
	for i, name := range names {
		a, ok := known[name]
		if !ok {
			r.wrong(fmt.Sprintf("%s[%d]", at, i), "unknown ability %.100q; use %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		all |= a
	}
	return all
}

func (r *attributeReader) hostDevices(at string, counts map[string]int) placement.Devices {
	var all placement.Devices
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		r.word(at, class)
		n := r.count(at+"."+class, counts[class])
		all = append(all, placement.DeviceCount{Class: class, Count: n})
	}
	return all
}

func (r *attributeReader) cells(at string, specs []Cell) []placement.Cell {
	if len(specs) > placement.MaxCells {
		r.wrong(at, "a host has at most %d cells", placement.MaxCells)
		return nil
	}
	var all []placement.Cell
	seen := map[int]bool{}
	for i := range specs {
		at := fmt.Sprintf("%s[%d]", at, i)
		c := placement.Cell{ID: i, Cores: r.cores(at, &specs[i]),
			Memory: r.bytes(at+".memory", specs[i].Memory),
			Pages:  r.pools(at+".pages", specs[i].Pages)}
		for _, core := range c.Cores {
			for _, cpu := range core.CPUs() {
				if seen[cpu] {
					r.wrong(at, "CPU %d is in two cores", cpu)
				}
				seen[cpu] = true
			}
		}
		all = append(all, c)
	}
	return all
}

// cores reads the cores of a cell, as they are listed or as threads of a range.
func (r *attributeReader) cores(at string, s *Cell) []placement.CPUSet {
	if (s.CPUs == "") == (len(s.Cores) == 0) {
		r.wrong(at, "give cpus, such as 0-31, or cores, such as [\"0,32\", \"1,33\"]")
		return nil
	}
	var all []placement.CPUSet
	for i, text := range s.Cores {
		all = append(all, r.set(fmt.Sprintf("%s.cores[%d]", at, i), text))
	}
	if s.CPUs == "" {
		return all
	}
	cpus, threads := r.set(at+".cpus", s.CPUs).CPUs(), max(1, s.Threads)
	if s.Threads < 0 || len(cpus)%threads != 0 {
		r.wrong(at+".threads", "%d CPUs cannot be divided into cores of %d", len(cpus), s.Threads)
		return nil
	}
	if len(cpus) > 0 && !r.affords(at+".cpus", len(cpus)/threads*(slices.Max(cpus)/64+1)) {
		return nil
	}
	for core := range slices.Chunk(cpus, threads) {
		all = append(all, placement.CPUSetOf(core...))
	}
	return all
}

// affords reports whether there is room for so many more words.
func (r *attributeReader) affords(at string, words int) bool {
	within := r.spent <= maxWords
	r.spent += words
	if within && r.spent > maxWords {
		r.wrong(at, "this file names too many CPUs: describe hosts that are alike once")
	}
	return r.spent <= maxWords
}

// set reads CPUs by number, at least one.
func (r *attributeReader) set(at, text string) placement.CPUSet {
	if !r.affords(at, 1) {
		return nil
	}
	s, err := placement.ParseCPUSet(text)
	if err == nil && s.Len() == 0 {
		err = fmt.Errorf("a CPU is missing")
	}
	if err != nil {
		r.wrong(at, "%v", err)
	}
	if !r.affords(at, len(s)+s.Len()) {
		return nil
	}
	return s
}

// pools reads how many huge pages there are of each size, the smallest size first.
func (r *attributeReader) pools(at string, pages map[string]int64) []placement.Pool {
	var all []placement.Pool
	for _, text := range slices.Sorted(maps.Keys(pages)) {
		size, err := ParseBytes(text)
		n := pages[text]
		switch {
		case err != nil:
			r.wrong(at, "%v", err)
		case size == 0 || n < 0 || n > math.MaxInt64/4/int64(size):
			r.wrong(at, "%s needs a size, and a number of pages that is not negative or too "+
				"large, has %d", text, n)
		case slices.ContainsFunc(all, func(p placement.Pool) bool { return p.Size == size }):
			r.wrong(at, "%s is there twice", text)
		default:
			all = append(all, placement.Pool{Size: size, Pages: n})
		}
	}
	slices.SortFunc(all, func(a, b placement.Pool) int { return cmp.Compare(a.Size, b.Size) })
	return all
}
