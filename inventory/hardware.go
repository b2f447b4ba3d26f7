package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// hardware reads what a VM is made of.
func (r *attributeReader) hardware(at string, s *Hardware) *hypervisor.Hardware {
	r.label(at+".machine", s.Machine)
	r.label(at+".cpuModel", s.CPUModel)
	r.text(at+".firmware", s.Firmware)
	h := &hypervisor.Hardware{Machine: s.Machine, CPUModel: s.CPUModel, Firmware: s.Firmware,
		Hugepages: r.bytes(at+".hugepages", s.Hugepages), MaxMemory: r.bytes(at+".maxMemory", s.MaxMemory),
		MaxCPUs: s.MaxCPUs}
	if h.MaxMemory < 0 || h.MaxMemory%hypervisor.DIMMUnit != 0 {
		r.wrong(at+".maxMemory", "needs a multiple of %v, has %v", hypervisor.DIMMUnit, h.MaxMemory)
	}
	if h.MaxCPUs < 0 {
		r.wrong(at+".maxCPUs", "needs a number of CPUs, has %d", h.MaxCPUs)
	}
	for i, text := range s.Pins {
		h.Pins = append(h.Pins, r.set(fmt.Sprintf("%s.pins[%d]", at, i), text).CPUs())
	}
	for i := range s.Disks {
		h.Disks = append(h.Disks, r.disk(fmt.Sprintf("%s.disks[%d]", at, i), &s.Disks[i], h.Disks))
	}
	for i, n := range s.NICs {
		r.label(fmt.Sprintf("%s.nics[%d].mac", at, i), n.MAC)
		r.label(fmt.Sprintf("%s.nics[%d].tap", at, i), n.Tap)
		h.NICs = append(h.NICs, hypervisor.NIC{MAC: n.MAC, Tap: n.Tap})
	}
	return h
}

func (r *attributeReader) disk(at string, s *Disk, before []hypervisor.Disk) hypervisor.Disk {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	same := func(d hypervisor.Disk) bool { return d.Name == s.Name }
	switch {
	case s.Name == "" || strings.Trim(s.Name, letters) != "" || len(s.Name) > maxWord:
		r.wrong(at+".name", "%.100q is no name of a disk: lower-case letters, digits and -", s.Name)
	case slices.ContainsFunc(before, same):
		r.wrong(at+".name", "there is already a disk of this name")
	}
	if !slices.Contains([]string{"", "raw", "qcow2"}, s.Format) {
		r.wrong(at+".format", "unknown format %.100q; use raw or qcow2", s.Format)
	}
	r.text(at+".path", s.Path)
	d := hypervisor.Disk{Name: s.Name, Path: s.Path, Format: s.Format, ReadOnly: s.ReadOnly,
		Size: r.bytes(at+".size", s.Size)}
	if d.Local() && d.Size <= 0 {
		r.wrong(at+".size", "a local disk needs a size; a shared one needs a path")
	}
	return d
}

// demand adds what hardware asks of a host to what its VM asks.
func (r *attributeReader) demand(at string, h *hypervisor.Hardware, vm *placement.VM) {
	p := &vm.Constraints.Platform
	r.same(at+".machine", &p.Machine, h.Machine)
	r.same(at+".cpuModel", &p.CPUModel, h.CPUModel)
	for i, d := range h.Disks {
		if !d.Local() {
			continue
		}
		if vm.Disk > math.MaxInt64-d.Size {
			r.wrong(fmt.Sprintf("%s.disks[%d].size", at, i), "together they are 8 EiB or more")
			return
		}
		vm.Disk += d.Size
	}
	if len(h.Pins) > 0 && len(h.Pins) != vm.CPUs {
		r.wrong(at+".pins", "needs a set for each of %d CPUs, has %d", vm.CPUs, len(h.Pins))
	}
	if h.Hugepages == 0 && !Dedicated(h.Pins) {
		return
	}
	ask := placement.TopologyRequest{}
	if t := vm.Constraints.Topology; t != nil {
		ask = *t
	}
	if h.Hugepages != 0 && ask.PageSize != 0 && h.Hugepages != ask.PageSize {
		r.wrong(at+".hugepages", "topology says %v", ask.PageSize)
	}
	if h.Hugepages != 0 {
		ask.PageSize = h.Hugepages
	}
	ask.Dedicated = ask.Dedicated || Dedicated(h.Pins)
	vm.Constraints.Topology = r.valid(at, &ask, vm.Whole())
}

// same keeps the one of two words that is there.
func (r *attributeReader) same(at string, word *string, other string) {
	if *word != "" && other != "" && *word != other {
		r.wrong(at, "platform says %q", *word)
	}
	if *word == "" {
		*word = other
	}
}

// Dedicated reports whether every virtual CPU is pinned to one CPU, and each to its own.
// Sets of several CPUs, and CPUs that two have in common, are shared with others.
func Dedicated(pins [][]int) bool {
	seen := map[int]bool{}
	for _, cpus := range pins {
		if len(cpus) != 1 || seen[cpus[0]] {
			return false
		}
		seen[cpus[0]] = true
	}
	return len(pins) > 0
}
